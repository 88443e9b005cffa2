"""What can be saved of a damaged folder: the rules of `headrace check --repair`.

A value is kept only when it is one that really was there. So:

- **The log is cut at the first damage.** Everything before it counts, nothing behind it, though the frames there may be
  good: what the damaged frame did is unknown, and they build on it.
- **A damaged part of a checkpoint is a lost key.** Its records in the log are dropped too, until one of them gives the
  key a whole new value: a list without its beginning is not that list. When the damaged part does not even say whose
  it was, this holds for every key that is in no good part, for any of them may be the one.
- **A damaged node of a segment is lost entries.** The rest of the stream stays. When the log goes on to deliver entries
  to a group that was not past the damage, which ones they were is unknown: the stream stays as it was before that.

Whatever is dropped is told, and every dropped record that can be read is handed on, to be kept as a command.
"""

from collections.abc import Callable
from typing import Final

from headrace.commands.call import State
from headrace.engine.snapshot import find_head, load_part
from headrace.errors import HeadraceError
from headrace.journal import checkpoint
from headrace.journal.confirmed import read_confirmed
from headrace.journal.disk import Disk
from headrace.journal.frame_file import name_of
from headrace.journal.frames import Frame, parse_opening
from headrace.journal.record import read_records
from headrace.journal.recovery import LOG
from headrace.journal.remains import Remains
from headrace.journal.scan import Gap, read_pieces
from headrace.server.findings import Finding, counted, show_key
from headrace.server.salvaged_keys import KeepRecord, Place, SalvagedKeys, place_of
from headrace.server.salvaged_segments import SalvagedSegments

PASSES: Final = 10  # Two are the rule: one to learn which records do not fit, one without them.
KEYS_SHOWN: Final = 10


class Salvage:
    """One reading of what is left, into an empty state."""

    def __init__(self, state: State, disk: Disk, remains: Remains, misfits: set[tuple[int, int]]) -> None:
        self.state = state
        self.disk = disk
        self.remains = remains
        self.segments = SalvagedSegments(disk, remains.segments)
        state.settings.limits.fetch_from(self.segments.fetch)
        self.keys = SalvagedKeys(state, self.segments.holes, misfits)
        self.findings: list[Finding] = []
        self.lost: dict[Place, Finding] = {}  # Keys that were told to be.
        self.confirmed, problem = read_confirmed(disk)  # Number of a log, and how much of it had been synced.
        if problem:
            self.findings.append(Finding("note", problem))
        self.last = -1  # Sequence of the last frame of the log that counts.
        self.highest = 0  # Of all frames seen.
        self.cut: Finding | None = None  # Where the log ends.
        self.behind: dict[Place, int] = {}  # Records behind that, by key.
        self.frames_behind = 0

    def run(self) -> None:
        self.read_checkpoint()
        for number in self.remains.logs:
            self.read_log(number)
        if not self.remains.logs:
            self.end_log(LOG, 0, "there is none")
        self.tell()

    def find(self, name: str, offset: int, text: str) -> Finding:
        finding = Finding("dropped", text, name, offset)
        self.findings.append(finding)
        return finding

    # The checkpoint

    def read_checkpoint(self) -> None:
        number = self.remains.checkpoint
        if not number:
            return
        name = name_of(checkpoint.KIND, number)
        try:
            file = self.disk.open(name)
        except OSError:
            self.miss_parts(name, 0, "the whole checkpoint is missing")
            return
        expected = 0
        named = 0  # Parts since the last good one that are lost, but said whose they were.
        is_closed = False
        for piece in read_pieces(file, name):
            if isinstance(piece, Gap):
                named += self.lose_part(name, piece.offset, piece.payload, piece.problem)
                continue
            if piece.sequence < expected or is_closed:
                self.findings.append(Finding("note", f"frame {piece.sequence} is there twice", name, piece.offset))
                continue
            if piece.sequence - expected > named:
                missing = piece.sequence - expected - named
                self.miss_parts(name, piece.offset, f"{missing} parts before this place are missing")
            expected, named = piece.sequence + 1, 0
            is_closed = not piece.payload
            if piece.sequence == 0:
                self.begin(name, piece)
            elif piece.payload:
                self.take_part(name, piece)
        if not is_closed:
            self.miss_parts(
                name, file.size(), "the end of the checkpoint is missing, and with it an unknown number of keys"
            )
        file.close()

    def begin(self, name: str, frame: Frame) -> None:
        try:
            self.keys.start = self.keys.newest = parse_opening(frame.payload).start
        except ValueError as error:
            self.miss_parts(name, frame.offset, str(error))

    def take_part(self, name: str, frame: Frame) -> None:
        try:
            part = load_part(frame.payload, self.state.settings.limits)
        except ValueError as error:
            self.lose_part(name, frame.offset, frame.payload, str(error))
            return
        place = (part.database, part.key)
        if place in self.keys.sequences:
            self.findings.append(Finding("note", f"a second part of key {show_key(*place)}", name, frame.offset))
            return
        if place in self.lost:  # There was a damaged copy before it.
            self.findings.remove(self.lost.pop(place))
        self.findings += self.segments.drop_lost_nodes(part)
        self.highest = max(self.highest, part.sequence)
        self.keys.take_part(part)

    def lose_part(self, name: str, offset: int, payload: bytes, problem: str) -> bool:
        """A part cannot be read. Whether it still says whose it was."""
        place = find_head(payload)
        if place in self.keys.sequences:
            self.findings.append(Finding("note", f"a second part of key {show_key(*place)} is damaged", name, offset))
            return True
        if place is None:
            self.miss_parts(name, offset, f"a part of the checkpoint ({problem}); it does not say whose it was")
            return False
        self.keys.marks[place[0]].broken.add(place[1])
        self.lost[place] = self.find(name, offset, f"key {show_key(*place)} is lost ({problem})")
        return True

    def miss_parts(self, name: str, offset: int, text: str) -> None:
        for marks in self.keys.marks:
            marks.may_lack = True
        self.find(name, offset, text)

    # The log

    def read_log(self, number: int) -> None:
        name = name_of(LOG, number)
        try:
            file = self.disk.open(name)
        except OSError:
            self.end_log(name, 0, "it is missing")
            return
        is_closed = False
        is_first = True
        for piece in read_pieces(file, name):
            if isinstance(piece, Gap):
                if is_closed:
                    self.find(name, piece.offset, f"{piece.size} bytes behind the end of the log")
                else:
                    self.end_log(name, piece.offset, piece.problem)
                continue
            self.highest = max(self.highest, piece.sequence)
            if not self.cut and not is_closed:
                problem = self.opening_problem(piece, number) if is_first else self.sequence_problem(piece)
                if problem:
                    self.end_log(name, piece.offset, problem)
            if is_closed or self.cut:
                self.drop_frame(piece, is_opening=is_first)
            else:
                is_closed = not is_first and not piece.payload
                self.take_frame(name, piece, is_opening=is_first)
            is_first = False
        if not self.cut:
            self.check_end(name, number, file.size(), is_closed=is_closed)
        file.close()

    def check_end(self, name: str, number: int, size: int, *, is_closed: bool) -> None:
        is_last = number == self.remains.logs[-1]
        log, confirmed = self.confirmed
        sure = max(self.remains.log_bytes if number == self.remains.logs[0] else 1, confirmed if log == number else 0)
        if size < sure:
            self.end_log(name, size, f"{counted(sure - size, 'byte')} that had been synced are missing")
        elif is_last and log > number:
            self.end_log(name_of(LOG, log), 0, "it is missing, with everything written since")
        elif is_closed and is_last:
            self.end_log(name_of(LOG, number + 1), 0, "it is missing, with everything written since")
        elif not is_closed and not is_last:
            self.end_log(name, size, "its end is missing, and another log follows")

    def opening_problem(self, frame: Frame, number: int) -> str:
        try:
            opening = parse_opening(frame.payload)
        except ValueError as error:
            return str(error)
        if (opening.kind, opening.number) != (LOG, number) or opening.start != frame.sequence:
            return f"it is in truth {name_of(opening.kind, opening.number)}"
        if self.last < 0:
            lacks_base = self.remains.checkpoint == 0 and opening.start > 0
            if lacks_base:
                self.miss_parts(name_of(LOG, number), 0, "everything before this log is missing")
            if lacks_base or (self.keys.start == 0 and self.keys.marks[0].may_lack):
                self.keys.start = opening.start
            is_next = opening.start <= self.keys.start
        else:
            is_next = opening.start == self.last
        return "" if is_next else f"it begins with frame {opening.start}, which is not the next one"

    def sequence_problem(self, frame: Frame) -> str:
        return "" if frame.sequence == self.last + 1 else f"frame {frame.sequence} where {self.last + 1} should be"

    def end_log(self, name: str, offset: int, problem: str) -> None:
        """Nothing counts from here on."""
        if self.cut is None:
            what = f"frame {self.last + 1} and all behind it ({problem})" if self.last >= 0 else problem
            self.cut = self.find(name, offset, what)

    def take_frame(self, name: str, frame: Frame, *, is_opening: bool) -> None:
        if not is_opening and frame.payload and frame.sequence > self.keys.start:
            try:
                records = read_records(frame.payload)
            except ValueError as error:
                self.end_log(name, frame.offset, str(error))
                return
            for place, record in enumerate(records):
                self.keys.take_record(frame.sequence, place, record)
        self.last = frame.sequence

    def drop_frame(self, frame: Frame, *, is_opening: bool) -> None:
        if is_opening or not frame.payload:
            return
        try:
            records = read_records(frame.payload)
        except ValueError:
            return
        if self.last >= 0 and frame.sequence <= self.last:
            return  # A copy of one that counts.
        self.frames_behind += 1
        for record in records:
            place = place_of(record)
            self.behind[place] = self.behind.get(place, 0) + 1
            self.keys.keep_record(frame.sequence, record)

    # What to tell

    def tell(self) -> None:
        """Complete the findings: what is behind the cut, and which keys are not what they were."""
        cut = self.cut
        if cut is not None and self.behind:
            cut.text += (
                f"; among them {counted(self.frames_behind, 'good frame')} that build on what is damaged, with "
                f"{counted(sum(self.behind.values()), 'record')} of {some_keys(self.behind)}"
            )
        newer = {place: 0 for place, sequence in self.keys.sequences.items() if 0 <= self.last < sequence}
        if cut is not None and newer:
            self.findings.append(
                Finding("note", f"newer than the end of the log, from the checkpoint: {some_keys(newer)}")
            )
        for place, count in self.keys.broken():
            if count or place not in self.lost:
                self.tell_broken(place, count)

    def tell_broken(self, place: Place, count: int) -> None:
        is_there = place[1] in self.state.databases[place[0]].values
        fate = "is older than it was" if is_there else "is lost"
        records = f": {counted(count, 'record')} of the log about it do not count" if count else ""
        self.findings.append(Finding("dropped", f"key {show_key(*place)} {fate}{records}"))


def some_keys(counts: dict[Place, int]) -> str:
    """How many keys, and the first of them by name."""
    names = [show_key(*place) for place in sorted(counts)[:KEYS_SHOWN]]
    more = ", ..." if len(counts) > KEYS_SHOWN else ""
    return f"{counted(len(counts), 'key')}: {', '.join(names)}{more}"


def salvage(
    make_state: Callable[[], State],
    disk: Disk,
    remains: Remains,
    begin_keeping: Callable[[], KeepRecord],
) -> Salvage:
    """Read what is left, until every record that is kept fits. `begin_keeping` is asked anew by each reading."""
    misfits: set[tuple[int, int]] = set()
    for _ in range(PASSES):
        known = len(misfits)
        reading = Salvage(make_state(), disk, remains, misfits)
        reading.keys.keep_record = begin_keeping()
        reading.run()
        if len(misfits) == known:
            return reading
        reading.segments.close()
    raise HeadraceError(f"{len(misfits)} records do not fit, and leaving them out makes others not fit")

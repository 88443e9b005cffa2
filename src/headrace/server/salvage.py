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
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.commands.apply import apply
from headrace.commands.call import State
from headrace.engine.ids import name_of as id_name
from headrace.engine.snapshot import Part, find_head, load_part
from headrace.engine.stream import Stream
from headrace.errors import HeadraceError, JournalError
from headrace.journal import checkpoint, segments
from headrace.journal.confirmed import read_confirmed
from headrace.journal.disk import Disk, Readable
from headrace.journal.frame_file import FrameFile, name_of
from headrace.journal.frames import Frame, parse_opening
from headrace.journal.record import CLEAR, CREATE_STREAM, DELIVER, MOVE, PUT, REMOVE, STRUCTURAL, SWAP, read_records
from headrace.journal.recovery import LOG
from headrace.journal.remains import Remains
from headrace.journal.scan import Gap, read_pieces
from headrace.journal.segments import Segments, open_segment
from headrace.server.findings import Finding, counted, show_key

WHOLE: Final = (PUT, REMOVE, CREATE_STREAM)  # Whatever the key held before does not matter.
PASSES: Final = 10  # Two are the rule: one to learn which records do not fit, one without them.

KEYS_SHOWN: Final = 10

Record = list[Any]


@dataclass(slots=True)
class Marks:
    """Of one database: which keys can be trusted."""

    broken: set[bytes] = field(default_factory=set)  # Lost, or not as new as they were.
    dropped: dict[bytes, int] = field(default_factory=dict)  # How many records of such keys do not count.
    known: set[bytes] = field(default_factory=set)  # Where parts are lost: keys that surely are none of them.
    may_lack: bool = False  # Parts are lost, and nobody knows whose they were.

    def is_broken(self, key: bytes) -> bool:
        if self.may_lack and key not in self.known:
            self.broken.add(key)
        return key in self.broken

    def heal(self, key: bytes) -> None:
        self.broken.discard(key)
        self.dropped.pop(key, None)
        self.known.add(key)


class Salvage:
    """One reading of what is left, into an empty state."""

    def __init__(self, state: State, disk: Disk, remains: Remains, misfits: set[tuple[int, int]]) -> None:
        self.state = state
        self.disk = disk
        self.remains = remains
        self.misfits = misfits  # Records that do not fit what is there, by frame and place in it.
        self.marks = [Marks() for _ in state.databases]
        self.sequences: dict[tuple[int, bytes], int] = {}  # Of the part of each key.
        self.start = 0  # The checkpoint has everything up to this sequence.
        self.newest = 0
        self.last = -1  # Sequence of the last frame of the log that counts.
        self.highest = 0  # Of all frames seen.
        self.cut: Finding | None = None  # Where the log ends.
        self.holes: dict[Stream, list[tuple[int, int]]] = {}  # Lost entries, as IDs from, below.
        self.lost: dict[tuple[int, bytes], Finding] = {}  # Keys that were told to be.
        self.behind: dict[tuple[int, bytes], int] = {}  # Records behind the end of the log.
        self.frames_behind = 0
        self.findings: list[Finding] = []
        self.keep_record: Callable[[int, Record], None] = forget_record
        self.segments = Segments(disk)
        self.unsound: dict[int, set[int]] = {}  # Segments that cannot stay as they are, and where they are still good.
        state.settings.limits.fetch_from(self.fetch)

    def run(self) -> None:
        self.open_segments()
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

    # Segments

    def open_segments(self) -> None:
        for number, length in sorted(self.remains.segments.items()):
            name = name_of(segments.KIND, number)
            try:
                file = self.disk.open(name)
            except OSError:
                continue  # Its nodes will be missed.
            size = file.size()
            try:
                self.segments.files[number] = open_segment(self.disk, number, size if length is None else length)
                file.close()
            except JournalError:
                self.segments.files[number] = FrameFile(name, file, size, 0)
                self.unsound[number] = places_in_order(file, name)

    def fetch(self, segment: int, offset: int, size: int) -> bytes:
        """What lies at a place, unless something else may lie there now."""
        if offset not in self.unsound.get(segment, (offset,)):
            raise JournalError(f"{name_of(segments.KIND, segment)} is damaged at byte {offset}: it is out of order")
        return self.segments.fetch(segment, offset, size)

    def drop_lost_nodes(self, part: Part) -> None:
        """Take the nodes out of a stream that cannot be read."""
        stream = part.value
        if not isinstance(stream, Stream):
            return
        holes: list[tuple[int, int]] = []
        for index, node in enumerate(list(stream.nodes)):
            if node.shelf is None:
                continue
            position = stream.nodes.index(node)
            is_last = position + 1 == len(stream.nodes)
            below = stream.last_id + 1 if is_last else stream.nodes[position + 1].first
            try:
                if node.first_id() < node.first or node.last_id() >= below:
                    raise ValueError("other entries lie there")
            except (JournalError, ValueError, OSError) as error:
                holes.append((node.first, below))
                stream.remove(position, 0, node.count)
                stream.max_deleted = max(stream.max_deleted, below - 1)
                segment, offset, _ = part.places[index]
                self.find(
                    name_of(segments.KIND, segment),
                    offset,
                    f"{node.count} entries of stream {show_key(part.database, part.key)}, with IDs from "
                    f"{id_name(node.first).decode()} to below {id_name(below).decode()} ({error})",
                )
        if holes:
            stream.refresh_first_id()
            self.holes[stream] = holes

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
            self.start = parse_opening(frame.payload).start
        except ValueError as error:
            self.miss_parts(name, frame.offset, str(error))
        self.newest = self.start

    def take_part(self, name: str, frame: Frame) -> None:
        try:
            part = load_part(frame.payload, self.state.settings.limits)
        except ValueError as error:
            self.lose_part(name, frame.offset, frame.payload, str(error))
            return
        place = (part.database, part.key)
        if place in self.sequences:
            self.findings.append(Finding("note", f"a second part of key {show_key(*place)}", name, frame.offset))
            return
        self.drop_lost_nodes(part)
        self.sequences[place] = part.sequence
        self.newest = max(self.newest, part.sequence)
        self.highest = max(self.highest, part.sequence)
        self.marks[part.database].heal(part.key)
        if place in self.lost:  # There was a damaged copy before it.
            self.findings.remove(self.lost.pop(place))
        if part.value is not None:
            self.state.databases[part.database].put(part.key, part.value, part.expires_ms)

    def lose_part(self, name: str, offset: int, payload: bytes, problem: str) -> bool:
        """A part cannot be read. Whether it still says whose it was."""
        place = find_head(payload)
        if place in self.sequences:
            self.findings.append(Finding("note", f"a second part of key {show_key(*place)} is damaged", name, offset))
            return True
        if place is None:
            self.miss_parts(name, offset, f"a part of the checkpoint ({problem}); it does not say whose it was")
            return False
        self.marks[place[0]].broken.add(place[1])
        self.lost[place] = self.find(name, offset, f"key {show_key(*place)} is lost ({problem})")
        return True

    def miss_parts(self, name: str, offset: int, text: str) -> None:
        for marks in self.marks:
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
        log, confirmed = read_confirmed(self.disk)[0]
        if log == number and size < confirmed:
            self.end_log(name, size, f"{confirmed - size:,} bytes that had been synced are missing")
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
            if lacks_base or (self.start == 0 and self.marks[0].may_lack):
                self.start = opening.start
            is_next = opening.start <= self.start
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
        if not is_opening and frame.payload and frame.sequence > self.start:
            try:
                records = read_records(frame.payload)
            except ValueError as error:
                self.end_log(name, frame.offset, str(error))
                return
            for place, record in enumerate(records):
                self.take_record(frame.sequence, place, record)
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
            self.keep_record(frame.sequence, record)

    # Records

    def take_record(self, sequence: int, index: int, record: Record) -> None:
        if record[0] in STRUCTURAL:
            if sequence > self.newest:  # Otherwise the parts have it.
                self.take_structural(record)
            return
        database, key = place_of(record)
        if sequence <= self.sequences.get((database, key), self.start):
            return
        marks = self.marks[database]
        if record[0] in WHOLE:
            marks.heal(key)
        if (sequence, index) in self.misfits or self.is_delivered_from_a_hole(record):
            marks.broken.add(key)
        if marks.is_broken(key):
            marks.dropped[key] = marks.dropped.get(key, 0) + 1
            self.keep_record(sequence, record)
            return
        try:
            apply(self.state, record)
        except Exception:  # A verb trusts its record; one that does not fit can fail in any way.
            self.misfits.add((sequence, index))  # The next pass leaves it out.
            marks.broken.add(key)

    def is_delivered_from_a_hole(self, record: Record) -> bool:
        """Whether a delivery may have taken entries that are lost: the log tells only how many there were."""
        if record[0] != DELIVER or not self.holes:
            return False
        stream = self.state.databases[int(record[1])].values.get(record[2])
        if not isinstance(stream, Stream) or stream not in self.holes or record[3] not in stream.groups:
            return False
        return stream.groups[record[3]].last_id < max(below for _, below in self.holes[stream]) - 1

    def take_structural(self, record: Record) -> None:
        number = int(record[1])
        if record[0] == CLEAR:
            apply(self.state, record)
            self.marks[number] = Marks()
        elif record[0] == SWAP:
            other = int(record[2])
            apply(self.state, record)
            self.marks[number], self.marks[other] = self.marks[other], self.marks[number]
        else:
            target = int(record[3]) if record[0] == MOVE else number
            self.move_key(number, record[2], target, record[2] if record[0] == MOVE else record[3])

    def move_key(self, number: int, key: bytes, other: int, new_key: bytes) -> None:
        """RENAME and MOVE: what is wrong with a key goes with it."""
        source, target = self.state.databases[number], self.state.databases[other]
        is_broken = self.marks[number].is_broken(key) or key not in source.values
        expires_ms = source.expires_ms.get(key, 0)
        value = source.values.get(key)
        count = self.marks[number].dropped.get(key, 0)
        source.delete(key)
        target.delete(new_key)
        if value is not None:
            target.put(new_key, value, expires_ms)
        self.marks[number].heal(key)
        self.marks[other].heal(new_key)
        if is_broken:
            self.marks[other].broken.add(new_key)
            self.marks[other].dropped[new_key] = count

    # What to tell

    def tell(self) -> None:
        """Complete the findings: what is behind the cut, and which keys are not what they were."""
        cut = self.cut
        if cut is not None and self.behind:
            cut.text += (
                f"; among them {counted(self.frames_behind, 'good frame')} that build on what is damaged, with "
                f"{counted(sum(self.behind.values()), 'record')} of {some_keys(self.behind)}"
            )
        newer = {place: 0 for place, sequence in self.sequences.items() if 0 <= self.last < sequence}
        if cut is not None and newer:
            self.findings.append(
                Finding("note", f"newer than the end of the log, from the checkpoint: {some_keys(newer)}")
            )
        for number, marks in enumerate(self.marks):
            for key in sorted(marks.broken):
                self.tell_broken(number, key)

    def tell_broken(self, number: int, key: bytes) -> None:
        count = self.marks[number].dropped.get(key, 0)
        if not count and (number, key) in self.lost:
            return
        is_there = key in self.state.databases[number].values
        fate = "is older than it was" if is_there else "is lost"
        records = f": {counted(count, 'record')} of the log about it do not count" if count else ""
        self.findings.append(Finding("dropped", f"key {show_key(number, key)} {fate}{records}"))


def some_keys(counts: dict[tuple[int, bytes], int]) -> str:
    """How many keys, and the first of them by name."""
    names = [show_key(*place) for place in sorted(counts)[:KEYS_SHOWN]]
    more = ", ..." if len(counts) > KEYS_SHOWN else ""
    return f"{counted(len(counts), 'key')}: {', '.join(names)}{more}"


def places_in_order(file: Readable, name: str) -> set[int]:
    """Where frames of a segment begin that surely are where they were written.

    Frames that are missing or doubled move all behind them; of the same size, they would be taken for others.
    """
    found: set[int] = set()
    last = -1
    is_behind_gap = False
    for piece in read_pieces(file, name):
        if isinstance(piece, Gap):
            is_behind_gap = True
        elif piece.sequence == last + 1 or (is_behind_gap and piece.sequence > last):
            found.add(piece.offset)
            last = piece.sequence
            is_behind_gap = False
        else:
            break
    return found


def forget_record(sequence: int, record: Record) -> None:
    """Nobody wants it."""


def place_of(record: Record) -> tuple[int, bytes]:
    key = record[2] if len(record) > 2 and record[0] != SWAP else b""
    return int(record[1]), key


def salvage(
    make_state: Callable[[], State],
    disk: Disk,
    remains: Remains,
    begin_keeping: Callable[[], Callable[[int, Record], None]],
) -> Salvage:
    """Read what is left, until every record that is kept fits. `begin_keeping` is asked anew by each reading."""
    misfits: set[tuple[int, int]] = set()
    for _ in range(PASSES):
        known = len(misfits)
        reading = Salvage(make_state(), disk, remains, misfits)
        reading.keep_record = begin_keeping()
        reading.run()
        if len(misfits) == known:
            return reading
        reading.segments.close()
    raise HeadraceError(f"{len(misfits)} records do not fit, and leaving them out makes others not fit")

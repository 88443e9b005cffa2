"""Reading the folder back: manifest, segments, checkpoint, log.

What a crash or a power loss can leave behind is put right and told: frames at the end of the last log that were never
confirmed as synced, zeros in their place, files of a checkpoint that did not come to its end. Everything else that is
not as it was written is damage, and damage is refused with the file and the byte.
"""

from dataclasses import dataclass, field
from typing import Final

from headrace.errors import JournalError
from headrace.journal import checkpoint, segments
from headrace.journal.checkpoint import Taker, read_parts
from headrace.journal.confirmed import NOTHING, read_confirmed
from headrace.journal.disk import Disk
from headrace.journal.frame_file import FrameFile, create_file, name_of, number_of, open_error, sync_names
from headrace.journal.frames import Frame, FrameReader, Opening, find_frames, seed_of
from headrace.journal.manifest import NAME, NEW_NAME, Manifest, read_manifest, write_manifest
from headrace.journal.segments import Segments, check_opening

LOG: Final = "log"


@dataclass(slots=True)
class Recovered:
    """What was found, and the log to go on with."""

    manifest: Manifest
    log: FrameFile
    log_number: int
    log_bytes: int = 0  # Of all logs together.
    parts: int = 0
    frames: int = 0
    notes: list[str] = field(default_factory=list)  # What was put right, in sentences.


class Recovery:
    def __init__(self, disk: Disk, found: Segments, taker: Taker) -> None:
        self.disk = disk
        self.segments = found
        self.taker = taker
        self.frames = 0
        self.skip_to = 0  # The checkpoint has everything up to this sequence.
        self.last_sequence = -1  # Of the log read before; -1: none was.
        self.confirmed = NOTHING  # Number of a log, and how much of it is on the disk.
        self.notes: list[str] = []

    def run(self) -> Recovered:
        """Read everything. JournalError when it cannot be trusted."""
        names = self.disk.names()
        if NAME not in names:
            self.begin(names)
        manifest = read_manifest(self.disk)
        self.segments.load(manifest.segments)
        parts = 0
        if manifest.checkpoint:
            self.skip_to, parts = read_parts(self.disk, manifest.checkpoint, manifest.checkpoint_bytes, self.taker)
        else:
            self.taker.begin(0)
        self.confirmed, problem = read_confirmed(self.disk)
        self.notes += [problem] if problem else []
        numbers = self.log_numbers(manifest)
        total = 0
        while True:
            log, is_closed = self.read_log(manifest, numbers)
            total += log.size
            if not is_closed:
                break
            del numbers[0]
        # The broker before may have been killed between a change and its sync. Nobody may build on what could still go.
        sync_names(self.disk)
        self.segments.cut(manifest.segments)
        self.remove_leftovers(manifest)
        return Recovered(manifest, log, numbers[0], total, parts, self.frames, self.notes)

    def begin(self, names: list[str]) -> None:
        """The first start in this folder: an empty log, then the manifest that names it."""
        kinds = (LOG, checkpoint.KIND, segments.KIND)
        ours = sorted(name for name in names if any(number_of(kind, name) for kind in kinds))
        if ours and (ours != [name_of(LOG, 1)] or self.has_frames(ours[0])):
            raise JournalError(f"{NAME} is missing, although there is {ours[0]}")
        log = create_file(self.disk, Opening(LOG, 1, 0))
        log.sync()
        log.close()
        sync_names(self.disk)
        write_manifest(self.disk, Manifest(0, 0, 1, log.size, {}))

    def has_frames(self, name: str) -> bool:
        file = self.disk.open(name)
        try:
            return any(frame.sequence for frame in find_frames(file, seed_of(name), 0))
        finally:
            file.close()

    def log_numbers(self, manifest: Manifest) -> list[int]:
        """The logs that count, in order, without one missing."""
        numbers = sorted(
            number for number in (number_of(LOG, name) for name in self.disk.names()) if number >= manifest.log
        )
        for expected, number in enumerate([*numbers, 0], manifest.log):
            if number != expected and (number or expected <= max(manifest.log, self.confirmed[0])):
                raise JournalError(f"{name_of(LOG, expected)} is missing")
        return numbers

    def read_log(self, manifest: Manifest, numbers: list[int]) -> tuple[FrameFile, bool]:
        """Apply one log. Whether it was closed, so that the next one follows; otherwise it is the one to go on with."""
        number = numbers[0]
        name = name_of(LOG, number)
        try:
            file = self.disk.open(name)
        except OSError as error:
            raise open_error(name, error) from error
        reader = FrameReader(file, seed_of(name))
        log = FrameFile(name, file, 0, -1)
        is_closed = False
        while not is_closed and (frame := reader.next()) is not None:
            is_closed = self.take(log, number, frame)
        sure = manifest.log_bytes if number == manifest.log else 1  # Its beginning was synced before it was needed.
        if number == self.confirmed[0]:
            sure = max(sure, self.confirmed[1])
        if is_closed:
            if reader.offset != reader.size:
                raise JournalError(f"{name} goes on at byte {reader.offset} although it was closed")
            if len(numbers) == 1:
                raise JournalError(f"{name_of(LOG, number + 1)} is missing")
            log.sync()
            log.close()
            self.last_sequence = log.sequence
            return log, True
        if log.size < reader.size or log.size < sure:
            self.check_tail(log, reader, sure)
        self.drop_next(log, numbers)
        if log.size < reader.size:
            self.notes.append(
                f"{name}: the last {reader.size - log.size} bytes, from byte {log.size} on, were never confirmed as "
                "written and are dropped"
            )
            log.cut(log.size)
        log.sync()
        return log, False

    def take(self, log: FrameFile, number: int, frame: Frame) -> bool:
        """One frame of the log. Whether it closes it."""
        if log.size == 0:
            start = check_opening(log.name, frame.payload, LOG, number)
            is_next = start <= self.skip_to if self.last_sequence < 0 else start == self.last_sequence
            if frame.sequence != start or not is_next:
                raise JournalError(f"{log.name} begins with frame {frame.sequence}, which is not the next one")
        elif frame.sequence != log.sequence + 1:
            raise JournalError(
                f"{log.name} is damaged at byte {frame.offset}: frame {frame.sequence} is not {log.sequence + 1}"
            )
        elif frame.payload and frame.sequence > self.skip_to:
            try:
                self.taker.frame(frame.sequence, frame.payload)
            except ValueError as error:
                raise JournalError(f"{log.name} cannot be read at byte {frame.offset}: {error}") from error
            self.frames += 1
        is_closing = not frame.payload
        log.sequence = frame.sequence
        log.size = frame.end
        return is_closing

    def check_tail(self, log: FrameFile, reader: FrameReader, sure: int) -> None:
        """Something follows the last good frame. JournalError when it had been synced: then it is damage."""
        problem = reader.problem or "it ends there"
        if log.size < sure:
            raise JournalError(f"{log.name} is damaged at byte {log.size}: {problem}, and {sure} bytes had been synced")
        for frame in find_frames(log.file, log.seed, log.size):
            if frame.synced > log.size:
                raise JournalError(
                    f"{log.name} is damaged at byte {log.size}: {problem}, and good frames follow at {frame.offset}"
                )

    def drop_next(self, log: FrameFile, numbers: list[int]) -> None:
        """This log was not closed. A next one is there when the change to it did not come to its end: it is empty."""
        is_next_used = len(numbers) > 1 and numbers[1] <= self.confirmed[0]
        if is_next_used or len(numbers) > 2 or (len(numbers) == 2 and self.has_frames_after_opening(numbers[1])):
            raise JournalError(f"{log.name} is damaged at byte {log.size}: it ends there, and another log follows")
        for number in numbers[1:]:
            self.disk.remove(name_of(LOG, number))
        if len(numbers) > 1:
            sync_names(self.disk)

    def has_frames_after_opening(self, number: int) -> bool:
        name = name_of(LOG, number)
        file = self.disk.open(name)
        try:
            return len(list(find_frames(file, seed_of(name), 0))) > 1
        finally:
            file.close()

    def remove_leftovers(self, manifest: Manifest) -> None:
        """Files that the manifest does not name: of a checkpoint that was not finished, or from before one."""
        for name in self.disk.names():
            is_left = (
                name == NEW_NAME
                or 0 < number_of(LOG, name) < manifest.log
                or number_of(checkpoint.KIND, name) not in (0, manifest.checkpoint)
                or (number_of(segments.KIND, name) and number_of(segments.KIND, name) not in manifest.segments)
            )
            if is_left:
                self.disk.remove(name)

"""Checkpoints: every key as a part, so that the log before them can go.

The first frame says the sequence of the log at which the checkpoint began; then comes one frame per part; a frame
without payload closes it. What a part holds is not known here. Parts may be taken while the log goes on: each one
carries the sequence at which it was taken, and those who read it back know what to leave out of the log.
"""

from typing import Final, Protocol

from headrace.errors import JournalError
from headrace.journal.disk import Disk
from headrace.journal.frame_file import FrameFile, create_file, name_of, open_error
from headrace.journal.frames import FRAME_BYTES, FrameReader, Opening, seed_of
from headrace.journal.segments import Place, check_opening

KIND: Final = "checkpoint"


class CheckpointWriter:
    """A checkpoint that is being written. It counts for nothing until the manifest names it."""

    def __init__(self, disk: Disk, number: int, sequence: int) -> None:
        self.disk = disk
        self.number = number
        self.sequence = sequence  # Of the log at the beginning.
        self.file: FrameFile = create_file(disk, Opening(KIND, number, sequence))
        self.is_abandoned = False
        self.live_bytes: dict[int, int] = {}  # By segment: what the parts refer to.

    def add(self, part: bytes, places: list[Place]) -> None:
        self.file.append(part)
        for segment, _, size in places:
            self.live_bytes[segment] = self.live_bytes.get(segment, 0) + size + FRAME_BYTES

    def close(self) -> None:
        """All parts are written."""
        self.file.append(b"")

    def abandon(self) -> None:
        """It is not to be finished. Twice does no harm."""
        if not self.is_abandoned:
            self.is_abandoned = True
            self.file.close()
            self.disk.remove(self.file.name)


class Taker(Protocol):
    """Who is handed what was read back. ValueError: it cannot be what it was."""

    def begin(self, sequence: int) -> None:
        """The sequence at which the checkpoint began; 0 without a checkpoint. Comes first."""

    def part(self, payload: bytes) -> None: ...

    def frame(self, sequence: int, payload: bytes) -> None:
        """A frame of the log behind that sequence, in order."""


def read_parts(disk: Disk, number: int, length: int, taker: Taker) -> tuple[int, int]:
    """Hand over every part; the sequence at which the checkpoint began, and how many there are.

    JournalError with file and offset when anything is not as it was written.
    """
    name = name_of(KIND, number)
    try:
        file = disk.open(name)
    except FileNotFoundError as error:
        raise JournalError(f"{name} is missing") from error
    except OSError as error:
        raise open_error(name, error) from error
    try:
        reader = FrameReader(file, seed_of(name))
        if reader.size != length:
            raise JournalError(f"{name} has {reader.size} bytes and should have {length}")
        start = 0
        count = -1
        while (frame := reader.next()) is not None:
            count += 1
            if frame.sequence != count:
                raise JournalError(f"{name} is damaged at byte {frame.offset}: frame {frame.sequence} is not {count}")
            if count == 0:
                start = check_opening(name, frame.payload, KIND, number)
                taker.begin(start)
            elif frame.payload:
                take_part(name, frame.offset, frame.payload, taker)
            elif frame.end == length:
                return start, count - 1
        raise JournalError(f"{name} is damaged at byte {reader.offset}: {reader.problem or 'it was not closed'}")
    finally:
        file.close()


def take_part(name: str, offset: int, part: bytes, taker: Taker) -> None:
    try:
        taker.part(part)
    except ValueError as error:
        raise JournalError(f"{name} cannot be read at byte {offset}: {error}") from error

"""Segments: what is written once and then only referred to, by (segment, offset, size).

A segment is a file of frames. What was placed is on the disk for sure after `sync`; which places are still needed is
known to those who hold them, who say so at each checkpoint: a segment without any is removed, and one of which less
than half is needed is *sparse*: its holders are asked to place their bytes anew.
"""

from typing import Final

from headrace.errors import JournalError
from headrace.journal.disk import Disk
from headrace.journal.frame_file import FrameFile, create_file, name_of, open_error
from headrace.journal.frames import FRAME_BYTES, FrameReader, Opening, parse_opening

KIND: Final = "segment"
SEGMENT_BYTES: Final = 64 * 1024 * 1024  # A segment is closed above this size.

Place = tuple[int, int, int]


class Segments:
    def __init__(self, disk: Disk, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.disk = disk
        self.segment_bytes = segment_bytes
        self.files: dict[int, FrameFile] = {}
        self.next_number = 1
        self.live_bytes: dict[int, int] = {}  # At the last checkpoint.

    def place(self, payload: bytes) -> Place:
        """Write a payload to the newest segment, or to a new one when that is full."""
        number = max(self.files, default=0)
        if number == 0 or self.files[number].size >= self.segment_bytes:
            number = self.next_number
            self.begin_new()
        return number, self.files[number].append(payload), len(payload)

    def begin_new(self) -> None:
        """Write to a new segment from now on, and to none that is there already."""
        self.files[self.next_number] = create_file(self.disk, Opening(KIND, self.next_number, 0))
        self.next_number += 1

    def fetch(self, segment: int, offset: int, size: int) -> bytes:
        """A payload from its place, checked."""
        file = self.files.get(segment)
        if file is None:
            raise JournalError(f"{name_of(KIND, segment)} is missing")
        try:
            frame = FrameReader(Excerpt(file, offset, size), file.seed).next()
        except OSError as error:
            raise JournalError(f"cannot read {file.name} at byte {offset}: {error.strerror or error}") from error
        if frame is None or len(frame.payload) != size:
            raise JournalError(f"{file.name} is damaged at byte {offset}")
        return frame.payload

    def sync(self) -> None:
        for file in list(self.files.values()):
            file.sync()

    def lengths(self) -> dict[int, int]:
        return {number: file.size for number, file in self.files.items()}

    def sparse(self) -> frozenset[int]:
        """Those whose holders should place their bytes anew."""
        return frozenset([number for number, live in self.live_bytes.items() if live * 2 < self.files[number].size])

    def count_live(self, places: list[Place]) -> None:
        """So many bytes of a place are needed: what a checkpoint that is loaded refers to."""
        for segment, _, size in places:
            self.live_bytes[segment] = self.live_bytes.get(segment, 0) + size + FRAME_BYTES

    def keep(self, live_bytes: dict[int, int]) -> list[str]:
        """Forget the segments without any live byte; their names, for the one who removes them."""
        self.live_bytes = {number: live_bytes.get(number, 0) for number in self.files}
        dead = [number for number, live in self.live_bytes.items() if live == 0]
        for number in dead:
            self.files.pop(number).close()
            del self.live_bytes[number]
        return [name_of(KIND, number) for number in dead]

    def load(self, lengths: dict[int, int]) -> None:
        """Open and check the segments of a manifest. JournalError with file and offset."""
        for number, length in sorted(lengths.items()):
            self.files[number] = open_segment(self.disk, number, length)
            self.next_number = number + 1

    def cut(self, lengths: dict[int, int]) -> None:
        """Drop what a checkpoint that was not finished had placed."""
        for number, length in lengths.items():
            self.files[number].cut(length)

    def close(self) -> None:
        for file in self.files.values():
            file.close()
        self.files.clear()


class Excerpt:
    """One frame of a file, as a file of its own that is only read."""

    def __init__(self, file: FrameFile, offset: int, size: int) -> None:
        self.data = file.file.read(offset, size + FRAME_BYTES)

    def read(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]

    def size(self) -> int:
        return len(self.data)


def open_segment(disk: Disk, number: int, length: int) -> FrameFile:
    name = name_of(KIND, number)
    try:
        file = FrameFile(name, disk.open(name), length, 0)
    except FileNotFoundError as error:
        raise JournalError(f"{name} is missing") from error
    except OSError as error:
        raise open_error(name, error) from error
    reader = FrameReader(file.file, file.seed)
    if reader.size < length:
        raise JournalError(f"{name} ends at byte {reader.size} and should have {length}")
    reader.size = length
    while (frame := reader.next()) is not None:
        if frame.sequence != file.sequence:
            raise JournalError(f"{name} is damaged at byte {frame.offset}: not frame {file.sequence}")
        if frame.sequence == 0:
            check_opening(name, frame.payload, KIND, number)
        file.sequence += 1
    if reader.offset != length:
        raise JournalError(f"{name} is damaged at byte {reader.offset}: {reader.problem}")
    file.sequence -= 1
    return file


def check_opening(name: str, payload: bytes, kind: str, number: int) -> int:
    """The third fact of a file's opening. JournalError when the file is another one."""
    try:
        opening = parse_opening(payload)
    except ValueError as error:
        raise JournalError(f"{name} is damaged at byte 0: {error}") from error
    if (opening.kind, opening.number) != (kind, number):
        raise JournalError(f"{name} is in truth {name_of(opening.kind, opening.number)}")
    return opening.start

"""A file of frames that is being written: whole frames or nothing.

A disk that is full is met with grace: what was written of the frame is cut off again, and the same frame may be tried
later. Any other failure is final. After a failed sync in particular the system may have thrown away what it could not
write and say the next time that all is well, so there is no next time.
"""

import errno
import os
import threading
import zlib

from headrace.errors import DiskFull, JournalError
from headrace.journal.disk import Disk, File
from headrace.journal.frames import END, FRAME_BYTES, Opening, encode_frame, encode_header, seed_of

FULL = (errno.ENOSPC, errno.EDQUOT)
TOO_MANY = (errno.EMFILE, errno.ENFILE)  # Open files: room of another kind, which comes back when clients go.


class FrameFile:
    def __init__(self, name: str, file: File, size: int, sequence: int) -> None:
        self.name = name
        self.file = file
        self.seed = seed_of(name)
        self.size = size
        self.sequence = sequence  # Of the last frame.
        self.synced = 0  # Bytes that are known to be on the disk.
        self.is_broken = False
        self.syncing = threading.Lock()

    def append(self, payload: bytes) -> int:
        """Write a frame; where it begins. DiskFull: nothing of it was written."""
        self.write(encode_frame(self.seed, self.sequence + 1, payload, self.synced))
        return self.count_frame(len(payload))

    def write(self, parts: list[bytes]) -> None:
        """Write bytes of a frame. DiskFull: nothing of the frame is there."""
        if self.is_broken:
            raise JournalError(f"{self.name} has failed before and is not written any more")
        left = sum([len(part) for part in parts])
        while True:
            try:
                taken = self.file.append(parts)
            except OSError as error:
                raise self.take_back(error) from error
            left -= taken
            if left == 0:
                break
            if taken == 0:
                raise self.fail("write", "the system took nothing")
            parts = rest_of(parts, taken)

    def count_frame(self, length: int) -> int:
        """A frame is whole; where it begins."""
        offset = self.size
        self.size += FRAME_BYTES + length
        self.sequence += 1
        return offset

    def take_back(self, error: OSError) -> JournalError:
        """The frame did not fit: cut off what there is of it."""
        if error.errno not in FULL:
            return self.fail("write", error.strerror or str(error))
        try:
            self.file.cut(self.size)
        except OSError as second:
            return self.fail("cut", second.strerror or str(second))
        return DiskFull(os.strerror(error.errno))

    def sync(self) -> None:
        """Have everything on the disk. A failure is final.

        One thread at a time: the system tells of a failure only once, so a second one that synced meanwhile would hear
        that all is well.
        """
        with self.syncing:
            if self.is_broken:
                raise JournalError(f"{self.name} has failed before and is not written any more")
            size = self.size
            if self.synced == size:
                return
            try:
                self.file.sync()
            except OSError as error:
                raise self.fail("sync", error.strerror or str(error)) from error
            self.synced = size

    @property
    def is_synced(self) -> bool:
        """Whether everything written is on the disk."""
        return self.synced == self.size

    def cut(self, size: int) -> None:
        """Drop what lies behind the last whole frame."""
        try:
            self.file.cut(size)
        except OSError as error:
            raise self.fail("cut", error.strerror or str(error)) from error
        self.size = size

    def fail(self, verb: str, reason: str) -> JournalError:
        self.is_broken = True
        return JournalError(f"cannot {verb} {self.name}: {reason}")

    def close(self) -> None:
        self.file.close()


class SlowFrame:
    """A frame that is written a piece at a time. All pieces are gathered first: the header has their checksum.

    Until the last one is written the file has half a frame at its end, so this is only for files that do not count yet.
    """

    def __init__(self, file: FrameFile) -> None:
        self.file = file
        self.pieces: list[bytes] = []
        self.length = 0
        self.checksum = file.seed
        self.next = -1  # The piece that is written next; -1: the header.

    def add(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.length += len(piece)
        self.checksum = zlib.crc32(piece, self.checksum)

    def write(self) -> bool:
        """Write the next piece. Whether the frame is whole. DiskFull: nothing of it is there."""
        file = self.file
        if self.next < 0:
            file.write([encode_header(file.seed, file.sequence + 1, self.length, self.checksum, file.synced)])
        elif self.next < len(self.pieces):
            file.write([self.pieces[self.next]])
            self.pieces[self.next] = b""
        else:
            file.write([END])
            file.count_frame(self.length)
            return True
        self.next += 1
        return False


def rest_of(parts: list[bytes], taken: int) -> list[bytes]:
    """What is left to write after so many bytes."""
    left: list[bytes] = []
    for part in parts:
        if taken >= len(part):
            taken -= len(part)
        else:
            left.append(part[taken:])
            taken = 0
    return left


def create_file(disk: Disk, opening: Opening, sequence: int = 0) -> FrameFile:
    """A new file that begins by saying what it is. On a full disk there is no file."""
    name = name_of(opening.kind, opening.number)
    try:
        made = disk.create(name)
    except OSError as error:
        raise open_error(name, error) from error
    file = FrameFile(name, made, 0, sequence - 1)
    try:
        file.append(opening.encode())
    except DiskFull:
        file.close()
        disk.remove(name)
        raise
    return file


def sync_names(disk: Disk) -> None:
    """Make the names of all files last. A failure is final."""
    try:
        disk.sync()
    except OSError as error:
        raise JournalError(f"cannot sync the names of the files: {error.strerror or error}") from error


def open_error(name: str, error: OSError) -> JournalError:
    if error.errno in FULL or error.errno in TOO_MANY:
        return DiskFull(os.strerror(error.errno))
    return JournalError(f"cannot open {name}: {error.strerror or error}")


def name_of(kind: str, number: int) -> str:
    return f"{kind}-{number:08d}"


def number_of(kind: str, name: str) -> int:
    """The number of a file of this kind; 0 when it is none."""
    head, _, digits = name.rpartition("-")
    return int(digits) if head == kind and len(digits) >= 8 and digits.isascii() and digits.isdigit() else 0

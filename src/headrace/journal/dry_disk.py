"""A folder that is only looked at: what is written to it happens in memory, and the files stay as they are.

Reading goes on where the disk itself fails (a bad sector): what cannot be read counts as zeros, which no checksum fits.
"""

import errno
from collections.abc import Callable
from typing import Final

from headrace.journal.disk import Disk, File, FixedFile
from headrace.journal.memory_disk import MemoryFile, MemoryFixedFile

SECTOR_BYTES: Final = 4096  # Around a place that cannot be read, as much is given up.


class DryDisk:
    """Another disk's files, and the changes since, which nobody else sees."""

    def __init__(self, disk: Disk, progress: Callable[[int], None] | None = None) -> None:
        self.disk = disk
        self.progress = progress  # Told how many bytes were read.
        self.changed: dict[str, File | None] = {}  # None: removed.

    def names(self) -> list[str]:
        kept = [name for name in self.disk.names() if name not in self.changed]
        return kept + [name for name, file in self.changed.items() if file is not None]

    def create(self, name: str) -> File:
        file = MemoryFile()
        self.changed[name] = file
        return file

    def open(self, name: str) -> File:
        if name not in self.changed:
            return DryFile(self.disk.open(name), self.progress)
        file = self.changed[name]
        if file is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", name)
        return file

    def open_fixed(self, name: str) -> FixedFile:
        file = MemoryFile()
        self.changed[name] = file
        return MemoryFixedFile(file)

    def replace(self, name: str, other: str) -> None:
        self.changed[other] = self.open(name)
        self.changed[name] = None

    def remove(self, name: str) -> None:
        self.changed[name] = None

    def sync(self) -> None:
        pass


class DryFile:
    """A file of the disk, never written."""

    def __init__(self, file: File, progress: Callable[[int], None] | None) -> None:
        self.file = file
        self.progress = progress

    def append(self, parts: list[bytes]) -> int:
        raise AssertionError(f"{len(parts)} parts for a folder that is only looked at")

    def read(self, offset: int, size: int) -> bytes:
        try:
            found = self.file.read(offset, size)
        except OSError:
            found = self.read_sectors(offset, size)
        if self.progress is not None:
            self.progress(len(found))
        return found

    def read_sectors(self, offset: int, size: int) -> bytes:
        """Sector by sector, with zeros for those that fail."""
        end = min(offset + size, self.size())
        parts: list[bytes] = []
        while offset < end:
            step = min(SECTOR_BYTES - offset % SECTOR_BYTES, end - offset)
            try:
                parts.append(self.file.read(offset, step).ljust(step, b"\0"))
            except OSError:
                parts.append(bytes(step))
            offset += step
        return b"".join(parts)

    def size(self) -> int:
        return self.file.size()

    def sync(self) -> None:
        pass

    def cut(self, size: int) -> None:
        pass

    def close(self) -> None:
        self.file.close()

"""The seam to the disk: one folder of append-only files, and the real one.

Everything above is told what the disk answers and nothing else, so that tests can put a disk in its place that loses
what was not synced, writes half of what it is given, is full, or fails (tests/support/fake_disk.py).

What may be relied on: after `File.sync` the bytes written before are there whatever happens; after `Disk.sync` the
names are. Without it any part of them may be missing, also an earlier one while a later one is there.
"""

import contextlib
import errno
import fcntl
import os
import sys
from pathlib import Path
from typing import Final, Protocol

from headrace.errors import ConfigError

FILE_MODE = 0o600  # Messages are nobody else's business.
FOLDER_MODE = 0o700

NOT_ALLOWED: Final = "Run this as a user who may write there, or choose another folder."
NO_FOLDER: Final = "Give the name of a folder."
NO_ROOM: Final = "Make room on its disk first."
ADVICE: Final = {  # What to do when the system refuses; nothing in the files is wrong then.
    errno.EACCES: NOT_ALLOWED,
    errno.EPERM: NOT_ALLOWED,
    errno.EROFS: "Its disk can only be read; choose another folder.",
    errno.ENOTDIR: NO_FOLDER,
    errno.EEXIST: NO_FOLDER,
    errno.ELOOP: NO_FOLDER,
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.ENOSPC: NO_ROOM,
    errno.EDQUOT: NO_ROOM,
}


def cannot_use(path: Path, error: OSError) -> ConfigError:
    """What the system says about a folder, and what to do."""
    return ConfigError(f"Cannot use the folder {path}: {error.strerror or error}. {advice_on(error)}".rstrip())


def advice_on(error: BaseException | None) -> str:
    """Nothing for errors that are none of the system's, or may mean a damaged disk."""
    return ADVICE.get(error.errno or 0, "") if isinstance(error, OSError) else ""


class Readable(Protocol):
    def read(self, offset: int, size: int) -> bytes:
        """Bytes from a place; fewer only at the end."""

    def size(self) -> int: ...


class File(Readable, Protocol):
    """Bytes that only grow, or are cut."""

    def append(self, parts: list[bytes]) -> int:
        """Write at the end; how many bytes were taken, which may be fewer than given. OSError."""

    def sync(self) -> None: ...

    def cut(self, size: int) -> None:
        """Drop everything behind the first `size` bytes."""

    def close(self) -> None: ...


class FixedFile(Protocol):
    """A few bytes that are written over as a whole."""

    def write(self, data: bytes) -> None:
        """In place of what is there. After a crash it is the one or the other. OSError."""

    def close(self) -> None: ...


class Disk(Protocol):
    """The files of one folder, by name."""

    def names(self) -> list[str]: ...

    def create(self, name: str) -> File:
        """A new empty file, in place of one of that name."""

    def open(self, name: str) -> File: ...

    def open_fixed(self, name: str) -> FixedFile:
        """One for few bytes; made when it is missing."""

    def replace(self, name: str, other: str) -> None:
        """Give the file the other name, in place of the one that had it."""

    def remove(self, name: str) -> None: ...

    def sync(self) -> None:
        """Make the names last."""


class RealFile:
    """A file of the system."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def append(self, parts: list[bytes]) -> int:
        return os.writev(self.descriptor, parts)

    def read(self, offset: int, size: int) -> bytes:
        found = os.pread(self.descriptor, size, offset)
        if 0 < len(found) < size:  # The system gives at most 2 GB at once.
            parts = [found]
            while found:
                offset += len(found)
                size -= len(found)
                found = os.pread(self.descriptor, size, offset) if size else b""
                parts.append(found)
            return b"".join(parts)
        return found

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def sync(self) -> None:
        sync_descriptor(self.descriptor)

    def cut(self, size: int) -> None:
        os.ftruncate(self.descriptor, size)

    def close(self) -> None:
        os.close(self.descriptor)


class RealFixedFile:
    """Less than a sector, which disks write as a whole."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def write(self, data: bytes) -> None:
        os.pwrite(self.descriptor, data, 0)

    def close(self) -> None:
        os.close(self.descriptor)


def sync_descriptor(descriptor: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # There, fsync leaves data in the drive's own memory.
    else:
        os.fdatasync(descriptor)


class RealDisk:
    """A folder of the system, made when it is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            make_folder(path.absolute(), FOLDER_MODE)
            self.folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise cannot_use(path, error) from error

    def names(self) -> list[str]:
        return os.listdir(self.folder)  # noqa: PTH208 - by descriptor: the folder that is locked, whatever its name.

    def create(self, name: str) -> File:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        return RealFile(os.open(name, flags, FILE_MODE, dir_fd=self.folder))

    def open(self, name: str) -> File:
        return RealFile(os.open(name, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, dir_fd=self.folder))

    def open_fixed(self, name: str) -> FixedFile:
        return RealFixedFile(os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE, dir_fd=self.folder))

    def replace(self, name: str, other: str) -> None:
        os.replace(name, other, src_dir_fd=self.folder, dst_dir_fd=self.folder)

    def remove(self, name: str) -> None:
        os.unlink(name, dir_fd=self.folder)

    def sync(self) -> None:
        os.fsync(self.folder)

    def close(self) -> None:
        os.close(self.folder)


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it, each with a name that lasts."""
    if not path.exists():
        make_folder(path.parent)
        path.mkdir(mode=mode, exist_ok=True)
        sync_folder(path.parent)
    elif path.is_dir() and not any(path.iterdir()):  # Whoever made it may have been killed before this:
        with contextlib.suppress(PermissionError):  # Then it was somebody else.
            sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

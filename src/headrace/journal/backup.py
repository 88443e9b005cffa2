"""Backups: a copy of a folder, also of one in use, and the way back.

A backup is a folder with copies of the files that count (held_files.py), and one more, written last:

    backup    one frame (frames.py) with a JSON object: when it was taken, of which folder, by which version, and the
              size and the CRC-32 of every file

    {"taken_ms": 1690275391705, "folder": "/srv/data", "version": "0.1.0", "files": {"log-00000012": [70, 3119303716]}}

So a folder without it is no backup, and one that changed since does not pass as one.
"""

import contextlib
import errno
import json
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Final

from headrace import __version__
from headrace.errors import ConfigError, DiskFull, JournalError, NewerFormat
from headrace.journal import checkpoint, segments
from headrace.journal.disk import File, RealDisk, advice_on, cannot_use
from headrace.journal.frame_file import FrameFile, number_of, open_error
from headrace.journal.frames import FrameReader, seed_of
from headrace.journal.held_files import HeldFiles, check_files, hold_files
from headrace.journal.lock import NAME as LOCK
from headrace.journal.lock import lock_folder
from headrace.journal.manifest import NAME as MANIFEST
from headrace.journal.recovery import LOG

NAME: Final = "backup"
CHUNK_BYTES: Final = 1024 * 1024
LARGEST_BYTES: Final = 64 * 1024 * 1024  # Of the file that describes it.

Progress = Callable[[int, int], None]  # Bytes done, bytes in all.
Sums = dict[str, tuple[int, int]]  # Name -> bytes, CRC-32.


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup says about itself."""

    taken_ms: int
    folder: str
    version: str
    files: Sums

    @property
    def size_bytes(self) -> int:
        return sum(size for size, _ in self.files.values())


def take_backup(source: Path, target: Path, now_ms: Callable[[], int], progress: Progress) -> Backup:
    """Copy a folder to a new one. JournalError: it is damaged, or there is no room; then nothing is left behind."""
    check_empty(target)
    with advising_check(source):
        held = hold_files(source)
    taken_ms = now_ms()
    try:
        check_apart(source, target)
        with advising_check(source):
            check_files(held)
        with new_folder(target) as disk:
            files = copy_files(held, held.sizes, disk, progress)
            backup = Backup(taken_ms, str(source.absolute()), __version__, files)
            write_description(disk, backup)
            disk.sync()
        return backup
    finally:
        held.close()


@contextlib.contextmanager
def advising_check(source: Path) -> Iterator[None]:
    """What is said of damaged files names the command that tells more."""
    try:
        yield
    except NewerFormat:
        raise
    except JournalError as error:
        if advice_on(error.__cause__):  # Nothing is wrong in the files.
            raise
        raise JournalError(f"{error}. To see what is wrong: headrace check {quote(str(source))}") from error


def read_backup(path: Path) -> Backup:
    """What a backup says about itself. JournalError when it is none, or its description is damaged."""
    held = HeldFiles(path)
    try:
        file = held.open(NAME)
        size = file.size()
        frame = FrameReader(file, seed_of(NAME)).next() if size <= LARGEST_BYTES else None
        if frame is None or frame.end != size:
            raise JournalError(f"{path / NAME} is damaged")
        found = json.loads(frame.payload)
        files = {checked_name(name): (int(size), int(crc)) for name, (size, crc) in found["files"].items()}
        return Backup(int(found["taken_ms"]), str(found["folder"]), str(found["version"]), files)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise JournalError(f"{path} is no finished backup: there is no file {NAME!r} in it") from error
    except OSError as error:
        raise open_error(str(path / NAME), error) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise JournalError(f"{path / NAME} is not one that this version of headrace can read") from error
    finally:
        held.close()


def checked_name(name: str) -> str:
    """Nothing but names of ours: what lies in a backup must not be able to write elsewhere."""
    if name != MANIFEST and not any(number_of(kind, name) for kind in (LOG, checkpoint.KIND, segments.KIND)):
        raise ValueError("not the name of a file of ours")
    return name


def check_backup(path: Path, progress: Progress) -> Backup:
    """Look at every byte of a backup. JournalError names the file that is not as it was taken."""
    backup = read_backup(path)
    held = HeldFiles(path)
    done = 0
    try:
        for name, (size, crc) in backup.files.items():
            file = open_copy(held, name)
            if file.size() != size:
                raise JournalError(f"{path / name} has {file.size()} bytes and should have {size}")
            found = 0
            for chunk in chunks(name, file, size):
                found = zlib.crc32(chunk, found)
                done += len(chunk)
                progress(done, backup.size_bytes)
            if found != crc:
                raise JournalError(f"{path / name} is not as it was when the backup was taken")
        return backup
    finally:
        held.close()


def restore_backup(path: Path, target: Path, progress: Progress) -> None:
    """Copy a backup that was checked to a new folder. JournalError: it changed since, or there is no room."""
    backup = read_backup(path)
    check_apart(path, target)
    check_empty(target)
    held = HeldFiles(path)
    try:
        with new_folder(target) as disk:
            lock = lock_folder(target)  # Nobody is to start a broker there before all is there.
            try:
                # The manifest comes last: before it is there, the folder counts for nothing.
                names = sorted(backup.files, key=lambda name: name == MANIFEST)
                sizes = {name: backup.files[name][0] for name in names}
                for name in sizes:
                    open_copy(held, name)
                if copy_files(held, sizes, disk, progress) != backup.files:
                    raise JournalError(f"{path} has changed while it was read")
            finally:
                os.close(lock)
    finally:
        held.close()


# Files


def check_apart(source: Path, target: Path) -> None:
    """ConfigError when the copy would lie in what is copied: it would be lost together with it."""
    if target.resolve().is_relative_to(source.resolve()):
        raise ConfigError(f"{target} lies in {source}, of which it would be a copy. Choose a place outside.")


def check_empty(path: Path) -> None:
    """ConfigError unless there is nothing yet. A lock alone is nothing."""
    try:
        if path.exists() and (not path.is_dir() or any(name.name != LOCK for name in path.iterdir())):
            raise ConfigError(f"{path} is there already, and not empty. Choose a new folder.")
    except OSError as error:
        raise cannot_use(path, error) from error


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[RealDisk]:
    """A folder to fill, whose files last. When that fails, it is as it was before."""
    is_new = not path.exists()
    disk = RealDisk(path)
    before = set(disk.names())
    try:
        yield disk
        disk.sync()
    except BaseException as error:
        for name in set(disk.names()) - before:
            disk.remove(name)
        if is_new:
            path.rmdir()
        if isinstance(error, OSError):
            raise write_error(path, error) from error
        raise
    finally:
        disk.close()


def write_error(path: Path, error: OSError) -> JournalError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"there is no room in {path}: {os.strerror(error.errno)}")
    return JournalError(f"cannot write {path}: {error.strerror or error}")


def copy_files(
    held: HeldFiles, sizes: dict[str, int], disk: RealDisk, progress: Progress
) -> dict[str, tuple[int, int]]:
    """Copy so much of each file; its bytes and CRC-32."""
    total = sum(sizes.values())
    done = 0
    files: Sums = {}
    for name, size in sizes.items():
        copy = disk.create(name)
        crc = 0
        try:
            for chunk in chunks(name, held.files[name], size):
                write_chunk(copy, chunk)
                crc = zlib.crc32(chunk, crc)
                done += len(chunk)
                progress(done, total)
            copy.sync()
        finally:
            copy.close()
        files[name] = (size, crc)
    return files


def chunks(name: str, file: File, size: int) -> Iterator[bytes]:
    offset = 0
    while offset < size:
        try:
            chunk = file.read(offset, min(CHUNK_BYTES, size - offset))
        except OSError as error:
            raise JournalError(f"cannot read {name} at byte {offset}: {error.strerror or error}") from error
        if not chunk:
            raise JournalError(f"{name} ends at byte {offset} and should have {size}")
        offset += len(chunk)
        yield chunk


def write_chunk(file: File, chunk: bytes) -> None:
    while chunk:
        chunk = chunk[file.append([chunk]) :]


def open_copy(held: HeldFiles, name: str) -> File:
    try:
        return held.open(name)
    except FileNotFoundError as error:
        raise JournalError(f"{held.path / name} is missing") from error
    except OSError as error:
        raise open_error(str(held.path / name), error) from error


def write_description(disk: RealDisk, backup: Backup) -> None:
    file = FrameFile(NAME, disk.create(NAME), 0, 0)
    try:
        file.append(json.dumps(asdict(backup)).encode())
        file.sync()
    finally:
        file.close()

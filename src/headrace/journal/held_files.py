"""The files of a folder as they are at one moment, held open for reading, also while a broker writes there.

The broker need not know. Its files only grow, and what the manifest names is there until another manifest takes its
place. So: read the manifest, open every file it names, and look whether it is still the same. From then on they cannot
go away, whatever the broker removes: an open file stays. Of the log counts what is there at that moment, up to the last
whole frame. Everything a client was told before is in it, and nothing is in it of which something before is not.
"""

import os
from pathlib import Path
from typing import Final

from headrace.errors import JournalError
from headrace.journal import checkpoint, segments
from headrace.journal.checkpoint import read_parts
from headrace.journal.confirmed import NOTHING, read_confirmed
from headrace.journal.disk import File, FixedFile, RealFile
from headrace.journal.frame_file import name_of, number_of, open_error
from headrace.journal.frames import FrameReader, find_frames, seed_of
from headrace.journal.manifest import NAME, Manifest, read_manifest
from headrace.journal.memory_disk import MemoryFile, MemoryFixedFile
from headrace.journal.recovery import LOG
from headrace.journal.segments import check_opening, open_segment

ATTEMPTS: Final = 100  # Checkpoints that come to their end while files are being opened. One is rare.


class HeldFile(RealFile):
    """Its owner closes it, not those who read it."""

    def append(self, parts: list[bytes]) -> int:
        raise AssertionError(f"only read, so {len(parts)} parts are not written")

    def cut(self, size: int) -> None:
        assert size == self.size(), "only read, so not cut"

    def sync(self) -> None:
        """Nothing was written."""

    def close(self) -> None:
        """It stays open."""

    def let_go(self) -> None:
        os.close(self.descriptor)


class HeldFiles:
    """A disk to read from: every file that was opened once stays as it is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, HeldFile] = {}
        self.sizes: dict[str, int] = {}  # How much of each counts.
        self.confirmed = NOTHING  # Number of a log, and how much of it is there for sure.

    def names(self) -> list[str]:
        return [path.name for path in self.path.iterdir()]

    def open(self, name: str) -> File:
        if name not in self.files:
            self.files[name] = HeldFile(os.open(self.path / name, os.O_RDONLY | os.O_CLOEXEC))
        return self.files[name]

    def open_fixed(self, name: str) -> FixedFile:  # noqa: ARG002 - whatever its name.
        """Written over and over by those who keep data, which is nobody here."""
        return MemoryFixedFile(MemoryFile())

    def create(self, name: str) -> File:
        raise AssertionError(f"only read, so {name} is not made")

    def replace(self, name: str, other: str) -> None:
        raise AssertionError(f"only read, so {name} does not replace {other}")

    def remove(self, name: str) -> None:
        raise AssertionError(f"only read, so {name} is not removed")

    def sync(self) -> None:
        """Nothing was written."""

    def close(self) -> None:
        for file in self.files.values():
            file.let_go()
        self.files.clear()


def hold_files(path: Path) -> HeldFiles:
    """The files of a folder, in use or not. JournalError when one is missing or cannot be read."""
    for _ in range(ATTEMPTS):
        held = HeldFiles(path)
        problem: JournalError | None = None
        try:
            hold_named(held)
        except JournalError as error:
            problem = error
        is_current = is_manifest_current(held)
        if is_current and problem is None:
            return held
        held.close()
        if is_current and problem is not None:
            raise problem
    raise JournalError(f"{NAME} has changed {ATTEMPTS} times while its files were opened")


def hold_named(held: HeldFiles) -> None:
    """Open what the manifest names, and note how much of each counts."""
    try:
        held.open(NAME)
    except FileNotFoundError as error:
        raise JournalError(f"{held.path} holds no data of headrace: there is no {NAME}") from error
    except OSError as error:
        raise open_error(NAME, error) from error
    manifest = read_manifest(held)
    held.sizes[NAME] = held.files[NAME].size()
    if manifest.checkpoint:
        hold(held, name_of(checkpoint.KIND, manifest.checkpoint), manifest.checkpoint_bytes)
    for number, length in manifest.segments.items():
        hold(held, name_of(segments.KIND, number), length)
    held.confirmed, _ = read_confirmed(held)  # Before the logs: they may be ahead of it, not behind.
    numbers = [number for number in (number_of(LOG, name) for name in held.names()) if number >= manifest.log]
    # The newest first: when a log is seen to have frames, the one before is closed by then.
    for number in sorted({manifest.log, *numbers}, reverse=True):
        name = name_of(LOG, number)
        hold(held, name, 0)
        held.sizes[name] = held.files[name].size()


def hold(held: HeldFiles, name: str, size: int) -> None:
    try:
        held.open(name)
    except FileNotFoundError as error:
        raise JournalError(f"{name} is missing") from error
    except OSError as error:
        raise open_error(name, error) from error
    held.sizes[name] = size


def is_manifest_current(held: HeldFiles) -> bool:
    """Whether the manifest that was read is still the one that counts."""
    if NAME not in held.files:
        return True
    try:
        now = (held.path / NAME).stat()
    except FileNotFoundError:
        return False
    then = os.fstat(held.files[NAME].descriptor)
    return (then.st_dev, then.st_ino) == (now.st_dev, now.st_ino)  # It is replaced, never changed.


# Checks


class NoTaker:
    """For those who want nothing but the checks."""

    def begin(self, sequence: int) -> None: ...

    def part(self, payload: bytes) -> None: ...

    def frame(self, sequence: int, payload: bytes) -> None: ...


def check_files(held: HeldFiles) -> None:
    """Look at every checksum, and cut what counts of the logs to whole frames. JournalError with file and offset."""
    manifest = read_manifest(held)
    if manifest.checkpoint:
        read_parts(held, manifest.checkpoint, manifest.checkpoint_bytes, NoTaker())
    for number, length in manifest.segments.items():
        open_segment(held, number, length)
    check_logs(held, manifest)


def check_logs(held: HeldFiles, manifest: Manifest) -> None:
    numbers = sorted(number for number in (number_of(LOG, name) for name in held.sizes) if number)
    if numbers != list(range(manifest.log, manifest.log + len(numbers))) or held.confirmed[0] > numbers[-1]:
        raise JournalError(f"a log behind {name_of(LOG, manifest.log)} is missing")
    for number in numbers:
        name = name_of(LOG, number)
        end, is_closed = check_log(held, number)
        sure = manifest.log_bytes if number == manifest.log else 0
        sure = max(sure, held.confirmed[1]) if number == held.confirmed[0] else sure
        if end < sure:
            raise JournalError(f"{name} is damaged at byte {end}: it ends there, and {sure} bytes had been synced")
        held.sizes[name] = end
        if not is_closed:
            drop_logs(held, number, numbers[-1])
            break


def check_log(held: HeldFiles, number: int) -> tuple[int, bool]:
    """How far the whole frames of a log reach, and whether another log follows it."""
    name = name_of(LOG, number)
    file = held.files[name]
    reader = FrameReader(file, seed_of(name))
    reader.size = held.sizes[name]
    end, sequence = 0, -1
    while (frame := reader.next()) is not None:
        if end == 0:
            sequence = check_opening(name, frame.payload, LOG, number) - 1
        if frame.sequence != sequence + 1:
            raise JournalError(f"{name} is damaged at byte {frame.offset}: frame {frame.sequence} is not the next one")
        if not frame.payload and name_of(LOG, number + 1) not in held.sizes:
            return end, False  # It was closed after we looked which logs there are: it is copied as if it were not.
        if not frame.payload:
            if frame.end != reader.size:
                raise JournalError(f"{name} goes on at byte {frame.end} although it was closed")
            return frame.end, True
        end, sequence = frame.end, frame.sequence
    if end < reader.size and is_damage(file, name, end):
        raise JournalError(f"{name} is damaged at byte {end}: {reader.problem}")
    return end, False


def is_damage(file: HeldFile, name: str, end: int) -> bool:
    """Whether frames follow that were written after the bytes at this place were synced. Otherwise it is a frame that
    is just being written, or that a crash has left."""
    seed = seed_of(name)
    follows = any(frame.offset > end and frame.synced > end for frame in find_frames(file, seed, end))
    return follows and FrameReader(file, seed, end).next() is None


def drop_logs(held: HeldFiles, number: int, last: int) -> None:
    """This log was not closed, so those behind it are empty: the change to a new one was under way."""
    for later in range(number + 1, last + 1):
        name = name_of(LOG, later)
        reader = FrameReader(held.files[name], seed_of(name))
        reader.size = held.sizes.pop(name)
        if reader.next() is not None and reader.next() is not None:
            raise JournalError(f"{name_of(LOG, number)} is damaged: it was not closed, and another log follows")

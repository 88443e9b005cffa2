"""A disk in memory that does to the journal what real ones do at the worst moment. Everything follows from one seed.

What was not synced may be lost at a crash, in pieces: each block of a file is then the old one, the new one or zeros,
and its length any between; each name that was made, replaced or removed since the folder was synced may be so or not.
Before that: writes that take only a part, a disk that is full for a while, a sync that fails, one that takes so long
that others go on meanwhile.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

BLOCK_BYTES = 48  # Small, so that a short frame can lie in several.


class Crash(Exception):
    """The machine is gone. What is on the disk now, `FakeDisk.after_crash` says."""


class Content:
    """A file, whatever its name."""

    def __init__(self, data: bytes = b"", *, is_fixed: bool = False) -> None:
        self.data = bytearray(data)
        self.synced = bytes(data)
        self.is_fixed = is_fixed  # Less than a sector, written as a whole.

    def after_crash(self, random: Random) -> Content:
        if self.is_fixed:
            return Content(random.choice([self.synced, bytes(self.data)]), is_fixed=True)
        old, new = self.synced, bytes(self.data)
        low, high = sorted([len(old), len(new)])
        safe = next((place for place in range(low) if old[place] != new[place]), low)
        size = random.choice([low, high, random.randint(low, high)])
        kept = bytearray(old[:safe])
        while len(kept) < size:
            block = slice(len(kept), min(len(kept) + BLOCK_BYTES, size))
            kept += random.choice([old[block], new[block], new[block], b""]).ljust(block.stop - block.start, b"\0")
        return Content(bytes(kept))


class FakeDisk:
    def __init__(self, random: Random, files: dict[str, Content] | None = None) -> None:
        self.random = random
        self.files = files or {}
        self.synced_names = dict(self.files)
        self.steps = 0
        self.crash_at = -1  # The step at which the machine goes down.
        self.full_from = self.full_until = -1  # From this step to that nothing more can be written,
        self.room = 0  # but for so many bytes.
        self.sync_fails_at = -1
        self.sync_has_failed = False
        self.meanwhile: Callable[[], None] | None = None  # What others do during a sync.

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.crash_at:
            raise Crash

    @property
    def is_full(self) -> bool:
        return self.full_from <= self.steps <= self.full_until

    def check_room_for_name(self) -> None:
        """Also a name takes room, sometimes."""
        if self.is_full and self.random.random() < 0.5:
            raise OSError(errno.ENOSPC, "No space left on device")

    def check_sync(self) -> None:
        """The place where a sync fails, or others go on while it lasts."""
        self.step()
        if 0 < self.sync_fails_at <= self.steps:
            self.sync_fails_at = -1
            self.sync_has_failed = True
            raise OSError(errno.EIO, "Input/output error")
        meanwhile = self.meanwhile
        if meanwhile is not None and self.random.random() < 0.3:
            self.meanwhile = None  # They wait for their own syncs.
            meanwhile()
            self.meanwhile = meanwhile

    def after_crash(self) -> FakeDisk:
        """The disk as the next start finds it."""
        names: dict[str, Content] = {}
        for name in sorted({*self.files, *self.synced_names}):
            before, now = self.synced_names.get(name), self.files.get(name)
            content = before if before is now or self.random.random() < 0.5 else now
            if content is not None:
                names[name] = content
        return FakeDisk(self.random, {name: content.after_crash(self.random) for name, content in names.items()})

    def after_kill(self) -> FakeDisk:
        """The same when only the process was killed: the system still has everything."""
        disk = FakeDisk(self.random, self.files)
        disk.synced_names = self.synced_names
        return disk

    # The seam

    def names(self) -> list[str]:
        return list(self.files)

    def create(self, name: str) -> FakeFile:
        self.step()
        self.check_room_for_name()
        self.files[name] = Content()
        return FakeFile(self, self.files[name])

    def open(self, name: str) -> FakeFile:
        if name not in self.files:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", name)
        return FakeFile(self, self.files[name])

    def open_fixed(self, name: str) -> FakeFixedFile:
        content = self.files.setdefault(name, Content())
        content.is_fixed = True
        return FakeFixedFile(content)

    def replace(self, name: str, other: str) -> None:
        self.step()
        self.check_room_for_name()
        self.files[other] = self.files.pop(name)

    def remove(self, name: str) -> None:
        self.step()
        del self.files[name]

    def sync(self) -> None:
        names = dict(self.files)
        self.check_sync()
        self.synced_names = names


class FakeFile:
    def __init__(self, disk: FakeDisk, content: Content) -> None:
        self.disk = disk
        self.content = content

    def append(self, parts: list[bytes]) -> int:
        disk = self.disk
        data = b"".join(parts)
        try:
            disk.step()
        except Crash:
            self.content.data += data[: disk.random.randint(0, len(data))]
            raise
        if disk.is_full:
            if disk.room == 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            data = data[: disk.room]
            disk.room -= len(data)
        elif disk.random.random() < 0.1:
            data = data[: disk.random.randint(1, len(data))]
        self.content.data += data
        return len(data)

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self.content.data[offset : offset + size])

    def size(self) -> int:
        return len(self.content.data)

    def sync(self) -> None:
        before = self.content.synced
        data = bytes(self.content.data)
        self.disk.check_sync()
        if self.content.synced is before:  # Otherwise others have synced it meanwhile, and more of it.
            self.content.synced = data

    def cut(self, size: int) -> None:
        self.disk.step()
        del self.content.data[size:]

    def close(self) -> None:
        pass


class FakeFixedFile:
    def __init__(self, content: Content) -> None:
        self.content = content

    def write(self, data: bytes) -> None:
        self.content.data[:] = data

    def close(self) -> None:
        pass

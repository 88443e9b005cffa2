"""A bad disk for a real broker: power loss, no room, syncs that fail; a clock that is wrong. By a small library that
is loaded into it.

    disk = FaultyDisk(tmp_path)
    process = start a broker with disk.environment
    disk.fill(), disk.make_room(), disk.break_syncs()
    kill it; disk.lose_power(folder)      # what was not synced is gone
    disk.set_clock(-3600)                 # for the next broker it is an hour earlier
"""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path
from random import Random

SOURCE = Path(__file__).with_name("faulty_disk.c")
ROW = struct.Struct("=QQ")
BLOCK_BYTES = 512  # What a disk writes as a whole.


def build(place: Path) -> Path:
    """Compile the library."""
    library = place / "faulty_disk.so"
    command = ["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


class FaultyDisk:
    def __init__(self, place: Path) -> None:
        self.synced = place / "synced"
        self.full = place / "full"
        self.broken = place / "broken"
        self.environment = {
            **os.environ,
            "LD_PRELOAD": str(build(place)),
            "HEADRACE_SYNCED": str(self.synced),
            "HEADRACE_FULL": str(self.full),
            "HEADRACE_BROKEN": str(self.broken),
        }
        self.before: set[int] = set()

    def note(self, folder: Path) -> None:
        """What is there before a broker starts is safe."""
        self.synced.unlink(missing_ok=True)
        self.before = {path.stat().st_ino for path in folder.iterdir()} if folder.exists() else set()

    def safe_sizes(self, folder: Path) -> dict[str, int]:
        """By name: how much of each file is on the disk for sure."""
        sizes = dict(ROW.iter_unpack(self.synced.read_bytes())) if self.synced.exists() else {}
        safe = {}
        for path in folder.iterdir():
            found = path.stat()
            size = sizes.get(found.st_ino, found.st_size if found.st_ino in self.before else 0)
            safe[path.name] = min(size, found.st_size)
        return safe

    def lose_power(self, folder: Path, random: Random | None = None) -> int:
        """Take what was not synced, all of it or any part; how many bytes. The broker is dead already."""
        return take_away(folder, self.safe_sizes(folder), random)

    def set_clock(self, seconds: int) -> None:
        """So wrong it is for the next broker."""
        self.environment["HEADRACE_CLOCK"] = str(seconds)

    def fill(self) -> None:
        self.full.touch()

    def make_room(self) -> None:
        self.full.unlink()

    def break_syncs(self) -> None:
        self.broken.touch()


def take_away(folder: Path, sizes: dict[str, int], random: Random | None = None) -> int:
    """Cut each file to its size. With chance: to any size above that, with zeros in place of some of the blocks."""
    lost = 0
    for name, size in sizes.items():
        path = folder / name
        data = path.read_bytes()
        if name == "lock" or size >= len(data):
            continue
        lost += len(data) - size
        kept = data[:size]
        end = random.randint(size, len(data)) if random is not None else size
        while random is not None and len(kept) < end:
            stop = min(end, (len(kept) // BLOCK_BYTES + 1) * BLOCK_BYTES)
            kept += random.choice([data[len(kept) : stop], bytes(stop - len(kept))])
        path.write_bytes(kept)
    return lost

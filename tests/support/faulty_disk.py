"""A bad disk for a real broker: power loss, no room, syncs that fail. By a small library that is loaded into it.

with FaultyDisk(tmp_path) as disk:
    process = start a broker with disk.environment
    disk.fill(), disk.make_room(), disk.break_syncs()
    kill it; disk.lose_power(folder)      # what was not synced is gone
"""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("faulty_disk.c")
ROW = struct.Struct("=QQ")


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

    def lose_power(self, folder: Path) -> int:
        """Cut every file back to its last sync; how many bytes that were. The broker is dead already."""
        sizes = dict(ROW.iter_unpack(self.synced.read_bytes())) if self.synced.exists() else {}
        lost = 0
        for path in folder.iterdir():
            found = path.stat()
            size = sizes.get(found.st_ino, found.st_size if found.st_ino in self.before else 0)
            if path.name != "lock" and size < found.st_size:
                lost += found.st_size - size
                os.truncate(path, size)
        return lost

    def fill(self) -> None:
        self.full.touch()

    def make_room(self) -> None:
        self.full.unlink()

    def break_syncs(self) -> None:
        self.broken.touch()

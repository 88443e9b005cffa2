"""What a repair of a real folder changes or removes, kept beside it: the files as they were, and what was dropped.

before-repair-1/log-00000012      a second name of the file, so that it takes no room; a copy where links cannot be
before-repair-1/dropped-commands  every record that was dropped and can be read, as a command
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TextIO

from headrace.commands.readable import readable_lines
from headrace.journal.disk import FILE_MODE, FOLDER_MODE, sync_folder
from headrace.server.findings import Finding, counted

DROPPED: Final = "dropped-commands"


class KeptCopy:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = new_folder(folder)
        self.dropped: TextIO | None = None
        self.records = 0
        self.place = (-1, -1)  # Frame and database of the last record.

    def begin_records(self) -> Callable[[int, list[Any]], None]:
        self.close()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self.dropped = os.fdopen(os.open(self.path / DROPPED, flags, FILE_MODE), "w", encoding="utf-8")
        self.records = 0
        self.place = (-1, -1)
        return self.write_record

    def write_record(self, sequence: int, record: list[Any]) -> None:
        assert self.dropped is not None
        database = int(record[1])
        lines = [] if self.place[0] == sequence else [f"# frame {sequence}"]
        lines += [] if self.place[1] == database else [f"SELECT {database}"]
        self.place = (sequence, database)
        self.dropped.write("\n".join([*lines, *readable_lines(record), ""]))
        self.records += 1

    def take(self, names: list[str]) -> Finding:
        self.close()
        if not self.records:
            (self.path / DROPPED).unlink(missing_ok=True)
        for name in names:
            try:
                os.link(self.folder / name, self.path / name)
            except OSError:
                shutil.copy2(self.folder / name, self.path / name)
                sync_file(self.path / name)
        sync_folder(self.path)
        sync_folder(self.folder)
        more = f", and {counted(self.records, 'dropped record')} as commands in {DROPPED}" if self.records else ""
        return Finding("kept", f"{self.path} has what this changes: {', '.join(names)}{more}")

    def close(self) -> None:
        if self.dropped is not None:
            self.dropped.flush()
            os.fsync(self.dropped.fileno())
            self.dropped.close()
            self.dropped = None


def new_folder(folder: Path) -> Path:
    """The first number that is free."""
    number = 1
    while True:
        path = folder / f"before-repair-{number}"
        try:
            path.mkdir(mode=FOLDER_MODE)
        except FileExistsError:
            number += 1
        else:
            return path


def sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())

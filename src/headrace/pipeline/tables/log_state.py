"""The log of a plain Parquet table, read into the list of its files. See `parquet.py` for the layout.

    {"add": [NewFile…], "remove": [path…], "through": {stream: ID}, "queries": {query: batch}, "time_ms": …}

A part counts if its number follows the one before it without a gap.
"""

import json
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

MAX_ATTEMPTS: Final = 10  # Parts may be removed while they are read; then a newer whole is there.
WHOLE: Final = ".whole.json"


@dataclass(slots=True)
class LogState:
    version: int = -1
    files: dict[str, Any] = field(default_factory=dict)  # Path -> NewFile as JSON has it.
    removed: dict[str, int] = field(default_factory=dict)  # Path -> when, for vacuum.
    through: dict[str, str] = field(default_factory=dict)
    queries: dict[str, int] = field(default_factory=dict)
    recent_added: list[str] = field(default_factory=list)  # By parts of the log, not by the whole.
    recent_removed: list[str] = field(default_factory=list)

    @staticmethod
    def part(folder: Path, version: int) -> Path:
        return folder / f"{version:020d}.json"

    @classmethod
    def load(cls, folder: Path) -> "LogState":
        for attempt in range(MAX_ATTEMPTS):
            try:
                return cls._load_once(folder)
            except FileNotFoundError:
                if attempt == MAX_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    @classmethod
    def _load_once(cls, folder: Path) -> "LogState":
        names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
        state = cls()
        if wholes := sorted(name for name in names if name.endswith(WHOLE)):
            facts = json.loads((folder / wholes[-1]).read_text())
            state = cls(facts["version"], facts["files"], facts["removed"], facts["through"], facts["queries"])
        last = max((int(name.split(".")[0]) for name in names), default=-1)
        while state.version < last:
            state.apply(json.loads(cls.part(folder, state.version + 1).read_text()))
        return state

    def apply(self, change: dict[str, Any]) -> None:
        for path in change["remove"]:
            self.files.pop(path, None)
            self.removed[path] = change["time_ms"]
            self.recent_removed.append(path)
        for one in change["add"]:
            self.files[one["path"]] = one
            self.recent_added.append(one["path"])
        self.through.update(change["through"])
        self.queries.update(change["queries"])
        self.version += 1

    def save(self, folder: Path) -> None:
        """Write the whole, then remove the parts and wholes that nobody needs to begin with any more."""
        facts = {
            "version": self.version, "files": self.files, "removed": self.removed, "through": self.through,
            "queries": self.queries,
        }  # fmt: skip
        draft = folder / f".whole-{uuid.uuid4().hex[:12]}"
        with draft.open("w") as file:
            json.dump(facts, file)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(folder / f"{self.version:020d}{WHOLE}")
        for path in folder.iterdir():
            if not path.name.startswith(".") and int(path.name.split(".")[0]) < self.version:
                path.unlink(missing_ok=True)

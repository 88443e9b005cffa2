"""Which Python files of a folder have changed, for --reload. By looking: it needs no package and works everywhere."""

import os
from pathlib import Path
from typing import Final

MOST_FILES: Final = 10_000
PASSED_OVER: Final = frozenset({"__pycache__", "node_modules", "build", "dist", "site-packages"})


class Watcher:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known = self.look()

    def has_changed(self) -> bool:
        """Whether a file was changed, added or removed since the last time it was asked."""
        before, self.known = self.known, self.look()
        return before != self.known

    def look(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for folder, folders, files in os.walk(self.folder):
            folders[:] = [name for name in folders if name not in PASSED_OVER and not name.startswith(".")]
            for name in files:
                if name.endswith(".py") and len(found) < MOST_FILES:
                    path = os.path.join(folder, name)  # noqa: PTH118 - thousands of them, twice a second.
                    try:
                        facts = os.stat(path)  # noqa: PTH116 - as above.
                    except OSError:
                        continue  # Removed this moment.
                    found[path] = (facts.st_mtime_ns, facts.st_size)
        return found

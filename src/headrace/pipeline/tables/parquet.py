"""A table of plain Parquet files, for tools that know no Delta. On a file system whose rename is atomic.

    stream=orders/day=2026-11-15/….parquet        the rows
    _headrace/table.json                          columns, partitions, properties
    _headrace/log/00000000000000000012.json       what commit 12 added and removed; from its creation on it counts
    _headrace/log/00000000000000000049.whole.json the whole list as of commit 49; older parts of the log are removed
    _headrace/staged/, _headrace/replaced/        files not yet, and no longer, among the rows

A commit creates the next number of the log, under a lock, and then moves its files among the rows. Who dies in between
has committed: whoever opens the table next moves them. Tools that only look at the folder see each row
once, but may see a part of a commit while it is moved; headrace's own readers go by the log.
"""

import base64
import fcntl
import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from headrace.errors import Refused, TableError
from headrace.pipeline.entry_ids import id_of, text_of
from headrace.pipeline.tables.files import make_folder, sync_folder
from headrace.pipeline.tables.log_state import LogState
from headrace.pipeline.tables.table import OWN_FOLDER, Figures, NewFile, Span, StoredFile, is_new

VERSION: Final = 1
WHOLE_EVERY: Final = 50  # Commits: opening reads at most so many small files.
HOUR_MS: Final = 3_600_000


def create(folder: Path, schema: Any, partition_by: tuple[str, ...], properties: dict[str, str]) -> None:
    facts = {
        "version": VERSION,
        "schema": base64.b64encode(schema.serialize().to_pybytes()).decode(),
        "partition_by": partition_by,
        "properties": properties,
    }
    try:
        for name in ("log", "staged", "replaced"):
            (folder / OWN_FOLDER / name).mkdir(parents=True, exist_ok=True)
        create_file(folder / OWN_FOLDER / "table.json", json.dumps(facts))
    except FileExistsError:
        return  # Another process was first; the caller compares the columns.
    except OSError as error:
        raise TableError(f"no table can be made at {folder}: {error.strerror}.") from error


def open_folder(folder: Path) -> "ParquetFolder":
    return ParquetFolder(folder)


class ParquetFolder:
    """See `table.py` for what the methods promise."""

    format = "parquet"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._own = path / OWN_FOLDER
        try:
            facts = json.loads((self._own / "table.json").read_text())
            if facts["version"] != VERSION:
                raise TableError(f"the table at {path} has version {facts['version']} and needs a newer headrace.")
            self.schema: Any = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(facts["schema"])))
            self.partition_by = tuple(facts["partition_by"])
            self.properties: Mapping[str, str] = facts["properties"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TableError(f"the table at {path} cannot be read: its table.json is damaged ({error}).") from error
        self._state = LogState()
        self.refresh()

    def refresh(self) -> None:
        try:
            self._state = LogState.load(self._own / "log")
            self._finish()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TableError(f"the table at {self.path} cannot be read: {error}.") from error

    # Reading

    def through(self, streams: Iterable[str] = ()) -> dict[str, int]:
        return {stream: id_of(text) for stream, text in self._state.through.items()}

    def has_batch(self, query: str, batch: int) -> bool:
        return self._state.queries.get(query, -1) >= batch

    def files(self) -> list[StoredFile]:
        return [
            StoredFile(
                str(self.path / one["path"]), one["rows"], one["size_bytes"], one["partition"], one["least"],
                one["greatest"],
            )
            for one in self._state.files.values()
        ]  # fmt: skip

    def figures(self) -> Figures:
        files = self._state.files.values()
        return Figures(sum(one["rows"] for one in files), sum(one["size_bytes"] for one in files), len(files))

    # Writing

    def staging(self, path: str) -> Path:
        """Beside the rows, so that nobody takes it for one before it is committed."""
        return self._own / "staged" / Path(path).name

    def commit(
        self,
        files: Iterable[NewFile],
        *,
        spans: Mapping[str, Span] | None = None,
        query: str | None = None,
        batch: int | None = None,
        overwrite: bool = False,
    ) -> bool:
        change: dict[str, Any] = {
            "add": [asdict(one) for one in files],
            "through": {stream: text_of(span.through) for stream, span in (spans or {}).items()},
            "queries": {} if query is None else {query: batch},
        }
        with self._only_writer():
            if spans and not is_new(self.through(), spans, self.path):
                return False
            if query is not None and batch is not None and self.has_batch(query, batch):
                return False
            change["remove"] = list(self._state.files) if overwrite else []
            self._append(change)
        return True

    def replace(self, old: Iterable[StoredFile], new: Iterable[NewFile]) -> None:
        removed = [str(Path(one.path).relative_to(self.path)) for one in old]
        change: dict[str, Any] = {"add": [asdict(one) for one in new], "remove": removed, "through": {}, "queries": {}}
        with self._only_writer():
            if gone := [path for path in removed if path not in self._state.files]:
                raise Refused(
                    f"{gone[0]} is no longer part of the table: somebody else compacts it. Nothing was changed."
                )
            self._append(change)

    @contextmanager
    def _only_writer(self) -> Iterator[None]:
        """One writer at a time, who knows the newest state."""
        try:
            descriptor = os.open(self._own / "log.lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise TableError(f"the table at {self.path} cannot be written: {error.strerror}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self.refresh()
            yield
        finally:
            os.close(descriptor)

    def _append(self, change: dict[str, Any]) -> None:
        version = self._state.version + 1
        text = json.dumps(change | {"time_ms": time.time_ns() // 1_000_000})
        try:
            create_file(LogState.part(self._own / "log", version), text)
            self.refresh()
            if (version + 1) % WHOLE_EVERY == 0:
                self._state.save(self._own / "log")
        except OSError as error:
            raise TableError(f"the table at {self.path} cannot be written: {error.strerror}.") from error

    def _finish(self) -> None:
        """Move what recent commits removed out from among the rows, and what they added in."""
        folders = set()
        for path in self._state.recent_removed:
            if move(self.path / path, self._own / "replaced" / Path(path).name):
                folders.add((self.path / path).parent)
        for path in self._state.recent_added:
            if path in self._state.files and move(self.staging(path), self.path / path):
                folders.add((self.path / path).parent)
        for folder in folders:
            sync_folder(folder)

    def vacuum(self, retention_hours: int, *, dry_run: bool) -> list[str]:
        with self._only_writer():  # Nobody commits meanwhile what is taken for left behind.
            return self._vacuum(time.time_ns() // 1_000_000 - retention_hours * HOUR_MS, dry_run=dry_run)

    def _vacuum(self, oldest_ms: int, *, dry_run: bool) -> list[str]:
        names = {Path(path).name for path in self._state.files}
        found = [one for one in (self._own / "staged").iterdir() if one.name not in names and is_older(one, oldest_ms)]
        for path, removed_ms in self._state.removed.items():
            one = self._own / "replaced" / Path(path).name
            if removed_ms < oldest_ms and one.exists():
                found.append(one)
        if not dry_run:
            for one in found:
                one.unlink(missing_ok=True)
        return [str(one.relative_to(self.path)) for one in found]


def is_older(path: Path, time_ms: int) -> bool:
    """Whether it was last changed before. A task may give it another name at any moment: then it was not."""
    try:
        return path.stat().st_mtime_ns // 1_000_000 < time_ms
    except FileNotFoundError:
        return False


def move(source: Path, target: Path) -> bool:
    """Whether there was something to move. Another process may do the same at the same time."""
    if not source.exists():
        return False
    make_folder(target.parent)
    try:
        source.rename(target)
    except FileNotFoundError:
        return False
    return True


def create_file(path: Path, text: str) -> None:
    """Whole or not at all, and only if there is none: FileExistsError."""
    draft = path.with_name(f".{path.name}-{uuid.uuid4().hex[:12]}")
    try:
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)

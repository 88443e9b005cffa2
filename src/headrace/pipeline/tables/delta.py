"""A Delta table, through delta-rs. Any reader of Delta tables understands it; no jars, no Spark in here.

What makes a commit exactly once lies in the table's own log, as application transactions:

    headrace:through-ms:STREAM, headrace:through-seq:STREAM   how far the stream is in the table
    headrace:query:QUERY                                      the last batch of a query

Their versions are signed numbers of 64 bits; halves of IDs are unsigned and are written as the signed number with the
same bits. Every commit is tried on the newest version only: if somebody else was first, all is looked at again.
"""

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from headrace.errors import Refused, TableError
from headrace.pipeline.entry_ids import MAX_PART
from headrace.pipeline.tables.files import sync_file, sync_folder
from headrace.pipeline.tables.table import Figures, NewFile, Span, StoredFile, is_new

LOG: Final = "_delta_log"
MAX_ATTEMPTS: Final = 50  # Each one that fails means that another writer committed.
SETTINGS: Final = {
    "delta.checkpointInterval": "50",  # Opening reads at most so many small files of the log.
    "delta.logRetentionDuration": "interval 1 days",  # Older parts of the log are removed at checkpoints.
}


def create(folder: Path, schema: Any, partition_by: tuple[str, ...], properties: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        DeltaTable.create(
            str(folder), schema, mode="ignore", partition_by=list(partition_by),
            configuration=SETTINGS | properties, raise_if_key_not_exists=False,
        )  # fmt: skip
    except (DeltaError, OSError, ValueError) as error:
        raise TableError(f"no table can be made at {folder}: {first_line(error)}") from error
    sync_log(folder)


def open_folder(folder: Path) -> "DeltaFolder":
    return DeltaFolder(folder)


class DeltaFolder:
    """See `table.py` for what the methods promise."""

    format = "delta"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._table = self._open()
        self.schema: Any = pa.schema(self._table.schema().to_arrow())
        metadata = self._table.metadata()
        self.partition_by = tuple(metadata.partition_columns)
        self.properties: Mapping[str, str] = metadata.configuration
        self._files: list[StoredFile] | None = None

    def _open(self) -> Any:
        try:
            return DeltaTable(str(self.path))
        except (DeltaError, OSError, ValueError) as error:
            raise TableError(f"the table at {self.path} cannot be read: {first_line(error)}") from error

    def refresh(self) -> None:
        """Reads only what was committed since."""
        try:
            self._table.update_incremental()
        except (DeltaError, OSError, ValueError) as error:
            raise TableError(f"the table at {self.path} cannot be read: {first_line(error)}") from error
        self._files = None

    # Reading

    def through(self, streams: Iterable[str] = ()) -> dict[str, int]:
        there = {str(values["stream"]) for values in self._table.partitions() if values.get("stream") is not None}
        found = {stream: self._find_through(stream) for stream in there.union(streams)}
        return {stream: entry_id for stream, entry_id in found.items() if entry_id is not None}

    def _find_through(self, stream: str) -> int | None:
        ms = self._table.transaction_version(f"headrace:through-ms:{stream}")
        seq = self._table.transaction_version(f"headrace:through-seq:{stream}")
        return None if ms is None or seq is None else unsigned(ms) << 64 | unsigned(seq)

    def has_batch(self, query: str, batch: int) -> bool:
        last = self._table.transaction_version(query_name(query))
        return last is not None and last >= batch

    def files(self) -> list[StoredFile]:
        if self._files is None:
            actions = pa.table(self._table.get_add_actions(flatten=True))
            self._files = [self._stored(row) for row in actions.to_pylist()]
        return self._files

    def figures(self) -> Figures:
        actions = pa.table(self._table.get_add_actions())
        rows, size_bytes = pc.sum(actions["num_records"]).as_py(), pc.sum(actions["size_bytes"]).as_py()
        return Figures(rows or 0, size_bytes or 0, actions.num_rows)

    def _stored(self, row: dict[str, Any]) -> StoredFile:
        parts = {name: row.get(f"partition.{name}") for name in self.partition_by}
        return StoredFile(
            path=str(self.path / unquote(row["path"])),
            rows=row["num_records"] or 0,
            size_bytes=row["size_bytes"],
            partition={name: partition_text(value) for name, value in parts.items()},
            least={name[4:]: value for name, value in row.items() if name.startswith("min.") and value is not None},
            greatest={name[4:]: value for name, value in row.items() if name.startswith("max.") and value is not None},
        )

    # Writing

    def staging(self, path: str) -> Path:
        """In its final place: readers of Delta tables see nothing that is not committed."""
        return self.path / path

    def commit(
        self,
        files: Iterable[NewFile],
        *,
        spans: Mapping[str, Span] | None = None,
        query: str | None = None,
        batch: int | None = None,
        overwrite: bool = False,
    ) -> bool:
        actions = [add_action(one) for one in files]
        for _ in range(MAX_ATTEMPTS):
            if spans and not is_new(
                {s: t for s in spans if (t := self._find_through(s)) is not None}, spans, self.path
            ):
                return False
            if query is not None and batch is not None and self.has_batch(query, batch):
                return False
            if self._try_commit(actions, transactions(spans, query, batch), overwrite=overwrite):
                return True
            self.refresh()
        raise Refused(f"others write to the table at {self.path} without a pause; nothing was added. Try again later.")

    def replace(self, old: Iterable[StoredFile], new: Iterable[NewFile]) -> None:
        olds = list(old)
        actions: list[Any] = [add_action(one, changes_data=False) for one in new]
        actions += [remove_action(one, self.path) for one in olds]
        for _ in range(MAX_ATTEMPTS):
            here = {one.path for one in self.files()}
            if gone := [one.path for one in olds if one.path not in here]:
                raise Refused(
                    f"{gone[0]} is no longer part of the table: somebody else compacts it. Nothing was changed."
                )
            if self._try_commit(actions, [], overwrite=False):
                return
            self.refresh()
        raise Refused(f"others write to the table at {self.path} without a pause; nothing was changed.")

    def _try_commit(self, actions: list[Any], marks: list[Any], *, overwrite: bool) -> bool:
        try:
            self._table.create_write_transaction(
                actions, "overwrite" if overwrite else "append", self._table.schema(), list(self.partition_by),
                commit_properties=CommitProperties(app_transactions=marks, max_commit_retries=0),
            )  # fmt: skip
        except CommitFailedError:
            return False
        except (DeltaError, OSError, ValueError) as error:
            raise TableError(f"the table at {self.path} cannot be written: {first_line(error)}") from error
        sync_log(self.path)
        self.refresh()
        return True

    def vacuum(self, retention_hours: int, *, dry_run: bool) -> list[str]:
        try:
            gone = self._table.vacuum(retention_hours, dry_run, enforce_retention_duration=False, full=True)
        except (DeltaError, OSError) as error:
            raise TableError(f"the table at {self.path} cannot be cleaned: {first_line(error)}") from error
        return [unquote(path) for path in gone]


def add_action(new: NewFile, *, changes_data: bool = True) -> Any:
    stats = {"numRecords": new.rows, "minValues": dict(new.least), "maxValues": dict(new.greatest)}
    now_ms = time.time_ns() // 1_000_000
    return AddAction(new.path, new.size_bytes, dict(new.partition), now_ms, changes_data, json.dumps(stats))


def remove_action(stored: StoredFile, folder: Path) -> Any:
    path = str(Path(stored.path).relative_to(folder))
    now_ms = time.time_ns() // 1_000_000
    return RemoveAction(path, False, now_ms, stored.size_bytes, dict(stored.partition))


def transactions(spans: Mapping[str, Span] | None, query: str | None, batch: int | None) -> list[Any]:
    marks = []
    for stream, span in (spans or {}).items():
        marks.append(Transaction(f"headrace:through-ms:{stream}", signed(span.through >> 64)))
        marks.append(Transaction(f"headrace:through-seq:{stream}", signed(span.through & MAX_PART)))
    if query is not None and batch is not None:
        marks.append(Transaction(query_name(query), batch))
    return marks


def query_name(query: str) -> str:
    return f"headrace:query:{query}"


def partition_text(value: Any) -> str | None:
    """As it stands in the log."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def unsigned(number: int) -> int:
    return number % 2**64


def sync_log(folder: Path) -> None:
    """Make the newest version safe on disk: what follows a commit may remove the only other copy."""
    newest = max((folder / LOG).glob("*.json"), key=lambda path: path.name, default=None)
    if newest is not None:
        sync_file(newest)
    sync_folder(folder / LOG)


def first_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}."
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".") + "."

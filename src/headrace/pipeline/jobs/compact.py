"""Many small files of a table -> few large ones, with the same rows; and files that nobody needs, removed.

    compact("./archive", dry_run=False)

A continuous archive leaves a file per batch, stream and day. Here files that follow each other in a partition are
joined, in the order of IDs, and put in the place of the old ones in one step. An archive may run at the same time. The
old files stay for those who still read them, until they are older than the retention; so do files of tasks under way.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from headrace.client.client import Client, choose_url
from headrace.client.times import Duration, parse_duration_ms
from headrace.errors import ConfigError, TableError
from headrace.pipeline.archive_files import EPOCH, statistics
from headrace.pipeline.archive_layout import ENCODINGS, VERSION_PROPERTY
from headrace.pipeline.archives import get_archive
from headrace.pipeline.tables.files import FileWriter, new_file_name
from headrace.pipeline.tables.table import NewFile, StoredFile, Table, check_files, open_table, partition_folder

TARGET_BYTES: Final = 128 << 20
BATCH_ROWS: Final = 50_000
HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What was done; in a dry run, what would be."""

    files_before: int
    files_after: int
    removed: int  # Files that are no part of the table any more and older than the retention.
    is_dry_run: bool


def compact(
    path: str | Path | None = None,
    *,
    name: str | None = None,
    url: str | None = None,
    target_bytes: int = TARGET_BYTES,
    retention: Duration = "7d",
    dry_run: bool = True,
) -> CompactReport:
    """Compact the table in a folder, or the archive of that name. A dry run only tells."""
    retention_hours = -(-parse_duration_ms(retention, "retention") // HOUR_MS)
    if retention_hours < 1:
        raise ConfigError("retention is less than an hour; tasks and readers under way would lose their files.")
    if target_bytes < 1:
        raise ConfigError(f"target_bytes is {target_bytes}; it must be at least 1.")
    table = open_table(find_path(path, name, url))
    check_files(table)
    before = len(table.files())
    fewer = join_small_files(table, target_bytes, dry_run=dry_run)
    removed = table.vacuum(retention_hours, dry_run=dry_run)
    return CompactReport(before, before - fewer, len(removed), dry_run)


def join_small_files(table: Table, target_bytes: int = TARGET_BYTES, *, dry_run: bool = False) -> int:
    """By how many files there are fewer then."""
    fewer = 0
    for old in join_candidates(table, target_bytes):
        if not dry_run:
            table.replace(old, [join(table, old)])
        fewer += len(old) - 1
    return fewer


def find_path(path: str | Path | None, name: str | None, url: str | None) -> str | Path:
    if path is not None:
        if name is not None:
            raise ConfigError("say which table: by its folder or by the name of the archive, not both.")
        return path
    with Client(choose_url(url)) as client:
        return get_archive(client, name or "archive").path


def join_candidates(table: Table, target_bytes: int) -> list[list[StoredFile]]:
    """Runs of small files, in order, each run no larger than the target. What is half as large stays as it is."""
    by_partition: dict[tuple[tuple[str, str | None], ...], list[StoredFile]] = {}
    for one in table.files():
        by_partition.setdefault(tuple(one.partition.items()), []).append(one)
    runs: list[list[StoredFile]] = []
    for files in by_partition.values():
        if len(files) < 2:
            continue
        run: list[StoredFile] = []
        for one in in_order(table, files):
            size_bytes = sum(file.size_bytes for file in run)
            if one.size_bytes * 2 >= target_bytes or size_bytes + one.size_bytes > target_bytes:
                runs.append(run)
                run = []
            if one.size_bytes * 2 < target_bytes:
                run.append(one)
        runs.append(run)
    return [run for run in runs if len(run) > 1]


def in_order(table: Table, files: Iterable[StoredFile]) -> list[StoredFile]:
    """By the first ID, which is in the file; of other tables by name."""
    if VERSION_PROPERTY not in table.properties:
        return sorted(files, key=lambda one: one.path)
    return sorted(files, key=first_id)


def first_id(stored: StoredFile) -> tuple[int, int]:
    try:
        with pq.ParquetFile(stored.path) as file:
            batch = next(file.iter_batches(1, columns=["id_ms", "id_seq"]))
    except (OSError, ValueError, StopIteration) as error:
        raise TableError(f"the table is damaged: {stored.path} cannot be read ({error}).") from error
    return int(batch.column(0)[0].as_py()), int(batch.column(1)[0].as_py())


def join(table: Table, old: list[StoredFile]) -> NewFile:
    """A file with the rows of the others, one after the other."""
    is_archive = VERSION_PROPERTY in table.properties
    partition = dict(old[0].partition)
    schema = table.schema
    for name in table.partition_by:
        schema = schema.remove(schema.get_field_index(name))
    folder, name = partition_folder(partition), new_file_name(Path(old[0].path).name.rsplit("-", 1)[0])
    path = f"{folder}/{name}" if folder else name
    writer = FileWriter(table.staging(path), schema, ENCODINGS if is_archive else None)
    try:
        for batch in read_rows(old, schema):
            writer.write(batch)
        size_bytes = writer.close()
    except BaseException:
        writer.discard()
        raise
    rows = sum(one.rows for one in old)
    if writer.rows != rows:
        raise TableError(f"the table at {table.path} is damaged: {writer.rows} rows where {rows} should be.")
    least, greatest = joined_statistics(old) if is_archive else ({}, {})
    return NewFile(path, rows, size_bytes, partition, least, greatest)


def read_rows(files: Iterable[StoredFile], schema: Any) -> Iterator[Any]:
    for one in files:
        try:
            with pq.ParquetFile(one.path) as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=schema.names):
                    yield batch.select(schema.names).cast(schema)
        except (OSError, ValueError) as error:
            raise TableError(f"the table is damaged: {one.path} cannot be read ({error}).") from error


def joined_statistics(files: list[StoredFile]) -> tuple[dict[str, Any], dict[str, Any]]:
    if any("id_ms" not in one.least or "id_ms" not in one.greatest for one in files):
        return {}, {}
    text = files[0].partition["day"]
    day = None if text is None else (date.fromisoformat(text) - EPOCH).days
    least_ms = min(int(one.least["id_ms"]) for one in files)
    greatest_ms = max(int(one.greatest["id_ms"]) for one in files)
    return statistics(least_ms, day), statistics(greatest_ms, day)

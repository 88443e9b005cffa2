"""Small files of a table become large ones: the same rows in the order of IDs, while others write and read."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import ConfigError, TableError
from headrace.pipeline.archive_files import SliceWriter
from headrace.pipeline.archive_layout import create_archive
from headrace.pipeline.jobs.compact import compact
from headrace.pipeline.pages import parse_page
from headrace.pipeline.tables.table import Span, Table, create_table, open_table

DAY_MS = 86_400_000
FIRST_MS = 1_763_164_800_000  # A midnight.


def reply(ids: list[str]) -> bytes:
    """What a server answers to XRANGE."""
    entries = []
    for entry_id in ids:
        entries.append(b"*2\r\n$%d\r\n%s\r\n*2\r\n$1\r\nn\r\n$1\r\n1\r\n" % (len(entry_id), entry_id.encode()))
    return b"*%d\r\n" % len(entries) + b"".join(entries)


def add(table: Table, ids: list[str], before: int, stream: str = "orders") -> int:
    """One commit of an archive: these entries behind `before`."""
    files = SliceWriter(table, stream).write([parse_page(pa.py_buffer(reply(ids)))])
    ms, seq = (int(part) for part in ids[-1].split("-"))
    through = ms << 64 | seq
    table.commit(files, spans={stream: Span(before, through)})
    return through


def ids_of(stored: Any) -> list[str]:
    return pq.read_table(stored.path, columns=["id"], partitioning=None)["id"].to_pylist()


def all_ids(table: Table) -> list[str]:
    found = [entry_id for stored in open_table(table.path).files() for entry_id in ids_of(stored)]
    return sorted(found, key=lambda entry_id: [int(part) for part in entry_id.split("-")])


@pytest.fixture(params=["delta", "parquet"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return create_archive(tmp_path / "archive", request.param)


def fill(table: Table, commits: int, stream: str = "orders") -> list[str]:
    ids: list[str] = []
    through = 0
    for number in range(commits):
        new = [f"{FIRST_MS + number}-{seq}" for seq in range(3)]
        through = add(table, new, through, stream)
        ids += new
    return ids


def test_small_files_become_one_per_stream_and_day_in_the_order_of_ids(table: Table) -> None:
    ids = fill(table, 12)
    last = add(table, [f"{FIRST_MS + DAY_MS}-0"], table.through()["orders"])
    add(table, [f"{FIRST_MS + DAY_MS}-1", f"{FIRST_MS + DAY_MS + 1}-0"], last)
    fill(table, 2, "parcels")

    report = compact(table.path, dry_run=False)

    assert (report.files_before, report.files_after) == (16, 3)
    files = {tuple(one.partition.values()): one for one in open_table(table.path).files()}
    assert ids_of(files["orders", "2025-11-15"]) == ids
    assert ids_of(files["orders", "2025-11-16"]) == [
        f"{FIRST_MS + DAY_MS}-0",
        f"{FIRST_MS + DAY_MS}-1",
        f"{FIRST_MS + DAY_MS + 1}-0",
    ]
    assert int(files["orders", "2025-11-15"].greatest["id_ms"]) == FIRST_MS + 11
    assert open_table(table.path).through() == table.through()


def test_counters_are_ordered_as_numbers(table: Table) -> None:
    through = 0
    for entry_id in ("0-9", "0-10", "2-0", "10-0"):
        through = add(table, [entry_id], through)

    compact(table.path, dry_run=False)

    [file] = open_table(table.path).files()
    assert ids_of(file) == ["0-9", "0-10", "2-0", "10-0"] and file.partition["day"] is None


def test_a_dry_run_changes_nothing(table: Table) -> None:
    fill(table, 5)
    before = sorted(path for path in table.path.rglob("*"))

    report = compact(table.path)

    assert (report.files_before, report.files_after, report.is_dry_run) == (5, 1, True)
    assert sorted(path for path in table.path.rglob("*")) == before


def test_files_that_are_large_enough_stay_as_they_are(table: Table) -> None:
    fill(table, 6)
    size_bytes = max(one.size_bytes for one in table.files())

    assert compact(table.path, target_bytes=size_bytes, dry_run=False).files_after == 6
    assert compact(table.path, target_bytes=3 * size_bytes, dry_run=False).files_after == 2
    assert all_ids(table) == [f"{FIRST_MS + number}-{seq}" for number in range(6) for seq in range(3)]


def test_an_archive_that_runs_at_the_same_time_loses_nothing(table: Table) -> None:
    ids = fill(table, 5)
    running = threading.Event()
    failures: list[BaseException] = []

    def go_on() -> None:
        try:
            writer = open_table(table.path)
            through = writer.through()["orders"]
            running.set()
            for number in range(5, 25):
                through = add(writer, [f"{FIRST_MS + number}-0"], through)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=go_on)
    thread.start()
    running.wait(10)
    while thread.is_alive():
        compact(table.path, dry_run=False)
    thread.join()
    compact(table.path, dry_run=False)

    assert failures == []
    assert all_ids(table) == ids + [f"{FIRST_MS + number}-0" for number in range(5, 25)]
    assert len(open_table(table.path).files()) == 1


def test_old_files_stay_for_readers_until_they_are_older_than_the_retention(table: Table) -> None:
    fill(table, 3)
    paths = [Path(one.path) for one in table.files()]
    opened = [path.open("rb") for path in paths]
    for file in opened:
        file.close()

    assert compact(table.path, dry_run=False).removed == 0
    kept = list(table.path.rglob("*.parquet"))
    assert {path.name for path in paths} <= {path.name for path in kept}
    with pytest.raises(ConfigError, match="less than an hour"):
        compact(table.path, retention="0s")


def test_what_a_dead_task_left_is_removed_once_it_is_old(table: Table) -> None:
    ids = fill(table, 1)
    orphans = [table.staging("stream=orders/day=2025-11-15/dead.parquet"), table.staging("dead.parquet.partial")]
    for path in orphans:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
    young = table.staging("young.parquet")
    young.write_bytes(b"half")
    for path in orphans:
        os.utime(path, (path.stat().st_mtime - 8 * 24 * 3600,) * 2)

    assert compact(table.path).removed == 2 and all(path.exists() for path in orphans)
    assert compact(table.path, dry_run=False).removed == 2
    assert not any(path.exists() for path in orphans) and young.exists()
    assert all_ids(table) == ids


def test_a_damaged_file_stops_it_and_nothing_is_replaced(table: Table) -> None:
    fill(table, 3)
    victim = Path(table.files()[1].path)
    content = victim.read_bytes()
    victim.write_bytes(bytes(len(content)))

    with pytest.raises(TableError, match="is damaged"):
        compact(table.path, dry_run=False)
    victim.write_bytes(content)
    assert len(open_table(table.path).files()) == 3


def test_tables_of_other_rows_are_compacted_too(tmp_path: Path) -> None:
    from headrace.pipeline.table_files import RowWriter

    schema = pa.schema([("kind", pa.string()), ("number", pa.int64())])
    made = create_table(tmp_path / "rows", schema, partition_by=("kind",))
    for number in range(4):
        batch = pa.record_batch([pa.array(["a", "b"]), pa.array([number, -number])], schema=schema)
        made.commit(RowWriter(made, schema, ("kind",)).write([batch]))

    assert compact(made.path, dry_run=False).files_after == 2
    files = open_table(made.path).files()
    numbers = [pq.read_table(one.path, partitioning=None)["number"].to_pylist() for one in files]
    assert sorted(np.concatenate(numbers).tolist()) == [-3, -2, -1, 0, 0, 1, 2, 3]

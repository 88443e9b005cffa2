"""Tables in folders, Delta and plain Parquet alike: what is committed counts once, and damage is told in a sentence."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import ConfigError, Refused, TableError
from headrace.pipeline.tables.files import FileWriter, new_file_name
from headrace.pipeline.tables.table import (
    NewFile,
    Span,
    Table,
    check_files,
    create_table,
    open_table,
    partition_folder,
)

SCHEMA = pa.schema([("stream", pa.string()), ("number", pa.int64()), ("day", pa.date32())])
ROWS = pa.schema([("number", pa.int64())])


@pytest.fixture(params=["delta", "parquet"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(tmp_path: Path, kind: str) -> Table:
    return create_table(tmp_path / "table", SCHEMA, format=kind, partition_by=("stream", "day"))


def write(table: Table, *numbers: int, stream: str = "orders", day: str | None = "2026-11-15") -> NewFile:
    """What a task does: a file that is not part of the table yet."""
    partition = {"stream": stream, "day": day}
    path = f"{partition_folder(partition)}/{new_file_name('1-0')}"
    writer = FileWriter(table.staging(path), ROWS)
    writer.write(pa.record_batch([pa.array(numbers, pa.int64())], schema=ROWS))
    size_bytes = writer.close()
    return NewFile(path, writer.rows, size_bytes, partition, {"number": min(numbers)}, {"number": max(numbers)})


def numbers_in(table: Table) -> list[int]:
    opened = open_table(table.path)
    return sorted(n for one in opened.files() for n in pq.read_table(one.path, schema=ROWS)["number"].to_pylist())


def visible(table: Table) -> list[Path]:
    """Files that a tool sees which knows nothing of the table's log."""
    return [
        path
        for path in table.path.rglob("*.parquet")
        if "_headrace" not in path.parts and "_delta_log" not in path.parts
    ]


def test_a_committed_file_is_there_for_whoever_opens_the_table(table: Table) -> None:
    assert table.commit([write(table, 1, 2), write(table, 3, stream="parcels")])

    assert numbers_in(table) == [1, 2, 3]
    assert table.figures().rows == 3 and table.figures().files == 2
    [stored] = [one for one in open_table(table.path).files() if one.partition["stream"] == "parcels"]
    assert (int(stored.least["number"]), int(stored.greatest["number"])) == (3, 3)


def test_a_file_that_is_not_committed_is_no_part_of_the_table(table: Table) -> None:
    write(table, 1)

    assert numbers_in(table) == []


def test_the_same_span_is_added_once_however_often_it_is_committed(table: Table) -> None:
    span = {"orders": Span(0, 5 << 64)}
    assert table.commit([write(table, 1)], spans=span)

    assert not table.commit([write(table, 1)], spans=span)
    assert not open_table(table.path).commit([write(table, 1)], spans=span)
    assert numbers_in(table) == [1]


def test_the_table_knows_how_far_each_stream_goes_for_all_ids_there_are(table: Table) -> None:
    far = {"orders": (2**64 - 1) << 64 | 2**64 - 1, "parcels": 1763200000000 << 64 | 7, "counted": 3}
    files = [write(table, 1, stream=stream) for stream in far]
    table.commit(files, spans={stream: Span(0, through) for stream, through in far.items()})

    assert open_table(table.path).through() == far


def test_a_stream_without_rows_has_its_place_too(table: Table) -> None:
    table.commit([], spans={"orders": Span(0, 9)})

    assert open_table(table.path).through(["orders", "unknown"]) == {"orders": 9}


def test_a_span_that_overlaps_what_is_there_is_refused_and_nothing_is_added(table: Table) -> None:
    table.commit([write(table, 1)], spans={"orders": Span(0, 10)})

    with pytest.raises(Refused, match="another archive writes to the same table"):
        table.commit([write(table, 2)], spans={"orders": Span(5, 15)})
    assert numbers_in(table) == [1]


def test_a_span_that_ends_before_the_table_does_is_another_one_and_refused(table: Table) -> None:
    table.commit([write(table, 1)], spans={"orders": Span(0, 10)})

    with pytest.raises(Refused, match="or the stream was deleted and made anew"):
        table.commit([write(table, 2)], spans={"orders": Span(0, 5)})
    assert numbers_in(table) == [1]


def test_a_span_that_leaves_a_gap_is_refused_and_nothing_is_added(table: Table) -> None:
    table.commit([write(table, 1)], spans={"orders": Span(0, 10)})

    with pytest.raises(Refused, match="a part would be missing"):
        table.commit([write(table, 2)], spans={"orders": Span(11, 15)})
    assert numbers_in(table) == [1]


def test_of_two_writers_with_the_same_span_one_adds_it(table: Table) -> None:
    other = open_table(table.path)
    span = {"orders": Span(0, 10)}

    assert table.commit([write(table, 1)], spans=span)
    assert not other.commit([write(other, 1)], spans=span)
    assert numbers_in(table) == [1]


def test_writers_of_different_streams_do_not_disturb_each_other(table: Table) -> None:
    other = open_table(table.path)

    assert table.commit([write(table, 1)], spans={"orders": Span(0, 10)})
    assert other.commit([write(other, 2, stream="parcels")], spans={"parcels": Span(0, 10)})
    assert numbers_in(table) == [1, 2]


def test_a_batch_of_a_query_is_added_once(table: Table) -> None:
    assert table.commit([write(table, 1)], query="q", batch=0)
    assert table.commit([write(table, 2)], query="q", batch=1)

    assert not open_table(table.path).commit([write(table, 2)], query="q", batch=1)
    assert not table.commit([write(table, 1)], query="q", batch=0)
    assert table.commit([write(table, 3)], query="another", batch=0)
    assert numbers_in(table) == [1, 2, 3]


def test_overwriting_leaves_the_new_rows_only(table: Table) -> None:
    table.commit([write(table, 1)])
    table.commit([write(table, 2)], overwrite=True)

    assert numbers_in(table) == [2]
    assert table.format == "delta" or len(visible(table)) == 1


def test_names_with_any_letters_lie_in_folders_and_come_back(table: Table) -> None:
    names = ["a/b", "50%", "k=v", "ein Paß", "..", "*?[x]", "a:b{c}"]
    table.commit([write(table, place, stream=name) for place, name in enumerate(names)])

    assert {one.partition["stream"] for one in open_table(table.path).files()} == set(names)
    assert numbers_in(table) == list(range(len(names)))


def test_rows_without_a_day_have_a_place(table: Table) -> None:
    table.commit([write(table, 1, day=None)])

    [stored] = open_table(table.path).files()
    assert stored.partition["day"] is None and "day=__HIVE_DEFAULT_PARTITION__" in stored.path


def test_replaced_files_are_no_longer_read_and_the_rows_stay(table: Table) -> None:
    table.commit([write(table, 1)], spans={"orders": Span(0, 1)})
    table.commit([write(table, 2)], spans={"orders": Span(1, 2)})
    table.replace(table.files(), [write(table, 1, 2)])

    assert numbers_in(table) == [1, 2]
    assert len(open_table(table.path).files()) == 1
    assert open_table(table.path).through() == {"orders": 2}


def test_who_compacts_the_same_files_second_is_refused(table: Table) -> None:
    table.commit([write(table, 1)])
    other = open_table(table.path)
    olds = other.files()
    table.replace(table.files(), [write(table, 1)])

    with pytest.raises(Refused, match="somebody else compacts it"):
        other.replace(olds, [write(other, 1)])
    assert numbers_in(table) == [1]


def test_a_writer_goes_on_while_the_table_is_compacted(table: Table) -> None:
    table.commit([write(table, 1)], spans={"orders": Span(0, 1)})
    compacting = open_table(table.path)
    olds = compacting.files()
    table.commit([write(table, 2)], spans={"orders": Span(1, 2)})
    compacting.replace(olds, [write(compacting, 1)])

    assert table.commit([write(table, 3)], spans={"orders": Span(2, 3)})
    assert numbers_in(table) == [1, 2, 3]


def test_vacuum_removes_what_nobody_needs_and_spares_what_is_young(table: Table) -> None:
    orphan = write(table, 9)
    table.commit([write(table, 1)])
    week_ago = 8 * 24 * 3600

    assert table.vacuum(168, dry_run=True) == []
    path = table.staging(orphan.path)
    os.utime(path, (path.stat().st_mtime - week_ago,) * 2)
    assert len(table.vacuum(168, dry_run=True)) == 1 and path.exists()
    assert len(table.vacuum(168, dry_run=False)) == 1 and not path.exists()
    assert numbers_in(table) == [1]


def test_files_that_a_reader_may_still_read_survive_compaction_and_vacuum(table: Table) -> None:
    table.commit([write(table, 1)])
    table.commit([write(table, 2)])
    table.replace(table.files(), [write(table, 1, 2)])

    assert table.vacuum(168, dry_run=False) == []
    assert len(table.vacuum(0, dry_run=False)) == 2
    assert numbers_in(table) == [1, 2]


def test_many_commits_leave_a_short_log_and_nothing_is_forgotten(table: Table) -> None:
    for number in range(60):
        table.commit([write(table, number)], spans={"orders": Span(number, number + 1)}, query="q", batch=number)

    opened = open_table(table.path)
    assert numbers_in(table) == list(range(60))
    assert opened.through() == {"orders": 60} and opened.has_batch("q", 59) and not opened.has_batch("q", 60)
    log = list((table.path / "_delta_log").glob("*.checkpoint.parquet")) if table.format == "delta" else []
    parts = list((table.path / "_headrace" / "log").glob("*.json")) if table.format == "parquet" else []
    assert len(log) == 1 or 0 < len(parts) <= 52


# Crashes


def test_a_commit_that_was_not_moved_into_place_is_finished_by_the_next_who_opens(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", SCHEMA, format="parquet", partition_by=("stream", "day"))
    new = write(table, 1)
    table.commit([new])
    (table.path / new.path).rename(table.staging(new.path))  # As if the power went between the log and the move.

    assert numbers_in(table) == [1]
    assert visible(table) == [table.path / new.path]


def test_a_replacement_that_was_not_finished_leaves_no_row_doubled(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", SCHEMA, format="parquet", partition_by=("stream", "day"))
    table.commit([old := write(table, 1)])
    table.replace(table.files(), [new := write(table, 1)])
    (table.path / new.path).rename(table.staging(new.path))
    (table.path / "_headrace" / "replaced" / Path(old.path).name).rename(table.path / old.path)

    assert numbers_in(table) == [1]
    assert visible(table) == [table.path / new.path]


def test_a_file_that_is_being_written_has_no_name_yet(table: Table) -> None:
    writer = FileWriter(table.staging("half.parquet"), ROWS)
    writer.write(pa.record_batch([pa.array([1])], schema=ROWS))
    assert not table.staging("half.parquet").exists()

    writer.discard()
    assert list(table.staging("half.parquet").parent.glob("half*")) == []


# Damage


def damage(table: Table, how: str) -> None:
    [stored] = table.files()
    log = table.path / ("_delta_log" if table.format == "delta" else "_headrace/log")
    if how == "missing":
        Path(stored.path).unlink()
    elif how == "cut":
        os.truncate(stored.path, stored.size_bytes - 1)
    else:
        newest = max(path for path in log.glob("*.json"))
        newest.write_text('{"add": [{"path"')


@pytest.mark.parametrize("how", ["missing", "cut", "log"])
def test_a_damaged_table_is_told_in_one_sentence_and_left_as_it_is(table: Table, how: str) -> None:
    table.commit([write(table, 1)])
    damage(table, how)
    before = {path: path.stat().st_size for path in table.path.rglob("*") if path.is_file()}

    with pytest.raises(TableError) as told:
        check_files(open_table(table.path))

    assert str(table.path) in str(told.value) and "\n" not in str(told.value)
    assert {path: path.stat().st_size for path in table.path.rglob("*") if path.is_file()} == before


def test_a_folder_without_a_table_is_none(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="there is no such folder"):
        open_table(tmp_path / "nothing")
    with pytest.raises(TableError, match="holds no table"):
        open_table(tmp_path)


def test_no_table_is_made_among_other_files(tmp_path: Path, kind: str) -> None:
    (tmp_path / "letters.txt").write_text("dear")

    with pytest.raises(TableError, match=r"holds other files, like letters\.txt"):
        create_table(tmp_path, SCHEMA, format=kind)
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


def test_no_table_is_made_where_a_file_lies(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(TableError, match="no table can be made"):
        create_table(tmp_path / "file", SCHEMA, format=kind)


def test_a_table_with_other_columns_is_not_written_to(table: Table) -> None:
    wrong_type = SCHEMA.set(1, pa.field("number", pa.string()))
    for schema, told in (
        (wrong_type, "column number of the table .* is int64, not string"),
        (SCHEMA.append(pa.field("more", pa.string())), "has no column more"),
        (SCHEMA.remove(1), "has a column number that the rows lack"),
    ):
        with pytest.raises(TableError, match=told):
            create_table(table.path, schema, format=table.format, partition_by=("stream", "day"))
    with pytest.raises(TableError, match="is partitioned by stream, day, not nothing"):
        create_table(table.path, SCHEMA, format=table.format)


def test_a_table_of_the_other_format_is_named_as_such(table: Table) -> None:
    other = "parquet" if table.format == "delta" else "delta"
    with pytest.raises(TableError, match=f"is of format {table.format}, not {other}"):
        open_table(table.path, other)


def test_a_format_and_a_place_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ConfigError, match="write delta or parquet"):
        create_table("somewhere", SCHEMA, format="csv")
    with pytest.raises(ConfigError, match="is a URL; tables lie in folders"):
        open_table("s3://bucket/table")


def test_a_table_of_a_newer_headrace_is_left_alone(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", SCHEMA, format="parquet")
    facts = json.loads((table.path / "_headrace" / "table.json").read_text())
    (table.path / "_headrace" / "table.json").write_text(json.dumps(facts | {"version": 2}))

    with pytest.raises(TableError, match="needs a newer headrace"):
        open_table(table.path)


def test_a_table_may_be_moved_to_another_folder(table: Table, tmp_path: Path) -> None:
    table.commit([write(table, 1)], spans={"orders": Span(0, 1)})
    shutil.move(table.path, tmp_path / "elsewhere")
    moved: Any = open_table(tmp_path / "elsewhere")

    assert numbers_in(moved) == [1] and moved.through() == {"orders": 1}
    check_files(moved)


def test_what_was_committed_since_the_table_was_opened_is_not_vacuumed(tmp_path: Path) -> None:
    """A long batch: its file is older than the retention when it is committed."""
    table = create_table(tmp_path / "table", SCHEMA, format="parquet", partition_by=("stream", "day"))
    opened_before = open_table(table.path)
    new = write(table, 1)
    os.utime(table.staging(new.path), (0, 0))
    append_without_moving(table, new)

    assert opened_before.vacuum(1, dry_run=False) == []
    assert numbers_in(table) == [1]


def append_without_moving(table: Table, new: NewFile) -> None:
    """A commit whose process dies before it moves its files."""
    change = {"add": [asdict(new)], "remove": [], "through": {}, "queries": {}, "time_ms": 0}
    (table.path / "_headrace" / "log" / f"{0:020d}.json").write_text(json.dumps(change))

"""An archive never takes entries of another stream for those it has: not at its commits, not when it trims.

Without Spark around it: reader and writer are called as Spark calls them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyarrow.parquet import read_table
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StringType, StructField, StructType

from headrace import Client
from headrace.errors import ConfigError, DataLoss, TableError
from headrace.pipeline.archive_files import REPORT_SCHEMA, ArchiveTarget
from headrace.pipeline.archive_layout import create_archive
from headrace.pipeline.archive_sink import ArchiveWriter
from headrace.pipeline.archives import find_hold, group_of
from headrace.pipeline.entry_ids import id_of, text_of
from headrace.pipeline.jobs.archive import Run, make_plan, prepare
from headrace.pipeline.ranges import Slice
from headrace.pipeline.seam import LivePart, live_option, parse_live_option, read_part
from headrace.pipeline.source import HeadraceDataSource, StreamReader

ALL = ReadAllAvailable()
REPORT = StructType([StructField(name, StringType()) for name in REPORT_SCHEMA.names])


class Running:
    """An archive between its batches."""

    def __init__(self, reader: StreamReader, writer: ArchiveWriter, run: Run) -> None:
        self.reader = reader
        self.writer = writer
        self.run = run
        self.offset = reader.initialOffset()

    def step(self) -> None:
        """A batch, if there is anything new, and what follows it."""
        end = json.loads(json.dumps(self.reader.latestOffset(self.offset, ALL)))
        if end != self.offset:
            messages = [self.writer.write(self.reader.read(one)) for one in self.reader.partitions(self.offset, end)]
            self.writer.commit(messages, 0)
            self.offset = end
        self.run.table.refresh()
        self.run.trim()

    @property
    def values(self) -> list[str]:
        """The value of each archived entry."""
        self.run.table.refresh()
        tables = [read_table(one.path, columns=["pairs"], partitioning=None) for one in self.run.table.files()]
        return sorted(row[0]["value"].decode() for table in tables for row in table["pairs"].to_pylist())


Archive = Callable[..., Any]


@pytest.fixture
def archiving(url: str, name: str, tmp_path: Path) -> Archive:
    """`with archiving() as running`: the archive of one stream, or of a pattern."""

    @contextmanager
    def start(*, pattern: str | None = None, fails: bool = True, checkpoint: Path | None = None) -> Iterator[Running]:
        plan = make_plan(
            () if pattern else name, tmp_path / "archive", pattern=pattern, url=url, name=f"archive-{name}",
            format=None, start="beginning", trim=True, max_entries_per_batch=1000, checkpoint=checkpoint,
            fail_on_data_loss=fails,
        )  # fmt: skip
        table = create_archive(plan.folder)
        with Client(url) as client:
            positions = prepare(client, plan, table)
            options = {"url": url, "archive": ArchiveTarget(str(plan.folder), plan.name).to_option()}
            starts = {stream: text_of(after + 1) for stream, after in positions.items()}
            which = {"streamsPattern": pattern} if pattern else {"streams": json.dumps([name])}
            more = {"startingOffsets": json.dumps(starts), "failOnDataLoss": str(fails).lower()}
            reader = HeadraceDataSource(options | which | more).streamReader(REPORT)
            with closing(reader.planner):
                yield Running(reader, ArchiveWriter(url, options["archive"]), Run(client, plan, table, None))

    return start


def add(client: Client, stream: str, begin: int, end: int, word: str = "old") -> None:
    for number in range(begin, end):
        client.stream(stream).add({"n": f"{word}{number}"}, id=f"{number}-0")


@pytest.mark.costly("headrace")
def test_a_stream_made_anew_with_lower_ids_is_not_taken_for_archived(
    client: Client, name: str, archiving: Archive
) -> None:
    add(client, name, 1, 10)
    with archiving(fails=False) as running:
        running.step()
        client.command("DEL", name)
        add(client, name, 1, 4, "new")

        with pytest.raises(DataLoss, match="deleted and made anew"):
            running.step()
    assert client.stream(name).length() == 3 and len(running.values) == 9


@pytest.mark.costly("headrace")
def test_a_stream_that_was_gone_for_a_while_goes_on_behind_what_is_archived(
    client: Client, name: str, archiving: Archive
) -> None:
    add(client, name, 1, 10)
    with archiving(fails=False) as running:
        running.step()
        client.command("DEL", name)
        running.step()
        add(client, name, 10, 12, "new")
        running.step()
        running.step()

    assert running.values[:2] == ["new10", "new11"] and len(running.values) == 11


@pytest.mark.costly("headrace")
def test_a_stream_that_comes_and_goes_under_a_pattern_is_archived_each_time(
    client: Client, name: str, archiving: Archive
) -> None:
    add(client, f"{name}:a", 1, 3)
    add(client, f"{name}:b", 1, 3)
    with archiving(pattern=f"{name}:*", fails=False) as running:
        running.step()
        client.command("DEL", f"{name}:a")
        running.step()
        add(client, f"{name}:a", 3, 5, "new")
        running.step()
        assert running.values == ["new3", "new4", "old1", "old1", "old2", "old2"]

        client.command("DEL", f"{name}:a")
        running.step()
        add(client, f"{name}:a", 2, 9, "newer")
        with pytest.raises(DataLoss, match="begins with 2-0, and another one of this name is archived up to 4-0"):
            running.step()
    assert client.stream(f"{name}:a").length() == 7


@pytest.mark.costly("headrace")
def test_a_stream_without_the_hold_is_not_trimmed(client: Client, name: str, archiving: Archive) -> None:
    add(client, name, 1, 10)
    with archiving() as running:
        running.step()
        client.command("DEL", name)
        add(client, name, 1, 10, "new")

        running.run.trim()

    assert client.stream(name).length() == 9


def test_a_hold_is_made_again_for_the_same_stream_and_for_no_other(
    client: Client, name: str, archiving: Archive
) -> None:
    add(client, name, 1, 10)
    client.command("XGROUP", "CREATE", name, "reader", "0")  # Keeps the entries.
    with archiving() as running:
        running.step()
    client.stream(name).group(group_of(f"archive-{name}")).destroy()
    with archiving() as running:
        running.step()
    assert find_hold(client, f"archive-{name}", name) == id_of("9-0")

    client.command("DEL", name)
    add(client, name, 1, 20, "new")
    with pytest.raises(DataLoss, match="not the one that is archived up to 9-0"), archiving(fails=False):
        pass
    assert client.stream(name).length() == 19 and find_hold(client, f"archive-{name}", name) is None


@pytest.mark.costly("headrace")
def test_a_table_that_lost_its_newest_commit_is_told_where_the_broker_cannot_make_up_for_it(
    client: Client, name: str, archiving: Archive, tmp_path: Path
) -> None:
    with_gap = tmp_path / "archive" / "_delta_log"
    add(client, name, 1, 5)
    with archiving() as running:
        running.step()
        add(client, name, 5, 9)
        running.step()
    max(with_gap.glob("*.json")).unlink()
    add(client, name, 9, 11)

    with pytest.raises(DataLoss, match="only up to 4-0"), archiving():
        pass
    with archiving(fails=False) as running:
        running.step()
    assert len(running.values) == 6


@pytest.mark.costly("headrace")
def test_files_that_went_before_the_commit_are_not_committed(
    client: Client, name: str, archiving: Archive, tmp_path: Path
) -> None:
    add(client, name, 1, 5)
    with archiving() as running:
        end = running.reader.latestOffset(running.offset, ALL)
        messages = [running.writer.write(running.reader.read(one)) for one in running.reader.partitions({}, end)]
        next((tmp_path / "archive").rglob("*.parquet")).unlink()

        with pytest.raises(TableError, match="nothing was added"):
            running.writer.commit(messages, 0)
        running.step()
    assert len(running.values) == 4 and client.stream(name).length() == 0


@pytest.mark.costly("headrace")
def test_a_folder_that_is_no_checkpoint_of_the_archive_is_left_as_it_is(
    client: Client, name: str, archiving: Archive, tmp_path: Path
) -> None:
    add(client, name, 1, 5)
    letters = tmp_path / "documents"
    (letters / "offsets").mkdir(parents=True)
    (letters / "letter.txt").write_text("dear")

    with pytest.raises(ConfigError, match="is not the checkpoint of this archive"), archiving(checkpoint=letters):
        pass

    assert (letters / "letter.txt").read_text() == "dear" and find_hold(client, f"archive-{name}", name) is None


@pytest.mark.costly("headrace")
def test_a_query_finds_what_an_archive_took_that_began_after_it(
    url: str, client: Client, name: str, archiving: Archive
) -> None:
    add(client, name, 1, 10)
    [part] = parse_live_option(live_option([LivePart(Slice(name, "0-0", "9-0"), None, looks=True)]))
    assert [batch.num_rows for batch in read_part(url, part)] == [9]

    with archiving() as running:
        running.step()
    add(client, name, 10, 12)

    assert client.stream(name).length() == 2
    ids = [entry_id for batch in read_part(url, part) for entry_id in batch.column("id").to_pylist()]
    assert ids == [f"{number}-0" for number in range(1, 10)]


@pytest.mark.costly("headrace")
def test_a_name_that_reads_as_null_is_refused(client: Client, name: str, archiving: Archive) -> None:
    odd = "__HIVE_DEFAULT_PARTITION__"
    add(client, odd, 1, 2)
    try:
        with pytest.raises(ConfigError, match="take it for null"), archiving(pattern="__HIVE_DEFAULT_PARTITION__"):
            pass
    finally:
        client.command("DEL", odd)

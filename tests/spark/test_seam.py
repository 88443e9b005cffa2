"""A slice of the live stream beside an archive that moves: every entry once, whatever happened since it was planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace import Client
from headrace.pipeline.archive_files import SliceWriter
from headrace.pipeline.archive_layout import create_archive
from headrace.pipeline.entry_ids import id_of
from headrace.pipeline.ranges import Slice
from headrace.pipeline.reader import read_slice
from headrace.pipeline.seam import LivePart, live_option, parse_live_option, read_part
from headrace.pipeline.tables.table import Span

DAY = 86_400_000
FIRST = 1_794_700_800_000  # The beginning of a day.


class Lake:
    """An archive that is written by hand, step by step."""

    def __init__(self, folder: Path, url: str, stream: str) -> None:
        self.table = create_archive(folder, "delta")
        self.url, self.stream, self.through = url, stream, "0-0"

    def archive(self, through: str) -> None:
        pages = read_slice(self.url, Slice(self.stream, self.through, through))
        files = SliceWriter(self.table, self.stream).write(pages)
        self.table.commit(files, spans={self.stream: Span(id_of(self.through), id_of(through))})
        self.through = through

    def read(self, after: str, through: str) -> list[str]:
        part = LivePart(Slice(self.stream, after, through), str(self.table.path))
        return sorted(row["id"] for row in rows_of(self.url, part))


def rows_of(url: str, part: LivePart) -> list[dict[str, Any]]:
    return [row for batch in read_part(url, part) for row in batch.to_pylist()]


@pytest.fixture
def lake(tmp_path: Path, url: str, client: Client, stream: Any) -> Lake:
    for number in range(1, 11):
        stream.add([("n", str(number)), ("data", b"\xff%d" % number)], id=f"{FIRST + number}-0")
    return Lake(tmp_path / "lake", url, stream.name)


def ids(*numbers: int) -> list[str]:
    return [f"{FIRST + number}-0" for number in numbers]


def test_what_is_live_is_read_once_also_where_it_is_archived_meanwhile(lake: Lake) -> None:
    lake.archive(*ids(6))

    assert lake.read(*ids(2, 9)) == ids(3, 4, 5, 6, 7, 8, 9)


def test_what_was_trimmed_meanwhile_comes_from_the_archive(lake: Lake, stream: Any) -> None:
    lake.archive(*ids(6))
    stream.trim(keep=2, force=True)

    assert lake.read(*ids(2, 6)) == ids(3, 4, 5, 6)


def test_single_entries_that_were_deleted_meanwhile_come_from_the_archive(lake: Lake, stream: Any) -> None:
    lake.archive(*ids(10))
    stream.delete(*ids(4, 7))

    assert lake.read("0-0", *ids(10)) == ids(*range(1, 11))


def test_a_stream_that_is_gone_leaves_what_is_archived(lake: Lake, client: Client) -> None:
    lake.archive(*ids(7))
    client.command("DEL", lake.stream)

    assert lake.read(*ids(3, 10)) == ids(4, 5, 6, 7)


def test_rows_of_both_sides_are_equal(lake: Lake, stream: Any) -> None:
    part = LivePart(Slice(lake.stream, "0-0", ids(10)[0]), str(lake.table.path))
    live = rows_of(lake.url, part)
    lake.archive(*ids(10))
    stream.trim(keep=0, force=True)

    assert rows_of(lake.url, part) == live
    assert live[0]["pairs"] == [{"name": b"n", "value": b"1"}, {"name": b"data", "value": b"\xff1"}]
    assert str(live[0]["day"]) == "2026-11-15" and live[0]["timestamp"].timestamp() * 1000 == FIRST + 1


def test_ids_of_one_millisecond_and_beyond_63_bits_stay_apart(lake: Lake, stream: Any) -> None:
    high = [f"{2**64 - 2}-{2**64 - 1}", f"{2**64 - 1}-1", f"{2**64 - 1}-{2**64 - 1}"]
    for entry_id in high:
        stream.add({"n": "x"}, id=entry_id)
    lake.archive(high[1])
    stream.delete(high[0])

    assert lake.read(ids(10)[0], high[2]) == high


def test_slices_survive_the_way_to_spark_and_back() -> None:
    parts = [LivePart(Slice("a,b", "1-0", "2-0"), "/lake"), LivePart(Slice("ü", "0-0", "1-1", "0-7"), None)]

    assert parse_live_option(live_option(parts)) == parts

"""Live entries beside an archive: where one ends the other begins, while both move.

A query takes the archive as it is when it is planned, up to the ID T, and reads the stream from behind T. Until a task
gets to its slice, entries of it may have been archived and removed from the stream: trimmed, or deleted once all groups
had acknowledged them. Nothing is removed before the archive has it. So a task first reads its slice of the stream, then
looks at the newest version of the archive, and takes from it what lies in its slice and was not in the stream: every
entry once, whatever happened when.

Rows have the stored columns of `archive_layout.py`, which gives both sides their view.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from headrace.client.client import Client
from headrace.client.results import LAST_TIME_MS
from headrace.pipeline.archive_layout import ARCHIVE_DDL, ARCHIVE_SCHEMA, FILE_SCHEMA
from headrace.pipeline.archives import list_archives
from headrace.pipeline.entry_ids import FIRST_TIME_MS, MAX_PART, id_of, text_of
from headrace.pipeline.filters import Narrowing, push
from headrace.pipeline.ranges import Extent, Slice
from headrace.pipeline.reader import LossCheck, read_slice
from headrace.pipeline.rows import make_batch
from headrace.pipeline.source import is_filter_worker
from headrace.pipeline.tables.table import StoredFile, open_table

FORMAT: Final = "headrace_live"
DAY_MS: Final = 86_400_000
LIVE_SCHEMA: Final = pa.schema([field for field in ARCHIVE_SCHEMA if field.name != "day"])
ROWS_PER_BATCH: Final = 10_000  # Read from the archive at a time.


@dataclass(frozen=True, slots=True)
class LivePart(InputPartition):
    """What one task reads. `archive` is the folder of the table, None where nothing of the slice can go there.

    Where there was no archive yet, it `looks` for one: it may have begun since, and have removed what it has.
    """

    piece: Slice
    archive: str | None
    looks: bool = False


def live_option(parts: list[LivePart]) -> str:
    return json.dumps([{**asdict(part.piece), "archive": part.archive, "looks": part.looks} for part in parts])


def parse_live_option(text: str) -> list[LivePart]:
    return [
        LivePart(archive=facts.pop("archive"), looks=facts.pop("looks"), piece=Slice(**facts))
        for facts in json.loads(text)
    ]


class LiveDataSource(DataSource):
    """Slices of one stream, in the stored columns of an archive. Made by `jobs/query.py` only."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return ARCHIVE_DDL

    def reader(self, schema: Any) -> "LiveReader":
        kind = FilteringLiveReader if is_filter_worker() else LiveReader
        return kind(self.options["url"], parse_live_option(self.options["slices"]))


class LiveReader(DataSourceReader):
    def __init__(self, url: str, parts: list[LivePart]) -> None:
        self.url = url
        self.parts = parts

    def partitions(self) -> list[LivePart]:
        return self.parts

    def read(self, partition: Any) -> Iterator[Any]:
        return read_part(self.url, partition) if isinstance(partition, LivePart) else iter(())  # All is filtered out.


class FilteringLiveReader(LiveReader):
    """The same, and filters on IDs and times narrow what is read."""

    def pushFilters(self, filters: list[Any]) -> list[Any]:
        narrowing, left = push(filters, LIVE_SCHEMA.names)
        self.parts = [narrowed for part in self.parts if (narrowed := narrow(part, narrowing)) is not None]
        return left


def narrow(part: LivePart, narrowing: Narrowing) -> LivePart | None:
    """The part without what cannot match; None where nothing of it can."""
    if not narrowing.has(part.piece.stream):
        return None
    after, through = id_of(part.piece.after), id_of(part.piece.through)
    low, high = narrowing.bound(Extent(after + 1, through, 0), after, through)
    return None if low >= high else replace(part, piece=Slice(part.piece.stream, text_of(low), text_of(high)))


def read_part(url: str, part: LivePart) -> Iterator[Any]:
    """The entries of the slice as Arrow batches: those in the stream, then those that went to the archive meanwhile."""
    seen = Seen()
    for page in read_slice(url, part.piece, checks=LossCheck(fails=False)):
        if part.archive is not None or part.looks:
            seen.add(page.ms, page.seq)
        yield with_day(make_batch(page, part.piece.stream, LIVE_SCHEMA), page.ms)
    path = find_archive_path(url, part.piece.stream) if part.looks else part.archive
    if path is not None:
        yield from read_archived(path, part.piece, seen)


def find_archive_path(url: str, stream: str) -> str | None:
    """Of an archive that keeps the stream by now. What one of several has removed, all of them have."""
    with Client(url) as client:
        return next((one.path for one in list_archives(client) if stream in one.streams), None)


class Seen:
    """The IDs that were read from the stream, in their order: 16 bytes for each."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def add(self, ms: Any, seq: Any) -> None:
        self.parts.append(id_keys(ms, seq))

    def unseen(self, ms: Any, seq: Any) -> Any:
        """A mask of those that are not among them."""
        if not self.parts:
            return np.ones(len(ms), bool)
        self.parts = [np.concatenate(self.parts)]
        [seen] = self.parts
        keys = id_keys(ms, seq)
        places = np.minimum(np.searchsorted(seen, keys), len(seen) - 1)
        return seen[places] != keys


def id_keys(ms: Any, seq: Any) -> Any:
    """IDs as texts of 16 bytes, which sort as the IDs do."""
    keys: Any = np.empty((len(ms), 2), ">u8")
    keys[:, 0], keys[:, 1] = ms, seq
    return keys.view("S16").ravel()


def read_archived(path: str, piece: Slice, seen: Seen) -> Iterator[Any]:
    """What the newest version of the table has of the slice and `seen` has not."""
    table = open_table(path)
    after, through = id_of(piece.after), id_of(piece.through)
    if table.through([piece.stream]).get(piece.stream, 0) <= after:
        return
    for stored in table.files():
        if may_hold(stored, piece.stream, after, through):
            with pq.ParquetFile(stored.path) as file:
                for batch in file.iter_batches(ROWS_PER_BATCH, columns=FILE_SCHEMA.names):
                    yield from select_missing(batch, piece.stream, after, through, seen)


def may_hold(stored: StoredFile, stream: str, after: int, through: int) -> bool:
    """Whether a file can hold entries between the two IDs, by what the table says of it."""
    if stored.partition.get("stream") != stream:
        return False
    least, greatest = stored.least.get("id_ms", 0), stored.greatest.get("id_ms", MAX_PART)
    return int(greatest) >= after >> 64 and int(least) <= through >> 64


def select_missing(batch: Any, stream: str, after: int, through: int, seen: Seen) -> Iterator[Any]:
    ms, seq = to_numbers(batch.column("id_ms")), to_numbers(batch.column("id_seq"))
    wanted = is_above(ms, seq, after) & ~is_above(ms, seq, through) & seen.unseen(ms, seq)
    if not wanted.any():
        return
    rows = pa.Table.from_batches([batch]).filter(pa.array(wanted)).cast(FILE_SCHEMA).combine_chunks()
    name = pa.repeat(pa.scalar(stream, pa.string()), rows.num_rows)
    columns = [name, *(rows.column(field).combine_chunks() for field in LIVE_SCHEMA.names[1:])]
    yield with_day(pa.RecordBatch.from_arrays(columns, schema=LIVE_SCHEMA), ms[wanted])


def is_above(ms: Any, seq: Any, entry_id: int) -> Any:
    limit_ms, limit_seq = np.uint64(entry_id >> 64), np.uint64(entry_id & MAX_PART)
    return (ms > limit_ms) | ((ms == limit_ms) & (seq > limit_seq))


def to_numbers(decimals: Any) -> Any:
    """decimal(20,0) as unsigned numbers of 64 bits: the low half of each value of 128 bits."""
    halves = np.frombuffer(decimals.buffers()[1], np.uint64)
    return halves[2 * decimals.offset : 2 * (decimals.offset + len(decimals)) : 2].copy()


def with_day(batch: Any, ms: Any) -> Any:
    is_time = (ms >= FIRST_TIME_MS) & (ms <= LAST_TIME_MS)
    days = np.where(is_time, ms // DAY_MS, 0).astype(np.int32)
    day = pa.array(days, mask=~is_time).view(pa.date32())
    return pa.RecordBatch.from_arrays([*batch.columns, day], schema=ARCHIVE_SCHEMA)

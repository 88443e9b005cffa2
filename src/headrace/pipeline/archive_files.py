"""The pages of one slice -> Parquet files of an archive. Runs in Spark's tasks: entries never pass through the JVM.

A task tells what it wrote in rows of one small schema, and at least one row per slice, so that the sink knows how far
the batch goes even where nothing is left to read:

    stream, after, through     the slice
    file                       a NewFile as JSON, or null
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headrace.client.client import Client
from headrace.client.results import LAST_TIME_MS
from headrace.errors import ConfigError, TableError
from headrace.pipeline.archive_layout import ENCODINGS, FILE_SCHEMA
from headrace.pipeline.archives import hold_new
from headrace.pipeline.entry_ids import FIRST_TIME_MS, text_of
from headrace.pipeline.offsets import Mark
from headrace.pipeline.ranges import Slice
from headrace.pipeline.rows import make_batch
from headrace.pipeline.tables.files import FileWriter, new_file_name
from headrace.pipeline.tables.table import NewFile, Table, check_partition, open_table, partition_folder

REPORT_DDL: Final = "stream string, after string, through string, file string"
REPORT_SCHEMA: Final = pa.schema([(name, pa.string()) for name in ("stream", "after", "through", "file")])
DAY_MS: Final = 86_400_000
EXACT: Final = 2**53  # JSON readers keep whole numbers up to here.
EPOCH: Final = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class ArchiveTarget:
    """The internal option `archive` of source and sink: where the files go, for which archive."""

    path: str
    name: str

    def to_option(self) -> str:
        return json.dumps(asdict(self))


def parse_target(option: str) -> ArchiveTarget:
    try:
        return ArchiveTarget(**json.loads(option))
    except (ValueError, TypeError) as error:
        raise ConfigError("the option archive is set by headrace.pipeline.jobs.archive only; call that.") from error


# On the driver


def find_through(option: str, stream: str) -> int:
    """How far the table has the stream, as an ID number; 0 where it has nothing of it."""
    return open_table(parse_target(option).path).through([stream]).get(stream, 0)


def hold_joined(client: Client, option: str, streams: tuple[str, ...]) -> None:
    """Streams that join an archive by its pattern, before they are first read."""
    for stream in streams:
        check_partition({"stream": stream})
    if streams:
        hold_new(client, parse_target(option).name, streams)


def with_empty_spans(slices: list[Slice], start: Mapping[str, Mark], end: Mapping[str, Mark]) -> list[Slice]:
    """The slices of a batch, and one for each stream that moved on without entries: the table is to know it."""
    covered = {piece.stream for piece in slices}
    empty = []
    for stream, mark in end.items():
        after = start[stream].id if stream in start else 0
        if stream not in covered and mark.id > after:
            empty.append(Slice(stream, text_of(after), text_of(mark.id)))
    return [*slices, *empty]


# In tasks


def write_slice(option: str, span: Slice, pages: Iterable[Any]) -> Iterator[Any]:
    """Write all pages of the slice; yields one RecordBatch of REPORT_SCHEMA. What a failed task leaves is nothing."""
    table = open_table(parse_target(option).path)
    files = [json.dumps(asdict(new)) for new in SliceWriter(table, span.stream).write(pages)]
    reports: list[str | None] = [*files] or [None]
    columns = [[span.stream] * len(reports), [span.after] * len(reports), [span.through] * len(reports), reports]
    yield pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=REPORT_SCHEMA)


def read_report(file: str) -> NewFile:
    return NewFile(**json.loads(file))


class SliceWriter:
    """Writes pages, which come in the order of IDs, to one file per day."""

    def __init__(self, table: Table, stream: str) -> None:
        self.table = table
        self.stream = stream
        self.done: list[NewFile] = []
        self._file: OpenFile | None = None

    def write(self, pages: Iterable[Any]) -> list[NewFile]:
        try:
            for page in pages:
                batch = make_batch(page, self.stream, FILE_SCHEMA, None)
                for begin, end, day in day_runs(page.ms):
                    self._write_run(batch.slice(begin, end - begin), page.ms[begin], page.ms[end - 1], day)
            self._close()
        except BaseException as error:
            if self._file is not None:
                self._file.writer.discard()
            if isinstance(error, OSError):
                reason = error.strerror or str(error)
                raise TableError(f"the table at {self.table.path} cannot be written: {reason}.") from error
            raise
        return self.done

    def _write_run(self, batch: Any, first_ms: Any, last_ms: Any, day: int | None) -> None:
        if self._file is None or self._file.day != day:
            self._close()
            partition = {"stream": self.stream, "day": None if day is None else day_text(day)}
            path = f"{partition_folder(partition)}/{new_file_name(batch.column(0)[0].as_py())}"
            writer = FileWriter(self.table.staging(path), FILE_SCHEMA, ENCODINGS)
            self._file = OpenFile(path, partition, day, writer, int(first_ms), int(last_ms))
        self._file.writer.write(batch)
        self._file.last_ms = int(last_ms)

    def _close(self) -> None:
        if self._file is not None:
            size_bytes = self._file.writer.close()
            self.done.append(self._file.finished(size_bytes))
            self._file = None


@dataclass(slots=True)
class OpenFile:
    path: str
    partition: dict[str, str | None]
    day: int | None
    writer: FileWriter
    first_ms: int
    last_ms: int

    def finished(self, size_bytes: int) -> NewFile:
        least, greatest = statistics(self.first_ms, self.day), statistics(self.last_ms, self.day)
        if self.last_ms > EXACT:
            least = greatest = {}
        return NewFile(self.path, self.writer.rows, size_bytes, self.partition, least, greatest)


def statistics(ms: int, day: int | None) -> dict[str, Any]:
    """What readers skip files by."""
    found: dict[str, Any] = {"id_ms": ms}
    if day is not None:
        time = datetime.fromtimestamp(ms / 1000, UTC)
        found["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
    return found


def day_runs(ms: Any) -> Iterator[tuple[int, int, int | None]]:
    """Runs of entries of one day: begin, end, and the day since 1970, or None where the IDs are no times."""
    is_time = (ms >= FIRST_TIME_MS) & (ms <= LAST_TIME_MS)
    days: Any = np.where(is_time, (ms // DAY_MS).astype(np.int64), -1)
    edges = [0, *(np.flatnonzero(np.diff(days)) + 1).tolist(), len(days)]
    for begin, end in pairwise(edges):
        if begin < end:
            yield begin, end, None if days[begin] < 0 else int(days[begin])


def day_text(day: int) -> str:
    return (EPOCH + timedelta(days=day)).isoformat()

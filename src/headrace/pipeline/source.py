"""`format("headrace")`: what Spark calls to read streams and to write to streams, tables and archives.

These classes are thin. Options are read in `options.py`, positions are kept in `offsets.py`, `planning.py` asks the
broker and cuts spans into slices, `reader.py` fetches entries, `rows.py` makes rows of them; sinks have files of their
own.

Spark pickles a reader and sends it to its tasks, where `read` runs; everything else runs on the driver, in a process
beside it. So a reader holds options and schema, and what it opens for planning stays behind.
"""

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from headrace.errors import ConfigError
from headrace.pipeline.declared import make_decoder
from headrace.pipeline.filters import Narrowing, push
from headrace.pipeline.offsets import Mark, encode_offsets, parse_offsets, positions_of
from headrace.pipeline.options import SourceOptions, parse_sink_options, parse_source_options
from headrace.pipeline.planning import Planner, end_with, extent_of
from headrace.pipeline.ranges import Slice
from headrace.pipeline.reader import LossCheck, read_slice
from headrace.pipeline.rows import STANDARD_DDL, is_standard, make_batch, to_arrow

URL_VARIABLE: Final = "HEADRACE_URL"
FILTER_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"
SINKS: Final = {
    "stream": "headrace.pipeline.stream_sink",
    "table": "headrace.pipeline.table_sink",
    "archive": "headrace.pipeline.archive_sink",
}

log = logging.getLogger(__name__)


class HeadraceDataSource(DataSource):
    """The format `headrace`. Spark makes one for each read or write, in a process of its own beside the driver."""

    @classmethod
    def name(cls) -> str:
        return "headrace"

    def schema(self) -> str:
        """The columns where the user declared none. Wrong options are told here: nothing has been started yet."""
        options = parse_source_options(self.options, os.environ.get(URL_VARIABLE), is_stream=None)
        return STANDARD_DDL if options.archive is None else archive_module().REPORT_DDL

    def reader(self, schema: Any) -> "BatchReader":
        options = parse_source_options(self.options, os.environ.get(URL_VARIABLE), is_stream=False)
        takes_filters = keeps_filters_apart() if options.pushes_filters is None else options.pushes_filters
        return (FilteringReader if takes_filters and is_filter_worker() else BatchReader)(options, schema)

    def streamReader(self, schema: Any) -> "StreamReader":
        options = parse_source_options(self.options, os.environ.get(URL_VARIABLE), is_stream=True)
        return StreamReader(options, schema)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        return self.make_writer(schema, is_overwriting=overwrite, is_stream=False)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        return self.make_writer(schema, is_overwriting=overwrite, is_stream=True)

    def make_writer(self, schema: Any, *, is_overwriting: bool, is_stream: bool) -> Any:
        options = parse_sink_options(self.options, os.environ.get(URL_VARIABLE))
        sink = import_module(SINKS[options.kind])
        if options.kind == "table":
            return sink.make_writer(options, schema, is_stream=is_stream, is_overwriting=is_overwriting)
        if is_overwriting and not (is_stream and options.kind == "stream"):  # Complete mode adds all again.
            raise ConfigError(f"the {options.kind} sink only adds: write with the mode append.")
        return sink.make_writer(options, schema, is_stream=is_stream)


def keeps_filters_apart() -> bool:
    """Whether this Spark keeps what one query pushed down away from other queries over the same DataFrame.

    Up to Spark 4.3 it does not: after a filtered query, or beside one in a union, the whole DataFrame would miss rows.
    The same change of Spark that mended this brought limits that are pushed down.
    """
    return hasattr(DataSourceReader, "pushLimit")


def is_filter_worker() -> bool:
    """Whether Spark asks for a reader in order to push filters down.

    Spark refuses a reader that takes filters where the setting spark.sql.python.filterPushdown.enabled is off, which is
    its default; reading must not depend on it. So only the worker that pushes filters gets a reader that takes them.
    """
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return FILTER_WORKER in sys.modules or (spec is not None and spec.name == FILTER_WORKER)


def archive_module() -> Any:
    """Loaded only where an archive is written: it brings the table formats."""
    return import_module("headrace.pipeline.archive_files")


class SlicePartition(InputPartition):
    """One task's share."""

    def __init__(self, piece: Slice) -> None:
        super().__init__(piece)


class SliceReading:
    """What tasks do, the same for batches and streams."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        self.options = options
        self.schema = to_arrow(schema)
        self.decoder = None
        if options.archive is None:
            self.decoder = make_decoder(self.schema, options.columns_from, options.mode, options.corrupt_column)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        piece = partition.value
        if piece is None:  # What Spark makes of no partitions at all.
            return
        checks = LossCheck(fails=self.options.fails_on_data_loss, on_loss=log.warning)
        pages = read_slice(self.options.url, piece, self.options.page_entries, checks)
        if self.options.archive is not None:
            yield from archive_module().write_slice(self.options.archive, piece, pages)
            return
        for page in pages:
            yield make_batch(page, piece.stream, self.schema, self.decoder)


class BatchReader(SliceReading, DataSourceReader):
    """`spark.read.format("headrace")`: what is there when the query is planned."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        super().__init__(options, schema)
        self.narrowing = Narrowing()

    def partitions(self) -> Sequence[InputPartition]:
        planner = Planner(self.options)
        try:
            names = [name for name in planner.list_names() if self.narrowing.has(name)]
            facts = planner.get_facts(names)
            starts = planner.start_positions(facts)
            bounds = {}
            for name, fact in facts.items():
                end = end_with(fact, self.options.end)
                after, through = self.narrowing.bound(extent_of(fact), starts[name], end)
                if after < through and fact.length:
                    bounds[name] = (after, through)
            return [SlicePartition(piece) for piece in planner.cut(bounds, facts)]
        finally:
            planner.close()


class FilteringReader(BatchReader):
    """The same, and filters on IDs, times and streams narrow what is read."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        columns = {column.name for column in self.schema if is_standard(column)}
        self.narrowing, left = push(filters, columns)
        return left


class StreamReader(SliceReading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream.format("headrace")`. Offsets are the last IDs read; see `offsets.py`."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        super().__init__(options, schema)
        self.planner = Planner(options)
        self.targets: dict[str, int] | None = None  # Where a query ends that reads what is available now.
        self.planned: dict[str, Mark] = {}  # Where the batch ends that was planned last.

    def initialOffset(self) -> dict[str, Any]:
        marks = self.planner.start_marks()
        self.hold(name for name in marks if name not in self.options.start.by_stream)
        return encode_offsets(marks)

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self.options.max_entries
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self.targets = self.planner.latest_ids()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        before = parse_offsets(start)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        self.planned = self.planner.next_marks(before, most, self.targets)
        self.hold(name for name in self.planned if name not in before)
        if positions_of(self.planned) == positions_of(before):
            return start  # Spark compares texts, and begins a batch where they differ.
        return encode_offsets(self.planned)

    def reportLatestOffset(self) -> dict[str, Any]:
        """Where the streams end now, for the progress of the query; under "" how many entries are behind, roughly."""
        return self.planner.report(self.planned)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        before, after = parse_offsets(start), parse_offsets(end)
        slices = self.planner.batch_slices(before, after)
        if self.options.archive is not None:
            slices = archive_module().with_empty_spans(slices, before, after)
        return [SlicePartition(piece) for piece in slices]

    def hold(self, joined: Iterable[str]) -> None:
        """Streams that join an archive: nobody may remove entries of theirs from now on."""
        if self.options.archive is not None:
            archive_module().hold_joined(self.planner.client, self.options.archive, tuple(joined))

    def stop(self) -> None:
        self.planner.close()

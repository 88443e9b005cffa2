"""The sink of an archive: collects what the tasks wrote, and commits it to the table in one step on the driver.

The order is what makes it safe: files on disk, table commit on disk, and only then the hold moves and lets go of what
the table has. A batch that comes again after a crash is found to be in the table and only moves the hold.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from headrace.client.client import Client
from headrace.errors import ConfigError, HeadraceError
from headrace.pipeline.archive_files import parse_target, read_report
from headrace.pipeline.entry_ids import id_of
from headrace.pipeline.options import SinkOptions, get_sink_url, reject_unknown
from headrace.pipeline.same_stream import keep_hold
from headrace.pipeline.tables.table import NewFile, Span, check_new, open_table


@dataclass(frozen=True)
class SliceReport(WriterCommitMessage):
    """What one task wrote: (stream, after, through) of its slices, and the files as JSON."""

    slices: list[tuple[str, str, str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def make_writer(options: SinkOptions, _schema: Any, *, is_stream: bool) -> Any:
    if not is_stream:
        raise ConfigError(
            "an archive is written by headrace.pipeline.jobs.archive; to write rows, use the option table."
        )
    reject_unknown(options.others, (), "the archive sink")
    return ArchiveWriter(get_sink_url(options), options.target)


class ArchiveWriter(DataSourceStreamArrowWriter):
    def __init__(self, url: str, option: str) -> None:
        self.url = url
        self.target = parse_target(option)

    def write(self, iterator: Iterator[Any]) -> SliceReport:
        slices, files = [], []
        for batch in iterator:
            for row in batch.to_pylist():
                slices.append((row["stream"], row["after"], row["through"]))
                if row["file"] is not None:
                    files.append(row["file"])
        return SliceReport(slices, files)

    def commit(self, messages: list[Any], batchId: int) -> None:
        reports = [message for message in messages if message is not None]
        spans = join_slices(piece for report in reports for piece in report.slices)
        if not spans:
            return
        files: list[NewFile] = [read_report(file) for report in reports for file in report.files]
        table = open_table(self.target.path)
        check_new(table, files)
        table.commit(files, spans=spans)
        with Client(self.url) as client:
            for stream, span in spans.items():
                keep_hold(client, self.url, table, self.target.name, stream, span.through)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Files that were written stay until vacuum: another attempt of the same batch does not know them."""


def join_slices(slices: Iterable[tuple[str, str, str]]) -> dict[str, Span]:
    """The span of each stream, whose slices must follow each other without a gap. A retried slice counts once."""
    by_stream: dict[str, set[tuple[int, int]]] = {}
    for stream, after, through in slices:
        by_stream.setdefault(stream, set()).add((id_of(after), id_of(through)))
    spans = {}
    for stream, pieces in by_stream.items():
        ordered = sorted(pieces)
        for before, behind in pairwise(ordered):
            if before[1] != behind[0]:
                raise HeadraceError(f"the slices of {stream!r} leave a gap or overlap; nothing was added.")
        spans[stream] = Span(ordered[0][0], ordered[-1][1])
    return spans

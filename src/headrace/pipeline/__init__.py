"""Streams in Spark, through PySpark: a source, sinks, and the jobs archive, trim, replay, query and compact.

    from headrace.pipeline import session

    spark = session()
    orders = spark.readStream.format("headrace").option("url", url).option("streams", "orders").load()

Needs `pip install "headrace[spark]"`; what needs Spark is loaded when first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headrace.pipeline.session import session  # At once, so that the name is the function and not the module.

if TYPE_CHECKING:
    from headrace.pipeline.jobs.archive import ArchiveReport, archive
    from headrace.pipeline.jobs.compact import CompactReport, compact
    from headrace.pipeline.jobs.query import query, table
    from headrace.pipeline.jobs.replay import ReplayReport, replay
    from headrace.pipeline.jobs.trim import Holder, TrimmedStream, trim

HOMES = {
    "headrace.pipeline.jobs.archive": ("archive", "ArchiveReport"),
    "headrace.pipeline.jobs.trim": ("trim", "TrimmedStream", "Holder"),
    "headrace.pipeline.jobs.replay": ("replay", "ReplayReport"),
    "headrace.pipeline.jobs.query": ("query", "table"),
    "headrace.pipeline.jobs.compact": ("compact", "CompactReport"),
}


def __getattr__(name: str) -> Any:
    for home, names in HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'headrace.pipeline' has no attribute {name!r}")


__all__ = [
    "session", "archive", "trim", "replay", "query", "table", "compact",
    "ArchiveReport", "TrimmedStream", "Holder", "ReplayReport", "CompactReport",
]  # fmt: skip

"""The sink to a stream: `writeStream` and `write` with the option `stream`. Each row is one entry, once.

Thin classes for Spark. Rows become entries in `entries_from_rows.py`, tasks leave them in the broker as `staging.py`
says, and the driver publishes them with `publishing.py`. Spark makes a new writer for every commit, so what a task
knows travels in its commit message.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from headrace.errors import ConfigError, HeadraceError
from headrace.pipeline.entries_from_rows import Shape, choose_shape, make_entries
from headrace.pipeline.options import SinkOptions, get_sink_url, parse_count, reject_unknown
from headrace.pipeline.publishing import Publisher, Run
from headrace.pipeline.rows import to_arrow
from headrace.pipeline.staging import STAGED_S, Taken, take_rows

OPTIONS: Final = ("as", "maxLength", "writeId", "batchId")
WRITE_ID_S: Final = 30 * 24 * 3600  # For how long a writeId is remembered after its last use.
QUERY_ID: Final = "sql.streaming.queryId"  # Spark's name for it among the properties of a task.


@dataclass(frozen=True)
class Message(WriterCommitMessage):
    """What a task tells the driver."""

    query: str
    taken: Taken = field(repr=False)


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """All that a task or a commit needs to know; the URL is not shown."""

    url: str = field(repr=False)
    stream: str
    shape: Shape
    max_length: int | None
    write_id: str | None
    batch_id: int


def make_writer(options: SinkOptions, schema: Any, *, is_stream: bool) -> Any:
    """The writer for rows of this schema. Raises ConfigError where the rows cannot become entries."""
    reject_unknown(options.others, OPTIONS, "the stream sink")
    write_id, batch_id = parse_write_id(options, is_stream=is_stream)
    plan = SinkPlan(
        url=get_sink_url(options),
        stream=options.target,
        shape=choose_shape(arrow_schema(schema), options.others.get("as")),
        max_length=parse_count(options.others, "maxLength", 2**63 - 1),
        write_id=write_id,
        batch_id=batch_id,
    )
    return StreamWriter(plan) if is_stream else BatchWriter(plan)


def parse_write_id(options: SinkOptions, *, is_stream: bool) -> tuple[str | None, int]:
    """The name of a write that may be repeated, and its number under this name: 0 where it has none."""
    write_id, text = options.others.get("writeid"), options.others.get("batchid")
    if is_stream and (write_id is not None or text is not None):
        raise ConfigError(
            "writeId and batchId are for batch writes; a streaming query is known by its checkpoint. Take them out."
        )
    if write_id == "":
        raise ConfigError("writeId is empty. Give a name that is the same when the same write runs again.")
    if text is None:
        return write_id, 0
    if write_id is None:
        raise ConfigError("batchId counts the writes under one name; give that name with the option writeId.")
    if not (text.isascii() and text.isdecimal()) or int(text) >= 2**63:
        raise ConfigError(f"batchId is {text!r}; write the whole number that Spark gives to foreachBatch.")
    return write_id, int(text)


def arrow_schema(schema: Any) -> pa.Schema:
    """As Spark hands the rows over; one column after the other, so that the one that does not fit can be named."""
    for column in schema.fields:
        try:
            to_arrow(type(schema)([column]))
        except PySparkException as error:
            raise ConfigError(
                f"the column {column.name!r} is of type {column.dataType.simpleString()}, which cannot be written to a "
                "stream. Cast it to string."
            ) from error
    return to_arrow(schema)


def take(plan: SinkPlan, run: str, batches: Iterator[pa.RecordBatch]) -> Taken:
    """What a task does with its rows."""
    entries = (words for batch in batches for words in make_entries(batch, plan.shape))
    partition = TaskContext.get().partitionId()
    return take_rows(entries, plan.url, plan.stream, f"{run}:{partition}:{secrets.token_hex(8)}")


def drop_staged(plan: SinkPlan, run: Run, messages: Sequence[Message | None]) -> None:
    """After a failure. Spark also calls abort when commit failed: then the fence has the parts, and they stay."""
    parts = [message.taken.part for message in messages if message is not None and message.taken.part is not None]
    try:
        with Publisher(plan.url, run) as publisher:
            publisher.drop(parts)
    except HeadraceError:
        return  # The failure before this one is what Spark reports; what is left expires within a day.


class StreamWriter(DataSourceStreamArrowWriter):
    """For streaming queries. The fence has the name of the query, which its checkpoint keeps."""

    def __init__(self, plan: SinkPlan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        query = TaskContext.get().getLocalProperty(QUERY_ID)
        if not query:
            raise HeadraceError("this Spark does not tell its tasks the ID of their query; use Spark 4.2 or newer.")
        return Message(query, take(self.plan, query, iterator))

    def commit(self, messages: list[Message | None], batchId: int) -> None:
        done = [message for message in messages if message is not None]
        if not done:
            return
        with Publisher(self.plan.url, self.run_of(done[0].query)) as publisher:
            taken = [message.taken for message in done]
            publisher.publish(batchId, taken, f"{done[0].query}:driver:{secrets.token_hex(8)}")

    def abort(self, messages: list[Message | None], batchId: int) -> None:
        queries = [message.query for message in messages if message is not None]
        if queries:
            drop_staged(self.plan, self.run_of(queries[0]), messages)

    def run_of(self, query: str) -> Run:
        return Run(self.plan.stream, query, self.plan.max_length)


class BatchWriter(DataSourceArrowWriter):
    """For a batch write. Made once on the driver, so its random name is the same in every task."""

    def __init__(self, plan: SinkPlan) -> None:
        self.plan = plan
        name = secrets.token_hex(8) if plan.write_id is None else plan.write_id
        self.run = Run(
            plan.stream,
            f"write:{name}",
            plan.max_length,
            fence_s=STAGED_S if plan.write_id is None else WRITE_ID_S,
            is_single=plan.write_id is None,
        )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        return Message(self.run.name, take(self.plan, self.run.name, iterator))

    def commit(self, messages: list[Message | None]) -> None:
        taken = [message.taken for message in messages if message is not None]
        with Publisher(self.plan.url, self.run) as publisher:
            publisher.publish(self.plan.batch_id, taken, f"{self.run.name}:driver:{secrets.token_hex(8)}")

    def abort(self, messages: list[Message | None]) -> None:
        drop_staged(self.plan, self.run, messages)

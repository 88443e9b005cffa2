"""The sink to a table: `writeStream` and `write` with the option `table`. Rows of any columns, each batch once.

    counts.writeStream.format("headrace").option("table", "./counts").option("partitionBy", "day")…

Thin classes for Spark: tasks write Parquet files by `table_files.py`, the driver commits them in one step. A streaming
query is known by its id, which Spark keeps in the checkpoint: a batch that comes again is found in the table. With the
output mode complete each batch takes the place of the table's rows.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from headrace.errors import ConfigError, HeadraceError
from headrace.pipeline.archive_layout import VERSION_PROPERTY
from headrace.pipeline.options import SinkOptions, reject_unknown
from headrace.pipeline.rows import to_arrow
from headrace.pipeline.table_files import RowWriter, check_types, without_constraints
from headrace.pipeline.tables.table import NewFile, create_table, open_table

OPTIONS: Final = ("tableFormat", "partitionBy")
QUERY_ID: Final = "sql.streaming.queryId"  # Spark's name for it among the properties of a task.


@dataclass(frozen=True)
class Message(WriterCommitMessage):
    """What a task tells the driver: its query, and its files as JSON."""

    query: str | None
    files: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TablePlan:
    path: str
    schema: Any
    partition_by: tuple[str, ...]
    is_overwriting: bool


def make_writer(options: SinkOptions, schema: Any, *, is_stream: bool, is_overwriting: bool = False) -> Any:
    """The writer, once there is a table for these rows. Raises ConfigError or TableError where they do not fit."""
    reject_unknown(options.others, OPTIONS, "the table sink")
    try:
        arrow = without_constraints(to_arrow(schema))
    except PySparkException as error:
        raise ConfigError(f"these columns do not fit into a table: {error}. Cast them.") from error
    partition_by = tuple(name.strip() for name in options.others.get("partitionby", "").split(",") if name.strip())
    check_types(arrow, partition_by)
    table = create_table(options.target, arrow, format=options.others.get("tableformat"), partition_by=partition_by)
    if VERSION_PROPERTY in table.properties:
        raise ConfigError(f"{table.path} is an archive; give another folder for other rows.")
    plan = TablePlan(str(table.path), arrow, partition_by, is_overwriting)
    return StreamTableWriter(plan) if is_stream else BatchTableWriter(plan)


def write_rows(plan: TablePlan, batches: Iterator[Any]) -> Message:
    context = TaskContext.get()
    files = RowWriter(open_table(plan.path), plan.schema, plan.partition_by).write(batches)
    query = None if context is None else context.getLocalProperty(QUERY_ID)
    return Message(query, [json.dumps(asdict(one)) for one in files])


def read_files(messages: list[Any]) -> list[NewFile]:
    return [NewFile(**json.loads(file)) for message in messages if message is not None for file in message.files]


class StreamTableWriter(DataSourceStreamArrowWriter):
    def __init__(self, plan: TablePlan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[Any]) -> Message:
        return write_rows(self.plan, iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:
        queries = {message.query for message in messages if message is not None}
        if not queries:
            return
        [query] = queries
        if query is None:
            raise HeadraceError("Spark does not tell the id of the query, so its batches cannot be told apart.")
        files = read_files(messages)
        if files or self.plan.is_overwriting:
            open_table(self.plan.path).commit(files, query=query, batch=batchId, overwrite=self.plan.is_overwriting)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Files that were written are no part of the table; vacuum removes them."""


class BatchTableWriter(DataSourceArrowWriter):
    def __init__(self, plan: TablePlan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[Any]) -> Message:
        return write_rows(self.plan, iterator)

    def commit(self, messages: list[Any]) -> None:
        open_table(self.plan.path).commit(read_files(messages), overwrite=self.plan.is_overwriting)

    def abort(self, messages: list[Any]) -> None:
        """Files that were written are no part of the table; vacuum removes them."""

"""A session from pip alone, on the Spark that is pinned: what it brings, and what it says when something is wrong."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark

from headrace.pipeline import session

TIMEOUT_S = 600  # Ends a broken test; Spark starts in seconds, on a busy machine in minutes.


def test_a_java_that_does_not_start_is_told_in_one_sentence(tmp_path: Path) -> None:
    program = """
from headrace.errors import ConfigError
from headrace.pipeline import session
try:
    session(config={"spark.driver.memory": "nonsense"})
except ConfigError as error:
    print(error)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )

    assert ended.stdout == "Spark's Java process ended at its start; it said why on the standard error.\n"
    assert "nonsense" in ended.stderr


def test_a_session_runs_python_and_pyspark_of_this_environment(spark: Any) -> None:
    def interpreters(batches: Any) -> Any:
        import sys

        import pyarrow as pa
        import pyspark

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable], "pyspark": [pyspark.__file__]})

    rows = spark.range(1).mapInArrow(interpreters, "python string, pyspark string").collect()

    assert [tuple(row) for row in rows] == [(sys.executable, pyspark.__file__)]


def test_a_session_that_is_there_is_taken(spark: Any) -> None:
    again = session("another name", config={"spark.sql.shuffle.partitions": "2"})

    assert again.sparkContext is spark.sparkContext
    assert again.sparkContext.appName == "headrace-tests"


def test_times_are_in_utc_and_filters_reach_the_source(spark: Any) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"


def test_the_environment_of_the_user_is_left_alone(spark: Any) -> None:
    assert "SPARK_HOME" not in os.environ and "PYSPARK_PYTHON" not in os.environ


def test_a_sink_is_told_query_and_batch(spark: Any, tmp_path: Path, drain: Callable[[Any], Any]) -> None:
    """The archive and the stream sink are exactly-once by these two names, which no documentation of Spark promises."""
    spark.dataSource.register(make_recorder())
    (tmp_path / "in").mkdir()
    rows = spark.readStream.schema("value string").text(str(tmp_path / "in"))
    queries = []
    for number in range(2):
        (tmp_path / "in" / f"{number}.txt").write_text("one line\n")
        writer = rows.writeStream.format("recorder").option("path", str(tmp_path / "record"))
        queries.append(drain(writer.option("checkpointLocation", str(tmp_path / "checkpoint"))))

    assert queries[0].id == queries[1].id
    lines = (tmp_path / "record").read_text().splitlines()
    assert lines == [f"{queries[0].id} {batch} {batch}" for batch in (0, 1)]


def make_recorder() -> Any:
    """A format whose sink notes what it is told. Made in a function, so that it travels to the workers by value."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

    class Told(WriterCommitMessage):
        def __init__(self, query: str, batch: str) -> None:
            self.query, self.batch = query, batch

    class Recorder(DataSource):
        @classmethod
        def name(cls) -> str:
            return "recorder"

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            return RecordWriter(self.options["path"])

    class RecordWriter(DataSourceStreamWriter):
        def __init__(self, path: str) -> None:
            self.path = path

        def write(self, iterator: Any) -> Any:
            from pyspark import TaskContext

            task = TaskContext.get()
            assert task is not None
            names = ("sql.streaming.queryId", "streaming.sql.batchId")
            return Told(*(str(task.getLocalProperty(name)) for name in names))

        def commit(self, messages: Any, batchId: int) -> None:
            with Path(self.path).open("a") as record:
                for message in messages:
                    record.write(f"{message.query} {message.batch} {batchId}\n")

        def abort(self, messages: Any, batchId: int) -> None:
            pass

    return Recorder

"""What our source and sinks raise, wherever it happens, is one sentence to the person who asked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.pipeline.spark_errors import explain_error

BATCH = ("schema", "partitions", "read", "commit")
STREAM = ("streamReader", "latestOffset", "read", "streamWriter", "commit")


@pytest.fixture(scope="module")
def failing(spark: Any) -> Any:
    spark.dataSource.register(make_failing())
    return spark


@pytest.mark.parametrize("place", BATCH)
def test_a_batch_that_fails_is_explained(failing: Any, place: str) -> None:
    def run() -> None:
        rows = failing.read.format("failing").option("fail", place).load()
        rows.write.format("failing").option("fail", place).mode("append").save()

    assert failure_of(run) == f"{place} is wrong: change it."


@pytest.mark.parametrize("place", STREAM)
def test_a_stream_that_fails_is_explained(
    failing: Any, place: str, tmp_path: Path, drain: Callable[[Any], Any]
) -> None:
    def run() -> None:
        rows = failing.readStream.format("failing").option("fail", place).load()
        writer = rows.writeStream.format("failing").option("fail", place)
        drain(writer.option("checkpointLocation", str(tmp_path)))

    assert failure_of(run) == f"{place} is wrong: change it."


def failure_of(run: Callable[[], None]) -> str | None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark's exceptions have no common ancestor.
        run()
    return explain_error(caught.value)


def make_failing() -> Any:
    """A format that fails in the method it is told. Made in a function, so that it travels to the workers by value."""
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
        InputPartition,
        WriterCommitMessage,
    )

    from headrace.errors import ConfigError

    def pass_by(place: str, options: Any) -> None:
        if options["fail"] == place:
            raise ConfigError(f"{place} is wrong: change it.")

    class Failing(DataSource):
        @classmethod
        def name(cls) -> str:
            return "failing"

        def schema(self) -> str:
            pass_by("schema", self.options)
            return "number int"

        def reader(self, schema: Any) -> Any:
            pass_by("reader", self.options)
            return Reader(self.options)

        def streamReader(self, schema: Any) -> Any:
            pass_by("streamReader", self.options)
            return StreamReader(self.options)

        def writer(self, schema: Any, overwrite: bool) -> Any:
            pass_by("writer", self.options)
            return Writer(self.options)

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            pass_by("streamWriter", self.options)
            return StreamWriter(self.options)

    class Reading:
        def __init__(self, options: Any) -> None:
            self.options = options

        def partitions(self, *_: Any) -> Any:
            pass_by("partitions", self.options)
            return [InputPartition(0)]

        def read(self, partition: Any) -> Any:
            pass_by("read", self.options)
            yield (1,)

    class Reader(Reading, DataSourceReader):
        pass

    class StreamReader(Reading, DataSourceStreamReader):
        def initialOffset(self) -> Any:
            return {"number": 0}

        def latestOffset(self) -> Any:
            pass_by("latestOffset", self.options)
            return {"number": 1}

    class Writing:
        def __init__(self, options: Any) -> None:
            self.options = options

        def write(self, iterator: Any) -> Any:
            list(iterator)
            pass_by("write", self.options)
            return WriterCommitMessage()

        def commit(self, *_: Any) -> None:
            pass_by("commit", self.options)

        def abort(self, *_: Any) -> None:
            pass

    class Writer(Writing, DataSourceWriter):
        pass

    class StreamWriter(Writing, DataSourceStreamWriter):
        pass

    return Failing

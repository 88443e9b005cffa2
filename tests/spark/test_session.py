"""A session from pip alone: what it brings, on the Spark that is pinned."""

from typing import Any


def test_a_session_runs_python_of_this_environment(spark: Any) -> None:
    import sys

    def interpreters(batches: Any) -> Any:
        import sys

        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    rows = spark.range(1).mapInArrow(interpreters, "python string").collect()

    assert [row.python for row in rows] == [sys.executable]

"""Rows of any columns go to a table, each batch once."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headrace.pipeline.spark_errors import explain_error
from headrace.pipeline.tables.table import open_table

EVERY_TYPE = (
    "flag boolean, tiny byte, small short, whole int, long bigint, real float, precise double, price decimal(10,2), "
    "text string, raw binary, day date, at timestamp, local timestamp_ntz, list array<int>, "
    "lookup map<string,array<string>>, nested struct<a:int,b:struct<c:string>>"
)
FULL_ROW = (
    True, 1, 2, 3, 4, 0.5, 0.25, Decimal("1.25"), "schl\u00fcssel", b"\x00\xff", date(2026, 11, 15),
    datetime(2026, 11, 15, 12, tzinfo=UTC), datetime(2026, 11, 15, 12), [1, None], {"k": ["v"]}, (1, ("c",)),
)  # fmt: skip


def save(frame: Any, folder: Path, mode: str = "append", **options: str) -> None:
    frame.write.format("headrace").option("table", str(folder)).options(**options).mode(mode).save()


def load(spark: Any, folder: Path, columns: str) -> Any:
    paths = [one.path for one in open_table(folder).files()]
    return spark.read.schema(columns).option("basePath", str(folder)).parquet(*paths)


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_rows_of_every_type_come_back_as_they_were(spark: Any, tmp_path: Path, kind: str) -> None:
    frame = spark.createDataFrame([FULL_ROW, (None,) * len(FULL_ROW)], EVERY_TYPE)

    save(frame, tmp_path / "rows", tableFormat=kind)
    save(frame.limit(1), tmp_path / "rows")

    found = load(spark, tmp_path / "rows", EVERY_TYPE).collect()
    expected = frame.collect()
    assert sorted(found, key=str) == sorted([expected[0], expected[0], expected[1]], key=str)


def test_rows_are_kept_by_the_columns_asked_for(spark: Any, tmp_path: Path) -> None:
    columns = "number int, kind string, day date, flag boolean"
    rows = [
        (1, "a/b", date(2026, 1, 1), True),
        (2, None, None, None),
        (3, "", date(2026, 1, 1), False),
        (4, "a/b", date(2026, 1, 1), True),
    ]
    save(spark.createDataFrame(rows, columns), tmp_path / "rows", partitionBy="kind, day,flag")

    found = load(spark, tmp_path / "rows", columns).collect()
    assert sorted(tuple(row) for row in found) == sorted(
        [
            (1, "a/b", date(2026, 1, 1), True),
            (2, None, None, None),
            (3, None, date(2026, 1, 1), False),
            (4, "a/b", date(2026, 1, 1), True),
        ],
        key=lambda row: row[0],
    )
    assert {tuple(one.partition.values()) for one in open_table(tmp_path / "rows").files()} == {
        ("a/b", "2026-01-01", "true"), (None, None, None), (None, "2026-01-01", "false"),
    }  # fmt: skip


def test_overwriting_replaces_all_rows(spark: Any, tmp_path: Path) -> None:
    save(spark.range(5), tmp_path / "rows")
    save(spark.range(2), tmp_path / "rows", mode="overwrite")

    assert load(spark, tmp_path / "rows", "id bigint").count() == 2


@pytest.fixture
def numbers(spark: Any, tmp_path: Path) -> Any:
    """A stream of three batches with the numbers 0 to 29."""
    folder = tmp_path / "numbers"
    for batch in range(3):
        spark.range(batch * 10, batch * 10 + 10, 1, 1).write.json(str(folder / str(batch)))
    return spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 1).json(f"{folder}/*/*.json")


def test_a_streaming_query_adds_each_batch_once_also_when_it_is_run_again(
    spark: Any, tmp_path: Path, numbers: Any, drain: Callable[[Any], Any]
) -> None:
    checkpoint, folder = tmp_path / "checkpoint", tmp_path / "rows"
    writer = numbers.writeStream.format("headrace").option("table", str(folder))
    drain(writer.option("checkpointLocation", str(checkpoint)))
    assert sorted(row.id for row in load(spark, folder, "id bigint").collect()) == list(range(30))

    for name in ("2", ".2.crc"):  # As if the driver died after the table's commit and before Spark's.
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    drain(writer)
    assert sorted(row.id for row in load(spark, folder, "id bigint").collect()) == list(range(30))

    shutil.rmtree(checkpoint)  # Without its checkpoint a query is another one.
    drain(writer)
    assert load(spark, folder, "id bigint").count() == 60


def test_with_the_output_mode_complete_the_table_has_the_newest_result(
    spark: Any, tmp_path: Path, numbers: Any, drain: Callable[[Any], Any]
) -> None:
    counts = numbers.groupBy((numbers.id % 2).alias("odd")).count()
    writer = counts.writeStream.outputMode("complete").format("headrace").option("table", str(tmp_path / "rows"))
    drain(writer.option("checkpointLocation", str(tmp_path / "checkpoint")))

    found = load(spark, tmp_path / "rows", "odd bigint, count bigint").collect()
    assert sorted(tuple(row) for row in found) == [(0, 15), (1, 15)]


def test_what_does_not_fit_is_told_in_one_sentence_and_nothing_is_written(spark: Any, tmp_path: Path) -> None:
    save(spark.range(3), tmp_path / "rows")
    cases: list[tuple[Any, dict[str, str], str]] = [
        (spark.range(1).selectExpr("cast(id as string) id"), {}, "column id of the table .* is int64, not string"),
        (spark.range(1).selectExpr("id", "id more"), {}, "has no column more"),
        (spark.range(1), {"tableFormat": "parquet"}, "is of format delta, not parquet"),
        (spark.range(1), {"tableFormat": "csv"}, "write delta or parquet"),
        (spark.range(1), {"partition": "id"}, "the table sink has no option 'partition'. Did you mean partitionBy?"),
        (spark.range(1), {"partitionBy": "id"}, "every column is in partitionBy"),
        (spark.range(1), {"partitionBy": "day"}, "partitionBy names 'day', and there is no such column"),
        (spark.range(1).selectExpr("id `a b`"), {}, "has ' ' in its name"),
        (spark.range(1).selectExpr("interval '1' day span"), {}, "span"),
        (spark.range(1).selectExpr("id", "0.5D real"), {"partitionBy": "real"}, "use text, a whole number"),
    ]
    for frame, options, told in cases:
        sentence = refusal(frame, tmp_path / "rows", options)
        assert sentence and re.search(told, sentence) and "\n" not in sentence
    assert load(spark, tmp_path / "rows", "id bigint").count() == 3


def refusal(frame: Any, folder: Path, options: dict[str, str]) -> str | None:
    try:
        save(frame, folder, **options)
    except Exception as error:
        return explain_error(error)
    return None

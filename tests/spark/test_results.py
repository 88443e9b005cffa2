"""The rows of a result as values and as files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import ConfigError, HeadraceError
from headrace.pipeline.results import read_rows, write_file

SQL = """
    select 17 id, cast(18446744073709551615 as decimal(20,0)) id_ms, cast(1.5 as decimal(3,1)) total,
           timestamp'2026-07-01 12:30:00.5Z' at, timestamp_ntz'2026-07-01 12:30:00' at_home, date'2026-07-01' day,
           cast('tea' as binary) data, unhex('FF00') odd, map('type', 'refund') fields,
           array(named_struct('name', cast('a' as binary), 'value', cast(null as binary))) pairs, null nothing, 18 id
"""
PLAIN = {
    "id": 17,
    "id_ms": 18446744073709551615,
    "total": 1.5,
    "at": "2026-07-01T12:30:00.500Z",
    "at_home": "2026-07-01T12:30:00",
    "day": "2026-07-01",
    "data": b"tea",
    "odd": b"\xff\x00",
    "fields": {"type": "refund"},
    "pairs": [{"name": b"a", "value": None}],
    "nothing": None,
    "id_2": 18,
}


def test_values_are_plain_and_two_columns_of_one_name_stay_apart(spark: Any) -> None:
    assert list(read_rows(spark.sql(SQL))) == [PLAIN]


def test_no_more_rows_are_read_than_wanted(spark: Any) -> None:
    assert list(read_rows(spark.range(10), 3)) == [{"id": 0}, {"id": 1}, {"id": 2}]


def test_a_result_is_written_as_ndjson(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "result.ndjson"

    assert write_file(spark.sql(SQL), file) == 1

    pairs = [{"name": "a", "value": None}]
    assert json.loads(file.read_text()) == PLAIN | {"data": "tea", "odd": "\\xff\0", "pairs": pairs}


def test_a_result_is_written_as_csv(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "result.CSV"

    assert write_file(spark.sql(SQL), file) == 1

    with file.open(newline="") as lines:
        [row] = csv.DictReader(lines)
    assert list(row) == list(PLAIN)
    assert (row["data"], row["nothing"], row["id_ms"]) == ("tea", "", "18446744073709551615")
    assert json.loads(row["fields"]) == {"type": "refund"}


def test_a_result_is_written_as_parquet_with_the_same_types_and_values(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "result.parquet"
    result = spark.sql(SQL).drop("nothing")  # A column of nothing has no type that Parquet knows.

    assert write_file(result, file) == 1

    read = spark.read.parquet(str(file))
    assert [field.dataType.simpleString() for field in read.schema] == [
        field.dataType.simpleString() for field in result.schema
    ]
    assert list(read_rows(read)) == list(read_rows(result))


def test_a_name_that_says_no_format_is_refused_before_anything_runs(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"end it with .ndjson, .csv or .parquet"):
        write_file(spark.range(1), tmp_path / "result.xlsx")


def test_a_failed_query_leaves_no_file_behind(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no luck"):
        write_file(spark.sql("select raise_error('no luck')"), tmp_path / "result.csv")

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_missing_is_told_in_one_sentence(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match=r"cannot write .*: there is no folder"):
        write_file(spark.range(1), tmp_path / "missing" / "result.csv")

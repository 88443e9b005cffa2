"""Rows go to the partition of their values, whatever letters these have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import ConfigError
from headrace.pipeline.table_files import RowWriter
from headrace.pipeline.tables.table import create_table

SCHEMA = pa.schema([("place", pa.string()), ("day", pa.date32()), ("number", pa.int64())])


def write(folder: Path, places: list[str | None]) -> list[tuple[Any, list[int]]]:
    """The partition and the numbers of each file; the numbers are the places' own."""
    table = create_table(folder, SCHEMA, partition_by=("place", "day"))
    columns = [pa.array(places, pa.string()), pa.nulls(len(places), pa.date32()), pa.array(range(len(places)))]
    files = RowWriter(table, SCHEMA, ("place", "day")).write([pa.record_batch(columns, schema=SCHEMA)])
    return [
        (one.partition, pq.read_table(table.staging(one.path), partitioning=None)["number"].to_pylist())
        for one in files
    ]


def test_values_with_any_letters_keep_their_rows_apart(tmp_path: Path) -> None:
    places = ["a", "\x01", "a\x00b", "a", "0,1", None, "ü/%"]

    found = write(tmp_path / "table", places)

    assert {(parts["place"], parts["day"]): numbers for parts, numbers in found} == {
        ("a", None): [0, 3], ("\x01", None): [1], ("a\x00b", None): [2], ("0,1", None): [4], (None, None): [5],
        ("ü/%", None): [6],
    }  # fmt: skip


def test_an_empty_text_is_null_and_one_that_only_reads_as_null_is_refused(tmp_path: Path) -> None:
    assert [parts["place"] for parts, _ in write(tmp_path / "table", [""])] == [None]
    with pytest.raises(ConfigError, match="take it for null"):
        write(tmp_path / "table", ["__HIVE_DEFAULT_PARTITION__"])

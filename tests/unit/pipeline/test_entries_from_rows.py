"""How a row becomes an entry."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.errors import ConfigError, Refused
from headrace.pipeline.entries_from_rows import choose_shape, make_entries

PAIRS = pa.list_(pa.struct([("name", pa.binary()), ("value", pa.binary())]))
TEXTS = pa.map_(pa.string(), pa.string())


def entries(form: str | None = None, **columns: pa.Array) -> list[list[bytes]]:
    batch = pa.record_batch(columns)
    return list(make_entries(batch, choose_shape(batch.schema, form)))


def json_of(value: Any, kind: pa.DataType) -> Any:
    [[name, data]] = entries(value=pa.array([value], kind))
    assert name == b"data"
    return json.loads(data)["value"]


# Fields given as such


def test_pairs_are_written_exactly_as_they_are() -> None:
    rows = [
        [{"name": b"a", "value": b"1"}, {"name": b"a", "value": b"2"}],
        [{"name": b"\xff", "value": b""}],
    ]

    assert entries(pairs=pa.array(rows, PAIRS)) == [[b"a", b"1", b"a", b"2"], [b"\xff", b""]]


def test_pairs_win_over_the_other_columns_of_the_source() -> None:
    pairs = pa.array([[{"name": b"a", "value": b"1"}]], PAIRS)

    assert entries(id=pa.array(["1-0"]), data=pa.array([b"x"]), pairs=pairs) == [[b"a", b"1"]]


def test_a_part_of_a_batch_gives_its_own_rows() -> None:
    rows = [[{"name": b"n", "value": str(i).encode()}] for i in range(5)]
    maps = [[("n", str(i))] for i in range(5)]
    batch = pa.record_batch({"pairs": pa.array(rows, PAIRS)}).slice(2, 2)
    mapped = pa.record_batch({"fields": pa.array(maps, TEXTS)}).slice(2, 2)

    assert list(make_entries(batch, choose_shape(batch.schema, None))) == [[b"n", b"2"], [b"n", b"3"]]
    assert list(make_entries(mapped, choose_shape(mapped.schema, None))) == [[b"n", b"2"], [b"n", b"3"]]


def test_a_map_gives_its_fields_and_leaves_out_what_is_null() -> None:
    assert entries(fields=pa.array([[("a", "1"), ("b", None)]], TEXTS)) == [[b"a", b"1"]]


@pytest.mark.parametrize("empty", [None, []])
def test_a_row_without_any_field_is_refused_and_not_skipped(empty: Any) -> None:
    for column, kind in (("pairs", PAIRS), ("fields", TEXTS)):
        with pytest.raises(Refused, match=f"nothing in '{column}'"):
            entries(**{column: pa.array([empty], kind)})


def test_a_pair_that_is_null_is_refused() -> None:
    with pytest.raises(Refused, match="is null"):
        entries(pairs=pa.array([[{"name": b"a", "value": None}]], PAIRS))


# The layout of headrace


def test_data_key_type_and_headers_become_the_layout_of_headrace() -> None:
    [words] = entries(
        data=pa.array(['{"id":17}']), key=pa.array(["customer-42"]), type=pa.array(["text/plain"]),
        headers=pa.array([[("source", "shop")]], TEXTS),
    )  # fmt: skip

    assert words == [
        b"data", b'{"id":17}', b"key", b"customer-42", b"type", b"text/plain", b"h:source", b"shop",
    ]  # fmt: skip


def test_bytes_stay_bytes_and_what_is_null_has_no_field() -> None:
    [words] = entries(data=pa.array([b"\xff\x00"]), key=pa.array([None], pa.string()), headers=pa.array([None], TEXTS))

    assert words == [b"data", b"\xff\x00"]


def test_a_key_may_be_a_number() -> None:
    assert entries(data=pa.array(["x"]), key=pa.array([42])) == [[b"data", b"x", b"key", b"42"]]


def test_data_that_is_null_is_refused() -> None:
    with pytest.raises(Refused, match="no data"):
        entries(data=pa.array([None], pa.string()))


# JSON


def test_other_columns_become_one_json_object_and_the_key_its_own_field() -> None:
    [words] = entries(word=pa.array(["tea"]), count=pa.array([3]), key=pa.array(["tea"]))

    assert words == [b"data", b'{"word":"tea","count":3}', b"key", b"tea"]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (datetime(2026, 11, 15, 12, 30, 0, 250, tzinfo=UTC), pa.timestamp("us", "UTC"), "2026-11-15T12:30:00.000250Z"),
        (
            datetime(2026, 11, 15, 13, 30, tzinfo=timezone(timedelta(hours=1))), pa.timestamp("us", "Europe/Berlin"),
            "2026-11-15T12:30:00Z",
        ),
        (datetime(2026, 11, 15, 12, 30), pa.timestamp("us"), "2026-11-15T12:30:00"),
        (date(2026, 11, 15), pa.date32(), "2026-11-15"),
        (b"\xff\x00", pa.binary(), "/wA="),
        (float("nan"), pa.float64(), None),
        (float("-inf"), pa.float64(), None),
        (Decimal("9.90"), pa.decimal128(10, 2), 9.9),
        (None, pa.string(), None),
        ({"a": 1, "b": None}, pa.struct([("a", pa.int64()), ("b", pa.string())]), {"a": 1, "b": None}),
        ([1, None, 3], pa.list_(pa.int32()), [1, None, 3]),
        ([(7, "x")], pa.map_(pa.int64(), pa.string()), {"7": "x"}),
        (
            [{"at": datetime(2026, 1, 1, tzinfo=UTC)}], pa.list_(pa.struct([("at", pa.timestamp("us", "UTC"))])),
            [{"at": "2026-01-01T00:00:00Z"}],
        ),
        ("ü\u0000", pa.string(), "ü\u0000"),
    ],
)  # fmt: skip
def test_every_type_has_its_form_in_json(value: Any, kind: pa.DataType, expected: Any) -> None:
    assert json_of(value, kind) == expected


def test_a_decimal_keeps_all_its_digits() -> None:
    [[_, data]] = entries(total=pa.array([Decimal("12345678901234567890.1234")], pa.decimal128(38, 4)))

    assert data == b'{"total":12345678901234567890.1234}'


def test_a_key_alone_gives_an_empty_object() -> None:
    assert entries(key=pa.array(["a"])) == [[b"data", b"{}", b"key", b"a"]]


def test_the_form_can_be_chosen_although_a_column_is_named_data() -> None:
    assert entries("json", data=pa.array(["x"]), n=pa.array([1])) == [[b"data", b'{"data":"x","n":1}']]


# A field per column


def test_columns_become_fields_as_text() -> None:
    [words] = entries(
        "fields", item=pa.array(["tea"]), cups=pa.array([2]), hot=pa.array([True]), note=pa.array([None], pa.string()),
        at=pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")), tags=pa.array([["a", "b"]]),
        raw=pa.array([b"\xff"]),
    )  # fmt: skip

    assert dict(zip(words[::2], words[1::2], strict=True)) == {
        b"item": b"tea", b"cups": b"2", b"hot": b"true", b"at": b"2026-01-01T00:00:00Z", b"tags": b'["a","b"]',
        b"raw": b"\xff",
    }  # fmt: skip


def test_a_row_that_is_null_everywhere_is_refused() -> None:
    with pytest.raises(Refused, match="null in every column"):
        entries("fields", a=pa.array([None], pa.string()))


# Columns that give no entries


@pytest.mark.parametrize(
    ("schema", "form", "words"),
    [
        ({"pairs": pa.string()}, None, "'pairs' must be array<struct"),
        ({"fields": pa.map_(pa.string(), pa.int64())}, None, "'fields' must be map<string,string>"),
        ({"data": pa.int64()}, None, "'data' must be string or binary"),
        ({"data": pa.string(), "headers": pa.string()}, None, "'headers' must be map<string,string>"),
        ({"data": pa.string(), "key": pa.float64()}, None, "'key' must be string"),
        ({"data": pa.string(), "total": pa.int64()}, None, "'total' would be lost"),
        ({"a": pa.month_day_nano_interval()}, None, "no JSON form"),
        ({"a": pa.int64()}, "xml", "as is 'xml'"),
        ({}, None, "no columns"),
    ],
)
def test_columns_that_do_not_fit_are_refused_before_any_row(
    schema: dict[str, pa.DataType], form: str | None, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        choose_shape(pa.schema(list(schema.items())), form)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two columns are named 'a'"):
        choose_shape(pa.schema([("a", pa.int64()), ("a", pa.string())]), None)

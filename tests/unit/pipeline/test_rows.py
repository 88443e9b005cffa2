"""A page becomes rows: the standard columns, exactly as Spark expects them."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace import ConfigError
from headrace.pipeline.pages import parse_page
from headrace.pipeline.rows import STANDARD_DDL, STANDARD_SCHEMA, is_standard, make_batch, to_arrow
from support.pages import encode_reply, page_of

MAX_PART = 2**64 - 1
unhurried = settings(deadline=None)  # A busy machine is no bug.
words = st.sampled_from([b"a", b"b", b"key", b"data", b"\xff", b"\xfe", b"\xef\xbf\xbd", b""]) | st.binary(max_size=4)


def rows_of(page, *names):
    schema = pa.schema([STANDARD_SCHEMA.field(name) for name in names]) if names else STANDARD_SCHEMA
    batch = make_batch(page, "orders", schema)
    batch.validate(full=True)
    assert batch.schema == schema
    return batch.to_pylist()


def column_of(page, name):
    return [row[name] for row in rows_of(page, name)]


def test_the_schema_is_what_spark_makes_of_the_same_columns():
    pair = StructType([StructField("name", BinaryType()), StructField("value", BinaryType())])
    types = [
        StringType(), StringType(), DecimalType(20, 0), DecimalType(20, 0), TimestampType(), StringType(), BinaryType(),
        MapType(StringType(), StringType()), ArrayType(pair),
    ]  # fmt: skip
    schema = StructType([StructField(name, kind) for name, kind in zip(STANDARD_SCHEMA.names, types, strict=True)])

    assert to_arrow(schema).equals(STANDARD_SCHEMA)
    assert ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema) == STANDARD_DDL


def test_an_entry_becomes_a_row():
    pairs = [(b"item", b"tea"), (b"key", b"customer-42"), (b"data", b'{"id":17}')]

    [row] = rows_of(parse_page(encode_reply([(b"1690275391705-3", pairs)])))

    assert row == {
        "stream": "orders",
        "id": "1690275391705-3",
        "id_ms": Decimal(1690275391705),
        "id_seq": Decimal(3),
        "timestamp": datetime(2023, 7, 25, 8, 56, 31, 705000, tzinfo=UTC),
        "key": "customer-42",
        "data": b'{"id":17}',
        "fields": [("item", "tea"), ("key", "customer-42"), ("data", '{"id":17}')],
        "pairs": [{"name": name, "value": value} for name, value in pairs],
    }


def test_columns_may_be_any_of_the_standard_ones_in_any_order():
    assert rows_of(page_of({"key": "ann"}), "key", "id") == [{"key": "ann", "id": "1-0"}]


@pytest.mark.parametrize(
    ("ms", "expected"),
    [
        (0, None),
        (31_535_999_999, None),
        (31_536_000_000, datetime(1971, 1, 1, tzinfo=UTC)),
        (253_402_300_799_999, datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        (253_402_300_800_000, None),
        (MAX_PART, None),
    ],
)
def test_the_timestamp_is_null_where_the_id_is_a_counter(ms, expected):
    page = parse_page(encode_reply([(b"1690275391705-0", []), (b"%d-1" % ms, [])]))

    assert column_of(page, "timestamp")[1] == expected
    assert column_of(page, "timestamp")[0] is not None
    assert column_of(page, "id_ms")[1] == Decimal(ms)


def test_the_halves_of_an_id_are_whole_up_to_the_last_one():
    page = parse_page(encode_reply([(b"%d-%d" % (MAX_PART, MAX_PART), []), (b"0-1", [])]))

    assert column_of(page, "id_ms") == [Decimal(MAX_PART), Decimal(0)]
    assert column_of(page, "id_seq") == [Decimal(MAX_PART), Decimal(1)]


@unhurried
@given(st.lists(st.lists(st.tuples(words, words), max_size=4), max_size=6))
def test_fields_hold_the_last_value_of_each_name_as_text(entries):
    expected = [
        {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in pairs}
        for pairs in entries
    ]

    rows = rows_of(page_of(*entries))

    assert [dict(row["fields"]) for row in rows] == expected
    assert [len(row["fields"]) for row in rows] == [len(row) for row in expected]
    assert [row["pairs"] for row in rows] == [
        [{"name": name, "value": value} for name, value in pairs] for pairs in entries
    ]
    raw = [dict(pairs) for pairs in entries]
    assert [row["data"] for row in rows] == [one.get(b"data") for one in raw]
    keys = [one.get(b"key") for one in raw]
    assert [row["key"] for row in rows] == [None if key is None else key.decode("utf-8", "replace") for key in keys]


def test_a_page_without_entries_has_no_rows():
    assert rows_of(parse_page(b"*0\r\n")) == []


def test_a_stream_whose_name_is_no_text_is_refused():
    with pytest.raises(ConfigError, match=r"b'caf\\xe9' is not UTF-8"):
        make_batch(page_of({"a": "1"}), b"caf\xe9".decode("utf-8", "surrogateescape"), STANDARD_SCHEMA)


def test_a_column_that_nobody_knows_is_refused():
    with pytest.raises(ConfigError, match="there is no column 'colour'"):
        make_batch(page_of({"a": "1"}), "orders", pa.schema([("colour", pa.string())]))


def test_a_standard_name_with_another_type_is_no_standard_column():
    assert is_standard(pa.field("data", pa.binary()))
    assert not is_standard(pa.field("data", pa.string()))
    assert not is_standard(pa.field("colour", pa.string()))

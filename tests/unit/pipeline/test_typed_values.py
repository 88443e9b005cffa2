"""Texts and JSON values become columns of a type, or null where they do not fit; never something else."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import ConfigError
from headrace.pipeline.typed_values import check_type, convert_all, from_objects, from_texts, text_converter

TIME = pa.timestamp("us", "UTC")
NOON = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
MISFIT = object()
unhurried = settings(deadline=None)  # A busy machine is no bug.

TEXTS = [
    (pa.string(), "é", "é"), (pa.string(), "", ""), (pa.string(), b"\xff", MISFIT),
    (pa.binary(), b"\xff", b"\xff"),
    (pa.bool_(), "true", True), (pa.bool_(), "FALSE", False), (pa.bool_(), "1", True), (pa.bool_(), "no", False),
    (pa.bool_(), "maybe", MISFIT), (pa.bool_(), "", MISFIT), (pa.bool_(), "2", MISFIT),
    (pa.int8(), "127", 127), (pa.int8(), "128", MISFIT), (pa.int16(), "-32768", -32768), (pa.int16(), "40000", MISFIT),
    (pa.int32(), " 12 ", 12), (pa.int32(), "+5", 5), (pa.int32(), "1.0", MISFIT), (pa.int32(), "0x1F", MISFIT),
    (pa.int32(), "1_000", MISFIT), (pa.int32(), "", MISFIT), (pa.int64(), str(2**63 - 1), 2**63 - 1),
    (pa.int64(), str(2**63), MISFIT), (pa.int64(), "٣", MISFIT),
    (pa.float64(), "1.5", 1.5), (pa.float64(), "1e3", 1000.0), (pa.float64(), "-Infinity", float("-inf")),
    (pa.float64(), "1,5", MISFIT), (pa.float64(), "nan(1)", MISFIT), (pa.float64(), "1_0", MISFIT),
    (pa.float32(), "0.5", 0.5), (pa.float32(), "x", MISFIT),
    (pa.decimal128(5, 2), "1.5", Decimal("1.50")), (pa.decimal128(5, 2), "1.005", Decimal("1.01")),
    (pa.decimal128(5, 2), "1e2", Decimal("100.00")), (pa.decimal128(5, 2), "1000", MISFIT),
    (pa.decimal128(5, 2), "999.995", MISFIT), (pa.decimal128(5, 2), "NaN", MISFIT), (pa.decimal128(5, 2), "", MISFIT),
    (pa.decimal128(5, 2), "1_0", MISFIT), (pa.decimal128(38, 0), "9" * 38, Decimal("9" * 38)),
    (pa.decimal128(5, 2), "1e999999999999", MISFIT),
    (pa.date32(), "2026-11-15", date(2026, 11, 15)), (pa.date32(), "2026-02-30", MISFIT),
    (pa.date32(), "20261115", MISFIT), (pa.date32(), "0000-01-01", MISFIT), (pa.date32(), "0001-01-01", date(1, 1, 1)),
    (TIME, "2026-11-15T12:00:00Z", NOON), (TIME, "2026-11-15 14:00:00+02:00", NOON), (TIME, "2026-11-15T12:00", NOON),
    (TIME, "2026-11-15", datetime(2026, 11, 15, tzinfo=UTC)), (TIME, "1690275391705", MISFIT), (TIME, "now", MISFIT),
    (TIME, "2026-11-15T12:00:00.123456789Z", NOON.replace(microsecond=123456)), (TIME, "0000-01-01T00:00:00Z", MISFIT),
    (pa.timestamp("us"), "2026-11-15T12:00:00", NOON.replace(tzinfo=None)),
    (pa.timestamp("us"), "2026-11-15T12Z", MISFIT),
    (pa.list_(pa.int32()), "[1,null]", [1, None]), (pa.list_(pa.int32()), "[1,x]", MISFIT),
    (pa.list_(pa.int32()), "null", MISFIT),
    (pa.struct([("a", pa.int32())]), '{"a":1,"b":2}', {"a": 1}), (pa.struct([("a", pa.int32())]), "[]", MISFIT),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "expected"), TEXTS)
@pytest.mark.parametrize("neighbour", ["none", "misfit"])
def test_a_text_is_read_as_its_type_whatever_stands_beside_it(kind, text, expected, neighbour):
    raw = text.encode() if isinstance(text, str) else text
    texts = [raw, None] if neighbour == "none" else [raw, None, b"\xff\xfe~"]

    column, misfits = from_texts(pa.array(texts, pa.binary()), kind)

    column.validate(full=True)
    assert column.type == kind
    assert column.to_pylist()[:2] == [None if expected is MISFIT else expected, None]
    assert (misfits is not None and bool(misfits[0])) == (expected is MISFIT)
    assert misfits is None or not misfits[1]


@unhurried
@given(
    st.sampled_from(
        [pa.int32(), pa.int64(), pa.float64(), pa.bool_(), pa.date32(), TIME, pa.decimal128(9, 3), pa.string()]
    ),
    st.text("0123456789-+.:eTZxnaif ", max_size=12).map(str.encode) | st.binary(max_size=6),
)
def test_all_at_once_and_one_by_one_give_the_same(kind, text):
    column, misfits = from_texts(pa.array([text], pa.binary()), kind)

    alone, misfits_alone = convert_all([text], text_converter(kind), kind)

    assert str(column.to_pylist()) == str(alone.to_pylist())  # As text, for NaN.
    assert (misfits is None) == (misfits_alone is None)


OBJECTS = [
    (pa.string(), "a", "a"), (pa.string(), 1, "1"), (pa.string(), Decimal("1.50"), "1.50"),
    (pa.string(), {"a": [True]}, '{"a":[true]}'),
    (pa.binary(), "AAE=", b"\x00\x01"), (pa.binary(), "no base64", MISFIT),
    (pa.bool_(), True, True), (pa.bool_(), "true", MISFIT), (pa.bool_(), 1, MISFIT),
    (pa.int32(), 5, 5), (pa.int32(), True, MISFIT), (pa.int32(), "5", MISFIT), (pa.int32(), 2**31, MISFIT),
    (pa.int32(), Decimal("1.5"), MISFIT),
    (pa.float64(), 1, 1.0), (pa.float64(), Decimal("1.5"), 1.5), (pa.float64(), "Infinity", float("inf")),
    (pa.float64(), "1.5", MISFIT), (pa.float64(), 10**400, MISFIT),
    (pa.decimal128(5, 2), Decimal("1.005"), Decimal("1.01")), (pa.decimal128(5, 2), "1.5", Decimal("1.50")),
    (pa.decimal128(5, 2), 1000, MISFIT), (pa.decimal128(5, 2), [], MISFIT),
    (pa.date32(), "2026-11-15", date(2026, 11, 15)), (pa.date32(), 20261115, MISFIT),
    (TIME, "2026-11-15T12:00:00Z", NOON), (TIME, 1690275391, MISFIT),
    (pa.list_(pa.string()), ["a", None], ["a", None]), (pa.list_(pa.string()), "a", MISFIT),
    (pa.list_(pa.field("element", pa.string(), nullable=False)), ["a", None], MISFIT),
    (pa.map_(pa.string(), pa.int32()), {"a": 1, "b": None}, [("a", 1), ("b", None)]),
    (pa.map_(pa.string(), pa.int32()), {"a": "x"}, MISFIT), (pa.map_(pa.int32(), pa.int32()), {"7": 1}, [(7, 1)]),
    (pa.struct([("a", pa.int32()), ("b", pa.string())]), {"a": 1, "c": 2}, {"a": 1, "b": None}),
    (pa.struct([pa.field("a", pa.int32(), nullable=False)]), {}, MISFIT),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "expected"), OBJECTS)
def test_a_value_of_json_is_read_as_its_type(kind, value, expected):
    column, misfits = from_objects([value, None], kind)

    column.validate(full=True)
    assert column.to_pylist() == [None if expected is MISFIT else expected, None]
    assert (misfits is not None and misfits.tolist() == [True, False]) == (expected is MISFIT)


def test_a_type_that_nothing_can_be_read_as_is_refused():
    with pytest.raises(ConfigError, match="column 'length' cannot be read: the type duration"):
        check_type(pa.duration("us"), "length")
    with pytest.raises(ConfigError, match="column 'lengths'"):
        check_type(pa.list_(pa.duration("us")), "lengths")

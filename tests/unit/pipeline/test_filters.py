"""Filters that Spark pushes down narrow what is read, and never lose a row that Spark would keep."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from headrace.pipeline.entry_ids import MAX_ID, MAX_PART, id_of, is_time, ms_of, text_of
from headrace.pipeline.filters import push
from headrace.pipeline.ranges import Extent

COLUMNS = ("stream", "id", "id_ms", "id_seq", "timestamp")
NOW_MS = 1_690_275_391_705
TIMES = Extent(id_of(f"{NOW_MS}-0"), id_of(f"{NOW_MS + 100_000}-0"), 1000)
COUNTERS = Extent(1, 1000, 1000)


def narrowed(*filters: Any, extent: Extent = TIMES) -> tuple[str, str]:
    """Behind which ID reading begins, and with which it ends, of a whole stream."""
    after, through = push(filters, COLUMNS)[0].bound(extent, 0, MAX_ID)
    return text_of(after), text_of(through)


def left(*filters: Any) -> list[Any]:
    return push(filters, COLUMNS)[1]


def at(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


EVERYTHING = ("0-0", text_of(MAX_ID))


def test_milliseconds_are_compared_exactly() -> None:
    assert narrowed(EqualTo(("id_ms",), Decimal(7))) == (f"6-{MAX_PART}", f"7-{MAX_PART}")
    assert narrowed(GreaterThan(("id_ms",), 7)) == (f"7-{MAX_PART}", text_of(MAX_ID))
    assert narrowed(GreaterThanOrEqual(("id_ms",), 7)) == (f"6-{MAX_PART}", text_of(MAX_ID))
    assert narrowed(LessThan(("id_ms",), 7)) == ("0-0", f"6-{MAX_PART}")
    assert narrowed(LessThanOrEqual(("id_ms",), 7)) == ("0-0", f"7-{MAX_PART}")
    assert left(GreaterThan(("id_ms",), 7), LessThan(("id_ms",), 9), IsNotNull(("id_ms",))) == []


def test_several_filters_narrow_together() -> None:
    assert narrowed(GreaterThan(("id_ms",), 7), LessThanOrEqual(("id_ms",), 9)) == (f"7-{MAX_PART}", f"9-{MAX_PART}")


def test_what_cannot_match_reads_nothing() -> None:
    for filters in (
        [GreaterThan(("id_ms",), 9), LessThan(("id_ms",), 7)],
        [LessThan(("id_ms",), 0)],
        [EqualTo(("id_ms",), Decimal("7.5"))],
        [EqualTo(("id",), "no ID")],
        [In(("id",), ())],
        [EqualTo(("timestamp",), at(NOW_MS + 0.5))],
    ):
        after, through = push(filters, COLUMNS)[0].bound(TIMES, 0, MAX_ID)
        assert after >= through


def test_a_list_of_milliseconds_is_read_from_the_least_to_the_greatest_and_checked_by_spark() -> None:
    wanted = In(("id_ms",), (9, 7, None))

    assert narrowed(wanted) == (f"6-{MAX_PART}", f"9-{MAX_PART}")
    assert left(wanted) == [wanted]


def test_times_are_compared_by_their_milliseconds() -> None:
    assert narrowed(GreaterThanOrEqual(("timestamp",), at(NOW_MS)))[0] == f"{NOW_MS - 1}-{MAX_PART}"
    assert narrowed(GreaterThanOrEqual(("timestamp",), at(NOW_MS + 0.5)))[0] == f"{NOW_MS}-{MAX_PART}"
    assert narrowed(GreaterThan(("timestamp",), at(NOW_MS + 0.5)))[0] == f"{NOW_MS}-{MAX_PART}"
    assert narrowed(LessThan(("timestamp",), at(NOW_MS)))[1] == f"{NOW_MS - 1}-{MAX_PART}"
    assert narrowed(LessThan(("timestamp",), at(NOW_MS + 0.5)))[1] == f"{NOW_MS}-{MAX_PART}"
    assert narrowed(LessThanOrEqual(("timestamp",), at(NOW_MS)))[1] == f"{NOW_MS}-{MAX_PART}"
    assert left(LessThan(("timestamp",), at(NOW_MS))) == []


def test_ids_that_are_no_times_match_no_time() -> None:
    after, through = push([LessThan(("timestamp",), at(NOW_MS))], COLUMNS)[0].bound(TIMES, 0, MAX_ID)
    assert is_time(ms_of(after + 1)) and is_time(ms_of(through))
    _, through = push([GreaterThan(("timestamp",), at(NOW_MS))], COLUMNS)[0].bound(TIMES, 0, MAX_ID)
    assert is_time(ms_of(through))


def test_a_time_without_a_zone_is_left_to_spark() -> None:
    naive = GreaterThan(("timestamp",), datetime(2026, 1, 1))

    assert left(naive) == [naive] and narrowed(naive) == EVERYTHING


def test_streams_are_chosen_by_name() -> None:
    narrowing, unused = push([In(("stream",), ("a", "b")), EqualTo(("stream",), "b")], COLUMNS)

    assert not narrowing.has("a") and narrowing.has("b") and unused == []


def test_one_id_is_one_entry() -> None:
    wanted = EqualTo(("id",), f"{NOW_MS}-5")

    assert narrowed(wanted) == (f"{NOW_MS}-4", f"{NOW_MS}-5")
    assert narrowed(EqualNullSafe(("id",), f"{NOW_MS}-5")) == (f"{NOW_MS}-4", f"{NOW_MS}-5")
    assert narrowed(In(("id",), ("5-0", "7-0", "x"))) == (f"4-{MAX_PART}", "7-0")
    assert left(wanted) == [wanted]


@pytest.mark.parametrize("text", [f"{NOW_MS}-5", str(NOW_MS)])
def test_ids_are_compared_as_texts_where_that_is_the_order_of_ids(text: str) -> None:
    assert narrowed(GreaterThan(("id",), text)) == (f"{NOW_MS - 1}-{MAX_PART}", text_of(MAX_ID))
    assert narrowed(LessThan(("id",), text)) == ("0-0", f"{NOW_MS}-{MAX_PART}")
    assert left(GreaterThan(("id",), text)) != []


def test_ids_are_not_narrowed_where_the_order_of_texts_is_another() -> None:
    assert narrowed(GreaterThan(("id",), "5-0"), extent=Extent(id_of("1-0"), id_of("12-0"), 12)) == EVERYTHING
    assert narrowed(GreaterThan(("id",), f"{NOW_MS}-5"), extent=COUNTERS) == EVERYTHING
    assert narrowed(GreaterThan(("id",), f"0{NOW_MS}-5")) == EVERYTHING
    assert narrowed(LessThan(("id",), "x")) == EVERYTHING
    both = (GreaterThan(("id",), "5-0"), LessThan(("id",), "70-0"))
    assert narrowed(*both, extent=Extent(id_of("1-0"), id_of("12-0"), 12)) == EVERYTHING


@pytest.mark.parametrize(
    "one",
    [
        IsNull(("id",)),
        IsNotNull(("timestamp",)),
        Not(EqualTo(("id_ms",), 7)),
        EqualTo(("id_ms",), None),
        EqualNullSafe(("timestamp",), None),
        EqualTo(("id_seq",), 7),
        EqualTo(("total",), 7),
        EqualTo(("id", "x"), "7-0"),
        StringStartsWith(("id",), "16"),
        GreaterThan(("stream",), "a"),
    ],
)
def test_other_filters_are_left_to_spark(one: Any) -> None:
    assert left(one) == [one] and narrowed(one) == EVERYTHING


def test_a_declared_column_of_a_standard_name_is_left_to_spark() -> None:
    one = EqualTo(("id",), "7-0")

    assert push([one], ("stream",))[1] == [one]


@pytest.mark.parametrize("extent", [TIMES, COUNTERS, Extent(1, id_of("20000000000000-5"), 50)])
def test_no_row_that_spark_would_keep_is_lost(extent: Extent) -> None:
    """Against what Spark's comparisons would do, over IDs of every form."""
    ids = [1, 2, 999, id_of("5-0"), id_of("12-3"), id_of("999999999999-9"), id_of(f"{NOW_MS}-0"), id_of(f"{NOW_MS}-9")]
    ids += [id_of(f"{NOW_MS}-10"), id_of(f"{NOW_MS + 7}-0"), id_of("20000000000000-5")]
    ids = [one for one in ids if extent.first_id <= one <= extent.last_id]
    texts = ["5-0", "12-3", f"{NOW_MS}-9", f"{NOW_MS}-10", str(NOW_MS), "9", "x", ""]
    compare = {
        GreaterThan: lambda a, b: a > b,
        GreaterThanOrEqual: lambda a, b: a >= b,
        LessThan: lambda a, b: a < b,
        LessThanOrEqual: lambda a, b: a <= b,
        EqualTo: lambda a, b: a == b,
    }
    for kind, holds in compare.items():
        for text in texts:
            after, through = push([kind(("id",), text)], COLUMNS)[0].bound(extent, 0, MAX_ID)
            kept = [one for one in ids if holds(text_of(one), text)]
            assert all(after < one <= through for one in kept), (kind, text)

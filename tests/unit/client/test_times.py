"""Durations and places as people write them."""

from datetime import UTC, datetime, timedelta

import pytest

from headrace.client.client import group_place, range_ids
from headrace.client.flows import before
from headrace.client.times import parse_duration_ms, parse_place
from headrace.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        ("250ms", 250), ("5s", 5_000), ("1.5s", 1_500), ("10m", 600_000), ("2h", 7_200_000), ("7d", 604_800_000),
        (" 5 s ", 5_000), (0, 0), (1, 1_000), (0.25, 250), (timedelta(minutes=1), 60_000),
    ],
)  # fmt: skip
def test_durations(value, milliseconds):
    assert parse_duration_ms(value) == milliseconds


@pytest.mark.parametrize(
    "value",
    [
        "",
        "5",
        "s",
        "-5s",
        "5 weeks",
        "1e3s",
        -1,
        True,
        float("nan"),
        float("inf"),
        timedelta(-1),
        "9" * 30 + "d",
        None,
        b"5s",
    ],
)
def test_what_is_no_duration_is_named(value):
    with pytest.raises(ConfigError, match="lease"):
        parse_duration_ms(value, "lease")


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("now", "$"), ("beginning", "0-0"), ("5-1", "5-1"), ("1690275391705", "1690275391705"), ("-5s", "95000-0"),
        ("-1h", "0-0"), (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "1000-0"), (" 5-1 ", "5-1"),
    ],
)  # fmt: skip
def test_places(value, place):
    assert parse_place(value, 100_000) == place


@pytest.mark.parametrize(
    "value", ["", "-", "yesterday", "1-2-3", "a-b", "+", "$", "5-*", "-5 weeks", "1" * 21, None, 5]
)
def test_what_is_no_place_is_named(value):
    with pytest.raises(ConfigError, match="since"):
        parse_place(value, 100_000, "since")


@pytest.mark.parametrize(
    ("entry_id", "lower"),
    [
        ("5-3", "5-2"),
        ("5-0", "4-18446744073709551615"),
        ("5", "4-18446744073709551615"),
        ("0-1", "0-0"),
        ("0-0", "0-0"),
    ],
)
def test_the_id_before(entry_id, lower):
    assert before(entry_id) == lower


def test_a_time_at_the_end_of_a_range_takes_in_all_of_its_millisecond():
    second = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)

    assert range_ids(second, second) == ("1000-0", "1000")
    assert range_ids("1000", "1000") == ("1000", "1000")
    assert range_ids("beginning", None) == ("-", "+")
    assert range_ids("beginning", "now") == ("-", "+")


def test_a_group_stands_behind_an_id_and_before_a_time():
    assert group_place("5-1") == "5-1"
    assert group_place("now") == "$"
    assert group_place("beginning") == "0-0"
    assert group_place(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == "999-18446744073709551615"

"""Entry IDs as clients write them."""

from __future__ import annotations

import pytest

from headrace.engine.ids import (
    INVALID_ID,
    MAX_ID,
    MAX_NAME,
    MAX_PART,
    id_of,
    name_of,
    parse_id,
    parse_range_end,
    parse_range_start,
    parse_strict_id,
)
from headrace.errors import CommandError

TOP = b"18446744073709551615"


@pytest.mark.parametrize("entry_id", [0, 1, 1 << 64, MAX_PART, MAX_ID])
def test_an_id_and_its_name_are_the_same_thing(entry_id: int) -> None:
    assert id_of(name_of(entry_id)) == entry_id


def test_the_highest_id_has_its_name() -> None:
    assert name_of(MAX_ID) == MAX_NAME


def test_a_bare_number_takes_the_sequence_that_is_missing() -> None:
    assert parse_strict_id(b"5") == 5 << 64
    assert parse_strict_id(b"5", MAX_PART) == 5 << 64 | MAX_PART


@pytest.mark.parametrize("text", [b"5-1", b"05-01", b" 5-1", b"+5-1", b"5- 1", b"0" * 60 + b"5-1"])
def test_zeros_blanks_and_a_plus_in_front_are_let_through_as_in_redis(text: bytes) -> None:
    assert parse_strict_id(text) == 5 << 64 | 1


@pytest.mark.parametrize(
    "text",
    [b"", b"-", b"+", b"abc", b"5-", b"-5", b"5-1-1", b"5 -1", b"5-1 ", b"++5", b"18446744073709551616", b"5-*", b"*"]
    + [TOP + b"-18446744073709551616", b"\xff", b"5.0", b"1_000", b"0" * 127 + b"5", "٣".encode()],
)
def test_anything_else_is_refused(text: bytes) -> None:
    with pytest.raises(CommandError, match=INVALID_ID):
        parse_strict_id(text)


def test_minus_and_plus_are_the_ends_where_they_are_allowed() -> None:
    assert parse_id(b"-") == 0
    assert parse_id(b"+") == MAX_ID


def test_a_bare_millisecond_covers_its_whole_range() -> None:
    assert parse_range_start(b"5") == 5 << 64
    assert parse_range_end(b"5") == 5 << 64 | MAX_PART


def test_a_bracket_leaves_the_end_out() -> None:
    assert parse_range_start(b"(5-1") == 5 << 64 | 2
    assert parse_range_end(b"(5-1") == 5 << 64


def test_a_bracket_carries_over_into_the_next_millisecond() -> None:
    assert parse_range_start(b"(5-" + TOP) == 6 << 64
    assert parse_range_end(b"(5-0") == 4 << 64 | MAX_PART


def test_there_is_nothing_outside_of_the_ends() -> None:
    with pytest.raises(CommandError, match="ERR invalid start ID for the interval"):
        parse_range_start(b"(" + MAX_NAME)
    with pytest.raises(CommandError, match="ERR invalid end ID for the interval"):
        parse_range_end(b"(0-0")


@pytest.mark.parametrize("text", [b"(", b"(-", b"(+", b"((1", b"(abc"])
def test_a_bracket_needs_an_id(text: bytes) -> None:
    with pytest.raises(CommandError, match=INVALID_ID):
        parse_range_start(text)
    with pytest.raises(CommandError, match=INVALID_ID):
        parse_range_end(text)


@pytest.mark.parametrize("text", [b"1" * 5000, b"0" * 5000 + b"-1", b"1-" + b"0" * 5000])
def test_an_endless_id_is_refused_like_any_other_wrong_one(text: bytes) -> None:
    with pytest.raises(CommandError, match=INVALID_ID):
        parse_strict_id(text)

"""Numbers as Redis adds them. What is expected here was answered by a real server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.long_double import add, encode_number, parse_number


def total(left: bytes, right: bytes) -> bytes:
    first, second = parse_number(left), parse_number(right)
    assert first is not None and second is not None
    return encode_number(add(first, second))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (b"0.1", b"0.2", b"0.3"),
        (b"10.50", b"0.1", b"10.6"),
        (b"5.0e3", b"2.0E2", b"5200"),
        (b"1", b"-1", b"0"),
        (b"-0", b"0", b"0"),
        (b".5", b"5.", b"5.5"),
        (b"+1", b"1", b"2"),
        (b"1e-17", b"0", b"0.00000000000000001"),
        (b"1e-18", b"0", b"0"),
        (b"-1e-18", b"0", b"0"),
        (b"12345678901234567890", b"1", b"12345678901234567891"),
        (b"123456789012345678901", b"0", b"123456789012345678904"),
        (b"18446744073709551615", b"0.5", b"18446744073709551616"),
        (b"1e22", b"0", b"10000000000000000000000"),
    ],
)
def test_sums_are_those_of_redis(left: bytes, right: bytes, expected: bytes) -> None:
    assert total(left, right) == expected


@pytest.mark.parametrize(
    "text",
    [
        b"", b".", b"-", b"e5", b"1e", b" 1", b"1 ", b"1_0", b"nan", b"x", b"--1", b"+-inf", b"1e5000", b"1e-5000",
        b"1e99999999", b"1" * 4001,
    ],
)  # fmt: skip
def test_what_is_no_number_is_none(text: bytes) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize("text", [b"inf", b"-inf", b"+Infinity", b"INF"])
def test_infinity_is_read_and_stays(text: bytes) -> None:
    number, one = parse_number(text), parse_number(b"1")
    assert number is not None and one is not None
    assert add(one, number).is_infinite


def test_a_sum_beyond_the_largest_number_is_infinite() -> None:
    largest = parse_number(b"1.18e4932")
    assert largest is not None and not largest.is_infinite
    assert len(encode_number(largest)) == 4933
    assert add(largest, largest).is_infinite


@given(st.integers(-(2**64) + 1, 2**64 - 1))
def test_whole_numbers_of_64_bits_are_exact(number: int) -> None:
    assert total(b"%d" % number, b"0") == b"%d" % number


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-(2.0**63), max_value=2.0**63))
def test_what_was_written_reads_back_nearly_the_same(number: float) -> None:
    text = total(repr(number).encode(), b"0")
    assert abs(float(text) - number) <= abs(number) * 2**-52 + 1e-17

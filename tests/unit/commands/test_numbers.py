"""Numbers as clients write them."""

from __future__ import annotations

import pytest

from headrace.commands.numbers import parse_float, parse_integer, parse_positive, parse_timeout_s
from headrace.errors import CommandError


@pytest.mark.parametrize("number", [0, 1, -1, 10, 2**63 - 1, -(2**63)])
def test_a_64_bit_integer_is_read(number: int) -> None:
    assert parse_integer(b"%d" % number) == number


@pytest.mark.parametrize(
    "text",
    [b"", b"-", b"+1", b" 1", b"1 ", b"01", b"-0", b"-01", b"1.0", b"1_0", b"0x1", b"\xd9\xa1", b"9223372036854775808"]
    + [b"-9223372036854775809", b"1" * 100, b"--1"],
)  # fmt: skip
def test_everything_else_is_refused(text: bytes) -> None:
    with pytest.raises(CommandError, match=r"^ERR value is not an integer or out of range$"):
        parse_integer(text)


def test_the_caller_names_the_error() -> None:
    with pytest.raises(CommandError, match=r"^ERR Invalid COUNT$"):
        parse_integer(b"x", "ERR Invalid COUNT")
    for text in (b"-1", b"x"):
        with pytest.raises(CommandError, match="must be positive"):
            parse_positive(text)


@pytest.mark.parametrize("text", [b"", b" 1", b"1 ", b"nan", b"1_0", b"x", b"1" * 200])
def test_what_is_no_decimal_number_is_refused(text: bytes) -> None:
    with pytest.raises(CommandError, match="not a valid float"):
        parse_float(text)


def test_a_timeout_is_rounded_up_to_a_millisecond() -> None:
    assert parse_timeout_s(b"0", 0) == 0
    assert parse_timeout_s(b"0.0001", 0) == 1
    assert parse_timeout_s(b"1.5", 0) == 1500

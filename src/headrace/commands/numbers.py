"""Numbers as clients write them.

An integer is what Redis's own strict reading takes: an optional minus, then digits without leading zeros, no blanks, no
plus, within signed 64 bits. What is refused is refused with the error the caller names, because Redis's commands differ
in nothing but that text.
"""

import math
from typing import Final

from headrace.errors import CommandError

MIN_INTEGER: Final = -(2**63)
MAX_INTEGER: Final = 2**63 - 1
LONGEST_INTEGER: Final = 20  # "-9223372036854775808". Longer texts are refused before they are read.
LONGEST_DOUBLE: Final = 1100  # Every digit of the smallest double there is.
LONGEST_FLOAT: Final = 127  # Longer than any useful number; Redis's own buffer ends near here too.

NOT_AN_INTEGER: Final = "ERR value is not an integer or out of range"
NOT_A_FLOAT: Final = "ERR value is not a valid float"
NOT_A_TIMEOUT: Final = "ERR timeout is not a float or out of range"


def parse_integer(text: bytes, error: str = NOT_AN_INTEGER) -> int:
    """A signed 64-bit integer, or a CommandError with the given text."""
    digits = text[1:] if text[:1] == b"-" else text
    if len(text) > LONGEST_INTEGER or not digits.isdigit() or (digits[:1] == b"0" and text != b"0"):
        raise CommandError(error)
    number = int(text)
    if number < MIN_INTEGER or number > MAX_INTEGER:
        raise CommandError(error)
    return number


def parse_within(text: bytes, low: int, high: int, out_of_range: str, error: str = NOT_AN_INTEGER) -> int:
    """A signed 64-bit integer from low to high; outside of that the other error."""
    number = parse_integer(text, error)
    if number < low or number > high:
        raise CommandError(out_of_range)
    return number


def parse_positive(text: bytes, out_of_range: str = "ERR value is out of range, must be positive") -> int:
    """A number of 0 or more. What is no number at all is refused with the same words, as in Redis."""
    return parse_within(text, 0, MAX_INTEGER, out_of_range, out_of_range)


def parse_float(text: bytes, error: str = NOT_A_FLOAT) -> float:
    """A decimal number; `inf` is let through, `nan` is not. No blanks around it, no underscores."""
    if len(text) > LONGEST_FLOAT or not text or text != text.strip() or b"_" in text:
        raise CommandError(error)
    try:
        number = float(text)
    except ValueError:
        raise CommandError(error) from None
    if math.isnan(number):
        raise CommandError(error)
    return number


def parse_double(text: bytes, error: str = NOT_A_FLOAT) -> float:
    """A score or a weight: decimal or hexadecimal, or `inf`. What a double cannot hold is refused, and so is `nan`."""
    number = read_double(text)
    if isinstance(number, float):
        too_large = math.isinf(number) and b"i" not in text.lower()
        too_small = number == 0.0 and text.lower().partition(b"e")[0].strip(b"+-.0") != b""
        if not too_large and not too_small:
            return number
    elif text.lstrip(b"+-")[:2].lower() == b"0x" and text == text.strip() and len(text) <= LONGEST_DOUBLE:
        try:
            return float.fromhex(text.decode("latin-1"))
        except (ValueError, OverflowError):
            pass
    raise CommandError(error)


def parse_range_end(text: bytes, error: str) -> float:
    """A score at the end of a range, maybe behind `(`. As in Redis nothing is 0, and what is too large is `inf`."""
    digits = text[1:] if text[:1] == b"(" else text
    number = read_double(digits) if digits else 0.0
    if number is None:
        raise CommandError(error)
    return number


def read_double(text: bytes) -> float | None:
    """A decimal number, `inf`, or None for anything else, `nan` too. No blanks around it, no underscores."""
    if len(text) > LONGEST_DOUBLE or text != text.strip() or b"_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def parse_timeout_s(text: bytes, now_ms: int) -> int:
    """A timeout in seconds with fractions, as milliseconds rounded up. 0 means for ever."""
    number = parse_seconds(text) * 1000.0
    if number > MAX_INTEGER:
        raise CommandError("ERR timeout is out of range")
    if number <= -1.0:  # Less than a millisecond below 0 is 0, as in Redis.
        raise CommandError("ERR timeout is negative")
    timeout_ms = math.ceil(number)
    if timeout_ms > MAX_INTEGER - now_ms:
        raise CommandError("ERR timeout is out of range")
    return timeout_ms


def parse_seconds(text: bytes) -> float:
    """A number that may also be written in hexadecimal, as C's own reading takes it: 0x1F."""
    if text.removeprefix(b"-")[:2].lower() != b"0x":
        return parse_float(text, NOT_A_TIMEOUT)
    if len(text) > LONGEST_FLOAT or text != text.strip():
        raise CommandError(NOT_A_TIMEOUT)
    try:
        return float.fromhex(text.decode("ascii"))
    except (ValueError, OverflowError):
        raise CommandError(NOT_A_TIMEOUT) from None

"""Numbers as Redis adds them in INCRBYFLOAT and HINCRBYFLOAT: the C type `long double` of x86, without a C compiler.

A number is a mantissa of up to 64 bits times a power of two, rounded half to even; it is written with up to 17 decimals
and never with an exponent. So 0.1 and 0.2 give 0.3, where Python's float gives 0.30000000000000004.

    encode_number(add(parse_number(b"10.50"), parse_number(b"0.1")))    ->  b"10.6"
"""

import re
from typing import Final, final

MANTISSA_BITS: Final = 64
LOWEST_EXPONENT: Final = -16445  # Of the smallest number there is.
HIGHEST_BIT: Final = 16384  # A number that needs more bits before the point is infinite.
MOST_DIGITS: Final = 4933  # Before the point, of any finite number.
LEAST_DIGITS: Final = -4951  # Numbers with more zeros behind the point than this are refused, as in Redis.
LONGEST_TEXT: Final = 4000  # No useful number is longer. Python itself stops at 4300 digits, Redis at 5119.
LONGEST_EXPONENT: Final = 7
DECIMALS: Final = 17
CHUNK_DIGITS: Final = 4000
NUMBER: Final = re.compile(rb"([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?")
INFINITE: Final = (b"inf", b"infinity")


@final
class Number:
    """mantissa * 2 ** exponent, or infinite."""

    __slots__ = ("mantissa", "exponent", "is_infinite")

    def __init__(self, mantissa: int, exponent: int, *, is_infinite: bool = False) -> None:
        self.mantissa = mantissa
        self.exponent = exponent
        self.is_infinite = is_infinite


def parse_number(text: bytes) -> Number | None:
    """The nearest number that can be held; None when the text is none, or too large or too small for one."""
    if len(text) > LONGEST_TEXT:
        return None
    if text.lower().lstrip(b"+-") in INFINITE and len(text.lstrip(b"+-")) >= len(text) - 1:
        return Number(0, 0, is_infinite=True)
    found = NUMBER.fullmatch(text)
    if found is None or not (found[2] or found[3]):
        return None
    digits = int(found[2] + found[3])
    if digits == 0:
        return Number(0, 0)
    power = found[4] or b"0"
    if len(power) > LONGEST_EXPONENT:
        return None
    tens = int(power) - len(found[3])
    size = len((found[2] + found[3]).lstrip(b"0")) + tens
    if size > MOST_DIGITS or size < LEAST_DIGITS:
        return None
    number = nearest(digits * 10 ** max(tens, 0), 10 ** max(-tens, 0))
    if number.is_infinite or number.mantissa == 0:
        return None
    if found[1] == b"-":
        number.mantissa = -number.mantissa
    return number


def add(left: Number, right: Number) -> Number:
    if left.is_infinite or right.is_infinite:
        return Number(0, 0, is_infinite=True)
    low = min(left.exponent, right.exponent)
    total = (left.mantissa << (left.exponent - low)) + (right.mantissa << (right.exponent - low))
    number = nearest(abs(total) << max(low, 0), 1 << max(-low, 0))
    if total < 0:
        number.mantissa = -number.mantissa
    return number


def nearest(above: int, below: int) -> Number:
    """The fraction above / below, rounded to a number. Neither part is negative."""
    exponent = max(above.bit_length() - below.bit_length() - MANTISSA_BITS, LOWEST_EXPONENT)
    mantissa = round_half_even(above << max(-exponent, 0), below << max(exponent, 0))
    if mantissa.bit_length() > MANTISSA_BITS:  # One bit too many: once more, coarser, so that it is rounded only once.
        exponent += 1
        mantissa = round_half_even(above << max(-exponent, 0), below << max(exponent, 0))
    return Number(mantissa, exponent, is_infinite=mantissa.bit_length() + exponent > HIGHEST_BIT)


def round_half_even(above: int, below: int) -> int:
    whole, rest = divmod(above, below)
    if 2 * rest > below or (2 * rest == below and whole % 2 == 1):
        whole += 1
    return whole


def encode_number(number: Number) -> bytes:
    """The number with up to 17 decimals, without zeros at the end."""
    exponent = number.exponent
    scaled = abs(number.mantissa) * 10**DECIMALS
    scaled = round_half_even(scaled << max(exponent, 0), 1 << max(-exponent, 0))
    if scaled == 0:
        return b"0"
    digits = write_digits(scaled).rjust(DECIMALS + 1, b"0")
    text = digits[:-DECIMALS] + b"." + digits[-DECIMALS:]
    text = text.rstrip(b"0").rstrip(b".")
    return b"-" + text if number.mantissa < 0 else text


def write_digits(number: int) -> bytes:
    """In decimal. Python refuses to write more than 4300 digits at once."""
    high, low = divmod(number, 10**CHUNK_DIGITS)
    return b"%d%0*d" % (high, CHUNK_DIGITS, low) if high else b"%d" % low

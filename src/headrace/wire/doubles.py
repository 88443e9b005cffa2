"""Floating-point numbers as Redis writes them: the fewest digits that read back as the same number.

    3 -> 3    -0.0 -> -0    0.1 -> 0.1    1e20 -> 1e+20    1.5e-7 -> 1.5e-7    inf, -inf

Whole numbers up to 2**62 are written as integers. Of the others those that need many zeros get an exponent.
"""

from math import copysign, inf
from typing import Final

WHOLE: Final = 2.0**62
MOST_ZEROS: Final = 7  # Behind the digits; more and the number is written with an exponent.
LEAST_POWER: Final = -7  # Of the last digit; below that too, when the first digit stands far behind the point.
NEAR_POINT: Final = 4


def format_double(number: float) -> bytes:
    if -WHOLE <= number <= WHOLE:
        whole = int(number)
        if whole == number:
            return b"%d" % whole if whole != 0 or copysign(1.0, number) > 0 else b"-0"
    elif number in (inf, -inf):
        return b"inf" if number > 0 else b"-inf"
    sign = b"-" if number < 0 else b""
    digits, power = shortest(abs(number))
    size = len(digits)
    magnitude = abs(power + size - 1)
    if power >= 0 and magnitude < size + MOST_ZEROS:
        return sign + digits + b"0" * power
    if power < 0 and (power > LEAST_POWER or magnitude < NEAR_POINT):
        before = size + power
        if before <= 0:
            return sign + b"0." + b"0" * -before + digits
        return sign + digits[:before] + b"." + digits[before:]
    point = digits[:1] + b"." + digits[1:] if size > 1 else digits
    return sign + point + (b"e-%d" if power + size - 1 < 0 else b"e+%d") % magnitude


def shortest(number: float) -> tuple[bytes, int]:
    """The digits of a positive number, without zeros at either end, and the power of ten of the last one."""
    text = repr(number).encode()
    mantissa, _, exponent = text.partition(b"e")
    before, _, after = mantissa.partition(b".")
    digits = before + after
    power = (int(exponent) if exponent else 0) - len(after)
    stripped = digits.rstrip(b"0")
    return stripped.lstrip(b"0"), power + len(digits) - len(stripped)

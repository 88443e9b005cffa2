"""Entry IDs.

An ID is two unsigned 64-bit numbers, milliseconds and sequence, written `1690275391705-0`. Inside the engine it is one
integer, `milliseconds << 64 | sequence`, so that comparing IDs is comparing integers; its *name* is the text as bytes.
"""

from typing import Final

from headrace.errors import CommandError

MAX_PART: Final = 2**64 - 1
MIN_ID: Final = 0
MAX_ID: Final = 2**128 - 1
MAX_NAME: Final = b"18446744073709551615-18446744073709551615"
LONGEST_TEXT: Final = 127  # Redis refuses longer texts before it looks at them.

INVALID_ID: Final = "ERR Invalid stream ID specified as stream command argument"


def name_of(entry_id: int) -> bytes:
    return b"%d-%d" % (entry_id >> 64, entry_id & MAX_PART)


def id_of(name: bytes) -> int:
    """The ID of a name that the engine wrote itself."""
    dash = name.index(b"-")
    return int(name[:dash]) << 64 | int(name[dash + 1 :])


def parse_id(text: bytes, missing_sequence: int = 0) -> int:
    """An ID as a client writes it; `5` alone takes missing_sequence. Also `-` and `+`, the lowest and the highest."""
    if text == b"-":
        return MIN_ID
    if text == b"+":
        return MAX_ID
    return parse_strict_id(text, missing_sequence)


def parse_strict_id(text: bytes, missing_sequence: int = 0) -> int:
    """An ID as a client writes it, without `-` and `+`."""
    if len(text) > LONGEST_TEXT:
        raise CommandError(INVALID_ID)
    dash = text.find(b"-")
    if dash < 0:
        milliseconds = parse_part(text)
        sequence = missing_sequence
    else:
        milliseconds = parse_part(text[:dash])
        sequence = parse_part(text[dash + 1 :])
    if milliseconds < 0 or sequence < 0:
        raise CommandError(INVALID_ID)
    return milliseconds << 64 | sequence


def parse_part(text: bytes) -> int:
    """One 64-bit half of a text that is not too long, or -1.

    Quirk of Redis, kept: leading blanks, zeros and one plus sign are let through.
    """
    if not text.isdigit():
        text = text.lstrip(b" \t\n\v\f\r")
        if text[:1] == b"+":
            text = text[1:]
        if not text.isdigit():
            return -1
    number = int(text)
    return number if number <= MAX_PART else -1


def parse_range_start(text: bytes) -> int:
    """The lower end of a range, `(` meaning greater than."""
    if text[:1] == b"(":
        start = parse_strict_id(text[1:], 0)
        if start == MAX_ID:
            raise CommandError("ERR invalid start ID for the interval")
        return start + 1
    return parse_id(text, 0)


def parse_range_end(text: bytes) -> int:
    """The upper end of a range, `(` meaning less than; a bare `5` includes all of 5-*."""
    if text[:1] == b"(":
        end = parse_strict_id(text[1:], MAX_PART)
        if end == MIN_ID:
            raise CommandError("ERR invalid end ID for the interval")
        return end - 1
    return parse_id(text, MAX_PART)

"""The fields of payloads (dump.py, snapshot.py): written one after the other, and read back with every check.

A field is its length in decimal, a colon, and that many bytes; numbers are fields in decimal.
"""

from typing import Final

from headrace.engine.ids import MAX_PART, id_of, name_of

ZERO: Final = 48  # Its byte.
LONGEST_NUMBER: Final = 20  # A sign and 64 bits.
LONGEST_ID: Final = 41
MIN_NUMBER: Final = -(2**63)
MAX_NUMBER: Final = 2**63 - 1  # What a reply can hold.


def put_fields(parts: list[bytes], fields: list[bytes]) -> None:
    for field in fields:
        parts.append(b"%d:" % len(field))
        parts.append(field)


def put_numbers(parts: list[bytes], numbers: list[int]) -> None:
    put_fields(parts, [b"%d" % number for number in numbers])


class Reader:
    """The fields of a payload, one after the other. Everything unexpected is a ValueError."""

    __slots__ = ("data", "position", "end")

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self.data = data
        self.position = start
        self.end = end

    def text(self) -> bytes:
        colon = self.data.find(b":", self.position, self.position + LONGEST_NUMBER)
        digits = self.data[self.position : colon] if colon > 0 else b""
        if not digits.isdigit() or (digits[0] == ZERO and len(digits) > 1):
            raise ValueError(f"no field begins at {self.position}")
        start = colon + 1
        stop = start + int(digits)
        if stop > self.end:
            raise ValueError(f"the field at {self.position} is longer than the payload")
        self.position = stop
        return self.data[start:stop]

    def number(self, low: int = 0, high: int = MAX_PART) -> int:
        """A number from `low` to `high`, in 64 bits."""
        digits = self.text()
        if len(digits) > LONGEST_NUMBER:
            raise ValueError("a number of more than 64 bits")
        number = int(digits)
        if number < low or number > high or b"%d" % number != digits:
            raise ValueError(f"{number} is not a number that can stand here")
        return number

    def flag(self) -> bool:
        number = self.number()
        if number > 1:
            raise ValueError(f"{number} is neither 0 nor 1")
        return number == 1

    def texts(self) -> list[bytes]:
        """One at least: a key whose value is empty does not exist."""
        return [self.text() for _ in range(self.number(1))]

    def entry_id(self) -> int:
        return checked_id(self.text())

    def finish(self) -> None:
        """There must be nothing more."""
        if self.position != self.end:
            raise ValueError(f"bytes left over behind the value at {self.position}")


def checked_id(name: bytes) -> int:
    """The ID of a name that must be written as we write it."""
    if len(name) > LONGEST_ID or b"-" not in name:
        raise ValueError(f"{name[:LONGEST_ID]!r} is not an entry ID")
    entry_id = id_of(name)
    if name_of(entry_id) != name or entry_id >> 64 > MAX_PART:
        raise ValueError(f"{name!r} is not an entry ID")
    return entry_id

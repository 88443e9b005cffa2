"""Reply values that plain Python types cannot tell apart.

bytes and str are bulk strings, int is an integer, list an array, dict a map, float a double, bool a boolean, None
the null. The classes here are for the rest. `encoder.encode` turns any of them into bytes.
"""

from typing import Any

Value = Any  # A nested reply value: one of the types above. Recursive types would cost a check per element.


class Status:
    """A simple string such as +OK."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class ErrorReply:
    """An error as a value, for replies that hold errors among other things (EXEC)."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Pairs:
    """A map with its order and its duplicates kept: a flat list of names and values."""

    __slots__ = ("items",)

    def __init__(self, items: list[Value]) -> None:
        self.items = items


class NullArray:
    """RESP2 has a second null, *-1. In RESP3 both are _."""

    __slots__ = ()


class Verbatim:
    """Text with its format, as INFO and CLIENT LIST answer in RESP3. A plain bulk string in RESP2."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Unordered:
    """A RESP3 set. An array in RESP2."""

    __slots__ = ("items",)

    def __init__(self, items: list[Value]) -> None:
        self.items = items

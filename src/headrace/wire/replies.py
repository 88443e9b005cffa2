"""Reply bytes -> Python values, for who talks to the broker in its own process.

Values have the shapes every client library gives for RESP2: bytes (also for statuses), int, list, None. An error is
what the `refuse` callable makes of its text; it is given back like a value, never raised, because a list may hold one.
"""

from collections.abc import Callable
from typing import Any

import hiredis


class ReplyReader:
    """Decodes one reply at a time. Not for two threads at once."""

    __slots__ = ("feed", "gets")

    def __init__(self, refuse: Callable[[str], Exception]) -> None:
        reader = hiredis.Reader(replyError=refuse)
        self.feed: Callable[[bytes], None] = reader.feed
        self.gets: Callable[[], Any] = reader.gets

    def decode(self, data: bytes) -> Any:
        """The reply, which must be complete."""
        self.feed(data)
        reply = self.gets()
        assert reply is not False or data[:1] == b"#", "half a reply"
        return reply


def decode_all(data: bytes) -> list[Any]:
    """The values of bytes that hold complete ones and nothing else. ValueError otherwise."""
    reader: Any = hiredis.Reader(protocolError=ValueError, replyError=ValueError)
    reader.feed(data)
    values: list[Any] = []
    while reader.has_data():
        value = reader.gets()
        if value is False:
            raise ValueError("the last value is cut off")
        values.append(value)
    return values

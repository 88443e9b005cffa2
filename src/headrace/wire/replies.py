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


class ValueReader:
    """Decodes bytes that hold complete values and nothing else. Not for two threads at once, nor after an error."""

    __slots__ = ("feed", "gets", "has_data")

    def __init__(self) -> None:
        reader = hiredis.Reader(protocolError=ValueError, replyError=ValueError)
        self.feed: Callable[[bytes], None] = reader.feed
        self.gets: Callable[[], Any] = reader.gets
        self.has_data: Callable[[], bool] = reader.has_data

    def decode(self, data: bytes) -> list[Any]:
        """The values. ValueError when it is something else."""
        self.feed(data)
        values: list[Any] = []
        while self.has_data():
            value = self.gets()
            if value is False:
                raise ValueError("the last value is cut off")
            values.append(value)
        return values

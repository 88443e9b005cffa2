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

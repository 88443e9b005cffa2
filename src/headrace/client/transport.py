"""The seam: argument vectors out, replies back, as bytes, numbers, lists, dicts and None.

A transport owns its connections. It raises the errors of `errors.py` and no others; what it names in messages never
holds a password. `call` gives up after the time it is told.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from headrace.client.requests import Request

Told = tuple[bytes | None, bytes, bytes]  # The pattern that matched, if one was listened to; channel; message.


class Subscribed(Protocol):
    """One who listens to a channel, or to all that match a pattern."""

    def receive(self, timeout_s: float) -> Told | None:
        """The next message; None when none came in this time."""
        ...

    def close(self) -> None:
        """Harmless to repeat, and from another thread."""
        ...


class AsyncSubscribed(Protocol):
    """The same for asyncio. A cancelled receive loses no message."""

    async def receive(self, timeout_s: float) -> Told | None: ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """For programs that wait."""

    url: str  # Where it leads, without password.

    def call(self, request: Request[Any], timeout_s: float) -> Any:
        """Send one request; its reply, not yet decoded."""
        ...

    def call_many(self, requests: Sequence[Request[Any]], timeout_s: float) -> list[Any]:
        """Send all in one go; a refused one has its error in place of the reply."""
        ...

    def subscribe(self, name: str, is_pattern: bool, timeout_s: float) -> Subscribed:
        """Listen on a connection of its own; what is published from now on is not missed."""
        ...

    def close(self) -> None:
        """Ends subscriptions too."""
        ...


class AsyncTransport(Protocol):
    """The same for asyncio. A cancelled call never leaves its reply to the next one."""

    url: str

    async def call(self, request: Request[Any], timeout_s: float) -> Any: ...

    async def call_many(self, requests: Sequence[Request[Any]], timeout_s: float) -> list[Any]: ...

    async def subscribe(self, name: str, is_pattern: bool, timeout_s: float) -> AsyncSubscribed: ...

    async def close(self) -> None: ...

"""The seam: argument vectors out, replies back, as bytes, numbers, lists, dicts and None.

A transport owns its connections. It raises the errors of `errors.py` and no others; what it names in messages never
holds a password. `call` gives up after the time it is told.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from headrace.client.requests import Request

Published = tuple[bytes, bytes, bytes | None]  # Channel, message, and the pattern that matched, if one did.


class Listening(Protocol):
    """Somebody who listens to channels."""

    def subscribe(self, channels: Iterable[bytes] = (), patterns: Iterable[bytes] = ()) -> None:
        """Listen to these: what is published after this call is not missed."""
        ...

    def next(self, timeout_s: float) -> Published | None:
        """The next message; None when none came in this time."""
        ...

    def close(self) -> None:
        """Harmless to repeat, and from another thread."""
        ...


class AsyncListening(Protocol):
    """The same for asyncio. A cancelled `next` loses no message."""

    async def subscribe(self, channels: Iterable[bytes] = (), patterns: Iterable[bytes] = ()) -> None: ...

    async def next(self, timeout_s: float) -> Published | None: ...

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

    def subscription(self) -> Listening:
        """For listening to channels, on a connection of its own."""
        ...

    def close(self) -> None:
        """Ends subscriptions too."""
        ...


class AsyncTransport(Protocol):
    """The same for asyncio. A cancelled call never leaves its reply to the next one."""

    url: str

    async def call(self, request: Request[Any], timeout_s: float) -> Any: ...

    async def call_many(self, requests: Sequence[Request[Any]], timeout_s: float) -> list[Any]: ...

    def subscription(self) -> AsyncListening: ...

    async def close(self) -> None: ...

"""What the handler of a delegated consumer is given, and where it comes from."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Protocol

from headrace.client.results import Entry
from headrace.errors import HeadraceError


@dataclass(frozen=True, slots=True)
class OrderedMessage:
    """The first undone message of a key that this consumer holds."""

    key: str
    fence: int  # Grows with every grant of the key: hand it to whatever is written to.
    attempt: int
    last_error: str  # Of the attempt before; empty when that ended without a word.
    entry: Entry

    @property
    def id(self) -> str:
        return self.entry.id

    @property
    def fields(self) -> dict[str, str]:
        return self.entry.fields

    @property
    def payload(self) -> Any:
        return self.entry.payload


@dataclass(frozen=True, slots=True)
class Fetched:
    messages: list[OrderedMessage] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)  # Fences that are not this consumer's any more.


class Superseded(Exception):
    """Another process has registered under the consumer's name; this one is over."""


class NotRegistered(HeadraceError):
    """The consumer was forgotten, or never registered."""


class Source(Protocol):
    """Where a consumer gets its messages. Calls raise HeadraceError; ConnectionLost passes."""

    takes: bool  # Whether fetch takes for itself, and so only when there is room.

    async def register(self, capacity: int, health_url: str) -> int:
        """Begin a session; the lease in milliseconds. Also after the consumer was forgotten."""
        ...

    async def fetch(self, room: int, running: Collection[OrderedMessage]) -> Fetched:
        """New messages, waiting for them; Superseded when the session has ended."""
        ...

    async def keep(self, running: Collection[OrderedMessage]) -> list[int]:
        """Hold what is running for longer; the fences that are lost."""
        ...

    async def acknowledge(self, message: OrderedMessage) -> bool:
        """False: the key is somebody else's by now, and nothing was changed."""
        ...

    async def fail(self, message: OrderedMessage, error: str, delay_ms: int, *, buries: bool) -> bool: ...

    async def leave(self) -> None: ...

    async def close(self) -> None: ...

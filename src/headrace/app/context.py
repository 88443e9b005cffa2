"""Context: what a handler may know about its message, and ctx.commit.

    @app.handler("orders")
    async def bill(order: Order, ctx: Context) -> None:
        log.info("billing %s, attempt %d", ctx.id, ctx.attempt)
        await ctx.commit([("HINCRBY", "{orders}:totals", order.customer, order.cents)])

Made only for handlers (and middleware) that ask for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.app.delivery import Delivery
from headrace.client.results import Entry
from headrace.errors import ConfigError

if TYPE_CHECKING:
    from headrace.app.handlers import Handler

Effect = Sequence[bytes | str | int | float]  # One write command: ("HINCRBY", "{orders}:totals", "42", 1)
FollowUp = tuple[str, Any]  # Stream and payload.
Commit = Callable[[Delivery, list[Effect], list[FollowUp]], Awaitable[None]]
T = TypeVar("T")


class Context:
    """One attempt at one message."""

    __slots__ = ("handler", "_delivery", "_commit", "_entry", "_loop")

    def __init__(self, handler: "Handler", delivery: Delivery, commit: Commit) -> None:
        self.handler = handler
        self._delivery = delivery
        self._commit = commit
        self._entry: Entry | None = None
        self._loop = asyncio.get_running_loop()

    def __repr__(self) -> str:
        return f"Context({self.stream!r}, {self.id!r}, attempt={self.attempt})"

    @property
    def entry(self) -> Entry:
        """The message as it is stored: fields as bytes, in order, duplicates kept."""
        if self._entry is None:
            self._entry = self._delivery.entry()
        return self._entry

    @property
    def id(self) -> str:
        return self._delivery.id

    @property
    def stream(self) -> str:
        """Where it was published; also for one that was replayed from the dead letters."""
        return self.handler.stream

    @property
    def group(self) -> str:
        return self.handler.group

    @property
    def attempt(self) -> int:
        """Which run this is; the first is 1."""
        return self._delivery.attempt

    @property
    def last_error(self) -> str:
        """How the attempt before this one ended; empty in the first."""
        return self._delivery.last_error

    @property
    def key(self) -> str | None:
        """What it is kept in order by; without key= in the handler, what was given when it was published."""
        return self._delivery.key

    @property
    def fence(self) -> int | None:
        """With key=: a number that is higher whenever the key is given to a worker anew.

        Whatever you write to elsewhere can refuse a lower number than it has seen, and with it a worker that was held
        up and goes on too late. None without key=.
        """
        return self._delivery.fence

    @property
    def publish_id(self) -> str | None:
        """What was given as `id=` when it was published."""
        return self.entry.publish_id

    @property
    def headers(self) -> dict[str, str]:
        return self.entry.headers

    @property
    def published_at(self) -> datetime | None:
        """By its ID; None when that is no time."""
        return self.entry.time

    @property
    def is_settled(self) -> bool:
        """Whether ctx.commit has acknowledged it."""
        return self._delivery.is_settled

    async def commit(self, effects: Iterable[Effect] = (), *, publish: Iterable[FollowUp] = ()) -> None:
        """Effects in the same server, follow-up messages and the acknowledgement, in one step: all or nothing.

        Effects are single write commands on keys of the stream's slot, which is any key where there is no cluster.
        `publish` are pairs of stream and payload. Raises LeaseLost when the message is another worker's by now; then
        nothing was done. Once for each message, last in the handler: what fails after it is not tried again.
        """
        if self._delivery.is_settled:
            raise ConfigError(f"message {self.id} is committed already; commit once, with all effects.")
        await self._commit(self._delivery, [checked_effect(effect) for effect in effects], list(publish))

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """For plain functions, which run in a thread: `ctx.wait_for(app.publish("receipts", receipt))`."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


def checked_effect(effect: Any) -> Effect:
    if isinstance(effect, (str, bytes)) or not isinstance(effect, Sequence) or len(effect) < 2:
        raise ConfigError(f'{effect!r} is no effect; write a command like ("HINCRBY", "{{orders}}:totals", "42", 1).')
    return effect

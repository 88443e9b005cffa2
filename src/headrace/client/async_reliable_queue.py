"""As reliable_queue.py, awaited. Written by tools/async_client.py from that one; change it there."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from headrace.client import queue_flows
from headrace.client.queue_flows import PushOptions
from headrace.client.results import QUEUE_GUARANTEE, Element, QueueInfo, QueueStats
from headrace.client.times import Duration, parse_duration_ms

if TYPE_CHECKING:
    from headrace.client.async_client import AsyncClient


@dataclass(frozen=True, slots=True)
class AsyncJob:
    """An element that was handed out: yours until you acknowledge it, give it back, or somebody recovers it."""

    id: str
    body: bytes
    queue: "AsyncQueue" = field(repr=False)
    deliveries: int | None = None  # This one included. Known of what was recovered; a pop does not tell.

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "surrogateescape")

    async def ack(self) -> bool:
        """Done: the element goes. False: it was not yours any more; it was recovered and acknowledged elsewhere."""
        return self.id in await self.queue.ack(self)

    async def nack(self, *, delay: Duration = 0) -> bool:
        """Give it back, to be popped again at once or after a delay. False: it was not delivered any more."""
        return self.id in await self.queue.nack(self, delay=delay)

    async def extend(self) -> bool:
        """Still at it: the time after which others may recover it begins anew. False: it was not delivered any more."""
        return self.id in await self.queue.extend(self)


class AsyncQueue:
    """One reliable queue."""

    guarantee = QUEUE_GUARANTEE

    def __init__(self, client: "AsyncClient", name: str) -> None:
        self.client = client
        self.name = name

    def __repr__(self) -> str:
        return f"AsyncQueue({self.name!r})"

    # In

    async def push(
        self,
        *elements: bytes | str | int | float,
        delay: Duration | None = None,
        ttl: Duration | None = None,
        retry: Duration | None = None,
        max_deliveries: int | None = None,
        dead_letter: str | None = None,
    ) -> list[str]:
        """Append elements in this order; their IDs. The options are for our own broker.

        delay: not to be had before; ttl: dropped when not delivered by then; retry: given back by itself when not
        acknowledged for so long; max_deliveries: then dropped, or moved to the queue dead_letter.
        """
        options = PushOptions(
            None if delay is None else parse_duration_ms(delay, "delay"),
            None if ttl is None else parse_duration_ms(ttl, "ttl"),
            None if retry is None else parse_duration_ms(retry, "retry"),
            max_deliveries,
            dead_letter,
        )
        return await self.client.run(queue_flows.push(self.client._facts, self.name, elements, options))

    # Out

    async def pop(self, *, count: int = 1, wait: Duration = 0) -> list[AsyncJob]:
        """Up to `count` elements, oldest first. Waits up to `wait` for the first one; an empty list: nothing came."""
        return await self.client.pop_first(self.name, count=count, wait=wait)

    async def ack(self, *jobs: "str | AsyncJob") -> list[str]:
        """Done with these, by ID or as popped: they go. The IDs that really were delivered until now.

        An ID that is missing in the answer was acknowledged before: somebody else recovered the element meanwhile and
        was done first.
        """
        return await self.client.run(queue_flows.change(self.client._facts, "RQ.ACK", self.name, ids_of(jobs)))

    async def nack(self, *jobs: "str | AsyncJob", delay: Duration = 0) -> list[str]:
        """Give these back: they come before all others, in the order they were pushed. The IDs that were delivered.

        A delay needs our own broker.
        """
        delay_ms = parse_duration_ms(delay, "delay")
        words = ("DELAY", delay_ms) if delay_ms else ()
        return await self.client.run(queue_flows.change(self.client._facts, "RQ.NACK", self.name, ids_of(jobs), words))

    async def extend(self, *jobs: "str | AsyncJob") -> list[str]:
        """Still at these: their time since delivery begins anew. The IDs that are delivered."""
        return await self.client.run(queue_flows.change(self.client._facts, "RQ.EXTEND", self.name, ids_of(jobs)))

    async def recover(self, *, idle: Duration, count: int = 100) -> list[AsyncJob]:
        """Take over what was delivered and not acknowledged for so long, the oldest delivery first."""
        idle_ms = parse_duration_ms(idle, "idle")
        rows = await self.client.run(queue_flows.recover(self.client._facts, self.name, idle_ms, count))
        return [AsyncJob(element_id, body, self, deliveries) for element_id, body, deliveries in rows]

    # Looking

    async def inspect(
        self, *, pending: bool = False, delayed: bool = False, start: int = 0, count: int = 100
    ) -> list[Element]:
        """Look at undelivered elements, at delivered ones (pending), or at those that wait for their time (delayed).

        From a place on; a negative start counts from the end. Nothing changes.
        """
        return await self.client.run(
            queue_flows.inspect(
                self.client._facts, self.name, pending=pending, delayed=delayed, start=start, count=count
            )
        )

    async def info(self) -> QueueInfo:
        return await self.client.run(queue_flows.info(self.client._facts, self.name))

    async def stats(self) -> QueueStats:
        return await self.client.run(queue_flows.stats(self.client._facts, self.name))

    # Managing

    async def pause(self, mode: Literal["in", "out", "all"] = "all") -> None:
        """Take no elements "in", give none "out", or "all": neither."""
        await self.client.run(queue_flows.pause(self.client._facts, self.name, mode))

    async def resume(self) -> None:
        await self.client.run(queue_flows.pause(self.client._facts, self.name, "none"))

    async def delete(self) -> bool:
        """Remove the queue with all its elements; whether there was one."""
        return await self.client.run(queue_flows.delete(self.client._facts, self.name))


def ids_of(jobs: "tuple[str | AsyncJob, ...]") -> list[str]:
    return [job if isinstance(job, str) else job.id for job in jobs]

"""One handler at work: what it reads, when, and how it ends.

Two loops. The first reads new messages, and those of workers that died, as long as there is room. The second looks
after time: retries and delayed messages that are due, the group's `again`, and what a server without CLAIM does not do
by itself. In flight (read and not settled) are at most concurrency + prefetch messages, a part of which is kept for
the second loop, so that a blocked read never keeps a retry waiting. Batches are read whole, so there that part comes on
top.
"""

import asyncio
import time
from contextlib import suppress
from typing import Any, Final

from headrace.app.app import App
from headrace.app.delivery import Delivery
from headrace.app.handlers import Handler
from headrace.client import flows, lane_views, requests, worker_steps
from headrace.client.async_client import AsyncClient
from headrace.client.lane_keys import order_key
from headrace.client.worker_keys import group_keys
from headrace.errors import CommandError, ConfigError, ConnectionLost, HeadraceError, NotFound
from headrace.worker import events
from headrace.worker.batches import BatchRunner
from headrace.worker.outage import REFUSED_PAUSE_S, Outage
from headrace.worker.running import Runner
from headrace.worker.source import Source
from headrace.worker.threaded_running import ThreadedRunner

BLOCK_MS: Final = 1000
LARGEST_READ: Final = 1000  # Messages in one reply.
MOST_HELD_BYTES: Final = 64 << 20  # Of one handler. A single message may be larger, and comes alone then.
DUE_S: Final = 1.0  # How often the second loop looks at least.
FENCE_S: Final = 2.0  # For a busy server to answer twice, before a read is broken off.
SHORTEST_PAUSE_S: Final = 0.005
CLAIM_PAUSE_S: Final = 0.05  # Between two claims while there is more than there was room for.


class Consumer:
    """Reads for one handler, under a name of its own."""

    def __init__(
        self, app: App, handler: Handler, client: AsyncClient, name: str, outage: Outage, values: dict[str, Any]
    ) -> None:
        self.handler = handler
        self.client = client
        self.outage = outage
        kind = BatchRunner if handler.batch is not None else Runner if handler.is_async else ThreadedRunner
        self.runner = kind(app, handler, values, outage, self.changed)
        self.runner.is_cluster = client.url.startswith("redis+cluster") or client.url.startswith("rediss+cluster")
        keep_ms = app.keep_of(handler)
        again = group_keys(handler.stream, handler.group).again
        self.source, self.again = [
            Source(client, stream, handler.group, name, handler.lease_ms, is_recorded=handler.runs_once)
            for stream in (handler.stream, again)
        ]
        self.runner.add_source(self.source, keep=keep_ms is not None)
        self.runner.add_source(self.again, keep=False)
        running = handler.concurrency * (handler.batch or 1)
        in_flight = max(2, running + handler.prefetch)
        self.for_due = max(1, min(100, in_flight // 4))
        self.for_reading = in_flight if handler.batch else max(1, in_flight - self.for_due)
        self.worth_reading = min(handler.batch or in_flight, self.for_reading // 2)
        self.average_bytes = 0.0  # Of a message; 0 until the first was seen, which is read alone.
        self.room = asyncio.Event()
        self.due_soon = asyncio.Event()
        self.taking = asyncio.Lock()  # Held by the second loop while it is given messages.
        self.has_claim = False
        self.has_strays = False  # The answer to a read was lost: messages may be ours without our knowing.
        self.loops: list[asyncio.Task[None]] = []

    @property
    def sources(self) -> list[Source]:
        return [self.source, self.again]

    @property
    def in_flight(self) -> int:
        return len(self.source.held) + len(self.again.held)

    def changed(self) -> None:
        """Something was settled."""
        self.room.set()
        if self.runner.next_retry_s:
            self.due_soon.set()

    # Beginning

    async def prepare(self) -> None:
        """Make sure that the group is there. Raises what no waiting can heal: no access, no stream of that name."""
        while True:
            try:
                self.has_claim = (await self.client.run(flows.capabilities(self.client._facts))).has_claim
                await self.source.make_group()
                await self.refuse_ordered_group()
                return
            except ConnectionLost as error:
                await self.outage.pause(error)

    async def refuse_ordered_group(self) -> None:
        stream, group = self.handler.stream, self.handler.group
        settings = await self.client.run(lane_views.find_settings(self.client._facts, stream, group))
        if settings is not None:
            raise ConfigError(
                f"group {group!r} of {stream!r} keeps order by {settings.keyfields[0]!r}, which {self.handler.name} "
                f"would break. Give it key={settings.keyfields[0]!r}, or another group=. To give up the order for "
                f"good, stop its workers and delete {order_key(stream, group)!r}."
            )

    def start(self) -> None:
        self.loops = [asyncio.ensure_future(self.read_until_told()), asyncio.ensure_future(self.look_after_time())]

    # The first loop

    async def read_until_told(self) -> None:
        while not self.runner.is_stopping:
            count = await self.wait_for_room()
            try:
                if self.has_strays:
                    await self.give_strays_back()
                request = self.source.read_request(count, BLOCK_MS, claims=self.has_claim)
                reply = await self.client.run(request.run())
                self.outage.over()
                await self.take(self.source, reply)
            except HeadraceError as error:
                await self.heal(self.source, error)
                self.has_strays = self.has_strays or isinstance(error, ConnectionLost)

    async def wait_for_room(self) -> int:
        """How many may be read: when somebody is idle at once, else when a batch or a good part has become free."""
        while True:
            room = self.for_reading - len(self.source.held)
            fitting = self.fitting(MOST_HELD_BYTES)
            is_idle = not self.runner.waiting
            if room > 0 and fitting > 0 and (is_idle or room >= self.worth_reading):
                return min(room, fitting, LARGEST_READ)
            self.room.clear()
            await self.room.wait()

    def fitting(self, most_bytes: int) -> int:
        """How many more there is memory for, as far as one can tell before they come."""
        free_bytes = most_bytes - self.source.held_bytes - self.again.held_bytes
        return max(1, int(free_bytes / (self.average_bytes or free_bytes))) if free_bytes > 0 else 0

    def room_for_due(self) -> int:
        """The second loop has a quarter more, so that large messages do not keep retries waiting."""
        room = self.for_reading + self.for_due - self.in_flight
        return min(room, self.for_due, self.fitting(MOST_HELD_BYTES * 5 // 4))

    async def take(self, source: Source, reply: Any) -> None:
        deliveries, gone = source.take(reply)
        await self.accept(source, deliveries, gone)

    async def accept(self, source: Source, deliveries: list[Delivery], gone: list[str]) -> None:
        """Entries that somebody deleted while they were pending hold nothing to handle: they are acknowledged."""
        if deliveries:
            size = sum([delivery.size_bytes for delivery in deliveries]) / len(deliveries)
            self.average_bytes = max(1.0, (self.average_bytes + size) / 2, size)  # Up at once, down slowly.
        self.runner.offer(deliveries)
        if gone:
            events.warning("entries_deleted", stream=source.stream, group=source.group, count=len(gone), first=gone[0])
            await self.client.run(requests.ack(source.stream, source.group, gone).run())

    async def heal(self, source: Source, error: HeadraceError) -> None:
        """Whatever a running worker meets, it goes on: a missing group is made, everything else may pass."""
        if isinstance(error, NotFound):
            try:
                await source.make_group()
                events.warning("group_made", stream=source.stream, group=source.group)
                return
            except HeadraceError as failure:
                error = failure
        if isinstance(error, ConnectionLost):
            await self.outage.pause(error)
            return
        self.outage.refused(source.stream, source.group, error)
        await asyncio.sleep(REFUSED_PAUSE_S)

    async def give_strays_back(self) -> None:
        async with self.taking:
            for source in self.sources:
                strays = await find_strays(source)
                if strays:
                    await source.release(strays)
                    events.info("strays_released", stream=source.stream, group=source.group, count=len(strays))
                    self.due_soon.set()
            self.has_strays = False

    # The second loop

    async def look_after_time(self) -> None:
        claim_s = min(self.handler.lease_ms / 4000, DUE_S)
        next_claim_s = 0.0
        wait_s = 0.0
        while True:
            await self.sleep(wait_s)
            try:
                async with self.taking:
                    wait_s = await self.take_due()
                    if not self.has_claim:
                        if time.monotonic() >= next_claim_s:
                            pause_s = CLAIM_PAUSE_S if await self.claim(self.source) else claim_s
                            next_claim_s = time.monotonic() + pause_s
                        wait_s = max(SHORTEST_PAUSE_S, min(wait_s, next_claim_s - time.monotonic()))
            except HeadraceError as error:
                await self.heal(self.source, error)
                self.has_strays = self.has_strays or isinstance(error, ConnectionLost)
                wait_s = 0.0

    async def sleep(self, wait_s: float) -> None:
        """Until a retry of ours, or the time that the server told; but not for long: others make retries too."""
        runner = self.runner
        self.due_soon.clear()
        until_s = time.monotonic() + min(wait_s, DUE_S)
        while True:
            if runner.next_retry_s:
                until_s = min(until_s, runner.next_retry_s)
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                break
            try:
                async with asyncio.timeout(left_s):
                    await self.due_soon.wait()
            except TimeoutError:
                break
            self.due_soon.clear()
            if not runner.next_retry_s:  # Strays were given back: they are due now.
                break
        if runner.next_retry_s <= time.monotonic():
            runner.next_retry_s = 0.0

    async def take_due(self) -> float:
        """Take what is due and fits; how long nothing else will be."""
        count = self.room_for_due()
        if count <= 0:
            return SHORTEST_PAUSE_S * 10
        due = await self.source.due(count)
        await self.accept(self.source, *self.source.take_entries(due.entries))
        wait_s = DUE_S if due.wait_ms is None else due.wait_ms / 1000
        if due.again:
            wait_s = min(wait_s, await self.take_again(count - len(due.entries)))
        return max(wait_s, SHORTEST_PAUSE_S)

    async def take_again(self, count: int) -> float:
        """Dead letters that were sent back to this group."""
        if count <= 0:
            return SHORTEST_PAUSE_S * 10
        try:
            due = await self.again.due(count)
            await self.accept(self.again, *self.again.take_entries(due.entries))
            if self.has_claim:
                request = self.again.read_request(count, None, claims=True)
                reply = await self.client.run(request.run())
                await self.take(self.again, reply)
            else:
                await self.claim(self.again)
        except NotFound:
            await self.again.make_group()
            return SHORTEST_PAUSE_S
        return DUE_S if due.wait_ms is None else due.wait_ms / 1000

    async def claim(self, source: Source) -> bool:
        """Whether there may be more: no place was left, or all that came had been delivered before."""
        count = self.room_for_due()
        if count <= 0:
            return True
        entries = await source.claim(count)
        await self.accept(source, *source.take_entries(entries))
        return sum([bool(entry.deliveries) for entry in entries]) == count

    async def sweep(self, idle_ms: int, *, with_again: bool) -> list[str]:
        """Remove names that were silent for so long and hold nothing."""
        removed: list[str] = []
        for source in self.sources if with_again else [self.source]:
            flow = worker_steps.sweep(self.client._facts, source.stream, source.group, idle_ms)
            removed += await self.client.run(flow)
        return removed

    # Ending

    async def stop_reading(self) -> None:
        """A read under way is broken off, but not before the server has it: what it brings must be found as a stray."""
        self.runner.stop()
        with suppress(HeadraceError, TimeoutError):  # A server that is away gives nothing to anybody.
            async with asyncio.timeout(FENCE_S):
                await self.source.fence()
        for loop in self.loops:
            loop.cancel()
        await asyncio.gather(*self.loops, return_exceptions=True)

    async def give_back(self) -> None:
        """Everything that has not been finished is free for others at once; then our name goes."""
        await self.wait_for_settlements()
        runner = self.runner
        unfinished = [*runner.take_waiting(), *runner.unfinished]
        for source in self.sources:
            try:
                ids = [delivery.id for delivery in unfinished if delivery.stream == source.stream]
                runner.counters.released += await source.release(ids)
                source.held.clear()
                await source.fence()  # Our reads that were broken off are over.
                await source.release(await source.find_strays())
                await source.remove_name()
            except (NotFound, CommandError):
                continue  # The stream or the group is gone, or was never there: nothing is left to give back.

    async def wait_for_settlements(self) -> None:
        for settler in self.runner.settlers.values():
            await settler.flush()


async def find_strays(source: Source) -> list[str]:
    try:
        return await source.find_strays()
    except NotFound:  # Nothing was ever sent back to this group.
        return []

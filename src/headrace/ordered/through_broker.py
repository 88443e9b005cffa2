"""A consumer's messages straight from the broker, by LANE.* steps: no coordinator has to run."""

import asyncio
from collections.abc import Collection
from typing import Final

from headrace.client import lane_steps
from headrace.client.async_client import AsyncClient
from headrace.client.lane_keys import Order, Settings
from headrace.client.lane_views import consumers, find_settings
from headrace.client.requests import Request, Word
from headrace.errors import ConnectionLost, Fenced, HeadraceError
from headrace.ordered.delegated_message import Fetched, OrderedMessage, Superseded

ANSWER_S: Final = 5.0
IDLE_WAIT_MS: Final = 2000  # For one read that waits; a take follows it, so that an idle consumer calls once a second.


class ThroughBroker:
    takes = True

    def __init__(
        self, consumer: str, url: str | None, stream: str, group: str, settings: Settings, *, keep: bool
    ) -> None:
        self.consumer = consumer
        self.client = AsyncClient(url, timeout=ANSWER_S)
        self.order = Order(stream, group, settings)
        self.keeps = keep
        self.session = 0
        self.has_strays = False  # The answer to a take was lost: keys may be ours without our knowing.
        self.wake = asyncio.Event()  # There may be something to take.
        self.reading: asyncio.Task[None] | None = None
        self.is_waiting = False

    async def register(self, capacity: int, health_url: str) -> int:  # noqa: ARG002 - one with a URL is taken for.
        await self.set_up()
        found = await self.client.run(lane_steps.register(self.client._facts, self.order, self.consumer, capacity))
        self.session, self.has_strays = found.number, False
        return found.lease_ms

    async def set_up(self) -> None:
        """The settings that the group has; ours where it has none yet. The group is made where it is missing."""
        settings = await self.client.run(find_settings(self.client._facts, self.order.stream, self.order.group))
        if settings is not None:
            self.order = Order(self.order.stream, self.order.group, settings)
        await self.client.run(lane_steps.set_up(self.client._facts, self.order))

    async def fetch(self, room: int, running: Collection[OrderedMessage]) -> Fetched:
        try:
            if self.has_strays:  # Here, so that no take is under way meanwhile: its keys would be given back too.
                lost = await self.extend(running, only=True)
                self.has_strays = False
                return Fetched(lost=lost)
            self.wake.clear()
            taken = await self.take(room)
        except Fenced as error:
            await self.check_name(error)
            raise
        messages = [
            OrderedMessage(grant.key, grant.fence, grant.attempt, grant.last_error, grant.entries[0])
            for grant in taken.grants
        ]
        if not messages and taken.wait_ms != 0:
            await self.wait(taken.wait_ms)
        return Fetched(messages)

    async def take(self, room: int) -> lane_steps.Taken:
        lease_ms = self.order.settings.lease_ms
        step = lane_steps.take(self.client._facts, self.order, self.consumer, self.session, lease_ms, room, 1)
        try:
            return await self.client.run(step)
        except ConnectionLost:
            self.has_strays = True
            raise

    async def wait(self, wait_ms: int | None) -> None:
        """Until a message comes, a key of ours is free again, or the time that the broker told."""
        self.is_waiting = True
        if self.reading is None or self.reading.done():
            self.reading = asyncio.ensure_future(self.read())
        wait_s = (IDLE_WAIT_MS if wait_ms is None else max(1, min(wait_ms, IDLE_WAIT_MS))) / 1000
        try:
            async with asyncio.timeout(wait_s):
                await self.wake.wait()
        except TimeoutError:
            pass
        self.is_waiting = False

    async def read(self) -> None:
        """As lane_steps.wait, for longer, and again as long as anybody waits."""
        reader = self.order.settings.reader
        argv: tuple[Word, ...] = ("XREADGROUP", "GROUP", self.order.group, reader, "COUNT", 1, "BLOCK", IDLE_WAIT_MS)
        argv += ("STREAMS", self.order.stream, ">")
        try:
            while self.is_waiting:
                if await self.client.run(Request(argv, bool, self.order.stream, wait_ms=IDLE_WAIT_MS).run()):
                    self.wake.set()
                    return
        except HeadraceError:
            return  # The next take meets it too, and tells.

    async def check_name(self, error: Fenced) -> None:
        """Raises Superseded when another process has the name: its session is a later one. Else nobody has it."""
        for one in await self.client.run(consumers(self.client._facts, self.order)):
            if one.name == self.consumer and one.session > self.session:
                raise Superseded(str(error)) from error

    async def keep(self, running: Collection[OrderedMessage]) -> list[int]:
        return await self.extend(running, only=False)

    async def extend(self, running: Collection[OrderedMessage], *, only: bool) -> list[int]:
        """The fences that are lost."""
        held = [(message.key, message.fence) for message in running]
        lease_ms = self.order.settings.lease_ms
        step = lane_steps.extend(
            self.client._facts, self.order, self.consumer, self.session, lease_ms, held, only=only
        )  # fmt: skip
        flags = await self.client.run(step)
        return [fence for (_, fence), is_ours in zip(held, flags, strict=True) if not is_ours]

    async def acknowledge(self, message: OrderedMessage) -> bool:
        done = lane_steps.Done(message.key, message.fence, [message.id])
        return await self.settle(done)

    async def fail(self, message: OrderedMessage, error: str, delay_ms: int, *, buries: bool) -> bool:
        if buries:
            return await self.settle(lane_steps.Bury(message.key, message.fence, message.id, error, ""))
        return await self.settle(lane_steps.Fail(message.key, message.fence, message.id, delay_ms, error))

    async def settle(self, clause: lane_steps.Clause) -> bool:
        [is_settled] = await self.client.run(
            lane_steps.settle(self.client._facts, self.order, [clause], keep=self.keeps)
        )  # fmt: skip
        self.wake.set()
        return is_settled

    async def leave(self) -> None:
        try:
            await self.client.run(lane_steps.leave(self.client._facts, self.order, self.consumer, self.session))
        except Fenced:
            return  # Another one has the name: it is not ours to leave.

    async def close(self) -> None:
        if self.reading is not None:
            self.reading.cancel()
            await asyncio.gather(self.reading, return_exceptions=True)
        await self.client.close()

"""One handler with a key at work: it holds keys and runs the messages of each in order.

Every turn is one round trip: what has ended is settled, and the places that become free are filled, by LANE.SETTLE and
LANE.TAKE in one go. When nothing is to be had, one blocked read waits for the next message. No worker decides for
another: the server gives each key to one at a time, with a fence that every settlement must show.
"""

import asyncio
import time
from contextlib import suppress
from typing import Any, Final

from headrace.app.app import App
from headrace.app.handlers import Handler
from headrace.client import lane_steps, worker_steps
from headrace.client.async_client import AsyncClient
from headrace.client.flow import Flow, together
from headrace.client.lane_keys import Order
from headrace.client.lane_steps import Taken
from headrace.errors import CommandError, ConnectionLost, Fenced, HeadraceError, NoLanes, NotFound
from headrace.worker import events
from headrace.worker.consumer import DUE_S, MOST_HELD_BYTES, SHORTEST_PAUSE_S
from headrace.worker.ordered_keys import HeldKeys
from headrace.worker.ordered_running import OrderedBatchRunner, OrderedRunner
from headrace.worker.ordered_session import begin_session, settings_of, sweep
from headrace.worker.ordered_settling import Sent
from headrace.worker.outage import REFUSED_PAUSE_S, Outage
from headrace.worker.settling import NOT_ITS_FAULT

LINGER_S: Final = 0.005  # So long a message that is done waits for those behind it in the run of its key.
MOST_DUE: Final = 1000  # Delayed messages moved at once.
BEGIN_AGAIN: Final = (Fenced, NoLanes, NotFound)  # The session, the settings or the group are gone.


class OrderedConsumer:
    """Takes keys for one handler, under a name of its own."""

    def __init__(
        self, app: App, handler: Handler, client: AsyncClient, name: str, outage: Outage, values: dict[str, Any]
    ) -> None:
        self.handler = handler
        self.client = client
        self.outage = outage
        kind = OrderedRunner if handler.batch is None else OrderedBatchRunner
        self.runner = kind(app, handler, values, outage, self.changed)
        self.runner.is_cluster = "+cluster" in client.url
        order = Order(handler.stream, handler.group, settings_of(handler))
        self.keys = HeldKeys(client, order, name, handler.lease_ms, self.runner.lost)
        self.runner.add_keys(self.keys, self.key_lost, keep=app.keep_of(handler) is not None)
        self.settler = self.runner.settler
        self.places = handler.concurrency + handler.prefetch
        self.average_bytes = 0.0  # Of a message; 0 until the first was seen.
        self.wake = self.settler.filled
        self.is_dry = False  # The last take brought less than there was room for.
        self.next_take_s = 0.0  # When to look again then, by the monotonic clock.
        self.unanswered: list[Sent] = []  # Sent, and the answer was lost.
        self.take_was_lost = False  # Keys may be ours without our knowing.
        self.news: asyncio.Task[None] | None = None
        self.loops: list[asyncio.Task[None]] = []

    @property
    def sources(self) -> list[HeldKeys]:
        return [self.keys]

    def changed(self) -> None:
        """Something was settled: there is room."""
        self.wake.set()

    def key_lost(self) -> None:
        """Whoever took it away may have made others free."""
        self.next_take_s = 0.0
        self.wake.set()

    # Beginning

    async def prepare(self) -> None:
        """The group, its settings and our session. Raises what no waiting can heal."""
        while True:
            try:
                await self.begin_session()
                return
            except ConnectionLost as error:
                await self.outage.pause(error)

    async def begin_session(self) -> None:
        await begin_session(self.client, self.handler, self.keys, self.places)
        self.is_dry = self.take_was_lost = False

    def start(self) -> None:
        exchanging = asyncio.ensure_future(self.exchange_until_told())
        self.settler.tasks = {exchanging}
        self.loops = [exchanging, asyncio.ensure_future(self.move_delayed())]

    # Turns

    async def exchange_until_told(self) -> None:
        while True:
            await self.wait_for_work()
            try:
                await self.exchange()
            except Exception as error:  # Whatever it is, the turns must go on: others wait for their keys.
                await self.heal(error)

    async def wait_for_work(self) -> None:
        """Until something has ended, or there is room and a reason to believe that there is something to take."""
        while not self.unanswered:
            if self.settler.endings:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LINGER_S):
                        await self.settler.is_urgent.wait()
                break
            room_s = self.next_take_s - time.monotonic() if self.room() > 0 else None
            if room_s is not None and (not self.is_dry or room_s <= 0):
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(room_s):
                    await self.wake.wait()
            self.wake.clear()
        await asyncio.sleep(0)  # What ends in the same turn comes along.

    def room(self) -> int:
        """How many keys there is a place for. Threads that outlive their key have one too."""
        if self.runner.is_stopping or self.keys.held_bytes >= MOST_HELD_BYTES:
            return 0
        return min(self.places - len(self.keys) - self.runner.outliving, lane_steps.MOST)

    async def exchange(self) -> None:
        is_repeated = bool(self.unanswered)
        sent = self.unanswered or self.settler.collect()
        self.unanswered = sent
        if self.take_was_lost and not sent:
            await self.give_unknown_back()
        count, run = (0, 0) if self.take_was_lost else self.wanted(sent)
        if not sent and not count:
            return
        began_s = time.monotonic()  # A lease begins, for us, before the server was asked for it.
        self.take_was_lost = self.take_was_lost or count > 0
        steps: list[Flow[Any]] = [self.settle_flow(sent)] if sent else []
        if count:
            steps.append(self.take_flow(count, run))
        replies = await self.call(*steps)
        self.outage.over()
        self.unanswered = []
        refusal = await self.settled(sent, replies[0], is_repeated=is_repeated) if sent else None
        if count:
            self.take_was_lost = False
            self.taken(replies[-1], count, began_s)
        if refusal is not None:
            await self.tell_refusal(refusal)

    def wanted(self, sent: list[Sent]) -> tuple[int, int]:
        """How many keys to take, and how many messages of each: as many as there are places and memory for."""
        freed = sum([one.frees_key for one in sent])
        is_time = not self.is_dry or freed or time.monotonic() >= self.next_take_s
        free_bytes = MOST_HELD_BYTES - self.keys.held_bytes
        if self.runner.is_stopping or not is_time or free_bytes <= 0:
            return 0, 0
        count = max(0, self.room() + freed)
        most = max(1, int(free_bytes / self.average_bytes)) if self.average_bytes else lane_steps.MOST
        run = min(self.handler.run, most)
        return min(count, lane_steps.MOST, max(1, most // run)), run

    def settle_flow(self, sent: list[Sent]) -> Flow[list[bool]]:
        self.runner.counters.settlements += 1
        clauses = [one.clause for one in sent]
        return lane_steps.settle(self.client._facts, self.keys.order, clauses, keep=self.settler.keep)

    def take_flow(self, count: int, run: int) -> Flow[Taken]:
        keys = self.keys
        return lane_steps.take(
            self.client._facts, keys.order, keys.consumer, keys.session, self.handler.lease_ms, count, run
        )

    async def settled(self, sent: list[Sent], reply: Any, *, is_repeated: bool) -> Exception | None:
        """The answer to a settlement; an error that only somebody else can mend."""
        if isinstance(reply, BEGIN_AGAIN):  # The group is gone, and with it what we held.
            reply = [False] * len(sent)
        if not isinstance(reply, Exception):
            self.settler.settled(sent, reply, is_repeated=is_repeated)
            return None
        is_its_fault = not isinstance(reply, NOT_ITS_FAULT)
        if len(sent) > 1 and is_its_fault:
            return await self.settle_one_by_one(sent, is_repeated=is_repeated)
        error: Exception | None = None
        for one in sent:
            if not is_its_fault or not self.settler.refused(one, reply):
                self.settler.put_back(one)
                error = reply
        return error

    async def settle_one_by_one(self, sent: list[Sent], *, is_repeated: bool) -> Exception | None:
        """A refused call has changed nothing. One of them is to blame; the others must not suffer."""
        error: Exception | None = None
        for place, one in enumerate(sent):
            self.unanswered = sent[place:]
            [answer] = await self.call(self.settle_flow([one]))
            error = await self.settled([one], answer, is_repeated=is_repeated) or error
        self.unanswered = []
        return error

    async def call(self, *steps: Flow[Any]) -> list[Any]:
        """In one round trip. Per step its result, or what is wrong with it."""
        try:
            return await self.client.run(together(*steps))
        except ConnectionLost:
            raise
        except Exception as error:  # As a word of an effect that cannot be sent: nothing of it was.
            return [error] * len(steps)

    def taken(self, reply: Any, count: int, began_s: float) -> None:
        if isinstance(reply, Exception):
            raise reply
        self.is_dry = len(reply.grants) < count and reply.wait_ms != 0
        wait_s = DUE_S if reply.wait_ms is None else min(reply.wait_ms / 1000, DUE_S)
        self.next_take_s = time.monotonic() + max(wait_s, SHORTEST_PAUSE_S)
        size_bytes = self.runner.offer_keys(reply.grants, began_s)
        if size_bytes:
            size = size_bytes / sum([len(grant.entries) for grant in reply.grants])
            self.average_bytes = max(1.0, (self.average_bytes + size) / 2, size)  # Up at once, down slowly.
        if self.is_dry and self.room() > 0 and self.news is None:
            self.news = asyncio.ensure_future(self.wait_for_news())
            self.news.add_done_callback(self.news_ended)

    async def wait_for_news(self) -> None:
        """One message wakes one worker. It lies with the group's reader then, for the next take of whomever."""
        try:
            came = await self.client.run(lane_steps.wait(self.client._facts, self.keys.order, None))
        except ConnectionLost as error:
            await self.outage.pause(error)
        except HeadraceError:
            await asyncio.sleep(REFUSED_PAUSE_S)  # The take tells, and heals.
        else:
            if came:
                self.is_dry = False
                self.wake.set()

    def news_ended(self, _: "asyncio.Task[None]") -> None:
        self.news = None

    # Trouble

    async def heal(self, error: Exception) -> None:
        """Whatever a running worker meets, it goes on."""
        if isinstance(error, BEGIN_AGAIN) or getattr(error, "prefix", "") == "MAPS":
            for held in list(self.keys.held.values()):
                self.runner.lost(held)
            try:
                await self.begin_session()
                events.warning("session_begun", stream=self.handler.stream, group=self.handler.group, error=error)
                return
            except HeadraceError as failure:
                error = failure
        if isinstance(error, ConnectionLost):
            await self.outage.pause(error)
        else:
            await self.tell_refusal(error)

    async def tell_refusal(self, error: Exception) -> None:
        self.outage.refused(self.handler.stream, self.handler.group, error)
        await asyncio.sleep(REFUSED_PAUSE_S)

    async def give_unknown_back(self) -> None:
        """The answer to a take was lost: keys that came with it, which we do not know, must not wait for their end."""
        keys = self.keys
        held = list(keys.held.values())
        known = [(one.key, one.fence) for one in held]
        flow = lane_steps.extend(
            self.client._facts, keys.order, keys.consumer, keys.session, self.handler.lease_ms, known, only=True
        )
        began_s = time.monotonic()
        for one, is_ours in zip(held, await self.client.run(flow), strict=True):
            if is_ours:
                one.leased_s = began_s
            else:
                self.runner.lost(one)
        self.take_was_lost = False

    # Time

    async def move_delayed(self) -> None:
        """Delayed messages whose time has come go into the stream. Failed ones wait with their key, not here."""
        wait_s = 0.0
        while True:
            await asyncio.sleep(wait_s)
            wait_s = DUE_S
            flow = worker_steps.due(
                self.client._facts, self.handler.stream, self.handler.group, self.keys.consumer, MOST_DUE
            )
            with suppress(HeadraceError):  # The turns tell of it, and heal.
                due = await self.client.run(flow)
                if due.wait_ms is not None:
                    wait_s = min(max(due.wait_ms / 1000, SHORTEST_PAUSE_S), DUE_S)

    async def sweep(self, idle_ms: int) -> list[str]:
        return await sweep(self.client, self.keys.order, self.keys.consumer, idle_ms)

    # Ending

    async def stop_reading(self) -> None:
        """Keys of which nothing runs are given back at once; the turns go on, to settle what runs."""
        self.runner.stop()
        for task in (*self.loops[1:], *([self.news] if self.news is not None else [])):
            task.cancel()
        self.wake.set()

    async def give_back(self) -> None:
        """Everything that has not been finished is free for others at once; then our name goes."""
        while self.settler.endings or self.unanswered:
            self.wake.set()
            await asyncio.sleep(SHORTEST_PAUSE_S)
        keys = self.keys
        for loop in self.loops:
            loop.cancel()
        await asyncio.gather(*self.loops, return_exceptions=True)
        self.runner.counters.released += sum([held.unsettled for held in keys.held.values()])
        with suppress(NotFound, CommandError, Fenced, NoLanes):  # All is gone, or was never there.
            await self.client.run(lane_steps.leave(self.client._facts, keys.order, keys.consumer, keys.session))
        keys.held.clear()

"""Takes keys on behalf of consumers that do not take for themselves, up to their capacity.

Several coordinators may do this for the same consumer: they use the session that stands in the map of consumers. So
that two of them never fill the same room twice, each has its turn: a key of the broker that lives for two seconds at
the most. The turn guards the capacity only. The order needs no guard, since a key is given to one consumer at a time
whoever takes it; a coordinator that was stopped in the middle of its turn gives back what it took too late.

A consumer gets one message of a key at a time: what it has pending is what it holds.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Final

from headrace.client import lane_steps, requests
from headrace.client.async_client import AsyncClient
from headrace.client.flow import Flow
from headrace.client.flows import Facts, beside
from headrace.client.lane_keys import Order
from headrace.client.lane_steps import Back
from headrace.client.lane_views import Registered, consumers
from headrace.client.requests import Request
from headrace.errors import Fenced, HeadraceError
from headrace.ordered.held_keys import held_keys, server_time_ms
from headrace.ordered.roster import Roster, is_delegated

TURN_MS: Final = 2000
OTHER_TURN_MS: Final = 50  # How long to leave a consumer to another coordinator.
IDLE_S: Final = 1.0  # How often to look when nothing calls for it.


@dataclass(frozen=True, slots=True)
class Given:
    """What became of one attempt to take."""

    count: int
    wait_ms: int | None
    is_elsewhere: bool = False  # Another coordinator has the turn.


class Delegator:
    """One loop: who has room, take for them, wait until something changes."""

    def __init__(self, client: AsyncClient, order: Order, roster: Roster, name: str) -> None:
        self.client = client
        self.order = order
        self.roster = roster
        self.name = name
        self.wake = asyncio.Event()
        self.reading: asyncio.Task[None] | None = None
        self.is_waiting = False  # For an entry.
        self.wait_ms: int | None = None  # Until something changes by itself.
        self.given = 0  # Keys, since the start.
        self.arrivals: dict[str, asyncio.Event] = {}  # By consumer: set when something was taken for it.
        self.first = 0  # Whose turn it is to be first, so that all get their share.

    async def round(self) -> bool:
        """Fill all the room there is. Whether it stopped because nothing is left to give, and not for want of room."""
        registered = await self.client.run(consumers(self.client._facts, self.order))
        self.roster.forget_others(registered)
        pending = await self.client.run(requests.pending_summary(self.order.stream, self.order.group).run())
        alive = [one for one in registered if is_delegated(one) and self.roster.is_alive(one)]
        room = {one: one.capacity - pending.by_consumer.get(one.name, 0) for one in alive}
        full = {one.name: one for one in alive if room[one] <= 0}
        if full and not await self.client.run(has_tickets(self.order)):
            # Somebody deleted the map: nobody can settle what they hold, so they would stay full for ever.
            await self.client.run(lane_steps.rebuild(self.client._facts, self.order))
            self.wait_ms = OTHER_TURN_MS
            return False
        if full:
            for name in await self.client.run(expired_holders(self.order)):
                if name in full:
                    room[full[name]] += 1
        waiting = [one for one in alive if room[one] > 0]
        self.first += 1
        start = self.first % max(1, len(waiting))
        waiting = waiting[start:] + waiting[:start]
        while waiting:
            for one in list(waiting):
                share = room[one] if len(waiting) == 1 else max(1, room[one] // 4)
                given = await self.take_for(one, share)
                room[one] -= given.count
                if not given.is_elsewhere and given.count < share and given.wait_ms != 0:
                    self.wait_ms = given.wait_ms
                    return True
                if given.is_elsewhere or room[one] <= 0:
                    waiting.remove(one)
        self.wait_ms = OTHER_TURN_MS if any(free > 0 for free in room.values()) else None
        return False

    async def take_for(self, one: Registered, most: int) -> Given:
        try:
            given = await self.client.run(take_in_turn(self.client._facts, self.order, one, most, self.name))
        except Fenced:  # It registered again, or left: the next round knows.
            return Given(0, None, is_elsewhere=True)
        if given.count:
            self.given += given.count
            if event := self.arrivals.get(one.name):
                event.set()
        return given

    async def wait(self, *, is_drained: bool) -> None:
        """Until an entry comes, a consumer calls, or the time that the broker told."""
        self.is_waiting = is_drained
        if is_drained and (self.reading is None or self.reading.done()):
            self.reading = asyncio.ensure_future(self.read())
        wait_s = IDLE_S if self.wait_ms is None else min(IDLE_S, max(0.001, self.wait_ms / 1000))
        try:
            async with asyncio.timeout(wait_s):
                await self.wake.wait()
        except TimeoutError:
            pass
        self.is_waiting = False
        self.wake.clear()

    async def read(self) -> None:
        """One entry wakes one coordinator. It is put into its lane by whoever takes next."""
        try:
            while self.is_waiting:
                if await self.client.run(lane_steps.wait(self.client._facts, self.order, None)):
                    self.wake.set()
                    return
        except HeadraceError:
            return  # The next round meets it too, and tells.

    async def stop(self) -> None:
        if self.reading is not None:
            self.reading.cancel()
            await asyncio.gather(self.reading, return_exceptions=True)


def take_in_turn(facts: Facts, order: Order, one: Registered, most: int, who: str) -> Flow[Given]:
    turn = beside(order.stream, f"{order.group}:turn:{one.name}")
    start_s = time.monotonic()
    batch: list[Request[Any]] = [
        Request(("SET", turn, who, "NX", "PX", TURN_MS), lambda reply: reply is not None, turn),
        Request(
            ("XPENDING", order.stream, order.group, "-", "+", max(1, one.capacity), one.name), len, order.stream
        ),
    ]  # fmt: skip
    replies = yield batch
    for reply in replies:
        if isinstance(reply, HeadraceError):
            raise reply
    is_ours, held = replies
    if not is_ours:
        return Given(0, OTHER_TURN_MS, is_elsewhere=True)
    if held >= one.capacity:
        held -= (yield from expired_holders(order)).count(one.name)
    keys = min(most, one.capacity - held)
    if keys <= 0:
        yield from end_turn(turn, start_s)
        return Given(0, OTHER_TURN_MS, is_elsewhere=True)
    taken = yield from lane_steps.take(facts, order, one.name, one.session, order.settings.lease_ms, keys, 1)
    if not is_within_turn(start_s):
        backs = [Back(grant.key, grant.fence) for grant in taken.grants]
        yield from lane_steps.settle(facts, order, backs)
        return Given(0, OTHER_TURN_MS, is_elsewhere=True)
    yield from end_turn(turn, start_s)
    return Given(len(taken.grants), taken.wait_ms)


def expired_holders(order: Order) -> Flow[list[str]]:
    """Who holds a key whose lease is over; a name per key. They keep it until somebody takes, and that may be they."""
    now_ms = yield from server_time_ms(order)
    found = yield from held_keys(order, now_ms - 1)
    return [one.ticket.consumer for one in found]


def has_tickets(order: Order) -> Flow[int]:
    return (yield from Request(("EXISTS", order.tickets), requests.number, order.tickets, is_repeatable=True).run())


def end_turn(turn: str, start_s: float) -> Flow[None]:
    """Let others go on at once. One that is nearly over ends by itself: it might be another's by now."""
    if is_within_turn(start_s):
        yield from Request(("DEL", turn), bool, turn).run()


def is_within_turn(start_s: float) -> bool:
    return (time.monotonic() - start_s) * 1000 < TURN_MS / 2

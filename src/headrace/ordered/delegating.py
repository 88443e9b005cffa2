"""Takes keys on behalf of consumers that do not take for themselves, up to their capacity.

Several coordinators may do this for the same consumer: they use the session that stands in the map of consumers, and
the broker counts what the consumer holds, whoever took it. A consumer gets one message of a key at a time: what it has
pending is what it holds.

Who has acknowledged something is given the next in the same call to the broker (settling.py). The rounds here are for
all else: new entries, consumers that came, leases that ended.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headrace.client import lane_steps, requests
from headrace.client.async_client import AsyncClient
from headrace.client.flow import Flow, together
from headrace.client.lane_keys import Order
from headrace.client.lane_steps import Taken
from headrace.client.lane_views import Registered, consumers
from headrace.client.requests import Request
from headrace.errors import Fenced, HeadraceError
from headrace.ordered.granted import Granted
from headrace.ordered.held_keys import server_time_ms
from headrace.ordered.roster import Roster, is_delegated

AGAIN_MS: Final = 5  # Until the next round, when the broker has more and gave nothing.
MOST_AT_ONCE: Final = 64  # Consumers that are taken for in one call.
IDLE_S: Final = 1.0  # How often to look when nothing calls for it.


class Delegator:
    """One loop: who has room, take for them, wait until something changes."""

    def __init__(self, client: AsyncClient, order: Order, roster: Roster) -> None:
        self.client = client
        self.order = order
        self.roster = roster
        self.granted = Granted()
        self.registered: dict[str, Registered] = {}  # Those to take for, as the last round found them.
        self.wake = asyncio.Event()
        self.reading: asyncio.Task[None] | None = None
        self.is_waiting = False  # For an entry.
        self.wait_ms: int | None = None  # Until something changes by itself.
        self.given = 0  # Keys, since the start.
        self.arrivals: dict[str, asyncio.Event] = {}  # By consumer: set when something was taken for it.
        self.first = 0  # Whose turn it is to be first, so that all get their share.

    # Rounds

    async def round(self) -> bool:
        """Fill all the room there is. Whether it stopped because nothing is left to give, and not for want of room."""
        room, is_lease_over = await self.find_room()
        shares = share_out(room, least=1 if is_lease_over else 0)  # Then who has none may have some, in a moment.
        while shares:
            gained = 0
            for part in growing_parts(shares):
                outcomes = await self.take_for(part)
                for one, taken in outcomes.items():
                    room[one] -= len(taken.grants)
                    gained += len(taken.grants)
                drained = [taken for one, taken in outcomes.items() if is_drained(taken, part[one])]
                if drained:
                    self.wait_ms = drained[-1].wait_ms
                    return True
            shares = share_out(room, least=0)
            if not gained:
                self.wait_ms = AGAIN_MS if shares else None
                return False
        self.wait_ms = None
        return False

    async def find_room(self) -> tuple[dict[Registered, int], bool]:
        """Those who are alive and taken for, with how many keys more they may hold; and whether a lease is over."""
        registered, pending, has_tickets, first_end_ms, now_ms = await self.client.run(
            all_of(
                consumers(self.client._facts, self.order),
                requests.pending_summary(self.order.stream, self.order.group).run(),
                Request(("EXISTS", self.order.tickets), bool, self.order.tickets, is_repeatable=True).run(),
                first_end(self.order),
                server_time_ms(self.order),
            )
        )
        self.roster.forget_others(registered)
        self.registered = {one.name: one for one in registered if is_delegated(one) and one.capacity > 0}
        self.granted.forget_others(self.registered)
        alive = [one for one in self.registered.values() if self.roster.is_alive(one)]
        self.first += 1
        start = self.first % max(1, len(alive))
        room = {one: one.capacity - pending.by_consumer.get(one.name, 0) for one in alive[start:] + alive[:start]}
        if not has_tickets and any(free <= 0 for free in room.values()):
            # Somebody deleted the map: nobody can settle what they hold, so they would stay full for ever.
            await self.client.run(lane_steps.rebuild(self.client._facts, self.order))
        return room, first_end_ms is not None and first_end_ms < now_ms

    async def take_for(self, shares: Mapping[Registered, int]) -> dict[Registered, Taken]:
        """In one round trip. Those whose session has ended meanwhile are left out."""
        outcomes = await self.client.run(together(*[self.take(one, most) for one, most in shares.items()]))
        found: dict[Registered, Taken] = {}
        for one, outcome in zip(shares, outcomes, strict=True):
            if isinstance(outcome, HeadraceError) and not isinstance(outcome, Fenced):
                raise outcome
            if isinstance(outcome, Taken):
                found[one] = outcome
                self.note(one, outcome)
        return found

    def take(self, one: Registered, most: int) -> Flow[Taken]:
        lease_ms = self.order.settings.lease_ms
        return lane_steps.take(self.client._facts, self.order, one.name, one.session, lease_ms, most, 1, one.capacity)

    def note(self, one: Registered, taken: Taken) -> None:
        if taken.grants:
            self.granted.note(one, taken.grants)
            self.given += len(taken.grants)
            if event := self.arrivals.get(one.name):
                event.set()

    # Between rounds

    def find_alive(self, consumer: str) -> Registered | None:
        """One that may be given something now."""
        one = self.registered.get(consumer)
        return one if one is not None and self.roster.is_alive(one) else None

    def note_between(self, one: Registered, wanted: int, outcome: Any) -> None:
        """What came of taking for a consumer that has just become free. A round sees to all that is not plain."""
        if isinstance(outcome, Taken):
            self.note(one, outcome)
        is_plain = isinstance(outcome, Taken) and (len(outcome.grants) == wanted or self.is_waiting)
        if not is_plain:
            self.wake.set()

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


def share_out(room: Mapping[Registered, int], least: int) -> dict[Registered, int]:
    """A part of each one's room, so that the first does not get all there is. Those without any come last."""
    part = 1 if len(room) == 1 else 4
    shares = {one: max(1, free // part) for one, free in room.items() if free > 0}
    return shares | ({one: least for one, free in room.items() if free <= 0} if least else {})


def growing_parts(shares: Mapping[Registered, int]) -> Iterator[dict[Registered, int]]:
    """Whom to take for in one call: one at first, as there may be little to give, then more at a time."""
    left, size = list(shares.items()), 1
    while left:
        yield dict(left[:size])
        left, size = left[size:], min(4 * size, MOST_AT_ONCE)


def first_end(order: Order) -> Flow[float | None]:
    """When the first lease or pause ends, or has ended, in milliseconds."""
    until = order.keys[3]

    def decode(reply: Any) -> float | None:
        pair = reply[0] if reply and isinstance(reply[0], list) else reply  # One list for each in RESP3.
        return float(pair[1]) if pair else None

    return (yield from Request(("ZRANGE", until, 0, 0, "WITHSCORES"), decode, until, is_repeatable=True).run())


def is_drained(taken: Taken, wanted: int) -> bool:
    return len(taken.grants) < wanted and taken.wait_ms != 0


def all_of(*flows: Flow[Any]) -> Flow[list[Any]]:
    """Together; the first error ends it."""
    results = yield from together(*flows)
    for result in results:
        if isinstance(result, HeadraceError):
            raise result
    return results

"""Keeps the leases of consumers that others take for: as long as they give signs of life, and not for ever.

Two loops. One asks the health URLs. The other extends, each sixth of a lease, what ends within half of one. What an
unwell consumer holds is left alone: its leases end by themselves, and nothing moves earlier, unless early_revoke says
so. An extension also frees keys whose message was acknowledged by XACK alone.
"""

import asyncio
from collections import defaultdict
from typing import Final

from headrace.client import lane_steps
from headrace.client.async_client import AsyncClient
from headrace.client.lane_views import Registered, consumers
from headrace.errors import ConnectionLost, Fenced
from headrace.ordered.held_keys import HeldKey, held_keys, server_time_ms
from headrace.ordered.http_call import Caller
from headrace.ordered.master_settings import MasterSettings
from headrace.ordered.roster import Roster, has_health_url, is_delegated
from headrace.worker import events

LONGEST_ASK_S: Final = 5.0  # Between two questions for someone's health.
LONGEST_ANSWER_S: Final = 2.0
MOST_AT_ONCE: Final = 64  # Health URLs asked at the same time.
MOST_HEALTH_BYTES: Final = 64 << 10
FAILURES_BEFORE_REVOKE: Final = 3
FORGOTTEN_AFTER_MS: Final = 600_000  # Or ten leases, if that is longer: a consumer that is silent leaves the map.


class Keeper:
    def __init__(self, client: AsyncClient, settings: MasterSettings, roster: Roster) -> None:
        self.client = client
        self.settings = settings
        self.order = settings.order
        self.lease_ms = settings.lanes.lease_ms
        self.roster = roster
        self.caller = Caller()
        self.asking = asyncio.Semaphore(MOST_AT_ONCE)

    # Health

    @property
    def ask_s(self) -> float:
        return min(LONGEST_ASK_S, self.lease_ms / 3000)

    async def ask_all(self) -> None:
        """One round of questions. A good answer is a sign of life, and is noted on the broker for people to see."""
        registered = await self.client.run(consumers(self.client._facts, self.order))
        asked = [self.ask(one) for one in registered if has_health_url(one)]
        for result in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        now_ms = await self.client.run(server_time_ms(self.order))
        limit_ms = max(FORGOTTEN_AFTER_MS, 10 * self.lease_ms)
        for one in registered:
            if is_delegated(one) and now_ms - one.heartbeat_ms > limit_ms and not self.roster.is_alive(one):
                await self.remove(one, "consumer_forgotten")

    async def ask(self, one: Registered) -> None:
        async with self.asking:
            if await self.is_well(one):
                if self.roster.failures.get((one.name, one.session)):
                    events.info("consumer_well", consumer=one.name)
                self.roster.note(one.name, one.session)
                await self.extend(one, [], self.lease_ms)
                return
            failures = self.roster.note_failure(one.name, one.session)
        if failures == 1:
            events.warning("consumer_unwell", consumer=one.name, health=one.health)
        if self.settings.early_revoke and failures >= FAILURES_BEFORE_REVOKE:
            await self.remove(one, "consumer_revoked")

    async def is_well(self, one: Registered) -> bool:
        timeout_s = min(LONGEST_ANSWER_S, self.ask_s)
        try:
            answer = await self.caller.call(
                "GET", one.health, timeout_s=timeout_s, most_bytes=MOST_HEALTH_BYTES, keeps=False
            )
        except ConnectionLost:
            return False
        return 200 <= answer.status < 300

    async def remove(self, one: Registered, event: str) -> None:
        """Its keys go to others. It may register again."""
        try:
            keys = await self.client.run(lane_steps.leave(self.client._facts, self.order, one.name, one.session))
        except Fenced:
            return
        events.warning(event, consumer=one.name, keys=keys)

    # Leases

    @property
    def extend_s(self) -> float:
        return self.lease_ms / 6000

    async def extend_all(self) -> None:
        now_ms = await self.client.run(server_time_ms(self.order))
        found = await self.client.run(held_keys(self.order, now_ms + self.lease_ms // 2))
        if not found:
            return
        mine: dict[str, list[HeldKey]] = defaultdict(list)
        for one in found:
            if now_ms - one.since_ms <= self.settings.max_hold_ms:
                mine[one.ticket.consumer].append(one)
        for registered in await self.client.run(consumers(self.client._facts, self.order)):
            left_ms = self.roster.left_ms(registered)  # Not a lease from now: it may have died right after its sign.
            held = [one for one in mine[registered.name] if one.ticket.until_ms < now_ms + left_ms]
            if held and left_ms and is_delegated(registered):
                await self.extend(registered, [(one.key, one.ticket.fence) for one in held], left_ms)

    async def extend(self, one: Registered, keys: list[tuple[str, int]], lease_ms: int) -> None:
        step = lane_steps.extend(self.client._facts, self.order, one.name, one.session, lease_ms, keys)
        try:
            await self.client.run(step)
        except Fenced:
            return  # It registered again: nothing of the old session is left to extend.

"""Tells the broker what became of messages: all that consumers say at the same time in one call, and with it takes
for them what comes next.

One call is under way at a time; what is said meanwhile goes with the next one. So a busy coordinator needs no more
round trips than a quiet one, and an acknowledgement and the next message of its consumer share one.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from headrace.client import lane_steps
from headrace.client.async_client import AsyncClient
from headrace.client.flow import together
from headrace.client.lane_keys import Order
from headrace.client.lane_steps import Clause
from headrace.errors import CommandError, ConnectionLost, HeadraceError
from headrace.ordered.delegating import Delegator

MOST_TOGETHER: Final = 500  # Messages settled in one call: the broker does others' work between two.


@dataclass(frozen=True, slots=True)
class Said:
    """Something that a consumer has said about a message, and who waits to hear whether it counts."""

    consumer: str
    clause: Clause
    heard: asyncio.Future[bool]


class Settler:
    def __init__(self, client: AsyncClient, order: Order, delegator: Delegator, *, keeps: bool) -> None:
        self.client = client
        self.order = order
        self.delegator = delegator
        self.keeps = keeps
        self.waiting: list[Said] = []
        self.sending: asyncio.Task[None] | None = None

    async def settle(self, consumer: str, clause: Clause) -> bool:
        """Whether it happened; if not, somebody else holds the key by now."""
        said = Said(consumer, clause, asyncio.get_running_loop().create_future())
        self.waiting.append(said)
        if self.sending is None or self.sending.done():
            self.sending = asyncio.ensure_future(self.send_all())
        return await said.heard

    async def send_all(self) -> None:
        while self.waiting:
            part, self.waiting = self.waiting[:MOST_TOGETHER], self.waiting[MOST_TOGETHER:]
            await self.tell(part)

    async def tell(self, part: list[Said]) -> None:
        try:
            flags = await self.send(part)
        except CommandError as error:
            if len(part) == 1:
                answer(part[0], error)
            for said in part if len(part) > 1 else ():  # One of them is refused with all others: each by itself.
                await self.tell([said])
        except Exception as error:  # Whatever it is, those who wait must hear of it.
            for said in part:
                answer(said, error)
        else:
            for said, is_settled in zip(part, flags, strict=True):
                answer(said, is_settled)

    async def send(self, part: list[Said]) -> list[bool]:
        facts = self.client._facts
        clauses = [said.clause for said in part]
        settle = lane_steps.settle(facts, self.order, clauses, keep=self.keeps)
        freed = Counter(said.consumer for said in part)
        wanted = {one: freed[name] for name in freed if (one := self.delegator.find_alive(name)) is not None}
        if len(wanted) < len(freed):
            self.delegator.wake.set()
        takes = [self.delegator.take(one, most) for one, most in wanted.items()]
        try:
            flags, *outcomes = await self.client.run(together(settle, *takes))
        except ConnectionLost:
            # Settling may be repeated, and is, until the broker is back or the time is over. Taking may not: what was
            # taken is pending with its consumer, which sees it when it asks.
            self.delegator.wake.set()
            return await self.client.run(lane_steps.settle(facts, self.order, clauses, keep=self.keeps))
        for (one, most), outcome in zip(wanted.items(), outcomes, strict=True):
            self.delegator.note_between(one, most, outcome)
        return check(flags)

    async def stop(self) -> None:
        if self.sending is not None:
            self.sending.cancel()
            await asyncio.gather(self.sending, return_exceptions=True)
        for said in self.waiting:
            said.heard.cancel()


def answer(said: Said, result: bool | Exception) -> None:
    if said.heard.done():  # Who asked has gone.
        return
    if isinstance(result, Exception):
        said.heard.set_exception(result)
    else:
        said.heard.set_result(result)


def check(flags: Any) -> list[bool]:
    if isinstance(flags, HeadraceError):
        raise flags
    return list(flags)

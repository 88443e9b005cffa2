"""Settling, joined: what finishes while one settlement is under way goes with the next.

One call per message would be most of the work of a worker. So one HR.SETTLE is in flight per stream, and everything
that ends meanwhile gathers. When a whole call has gathered it goes too, so that the server need not wait for us. It may
be repeated after a lost answer without harm, and is until it is answered.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from headrace.app.delivery import Delivery
from headrace.client import worker_steps
from headrace.client.worker_steps import Ack, Clause
from headrace.errors import AccessDenied, ClientClosed, ConnectionLost, NotFound, ProtocolError, Unsupported
from headrace.worker.counters import Counters
from headrace.worker.outage import REFUSED_PAUSE_S, Outage
from headrace.worker.source import Source

NOT_ITS_FAULT: Final = (AccessDenied, ClientClosed, ProtocolError, Unsupported)  # No message can help these.
MOST: Final = 1000  # Messages settled in one call.
MOST_UNDER_WAY: Final = 2  # Calls.

Acked = Callable[[Source, list[Delivery]], None]
Answered = Callable[[Delivery, Clause | None, bool], None]  # None: acknowledged, without more.
Refused = Callable[[Delivery, Exception], None]


class Settler:
    """Of one stream and group."""

    def __init__(
        self, source: Source, outage: Outage, counters: Counters, acked: Acked, answered: Answered, refused: Refused,
        *, keep: bool,
    ) -> None:  # fmt: skip
        self.source = source
        self.outage = outage
        self.counters = counters
        self.acked = acked
        self.answered = answered
        self.refused = refused
        self.keep = keep
        self.acks: list[Delivery] = []
        self.clauses: list[tuple[Clause, list[Delivery]]] = []
        self.tasks: set[asyncio.Task[None]] = set()  # One for each call under way.
        self.is_ending = False

    def ack(self, delivery: Delivery) -> None:
        self.acks.append(delivery)
        if not self.tasks:
            self.start()

    def ack_all(self, deliveries: list[Delivery]) -> None:
        self.acks += deliveries
        if (self.acks and not self.tasks) or (len(self.acks) >= MOST and len(self.tasks) < MOST_UNDER_WAY):
            self.start()

    def settle(self, clause: Clause, *deliveries: Delivery) -> None:
        self.clauses.append((clause, list(deliveries)))
        if not self.tasks:
            self.start()

    def start(self) -> None:
        self.tasks.add(asyncio.ensure_future(self.run()))

    async def flush(self) -> None:
        """Until all is answered; nothing is settled after it."""
        self.is_ending = True
        while self.tasks:
            await asyncio.wait(self.tasks)

    async def run(self) -> None:
        own_task = asyncio.current_task()
        assert own_task is not None
        try:
            if len(self.acks) < MOST:
                await asyncio.sleep(0)  # What ends in the same turn comes along.
            while (self.acks or self.clauses) and (len(self.tasks) == 1 or len(self.acks) >= MOST):
                acks, self.acks = self.acks[:MOST], self.acks[MOST:]
                room = MOST - len(acks)
                others, self.clauses = self.clauses[:room], self.clauses[room:]
                await self.send(acks, others)
        finally:
            self.tasks.discard(own_task)

    async def send(self, acks: list[Delivery], others: list[tuple[Clause, list[Delivery]]]) -> None:
        clauses: list[Clause] = [Ack([delivery.id for delivery in acks])] if acks else []
        clauses += [clause for clause, _ in others]
        try:
            flags = await self.call(clauses)
        except NotFound:  # The group is gone, and with it what we held.
            flags = [False] * (len(acks) + sum(len(deliveries) for _, deliveries in others))
        except Exception as error:  # Whatever it is, what was finished must not be forgotten: it would stay held.
            await self.send_one_by_one(acks, others, error)
            return
        answers = iter(flags[len(acks) :])
        if acks and all(flags[: len(acks)]):
            self.acked(self.source, acks)
        else:
            for delivery, flag in zip(acks, flags, strict=False):
                self.answered(delivery, None, flag)
        for clause, deliveries in others:
            for delivery in deliveries:
                self.answered(delivery, clause, next(answers))

    async def send_one_by_one(
        self, acks: list[Delivery], others: list[tuple[Clause, list[Delivery]]], error: Exception
    ) -> None:
        """A refused call has changed nothing. One of them is to blame; the others must not suffer."""
        if len(acks) + len(others) == 1:
            self.refuse(acks, others, error)
            return
        if acks and others:
            await self.send(acks, [])
        elif acks:
            for delivery in acks:
                await self.send([delivery], [])
        for other in others:
            await self.send([], [other])

    def refuse(self, acks: list[Delivery], others: list[tuple[Clause, list[Delivery]]], error: Exception) -> None:
        """What a run wants to publish may be impossible. All else will be taken once the server is well again."""
        if others and isinstance(others[0][0], Ack) and not isinstance(error, NOT_ITS_FAULT):
            for delivery in others[0][1]:
                self.refused(delivery, error)
            return
        self.outage.refused(self.source.stream, self.source.group, error)
        asyncio.get_running_loop().call_later(REFUSED_PAUSE_S, self.try_again, acks, others)

    def try_again(self, acks: list[Delivery], others: list[tuple[Clause, list[Delivery]]]) -> None:
        if self.is_ending:
            return  # Given back instead.
        for delivery in acks:
            self.ack(delivery)
        for clause, deliveries in others:
            self.settle(clause, *deliveries)

    async def call(self, clauses: list[Clause]) -> list[bool]:
        """Repeated until it is answered."""
        source = self.source
        while True:
            self.counters.settlements += 1
            flow = worker_steps.settle(
                source.client._facts, source.stream, source.group, source.consumer, clauses, keep=self.keep
            )
            try:
                flags = await source.client.run(flow)
            except ConnectionLost as error:
                await self.outage.pause(error)
                continue
            self.outage.over()
            return flags

"""Settling in order: what ends gathers by key, and goes to the server in the order in which it ended.

One LANE.SETTLE has one clause for each key: all its messages that are done, or one other ending. Whatever the server
may refuse (effects, follow-ups) is waited for, as the next message of the key must not run before it is certain.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from headrace.client import lane_steps, worker_steps
from headrace.client.lane_steps import Back, Clause, Done, Fail, Park
from headrace.client.worker_steps import Ack
from headrace.worker.ordered_keys import HeldKey, HeldKeys, OrderedDelivery

MOST: Final = 1000  # Messages settled in one call.

Settlement = worker_steps.Clause | Park | Back


class Ending:
    """How messages ended, if not just well."""

    __slots__ = ("settlement", "deliveries", "answer")

    def __init__(
        self, settlement: Settlement, deliveries: Sequence[OrderedDelivery], answer: "asyncio.Future[bool] | None"
    ) -> None:
        self.settlement = settlement
        self.deliveries = deliveries
        self.answer = answer


class Sent:
    """One clause on its way."""

    __slots__ = ("held", "clause", "done", "ending")

    def __init__(self, held: HeldKey, clause: Clause, done: list[OrderedDelivery], ending: Ending | None) -> None:
        self.held = held
        self.clause = clause
        self.done = done  # Messages that ended well; none when it is another ending.
        self.ending = ending

    @property
    def size(self) -> int:
        return len(self.done) if self.ending is None else max(1, len(self.ending.deliveries))

    @property
    def frees_key(self) -> bool:
        return isinstance(self.clause, (Fail, Park, Back)) or self.held.unsettled <= self.size


class OrderedSettler:
    """Gathers; the consumer sends. It looks like a Settler to the runner."""

    def __init__(self, keys: HeldKeys, runner: Any, *, keep: bool) -> None:
        self.source = keys
        self.runner = runner
        self.keep = keep
        self.endings: dict[HeldKey, deque[OrderedDelivery | Ending]] = {}
        self.filled = asyncio.Event()
        self.is_urgent = asyncio.Event()  # Something waits for its answer, or a key is done with.
        self.tasks: set[asyncio.Task[None]] = set()  # That of the consumer, which sends.

    # Gathering

    def ack(self, delivery: OrderedDelivery) -> None:
        """The last one of a key's run brings the next key; those before it can wait a little for it."""
        self.add(delivery.held, delivery)
        if not delivery.held.waiting:
            self.is_urgent.set()

    def ack_all(self, deliveries: list[Any]) -> None:
        for delivery in deliveries:
            self.ack(delivery)

    def settle(self, settlement: Settlement, *deliveries: OrderedDelivery) -> None:
        """An ending that nobody waits for."""
        held = deliveries[0].held
        if isinstance(settlement, (worker_steps.Retry, Park)):
            held.is_over = True
        self.add(held, Ending(settlement, deliveries, None))

    async def settle_surely(self, settlement: Settlement, deliveries: Sequence[OrderedDelivery]) -> bool:
        """The same, and whether it happened. Raises what the server refuses it with."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.add(deliveries[0].held, Ending(settlement, deliveries, answer))
        return await answer

    def give_back(self, held: HeldKey) -> None:
        held.is_over = True
        self.add(held, Ending(Back(held.key, held.fence), (), None))

    def add(self, held: HeldKey, ending: OrderedDelivery | Ending) -> None:
        endings = self.endings.get(held)
        if endings is None:
            self.endings[held] = deque((ending,))
        else:
            endings.append(ending)
        if isinstance(ending, Ending):
            self.is_urgent.set()
        self.filled.set()

    # Sending

    def collect(self) -> list[Sent]:
        """One clause for each key, in the order in which the keys came; the rest stays for the next time."""
        sent: list[Sent] = []
        size = 0
        for held, endings in list(self.endings.items()):
            if size >= MOST:
                break
            one = self.take_first(held, endings, MOST - size)
            size += one.size
            sent.append(one)
            if not endings:
                del self.endings[held]
        if not self.endings:
            self.filled.clear()
            self.is_urgent.clear()
        return sent

    def take_first(self, held: HeldKey, endings: "deque[OrderedDelivery | Ending]", most: int) -> Sent:
        first = endings[0]
        if isinstance(first, Ending):
            endings.popleft()
            return Sent(held, clause_of(held, first), [], first)
        done: list[OrderedDelivery] = []
        while endings and len(done) < most and isinstance(endings[0], OrderedDelivery):
            done.append(endings.popleft())  # type: ignore[arg-type]  # Looked at in the line above.
        return Sent(held, Done(held.key, held.fence, [delivery.id for delivery in done]), done, None)

    def put_back(self, sent: Sent) -> None:
        """It was refused for now: before all else of its key."""
        endings = self.endings.setdefault(sent.held, deque())
        endings.extendleft(reversed(sent.done) if sent.ending is None else (sent.ending,))
        self.is_urgent.set()
        self.filled.set()

    def settled(self, sent: list[Sent], flags: Sequence[bool], *, is_repeated: bool) -> None:
        """The server's answers. A repeated call may be refused because it was done the first time."""
        done: list[Any] = []
        lost: list[Sent] = []
        for one, was_ours in zip(sent, flags, strict=True):
            if one.ending is not None:
                self.settled_ending(one.held, one.ending, was_ours)
            elif was_ours:
                done += one.done
            else:
                for delivery in one.done:
                    self.runner.answered(delivery, None, False)
            if not was_ours and not is_repeated:
                lost.append(one)
        if done:
            self.runner.acked(self.source, done)
        for one in lost:
            is_told = one.ending is not None and one.ending.answer is not None  # By LeaseLost, where it waits.
            self.runner.lost(one.held, is_told=is_told)
            if not isinstance(one.clause, Back):  # If it was done by a call whose answer was lost, it is ours still.
                self.give_back(one.held)

    def settled_ending(self, held: HeldKey, ending: Ending, was_ours: bool) -> None:
        if was_ours or ending.answer is None:
            for delivery in ending.deliveries:
                self.runner.answered(delivery, ending.settlement, was_ours)
        if isinstance(ending.settlement, Back) and was_ours:
            self.runner.counters.released += held.unsettled
        if isinstance(ending.settlement, (worker_steps.Retry, Park, Back)):
            self.source.remove(held)
        if ending.answer is not None and not ending.answer.done():
            ending.answer.set_result(was_ours)

    def refused(self, sent: Sent, error: Exception) -> bool:
        """Whether somebody is told that its own clause is impossible. If not, it is to be sent again later."""
        answer = None if sent.ending is None else sent.ending.answer
        if answer is None:
            return False
        if not answer.done():
            answer.set_exception(error)
        return True


def clause_of(held: HeldKey, ending: Ending) -> Clause:
    """As the server takes it."""
    settlement = ending.settlement
    if isinstance(settlement, Ack):
        return Done(held.key, held.fence, settlement.ids, settlement.adds, settlement.effects)
    if isinstance(settlement, worker_steps.Retry):
        return Fail(held.key, held.fence, settlement.id, settlement.delay_ms, settlement.error)
    if isinstance(settlement, worker_steps.Bury):
        return lane_steps.Bury(held.key, held.fence, settlement.id, settlement.error, settlement.traceback)
    return settlement

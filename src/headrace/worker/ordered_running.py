"""Running in order: of each key that we hold one message at a time, the next when the one before has ended.

Each message runs in a task of its own, as without order. A message that fails ends the turn of its key: the key waits
and comes again, here or elsewhere, with that message first. After the last attempt the key is parked, or the message
buried (poison="skip"). One that can never succeed is buried at once, and the key goes on.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from headrace.app.context import Effect, FollowUp
from headrace.app.delivery import Delivery
from headrace.app.retries import Bury, Retry
from headrace.client.lane_steps import Back, Grant, Park
from headrace.client.worker_steps import Ack
from headrace.errors import LeaseLost, Misfit
from headrace.worker import events
from headrace.worker.batches import settle_batch
from headrace.worker.decide import BEFORE_TRACEBACK, WORKER_ENDED, GiveUp, describe, read_given_up
from headrace.worker.ordered_keys import HeldKey, HeldKeys, OrderedDelivery
from headrace.worker.ordered_settling import OrderedSettler
from headrace.worker.running import Runner, words_of


class OrderedRunner(Runner):
    keys: HeldKeys
    settler: OrderedSettler
    on_lost: Callable[[], None]

    def add_keys(self, keys: HeldKeys, on_lost: Callable[[], None], *, keep: bool) -> None:
        self.keys = keys
        self.unwinding: dict[str, HeldKey] = {}  # Lost, but their handlers have not ended yet.
        self.on_lost = on_lost
        self.settler = OrderedSettler(keys, self, keep=keep)
        self.settlers[keys.stream] = self.settler  # type: ignore[assignment]  # It takes the same calls.

    # Beginning

    def offer_keys(self, grants: list[Grant], leased_s: float) -> int:
        """Keys that were given to us; the size of their messages."""
        size_bytes = 0
        for grant in grants:
            before = self.keys.held.get(grant.key)
            if before is not None:  # Its lease has ended and it is ours again.
                self.lost(before)
            before = self.unwinding.get(grant.key)  # What runs must end first.
            held = self.keys.add(grant, leased_s)
            self.counters.read += held.unsettled
            size_bytes += held.size_bytes
            if self.is_stopping:
                self.settler.give_back(held)
            elif before is not None and before.task is not None:
                before.task.add_done_callback(partial(self.begin_key, held))
            else:
                self.waiting.append(held.waiting.popleft())
        self.start_more()
        return size_bytes

    def begin_key(self, held: HeldKey, _: "asyncio.Task[None]") -> None:
        if held.waiting and not held.is_over:
            self.waiting.append(held.waiting.popleft())
            self.start_more()

    def run_in_task(self, delivery: Any) -> None:
        super().run_in_task(delivery)
        delivery.held.task = delivery.task

    async def begin(self, delivery: Delivery) -> bool:
        """Which attempt it is came with the key. One that was given up, and could not be buried then, is buried now."""
        attempt, most = delivery.attempt, self.handler.retries.count + 1
        given_up = read_given_up(delivery.last_error or WORKER_ENDED)
        if BEFORE_TRACEBACK in delivery.last_error:
            delivery.attempt, delivery.last_error = min(attempt - 1, most), given_up.error
            await self.bury(delivery, given_up, attempt)
            return False
        if attempt <= most:
            return True
        delivery.attempt = most
        await self.give_up(delivery, given_up, attempt)
        return False

    def ended(self, delivery: Any) -> None:
        held: HeldKey = delivery.held
        held.task = None
        if held.is_lost and self.unwinding.get(held.key) is held:
            del self.unwinding[held.key]
        if not held.is_over and held.waiting:
            if self.is_stopping:
                self.settler.give_back(held)
            else:
                self.waiting.append(held.waiting.popleft())
        self.running -= 1
        self.start_more()

    # Ending

    def stop(self) -> None:
        """No message begins any more. Keys of which none runs are given back at once."""
        self.is_stopping = True
        for delivery in self.take_waiting():
            self.settler.give_back(delivery.held)  # type: ignore[attr-defined]  # Ours have one.

    def lost(self, held: HeldKey, *, is_told: bool = False) -> None:
        """The server has given it to somebody else, or will: whatever runs is broken off."""
        if held.is_lost or self.keys.held.get(held.key) is not held:
            return
        held.is_lost = True
        self.keys.remove(held)
        held.waiting.clear()
        waiting = [delivery for delivery in self.waiting if getattr(delivery, "held", None) is not held]
        self.waiting.clear()
        self.waiting.extend(waiting)
        events.warning("key_lost", stream=held.stream, group=self.handler.group, key=held.key, fence=held.fence)
        if held.task is not None:
            self.unwinding[held.key] = held
            if not is_told:
                self.loop.call_soon(held.task.cancel)  # A task that never began would never give its place back.
        self.on_lost()

    async def failed(self, delivery: Any, error: BaseException) -> None:
        if delivery.held.is_lost and not delivery.is_settled:
            self.answered(delivery, None, False)
            return
        await super().failed(delivery, error)
        if isinstance(error, LeaseLost) and not delivery.held.is_over:
            self.settler.give_back(delivery.held)  # If it is ours all the same, the next one need not wait for it.

    async def give_up(self, delivery: Any, decision: GiveUp, attempt: int) -> None:
        if decision.is_hopeless or self.handler.poison == "skip":
            await self.bury(delivery, decision, attempt)
            return
        held: HeldKey = delivery.held
        events.error(
            "key_parked", stream=held.stream, group=self.handler.group, key=held.key, id=delivery.id,
            attempts=delivery.attempt, error=decision.error,
        )  # fmt: skip
        self.settler.settle(Park(held.key, held.fence, decision.error), delivery)

    # Settlement

    async def settle_with(self, clause: Ack, deliveries: Sequence[Any]) -> None:
        """Only when it is certain may the next message of the key run."""
        if not await self.settler.settle_surely(clause, deliveries):
            held: HeldKey = deliveries[0].held
            raise LeaseLost(
                f"key {held.key!r} is no longer this worker's (fence {held.fence}): its lease ran out and another has "
                f"it, or message {clause.ids[0]} was settled and the answer lost. It was not done now."
            )

    async def commit(self, delivery: Delivery, effects: list[Effect], publish: list[FollowUp]) -> None:
        adds = [self.follow_up(stream, payload) for stream, payload in publish]
        await self.settle_with(Ack([delivery.id], adds, words_of(effects)), [delivery])
        delivery.is_settled = True

    def answered(self, delivery: Delivery, clause: Any, was_ours: bool) -> None:
        if was_ours and isinstance(clause, Park):
            self.keys.drop(delivery)
            self.counters.parked += 1
            self.on_change()
        elif not isinstance(clause, Back):
            super().answered(delivery, clause, was_ours)


class OrderedBatchRunner(OrderedRunner):
    """A key's messages, in order, as one list.

    When a list fails nobody knows which of its messages is to blame: they are run one by one then, in order.
    """

    def run_in_task(self, delivery: Any) -> None:
        held: HeldKey = delivery.held
        batch: list[Any] = [delivery]
        if held.one_by_one:
            held.one_by_one -= 1
        elif not delivery.is_again:
            batch += held.waiting
            held.waiting.clear()
        self.running += 1
        task = self.loop.create_task(self.run_batch(batch))
        for one in batch:
            one.task = task
        held.task = task
        self.tasks.add(task)

    async def run_batch(self, batch: list[Any]) -> None:
        first: OrderedDelivery = batch[0]
        try:
            if not first.is_again or await self.begin(first):
                batch, messages = await self.decode_fitting(batch)
                if batch:
                    await settle_batch(self, batch, await self.call(batch, messages))
        except BaseException as error:
            await self.batch_failed([delivery for delivery in batch if not delivery.is_settled], error)
        finally:
            self.tasks.discard(first.task)
            self.ended(first)

    async def decode_fitting(self, batch: list[Any]) -> tuple[list[Any], list[Any]]:
        """The first ones, up to one that does not fit its type. That one is buried when it is the first."""
        messages: list[Any] = []
        if self.signature.message is None:
            return batch, messages
        for place, delivery in enumerate(batch):
            try:
                messages.append(self.signature.decode(delivery))
            except Misfit as error:
                if place == 0:
                    await self.failed(delivery, error)
                    place = 1
                delivery.held.waiting.extendleft(reversed(batch[place:]))
                return batch[: len(messages)], messages
        return batch, messages

    async def batch_failed(self, batch: list[Any], error: BaseException) -> None:
        if not batch:
            return
        held: HeldKey = batch[0].held
        is_ending = held.is_lost or (self.is_stopping and isinstance(error, asyncio.CancelledError))
        if is_ending or isinstance(error, (LeaseLost, Bury)):
            for delivery in batch:
                await self.failed(delivery, error)
        elif len(batch) == 1 or isinstance(error, Retry):
            await self.failed(batch[0], error)
        else:
            events.warning(
                "batch_failed", stream=held.stream, group=self.handler.group, key=held.key, messages=len(batch),
                error=describe(error),
            )  # fmt: skip
            self.counters.failed += 1
            held.one_by_one = len(batch)
            held.waiting.extendleft(reversed(batch))

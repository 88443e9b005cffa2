"""Batches: messages gather until there are `batch` of them or the first has waited for `wait`.

A failed batch is tried again message by message, each in a batch of its own, so that one bad message does not take
the others to the dead letters with it. One that does not fit its type is buried alone.
"""

import asyncio
import time
from collections import deque
from contextlib import suppress
from types import NoneType
from typing import Any

from headrace.app.delivery import Delivery
from headrace.client.layout import a_type
from headrace.client.worker_steps import Ack
from headrace.errors import ConfigError, Misfit
from headrace.worker.running import Runner


class BatchRunner(Runner):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.again: deque[Delivery] = deque()
        self.first_s = 0.0  # When the oldest that waits came.
        self.timer: asyncio.TimerHandle | None = None

    def offer(self, deliveries: list[Delivery]) -> None:
        self.counters.read += len(deliveries)
        if deliveries and not self.waiting:
            self.first_s = time.monotonic()
        self.again.extend([delivery for delivery in deliveries if delivery.is_again])
        self.waiting.extend([delivery for delivery in deliveries if not delivery.is_again])
        self.start_more()

    def start_more(self) -> None:
        while self.running < self.handler.concurrency and not self.is_stopping:
            ready = self.next_batch()
            if not ready:
                return
            self.running += 1
            self.spawn(self.run_batch(ready))

    def next_batch(self) -> list[Delivery]:
        """What may run now; with a timer set for what may run later."""
        size = self.handler.batch or 1
        left_s = self.first_s + self.handler.wait_ms / 1000 - time.monotonic()
        is_ready = len(self.waiting) >= size or (bool(self.waiting) and left_s <= 0)
        if not is_ready and self.waiting and self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(left_s, self.wait_is_over)
        if not (is_ready or self.again) or (self.rate is not None and not self.rate.may_begin()):
            return []
        if self.again:
            return [self.again.popleft()]
        batch: list[Delivery] = []
        waiting, stream = self.waiting, self.waiting[0].stream
        while len(batch) < size and waiting and waiting[0].stream == stream:
            batch.append(waiting.popleft())  # Of one stream: they are settled together.
        if len(batch) == size:
            self.first_s = time.monotonic()
        return batch

    def wait_is_over(self) -> None:
        self.timer = None
        self.start_more()

    def take_waiting(self) -> list[Delivery]:
        waiting = super().take_waiting() + list(self.again)
        self.again.clear()
        return waiting

    async def run_batch(self, batch: list[Delivery]) -> None:
        try:
            batch = await self.begin_all(batch)
            batch, messages = await self.decode_all(batch)
            if batch:
                await settle_batch(self, batch, await self.call(batch, messages))
        except BaseException as error:
            for delivery in batch:
                await self.failed(delivery, error)
        finally:
            self.place_is_free()

    async def begin_all(self, batch: list[Delivery]) -> list[Delivery]:
        """Those that may run now."""
        if not self.must_begin(batch[0]):
            return batch
        may_run = await asyncio.gather(*[self.begin(delivery) for delivery in batch])
        return [delivery for delivery, may in zip(batch, may_run, strict=True) if may]

    async def decode_all(self, batch: list[Delivery]) -> tuple[list[Delivery], list[Any]]:
        """Those that fit, and what they became."""
        if self.signature.message is None:
            return batch, []
        decode = self.signature.decode
        with suppress(Misfit):
            return batch, [decode(delivery) for delivery in batch]
        fitting: list[Delivery] = []
        messages: list[Any] = []
        for delivery in batch:
            try:
                messages.append(decode(delivery))
            except Misfit as error:
                await self.failed(delivery, error)
            else:
                fitting.append(delivery)
        return fitting, messages

    def place_is_free(self) -> None:
        self.running -= 1
        self.start_more()


async def settle_batch(runner: Runner, batch: list[Any], result: Any) -> None:
    """Acknowledge those that no commit has settled, together with what the batch has returned.

    All hooks run first: when one of them fails, none is acknowledged yet.
    """
    publish_to = runner.handler.publish_to
    if publish_to is not None and not isinstance(result, (list, NoneType)):
        raise ConfigError(f"{runner.handler.name} returned {a_type(result)}; a batch publishes a list.")
    open_ones = [delivery for delivery in batch if not delivery.is_settled]
    if runner.has_settle_hooks:
        for delivery in open_ones:
            await runner.hooks.run("before_ack", runner.context(delivery))
    if publish_to is None or result is None:
        runner.settlers[batch[0].stream].ack_all(open_ones)
    elif open_ones:
        adds = [runner.follow_up(publish_to, payload) for payload in result]
        await runner.settle_with(Ack([delivery.id for delivery in open_ones], adds), open_ones)

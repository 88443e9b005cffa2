"""Plain functions that need nothing but the message: the threads take the messages themselves.

No task and no future is made for such a message: a thread that is free takes the next one that waits, decodes it, calls
the function and goes on. Everything else (a context, a time limit, middleware, messages that come again) takes the
usual way, in the same threads.
"""

import asyncio
import contextvars
import threading
from collections import deque
from typing import Any

from headrace.app.delivery import Delivery
from headrace.worker.calling import call_plain
from headrace.worker.running import Runner


class ThreadedRunner(Runner):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.helps_itself = self.is_plain() and self.handler.rate is None
        self.again: deque[Delivery] = deque()
        self.in_hand: set[Delivery] = set()  # What the threads run just now.
        self.taking = threading.Lock()  # What leaves `waiting` is in a hand at once, whoever looks.
        self.hands_are_empty = asyncio.Event()
        self.around = contextvars.copy_context()  # Each message runs in a copy of its own.

    # On the loop

    def offer(self, deliveries: list[Delivery]) -> None:
        if not self.helps_itself:
            super().offer(deliveries)
            return
        self.counters.read += len(deliveries)
        for delivery in deliveries:
            (self.again if delivery.is_again else self.waiting).append(delivery)
        if self.pool is not None:
            self.pool.wake(len(deliveries))
        self.start_more()

    def start_more(self) -> None:
        if not self.helps_itself:
            super().start_more()
            return
        while self.again and self.running < self.handler.concurrency and not self.is_stopping:
            self.run_in_task(self.again.popleft())

    def place_is_free(self) -> None:
        self.running -= 1
        self.start_more()

    def message_ended(self, delivery: Delivery, error: BaseException | None) -> None:
        if delivery not in self.in_hand:
            return  # Given back meanwhile: it took too long at the end.
        self.in_hand.discard(delivery)
        if error is None:
            self.settlers[delivery.stream].ack(delivery)
        else:
            self.spawn(self.failed(delivery, error))
        if self.is_stopping and not self.in_hand:
            self.hands_are_empty.set()

    def take_waiting(self) -> list[Delivery]:
        waiting = list(self.again)
        self.again.clear()
        with self.taking:
            return waiting + super().take_waiting()

    def stop(self) -> None:
        with self.taking:
            super().stop()
        if self.in_hand:
            self.spawn(self.wait_for_threads())

    async def wait_for_threads(self) -> None:
        try:
            await self.hands_are_empty.wait()
        except asyncio.CancelledError:
            self.unfinished.extend(self.in_hand)
            self.in_hand.clear()
            raise

    # In the threads

    def find_work(self) -> bool:
        with self.taking:
            if not self.helps_itself or self.is_stopping or not self.waiting:
                return False
            delivery = self.waiting.popleft()
            self.in_hand.add(delivery)
        error: BaseException | None = None
        try:
            self.around.copy().run(self.run_message, delivery)
        except BaseException as raised:  # Users' code: failed() decides about all of it.
            error = raised
        assert self.pool is not None
        self.pool.tell((self.message_ended, delivery, error))
        return True

    def run_message(self, delivery: Delivery) -> None:
        assert self.signature.message is not None
        call_plain(self.handler.function, {self.signature.message: self.signature.decode(delivery)})

"""Threads for plain functions, and how they talk with the event loop.

What has ended is told to the loop in one go: while it is on its way to look, others only add to the list. A wake-up
for each would cost ten times as much as a short function (bench/worker.py).
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final

THREAD_NAME: Final = "headrace handler"
JOIN_S: Final = 0.2  # An idle thread has ended by then; one that is held up in a function is left alone.

Ended = tuple[Callable[[Any, Any], None], Any, Any]  # What the loop is to call, and with what.


class Threads:
    """Made when first used. A free thread calls `find_work`, which does one thing or says that there is none."""

    def __init__(self, name: str, size: int, find_work: Callable[[], bool]) -> None:
        self.name = name
        self.size = size
        self.find_work = find_work
        self.loop = asyncio.get_running_loop()
        self.threads: list[threading.Thread] = []
        self.calls: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self.waker: SimpleQueue[None] = SimpleQueue()
        self.ended: deque[Ended] = deque()
        self.is_told = False  # The loop will look at what has ended.
        self.is_closed = False

    # On the loop

    def submit(self, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        """What the function returns or raises."""
        future: asyncio.Future[Any] = self.loop.create_future()
        self.calls.append((function, future))
        self.wake(1)
        return future

    def wake(self, jobs: int) -> None:
        """So many have come. No more wake-ups than threads are under way: each thread works until nothing is left."""
        if not self.threads:
            self.start()
        for _ in range(min(jobs, self.size - self.waker.qsize())):
            self.waker.put(None)

    def start(self) -> None:
        for number in range(self.size):
            thread = threading.Thread(target=self.work, name=f"{THREAD_NAME} {self.name} {number}", daemon=True)
            self.threads.append(thread)
            thread.start()

    def take_ended(self) -> None:
        self.is_told = False  # First: what ends from now on is told again.
        ended = self.ended
        while ended:
            act, one, other = ended.popleft()
            act(one, other)

    def close(self) -> None:
        """Those that are idle end. A function that still runs is not waited for."""
        self.is_closed = True
        self.calls.clear()
        for _ in self.threads:
            self.waker.put(None)
        for thread in self.threads:
            thread.join(JOIN_S / len(self.threads))

    # In the threads

    def work(self) -> None:
        while not self.is_closed:
            if not self.make_call() and not self.find_work():
                self.waker.get()

    def make_call(self) -> bool:
        try:
            function, future = self.calls.popleft()
        except IndexError:  # Another thread was faster, or there was none.
            return False
        if future.cancelled():
            return True  # Whoever wanted it has given it up.
        try:
            result = function()
        except BaseException as error:  # Users' code: whoever waits for it decides.
            self.tell((set_error, future, error))
        else:
            self.tell((set_result, future, result))
        return True

    def tell(self, ended: Ended) -> None:
        self.ended.append(ended)
        if not self.is_told:
            self.is_told = True
            with suppress(RuntimeError):  # The loop is closed: the worker has ended, and given the message back.
                self.loop.call_soon_threadsafe(self.take_ended)


def set_result(future: "asyncio.Future[Any]", result: Any) -> None:
    if not future.done():
        future.set_result(result)


def set_error(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)

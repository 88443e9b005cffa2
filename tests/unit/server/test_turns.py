"""An event loop and callers in other threads on one lock: never at once, and nobody is left out."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from headrace.server.turns import Turn, TurnSelector

LONG_S = 60


class Place:
    """What only one may enter at a time."""

    def __init__(self) -> None:
        self.is_taken = False
        self.visits = {"loop": 0, "caller": 0}

    def visit(self, who: str) -> None:
        assert not self.is_taken
        self.is_taken = True
        time.sleep(0.0002)  # As a sync does: others run, and wait for the lock.
        self.visits[who] += 1
        self.is_taken = False


class Loop:
    """A loop in a thread, whose callbacks visit the place on and on."""

    def __init__(self) -> None:
        self.place = Place()
        self.lock = threading.Lock()
        self.selector = TurnSelector(self.lock)
        self.turn = Turn(self.selector)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.is_busy = True
        self.failures: list[BaseException] = []
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        self.ready.wait(LONG_S)

    def run(self) -> None:
        with self.lock:
            try:
                with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(self.selector)) as runner:
                    runner.run(self.main())
            except BaseException as error:  # Told by the fixture.
                self.failures.append(error)

    async def main(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.stopped = asyncio.Event()
        self.again()
        self.ready.set()
        await self.stopped.wait()

    def again(self) -> None:
        self.place.visit("loop")
        if self.is_busy:
            asyncio.get_running_loop().call_soon(self.again)

    def call(self, action: Callable[[], None]) -> None:
        with self.turn, self.lock:
            action()

    def stop(self) -> None:
        assert self.loop is not None
        self.is_busy = False
        self.loop.call_soon_threadsafe(self.stopped.set)
        self.thread.join(LONG_S)
        assert not self.thread.is_alive()


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.stop()
    assert not loop.failures


def test_a_caller_gets_in_between_the_turns_of_a_busy_loop(loop: Loop) -> None:
    before = loop.place.visits["loop"]
    for _ in range(300):
        loop.call(lambda: loop.place.visit("caller"))

    assert loop.place.visits["loop"] - before < 300 * 5


def test_a_loop_has_its_turns_while_callers_call_on_and_on(loop: Loop) -> None:
    is_enough = threading.Event()

    def call_on() -> None:
        while not is_enough.is_set():
            loop.call(lambda: loop.place.visit("caller"))

    callers = [threading.Thread(target=call_on) for _ in range(3)]
    before = loop.place.visits["loop"]
    for caller in callers:
        caller.start()
    deadline = threading.Event()
    for _ in range(LONG_S * 100):
        if loop.place.visits["loop"] > before + 300:
            break
        deadline.wait(0.01)
    is_enough.set()
    for caller in callers:
        caller.join(LONG_S)

    assert loop.place.visits["loop"] > before + 300


def test_an_errand_is_done_in_the_next_turn_before_all_else(loop: Loop) -> None:
    done: list[str] = []
    is_done = threading.Event()

    def leave_errands() -> None:
        assert loop.loop is not None
        loop.loop.call_soon_threadsafe(done.append, "callback")
        loop.selector.send(loop.loop, lambda: done.append("first"))
        loop.selector.send(loop.loop, lambda: done.append("second"))
        loop.loop.call_soon_threadsafe(is_done.set)

    loop.call(leave_errands)

    assert is_done.wait(LONG_S)
    assert done == ["first", "second", "callback"]


def test_a_loop_that_sleeps_leaves_the_lock_to_callers_and_wakes_for_an_errand(loop: Loop) -> None:
    loop.is_busy = False
    is_done = threading.Event()
    loop.call(lambda: loop.selector.send(loop.loop, is_done.set))

    assert is_done.wait(LONG_S)


def test_a_caller_that_never_comes_holds_up_nobody(loop: Loop) -> None:
    loop.selector.callers.add(-1)  # It was interrupted before it got the lock.
    before = loop.place.visits["loop"]

    while loop.place.visits["loop"] < before + 100:
        threading.Event().wait(0.001)

    assert -1 not in loop.selector.callers

"""An event loop and callers in other threads take turns on one lock.

The loop has the lock while it is awake and lets go of it while it waits for its sockets. So all that happens in the
loop (bytes that arrive, timers, replies that leave) happens alone, and none of it has to know of the lock. That is why
the lock lives in the loop's selector, the one place where the loop waits.

Locks of Python are not fair: who lets go and comes back at once may win for ever. So callers announce themselves, and
the loop waits until one of them has the lock before it goes on; and callers let the loop go first when it waits.

    with broker.turn, broker.lock:    # The lock is a plain one: Ctrl-C never leaves it locked.
        ...
"""

import selectors
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

PAUSE_S: Final = 0.0001
PAUSES: Final = 1000  # So many, at most, for a caller to take the lock: on a busy machine that is not quick.
PATIENCE_S: Final = 0.05  # So long, at most, a caller waits for the loop to have its turn.


class NoTurn:
    """Where there is no loop to take turns with."""

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class TurnSelector(selectors.DefaultSelector):
    """The selector of a loop whose thread holds the lock from its start to its end, but for the waiting here."""

    def __init__(self, lock: threading.Lock) -> None:
        super().__init__()
        self.lock = lock
        self.errands: list[Callable[[], None]] = []
        self.callers: set[int] = set()  # Threads that wait for the lock or have it.
        self.is_loop_waiting = False
        self.had_turn = threading.Event()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.lock.release()
        try:
            if self.callers:
                self.let_callers_go_first()
            return super().select(timeout)
        finally:
            self.begin_turn()

    def let_callers_go_first(self) -> None:
        for _ in range(PAUSES):
            if self.lock.locked() or not self.callers:
                return
            time.sleep(PAUSE_S)
        self.callers.clear()  # They were interrupted, or do not hurry.

    def begin_turn(self) -> None:
        if not self.lock.acquire(blocking=False):
            self.had_turn.clear()
            self.is_loop_waiting = True
            self.lock.acquire()
            self.is_loop_waiting = False
            self.had_turn.set()
        errands, self.errands = self.errands, []
        for errand in errands:
            errand()

    def send(self, loop: Any, errand: Callable[[], None]) -> None:
        """From another thread that holds the lock: have the loop do something before anything else."""
        self.errands.append(errand)
        if len(self.errands) == 1:
            loop.call_soon_threadsafe(nothing)


class Turn:
    """A caller's place in the queue for the lock."""

    def __init__(self, selector: TurnSelector) -> None:
        self.selector = selector

    def __enter__(self) -> None:
        selector = self.selector
        if selector.is_loop_waiting:
            selector.had_turn.wait(PATIENCE_S)
        selector.callers.add(threading.get_ident())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.selector.callers.discard(threading.get_ident())


def nothing() -> None:
    """The loop only has to wake up."""

"""An event loop and callers in other threads take turns on one lock.

The loop has the lock while it is awake and lets go of it while it waits for its sockets. So all that happens in the
loop (bytes that arrive, timers, replies that leave) happens alone, and none of it has to know of the lock. That is why
the lock lives in the loop's selector, the one place where the loop waits.

Locks of Python are not fair: who lets go and comes back at once would win for ever. So the loop pauses when it sees
somebody waiting, and callers let the loop go first when it waits.
"""

import selectors
import threading
import time
from collections.abc import Callable
from typing import Any, Final

PAUSE_S: Final = 0.00005
PAUSES: Final = 20  # So long, at most, the loop waits for a caller to take the lock.
PATIENCE_S: Final = 0.05  # So long, at most, a caller waits for the loop to have its turn.


class TurnSelector(selectors.DefaultSelector):
    """The selector of a loop whose thread holds the lock from its start to its end, but for the waiting here."""

    def __init__(self, lock: threading.Lock) -> None:
        super().__init__()
        self.lock = lock
        self.errands: list[Callable[[], None]] = []
        self.is_caller_waiting = False
        self.is_loop_waiting = False
        self.had_turn = threading.Event()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.lock.release()
        try:
            if self.is_caller_waiting:
                self.let_caller_go_first()
            return super().select(timeout)
        finally:
            self.begin_turn()

    def let_caller_go_first(self) -> None:
        self.is_caller_waiting = False
        for _ in range(PAUSES):
            if self.lock.locked():
                return
            time.sleep(PAUSE_S)

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

    # For callers in other threads

    def queue_up(self) -> None:
        """To be called before the lock is taken."""
        if self.is_loop_waiting:
            self.had_turn.wait(PATIENCE_S)
        if self.lock.locked():
            self.is_caller_waiting = True

    def send(self, loop: Any, errand: Callable[[], None]) -> None:
        """With the lock held: have the loop do something before anything else."""
        self.errands.append(errand)
        if len(self.errands) == 1:
            loop.call_soon_threadsafe(nothing)


def nothing() -> None:
    """The loop only has to wake up."""

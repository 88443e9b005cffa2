"""How many runs may begin in a second."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

MADE_UP_S: Final = 0.1  # At most so much of the time in which nothing began is made up for.


class Rate:
    """Of one handler in one process."""

    def __init__(self, per_s: float, on_allowed: Callable[[], None]) -> None:
        self.pause_s = 1 / per_s
        self.on_allowed = on_allowed
        self.allowed_at_s = 0.0  # When the next may begin.
        self.is_delayed = False

    def may_begin(self) -> bool:
        """Whether one more may now; if not, `on_allowed` is called when it may."""
        now_s = time.monotonic()
        if self.allowed_at_s > now_s:
            if not self.is_delayed:
                self.is_delayed = True
                asyncio.get_running_loop().call_later(self.allowed_at_s - now_s, self.resume)
            return False
        self.allowed_at_s = max(self.allowed_at_s, now_s - MADE_UP_S) + self.pause_s
        return True

    def resume(self) -> None:
        self.is_delayed = False
        self.on_allowed()

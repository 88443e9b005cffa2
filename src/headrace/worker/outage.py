"""The times when the broker cannot be reached: one log line at the beginning, one at the end, and pauses between."""

import asyncio
import time
from typing import Final

from headrace.errors import HeadraceError
from headrace.worker import events

FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 1.0
REFUSED_PAUSE_S: Final = 1.0  # After an answer that only somebody else can change, as when the server's memory is full.


class Outage:
    """Shared by everything in a worker that talks to the broker."""

    __slots__ = ("since_s", "pause_s")

    def __init__(self) -> None:
        self.since_s = 0.0  # 0: there is none.
        self.pause_s = FIRST_PAUSE_S

    async def pause(self, error: HeadraceError) -> None:
        """Before the next try."""
        if not self.since_s:
            self.since_s = time.monotonic()
            events.warning("broker_lost", error=error)
        self.pause_s = min(2 * self.pause_s, LONGEST_PAUSE_S)
        await asyncio.sleep(self.pause_s)

    def over(self) -> None:
        """Something was answered."""
        if self.since_s:
            events.info("broker_back", after_s=round(time.monotonic() - self.since_s, 1))
            self.since_s = 0.0
            self.pause_s = FIRST_PAUSE_S

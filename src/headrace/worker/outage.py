"""The times when the broker cannot be reached, or refuses what it is asked: pauses, and few words.

A lost broker is told once, and when it is back. A refusal is told when it begins, and every half minute while it lasts.
"""

import asyncio
import time
from typing import Final

from headrace.errors import HeadraceError
from headrace.worker import events

FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 1.0
REFUSED_PAUSE_S: Final = 1.0  # After an answer that only somebody else can change, as when the server's memory is full.
TELL_EVERY_S: Final = 30.0
QUIET_S: Final = 10.0  # Refused again after so long without a refusal: that is another time.


class Outage:
    """Shared by everything in a worker that talks to the broker."""

    __slots__ = ("what", "since_s", "pause_s", "refusals")

    def __init__(self, what: str = "broker") -> None:
        self.what = what  # That cannot be reached.
        self.since_s = 0.0  # 0: there is none.
        self.pause_s = FIRST_PAUSE_S
        self.refusals: dict[tuple[str, str], Refusals] = {}

    async def pause(self, error: HeadraceError) -> None:
        """Before the next try."""
        if not self.since_s:
            self.since_s = time.monotonic()
            events.warning(f"{self.what}_lost", error=error)
        self.pause_s = min(2 * self.pause_s, LONGEST_PAUSE_S)
        await asyncio.sleep(self.pause_s)

    def over(self) -> None:
        """Something was answered."""
        if self.since_s:
            events.info(f"{self.what}_back", after_s=round(time.monotonic() - self.since_s, 1))
            self.since_s = 0.0
            self.pause_s = FIRST_PAUSE_S

    def refused(self, stream: str, group: str, error: Exception) -> None:
        """A call about this stream was answered with an error that no worker can heal."""
        now_s = time.monotonic()
        refusals = self.refusals.setdefault((stream, group), Refusals())
        refusals.count += 1
        is_new = now_s - refusals.last_s > QUIET_S
        refusals.last_s = now_s
        if is_new or now_s - refusals.told_s >= TELL_EVERY_S:
            events.error("call_refused", stream=stream, group=group, error=error, times=refusals.count)
            refusals.told_s = now_s
            refusals.count = 0


class Refusals:
    """Of one stream and group."""

    __slots__ = ("count", "last_s", "told_s")

    def __init__(self) -> None:
        self.count = 0  # Since they were told.
        self.last_s = -QUIET_S
        self.told_s = 0.0

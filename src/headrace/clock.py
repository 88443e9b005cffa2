"""The clock, as a seam: who needs the time is given a Clock, so that tests can move it by hand."""

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since 1970, UTC."""

    def now_ms(self) -> int: ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

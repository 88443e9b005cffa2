"""How fast entries are added: `500/s`, `20000/m`, `1/h`."""

import re
import time
from collections.abc import Callable
from typing import Final

from headrace.errors import ConfigError

RATE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(s|m|h)")
SECONDS: Final = {"s": 1, "m": 60, "h": 3600}
LONGEST_SLEEP_S: Final = 0.2  # So that a task that is to end does so at once.
PER_STEP_S: Final = 0.2  # What is added at one time is no more than the share of so long.


def parse_rate(text: str) -> float:
    """Entries per second."""
    match = RATE.fullmatch(text.strip())
    rate = float(match[1]) / SECONDS[match[2]] if match else 0.0
    if not 0 < rate < 1e9:
        raise ConfigError(f"rate is {text!r}; write entries per time, like 500/s, 20000/m or 1000/h.")
    return rate


class Pace:
    """Waits before each step so that, over all steps, no more than `rate` entries per second go out."""

    def __init__(
        self,
        rate: float | None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.rate = rate
        self.now = now
        self.sleep = sleep
        self.began: float | None = None
        self.sent = 0

    def step_size(self, most: int) -> int:
        """How many entries may go out at one time."""
        return most if self.rate is None else max(1, min(most, int(self.rate * PER_STEP_S)))

    def wait(self, count: int) -> None:
        """Wait until `count` more may go out, and count them."""
        if self.rate is None:
            return
        if self.began is None:
            self.began = self.now()
        due = self.began + self.sent / self.rate
        while (left := due - self.now()) > 0:
            self.sleep(min(left, LONGEST_SLEEP_S))
        self.sent += count

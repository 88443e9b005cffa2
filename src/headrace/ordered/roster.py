"""Who is alive, as far as this coordinator knows: when it last had a sign of life from a consumer.

A sign is an answer of the health URL, or any call of the consumer itself. It is kept in memory only, because nothing
hangs on it but whether keys are taken and extended on the consumer's behalf: another coordinator that has signs of its
own goes on doing that, and without any the lease ends.
"""

import time
from typing import Any, Final

from headrace.client.lane_views import Registered
from headrace.ordered.bodies import BY_CALLS

TELL_EVERY_S: Final = 1.0


class Roster:
    """Consumers that the coordinator takes for. Others, which take for themselves, have no health URL."""

    def __init__(self, lease_ms: int) -> None:
        self.lease_s = lease_ms / 1000
        self.signs: dict[tuple[str, int], float] = {}  # By name and session.
        self.failures: dict[tuple[str, int], int] = {}  # Health checks in a row.
        self.told: dict[tuple[str, int], float] = {}  # When the broker last heard of a sign.

    def note(self, consumer: str, session: int) -> None:
        self.signs[consumer, session] = time.monotonic()
        self.failures.pop((consumer, session), None)

    def is_to_be_told(self, consumer: str, session: int) -> bool:
        """Whether it is time to tell the broker of a sign, for others to see. A busy consumer gives many."""
        now_s = time.monotonic()
        if now_s - self.told.get((consumer, session), 0.0) < min(TELL_EVERY_S, self.lease_s / 6):
            return False
        self.told[consumer, session] = now_s
        return True

    def note_failure(self, consumer: str, session: int) -> int:
        """How many times in a row its health URL gave no good answer."""
        count = self.failures.get((consumer, session), 0) + 1
        self.failures[consumer, session] = count
        return count

    def is_alive(self, one: Registered) -> bool:
        return self.left_ms(one) > 0

    def left_ms(self, one: Registered) -> int:
        """For how long its keys may be held without another sign: a lease from the last one."""
        sign_s = self.signs.get((one.name, one.session))
        return 0 if sign_s is None else max(0, round(1000 * (sign_s + self.lease_s - time.monotonic())))

    def forget_others(self, registered: list[Registered]) -> None:
        """So that it grows no larger than the map of consumers."""
        known = {(one.name, one.session) for one in registered}
        kept: dict[tuple[str, int], Any]
        for kept in (self.signs, self.failures, self.told):
            for who in kept.keys() - known:
                del kept[who]


def is_delegated(one: Registered) -> bool:
    """Whether coordinators take for this consumer."""
    return bool(one.health)


def has_health_url(one: Registered) -> bool:
    return is_delegated(one) and one.health != BY_CALLS

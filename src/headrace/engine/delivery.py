"""A batch of entries given to one consumer at one time, and the consumer who has it.

All entries of a delivery share its time and its count. One of them belongs to it while the group's pending entries say
so (`pending_entries.py`); `left` counts them, so an ack touches one dict and one number.
"""

from collections import deque
from typing import Final

from headrace.engine.name_order import NameOrder

NEVER: Final = -1  # A consumer that was never given anything.
SWEEP_AT: Final = 32  # Fewer stale items than this are not worth a sweep.
MAX_DELIVERIES: Final = 2**63 - 1  # Counting stops there: no reply can hold more.


class Consumer:
    __slots__ = ("name", "seen_ms", "active_ms", "deliveries", "emptied", "order")

    def __init__(self, name: bytes, now_ms: int) -> None:
        self.name = name
        self.seen_ms = now_ms  # Last attempt of any kind.
        self.active_ms = NEVER  # Last time it was given something.
        self.deliveries: deque[Delivery] = deque()
        self.emptied = 0
        self.order: NameOrder | None = None

    def count_pending(self) -> int:
        return sum([delivery.left for delivery in self.deliveries])

    def count_emptied(self) -> None:
        """One of the deliveries has nothing left: it goes with the next sweep."""
        self.emptied += 1
        if self.emptied > SWEEP_AT and self.emptied * 2 > len(self.deliveries):
            self.deliveries = deque([kept for kept in self.deliveries if kept.left])
            self.emptied = 0


class Delivery:
    __slots__ = ("consumer", "time_ms", "count", "names", "left", "is_gone", "is_folded", "first_id", "last_ms")

    def __init__(self, consumer: Consumer | None, time_ms: int, count: int, names: list[bytes]) -> None:
        self.consumer = consumer  # None: released by XNACK, owned by nobody.
        self.time_ms = time_ms
        self.count = count  # How often these entries have been delivered.
        self.names = names  # Empty while it is folded.
        self.left = len(names)
        self.is_gone = False  # None of its entries is in the stream any more: nothing to claim here.
        self.is_folded = False  # Its names are packed away (fold.py), perhaps with those of later deliveries:
        self.first_id = 0  # from this ID on,
        self.last_ms = time_ms  # and the last of them was delivered then.

"""Which publish ids a stream has seen, and the entry each became (HR.ADD ID).

An id is looked up within a window: one seen longer ago counts as new. Records stand oldest first; adding one drops some
of those out of the window and of those beyond the limit. Looking up drops nothing, so that the journal need not know
of it. A record outlives its entry. Of a message that comes later there is no entry yet: its record has the ID 0.

Time arrives as now_ms. Window and limit come with each call: they belong to the caller's settings, not to the data.
"""

from collections import OrderedDict
from typing import Final

DROPS_PER_ADD: Final = 100  # Dropped by one addition, of either kind: more than one, so that they run out.
ID_BITS: Final = 128
ID_MASK: Final = (1 << ID_BITS) - 1
UNKNOWN: Final = -1  # Not seen within the window.
DELAYED: Final = 0  # Seen, and not an entry yet.


class PublishIds:
    __slots__ = ("records",)

    def __init__(self) -> None:
        # publish id -> time << 128 | entry ID: one integer takes half of what a pair does.
        # An OrderedDict, because a plain dict searches for its oldest item over all that were dropped before.
        self.records: OrderedDict[bytes, int] = OrderedDict()

    def find(self, publish_id: bytes, now_ms: int, window_ms: int) -> int:
        """The ID of the entry it became within the window, or DELAYED, or UNKNOWN."""
        record = self.records.get(publish_id)
        if record is None or record >> ID_BITS <= now_ms - window_ms:
            return UNKNOWN
        return record & ID_MASK

    def count_surplus(self, publish_id: bytes, now_ms: int, window_ms: int, limit: int) -> int:
        """How many of the oldest records go when this id, not found in the window, is added."""
        others = len(self.records) - (publish_id in self.records)
        expired = 0
        for known, record in self.records.items():
            if expired == DROPS_PER_ADD or record >> ID_BITS > now_ms - window_ms:
                break
            if known != publish_id:
                expired += 1
        return expired + min(max(0, others - expired + 1 - limit), DROPS_PER_ADD)

    def add(self, publish_id: bytes, entry_id: int, time_ms: int, surplus: int) -> None:
        """Record an id; so many of the oldest others go."""
        self.records.pop(publish_id, None)
        for _ in range(surplus):
            self.records.popitem(last=False)
        self.records[publish_id] = time_ms << ID_BITS | entry_id

    def settle(self, publish_id: bytes, entry_id: int) -> bool:
        """A delayed message has become this entry. Whether its id is still known; it keeps its time."""
        record = self.records.get(publish_id)
        if record is None or record & ID_MASK != DELAYED:
            return False
        self.records[publish_id] = record | entry_id
        return True

"""One element of a reliable queue, and the alarms by which elements change their place by themselves.

An element has one alarm at most. Setting it anew leaves the old one in the heap, where it is passed over; those are
swept out before they are more than half of all.
"""

from heapq import heapify, heappop, heappush
from typing import Final

from headrace.engine.ids import id_of

FRESH: Final = 0
RETURNED: Final = 1
DELIVERED: Final = 2
DELAYED: Final = 3
GONE: Final = 4

NEVER_MS: Final = 0  # No alarm, no end of life, no retry.
SPARE_ALARMS: Final = 64  # So few are never swept.


class Options:
    """How one push wants its elements treated; shared by all of them."""

    __slots__ = ("retry_ms", "max_deliveries", "dead_letter")

    def __init__(self, retry_ms: int, max_deliveries: int, dead_letter: bytes) -> None:
        self.retry_ms = retry_ms  # Given back when not acknowledged for so long; 0: never.
        self.max_deliveries = max_deliveries  # 0: any number.
        self.dead_letter = dead_letter  # The queue for what was delivered too often; empty: dropped.


class Element:
    __slots__ = ("name", "body", "options", "place", "deliveries", "time_ms", "expires_ms", "alarm_ms")

    def __init__(self, name: bytes, body: bytes, options: Options | None) -> None:
        self.name = name  # Its ID as text.
        self.body = body
        self.options = options
        self.place = FRESH
        self.deliveries = 0
        self.time_ms = 0  # Delivered: when last. Delayed: until when.
        self.expires_ms = NEVER_MS  # Dropped when it has not been delivered by then.
        self.alarm_ms = NEVER_MS

    def is_exhausted(self) -> bool:
        """Whether it has had all its deliveries."""
        options = self.options
        return options is not None and 0 < options.max_deliveries <= self.deliveries


class Alarms:
    __slots__ = ("heap", "armed", "serial")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, int, Element]] = []  # By time, then by ID.
        self.armed = 0  # Elements that have one.
        self.serial = 0  # Keeps two alarms of one element apart.

    def set(self, element: Element, when_ms: int) -> None:
        """Set the element's alarm anew, or take it back (NEVER_MS)."""
        if element.alarm_ms:
            self.armed -= 1
        element.alarm_ms = when_ms
        if when_ms:
            self.armed += 1
            self.serial += 1
            heappush(self.heap, (when_ms, id_of(element.name), self.serial, element))
        if len(self.heap) > SPARE_ALARMS and len(self.heap) > 2 * self.armed:
            self.sweep()

    def sweep(self) -> None:
        kept: dict[bytes, tuple[int, int, int, Element]] = {}
        for alarm in self.heap:
            if alarm[3].alarm_ms == alarm[0]:
                kept[alarm[3].name] = alarm
        self.heap = list(kept.values())
        heapify(self.heap)

    def next_ms(self) -> int:
        """When the next one rings, or NEVER_MS."""
        while self.heap:
            when_ms, _, _, element = self.heap[0]
            if element.alarm_ms == when_ms:
                return when_ms
            heappop(self.heap)
        return NEVER_MS

    def pop(self) -> Element:
        """Take out the next one, which must be there (`next_ms`)."""
        element = heappop(self.heap)[3]
        element.alarm_ms = NEVER_MS
        self.armed -= 1
        return element

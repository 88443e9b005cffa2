"""A reliable queue: what was handed out is kept until it is acknowledged.

An element is in one place at a time, and its body is stored once:

    fresh       pushed and never delivered, oldest push first
    returned    delivered before and given back (NACK, retry time), lowest ID first; served before the fresh ones
    delivered   with a consumer, by the time of the last delivery
    delayed     not to be delivered before its time

Fresh and returned together are the undelivered elements. What comes by itself (the end of a delay, of a retry time or
of a time to live) is an alarm; `advance` rings those whose time has come, in order, so it does not matter how often
it is called. Time arrives as now_ms. Which elements have been delivered too often is for the caller to ask
(`is_exhausted`), because they may go to another queue.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import islice
from typing import Final

from headrace.engine.ids import MAX_PART, id_of
from headrace.engine.queue_element import (
    DELAYED,
    DELIVERED,
    FRESH,
    GONE,
    NEVER_MS,
    RETURNED,
    Alarms,
    Element,
    Options,
)

SPARE_GONE: Final = 64  # Fresh elements whose time is over are swept out once they are so many, and half of all.
LEAST_ROOM: Final = 4096  # A dict that was never larger than this is not worth making smaller.


class ReliableQueue:
    __slots__ = (
        "last_ms", "last_sequence", "fresh", "gone", "returned", "delivered", "delayed", "alarms", "latest_ms",
        "is_ordered", "room", "takes_in", "gives_out", "nacks", "redeliveries", "dead", "expired",
    )  # fmt: skip

    def __init__(self) -> None:
        self.last_ms = 0  # Both halves of the last ID.
        self.last_sequence = 0
        self.fresh: deque[Element] = deque()
        self.gone = 0  # Elements in `fresh` that are not there any more.
        self.returned: list[tuple[int, Element]] = []  # A heap by ID.
        # Not a plain dict: taking from its front again and again would pass over all that was taken before.
        self.delivered: OrderedDict[bytes, Element] = OrderedDict()
        self.delayed: dict[bytes, Element] = {}
        self.alarms = Alarms()
        self.latest_ms = 0  # Of all deliveries.
        self.is_ordered = True  # False after the clock went back: `delivered` must be sorted before it is relied on.
        self.room = 0  # The most that `delivered` has held since it was made.
        self.takes_in = True
        self.gives_out = True
        self.nacks = 0
        self.redeliveries = 0
        self.dead = 0  # Delivered too often.
        self.expired = 0  # Not delivered in time.

    def count_undelivered(self) -> int:
        return len(self.returned) + len(self.fresh) - self.gone

    # In

    def follow_clock(self, now_ms: int) -> None:
        """The next IDs are of this time; a clock that went back is not followed."""
        if now_ms > self.last_ms:
            self.last_ms = now_ms
            self.last_sequence = 0

    def begin_at(self, first_id: int) -> None:
        """The next ID is this one, because it was."""
        self.last_ms = first_id >> 64
        self.last_sequence = (first_id & MAX_PART) - 1

    def push(self, now_ms: int, bodies: list[bytes]) -> list[bytes]:
        """Append elements without any options. Their names."""
        self.follow_clock(now_ms)
        milliseconds = self.last_ms
        sequence = self.last_sequence
        names: list[bytes] = []
        append = self.fresh.append
        for body in bodies:
            sequence += 1
            name = b"%d-%d" % (milliseconds, sequence)
            names.append(name)
            append(Element(name, body, None))
        self.last_sequence = sequence
        return names

    def push_with(
        self, now_ms: int, bodies: list[bytes], options: Options | None, ready_ms: int, expires_ms: int
    ) -> list[bytes]:
        """Append elements that wait until ready_ms (0: at once) and are dropped at expires_ms (0: never)."""
        self.follow_clock(now_ms)
        names: list[bytes] = []
        for body in bodies:
            self.last_sequence += 1
            element = Element(self.last_name(), body, options)
            element.expires_ms = expires_ms
            names.append(element.name)
            if ready_ms:
                self.delay(element, ready_ms)
            else:
                self.fresh.append(element)
                self.alarms.set(element, expires_ms)
        return names

    def last_name(self) -> bytes:
        return b"%d-%d" % (self.last_ms, self.last_sequence)

    # Out

    def take(self) -> Element | None:
        """Remove the next undelivered element: the caller delivers or buries it."""
        if self.returned:
            return heappop(self.returned)[1]
        while self.fresh:
            element = self.fresh.popleft()
            if element.place == FRESH:
                return element
            self.gone -= 1
        return None

    def deliver(self, element: Element, now_ms: int) -> None:
        """Hand out an element that was taken."""
        if element.deliveries:
            self.redeliveries += 1
        element.deliveries += 1
        element.time_ms = now_ms
        element.place = DELIVERED
        element.expires_ms = NEVER_MS
        self.note_time(now_ms)
        self.delivered[element.name] = element
        if len(self.delivered) > self.room:
            self.room = len(self.delivered)
        if element.options is not None or element.alarm_ms:
            self.set_retry(element)

    def bury(self, element: Element) -> None:
        """Drop an element that was taken and has been delivered too often."""
        self.dead += 1
        self.forget(element)

    def take_delivered(self, element: Element) -> None:
        """Remove a delivered element: the caller buries it."""
        del self.delivered[element.name]

    def redeliver(self, element: Element, now_ms: int) -> None:
        """Hand out a delivered element once more."""
        self.redeliveries += 1
        element.deliveries += 1
        self.restart(element, now_ms)

    def restart(self, element: Element, now_ms: int) -> None:
        """Count the time of a delivered element from now on."""
        element.time_ms = now_ms
        self.note_time(now_ms)
        self.delivered.move_to_end(element.name)
        self.set_retry(element)

    def ack(self, name: bytes) -> bool:
        """Forget a delivered element."""
        element = self.delivered.pop(name, None)
        if element is None:
            return False
        self.forget(element)
        return True

    def give_back(self, name: bytes, ready_ms: int) -> bool:
        """A delivered element failed: it is undelivered again, or delayed until ready_ms."""
        element = self.delivered.pop(name, None)
        if element is None:
            return False
        self.nacks += 1
        if ready_ms:
            self.delay(element, ready_ms)
        else:
            self.put_back(element)
            self.alarms.set(element, NEVER_MS)
        self.make_smaller()
        return True

    # Places

    def delay(self, element: Element, ready_ms: int) -> None:
        element.place = DELAYED
        element.time_ms = ready_ms
        self.delayed[element.name] = element
        expires_ms = element.expires_ms
        self.alarms.set(element, expires_ms if 0 < expires_ms < ready_ms else ready_ms)

    def put_back(self, element: Element) -> None:
        element.place = RETURNED
        heappush(self.returned, (id_of(element.name), element))

    def forget(self, element: Element) -> None:
        element.place = GONE
        element.body = b""  # An alarm may hold the element a little longer.
        if element.alarm_ms:
            self.alarms.set(element, NEVER_MS)
        if self.room > LEAST_ROOM:
            self.make_smaller()

    def make_smaller(self) -> None:
        """A dict keeps the room it once needed: move to a new one when most of it is empty."""
        if self.room > LEAST_ROOM and len(self.delivered) < self.room // 4:
            self.delivered = OrderedDict(self.delivered)
            self.room = len(self.delivered)

    def note_time(self, now_ms: int) -> None:
        if now_ms >= self.latest_ms or not self.delivered:
            self.latest_ms = now_ms
        else:
            self.is_ordered = False

    def put_in_order(self) -> None:
        if not self.is_ordered:
            self.delivered = OrderedDict(sorted(self.delivered.items(), key=time_of))
            self.is_ordered = True
            self.room = len(self.delivered)

    # Alarms

    def set_retry(self, element: Element) -> None:
        options = element.options
        if options is not None and options.retry_ms:
            self.alarms.set(element, element.time_ms + options.retry_ms)
        elif element.alarm_ms:
            self.alarms.set(element, NEVER_MS)

    def advance(self, now_ms: int) -> int:
        """Ring the alarms up to now. How many elements changed their place."""
        changed = 0
        when_ms = self.alarms.next_ms()
        while NEVER_MS < when_ms <= now_ms:
            self.ring(self.alarms.pop(), when_ms)
            changed += 1
            when_ms = self.alarms.next_ms()
        return changed

    def ring(self, element: Element, when_ms: int) -> None:
        if element.place == DELIVERED:
            del self.delivered[element.name]
            self.put_back(element)
            self.make_smaller()
        elif 0 < element.expires_ms <= when_ms:
            self.expire(element)
        else:
            self.end_delay(element)

    def end_delay(self, element: Element) -> None:
        self.leave_delayed(element)
        if element.deliveries:
            self.put_back(element)
        else:
            element.place = FRESH
            self.fresh.append(element)
            self.alarms.set(element, element.expires_ms)

    def expire(self, element: Element) -> None:
        self.expired += 1
        if element.place == DELAYED:
            self.leave_delayed(element)
        else:
            self.gone += 1
        self.forget(element)
        if self.gone > SPARE_GONE and 2 * self.gone > len(self.fresh):
            self.fresh = deque([one for one in self.fresh if one.place == FRESH])
            self.gone = 0

    def leave_delayed(self, element: Element) -> None:
        del self.delayed[element.name]
        if not self.delayed:
            self.delayed = {}  # The old one keeps the room it once needed.

    # Views

    def undelivered_from(self, start: int, count: int) -> list[Element]:
        """Up to `count` undelivered elements in the order they will be handed out."""
        size = self.count_undelivered()
        if 2 * start > size:  # Nearer to the end.
            stop = max(0, size - start - count)
            found = list(islice(self.undelivered_backwards(), stop, size - start))
            found.reverse()
            return found
        return list(islice(self.undelivered(), start, start + count))

    def undelivered(self) -> Iterator[Element]:
        self.returned.sort()  # A sorted list is a heap.
        for _, element in self.returned:
            yield element
        for element in self.fresh:
            if element.place == FRESH:
                yield element

    def undelivered_backwards(self) -> Iterator[Element]:
        for element in reversed(self.fresh):
            if element.place == FRESH:
                yield element
        self.returned.sort()
        for _, element in reversed(self.returned):
            yield element

    def delivered_from(self, start: int, count: int) -> list[Element]:
        """Up to `count` delivered elements, longest ago first."""
        self.put_in_order()
        size = len(self.delivered)
        if 2 * start > size:
            stop = max(0, size - start - count)
            found = list(islice(reversed(self.delivered.values()), stop, size - start))
            found.reverse()
            return found
        return list(islice(self.delivered.values(), start, start + count))

    def delayed_from(self, start: int, count: int) -> list[Element]:
        """Up to `count` delayed elements, soonest first."""
        return sorted(self.delayed.values(), key=due_of)[start : start + count]


def time_of(item: tuple[bytes, Element]) -> int:
    return item[1].time_ms


def due_of(element: Element) -> tuple[int, int]:
    return element.time_ms, id_of(element.name)

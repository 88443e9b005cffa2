"""Consumer groups and their pending entries.

An entry is pending from its delivery until it is acked, claimed away or dropped. A Delivery is one batch given to one
consumer at one time: the names it was given, and how many of them are left. The group's dict `pending` maps each
pending name to its delivery and is the only truth: a name belongs to a delivery while `pending[name] is delivery`, so
an ack touches one dict and one counter. 96 bytes per pending entry in batches of 100 (bench/broker.py).

Three orders are kept besides: by delivery time (the deque `deliveries`, for claiming what is idle), and by ID for the
group and for each consumer (`NameOrder`, made when first asked for). Emptied deliveries and stale names are swept when
they are the larger part.

Time arrives as now_ms. Replies and wire formats live in commands/.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

from headrace.engine.ids import id_of
from headrace.engine.node import Node

NEVER: Final = -1  # A consumer that was never given anything.
MAX_DELIVERIES: Final = 2**63 - 1  # Counting stops there: no reply can hold more.
RELEASED_MS: Final = 0  # Delivery time of an entry given back by XNACK: older than any threshold.
SWEEP_AT: Final = 32  # Fewer stale items than this are not worth a sweep.
STALE_FRONT: Final = 256  # So many names that left a delivery from its front are cut off.


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


class Delivery:
    __slots__ = ("consumer", "time_ms", "count", "names", "left", "is_gone")

    def __init__(self, consumer: Consumer | None, time_ms: int, count: int, names: list[bytes]) -> None:
        self.consumer = consumer  # None: released by XNACK, owned by nobody.
        self.time_ms = time_ms
        self.count = count  # How often these entries have been delivered.
        self.names = names
        self.left = len(names)
        self.is_gone = False  # None of its entries is in the stream any more: nothing to claim here.


class NameOrder:
    """Names in ID order, some of them stale. Sorted again when asked after an insertion out of order."""

    __slots__ = ("names", "is_sorted", "passed")

    def __init__(self, names: list[bytes]) -> None:
        self.names = names
        self.is_sorted = False
        self.passed = 0  # Stale names passed over since they were last swept; as many as there are names pay for it.

    def add(self, names: list[bytes]) -> None:
        """More names, themselves in ID order."""
        if self.is_sorted and self.names and id_of(names[0]) <= id_of(self.names[-1]):
            self.is_sorted = False
        self.names += names

    def sort(self) -> None:
        if not self.is_sorted:
            self.names = sorted(set(self.names), key=id_of)
            self.is_sorted = True

    def find(self, start: int) -> int:
        """Index of the first name whose ID is not below start."""
        low = 0
        high = len(self.names)
        while low < high:
            middle = (low + high) >> 1
            if id_of(self.names[middle]) < start:
                low = middle + 1
            else:
                high = middle
        return low


class Group:
    __slots__ = (
        "last_id", "entries_read", "consumers", "pending", "deliveries", "emptied", "is_time_sorted", "may_repeat",
        "order", "released", "cursor_node", "cursor_edits", "cursor_index", "cursor_id", "cursor_names",
        "cursor_entries",
    )  # fmt: skip

    def __init__(self, last_id: int, entries_read: int) -> None:
        self.last_id = last_id
        self.entries_read = entries_read
        self.consumers: dict[bytes, Consumer] = {}
        self.pending: dict[bytes, Delivery] = {}
        self.deliveries: deque[Delivery] = deque()
        self.emptied = 0
        self.is_time_sorted = True
        self.may_repeat = False  # An entry behind last_id may be pending already.
        self.order: NameOrder | None = None
        self.released = 0  # How many pending entries nobody owns.
        # The read cursor belongs to Stream.read_new.
        self.cursor_node: Node | None = None
        self.cursor_edits = 0
        self.cursor_index = 0
        self.cursor_id = -1
        self.cursor_names: list[bytes] = []
        self.cursor_entries: list[bytes] = []

    # Consumers

    def get_consumer(self, name: bytes, now_ms: int) -> Consumer:
        """The consumer, created when it is new. Either way it has now been seen."""
        consumer = self.consumers.get(name)
        if consumer is None:
            consumer = Consumer(name, now_ms)
            self.consumers[name] = consumer
        else:
            consumer.seen_ms = now_ms
        return consumer

    def delete_consumer(self, name: bytes) -> int:
        """Forget a consumer and drop what is pending with it. How many entries that were."""
        consumer = self.consumers.pop(name, None)
        if consumer is None:
            return 0
        dropped = self.names_of(consumer)
        self.ack(dropped)
        return len(dropped)

    def names_of(self, consumer: Consumer) -> list[bytes]:
        """Everything pending with the consumer, in no particular order."""
        pending = self.pending
        return [
            name
            for delivery in consumer.deliveries
            if delivery.left
            for name in delivery.names
            if pending.get(name) is delivery
        ]

    def set_last_id(self, last_id: int) -> None:
        if last_id < self.last_id:
            self.may_repeat = True
        self.last_id = last_id

    # Delivering

    def deliver(self, consumer: Consumer, names: list[bytes], now_ms: int) -> None:
        """Entries read for the first time become pending with the consumer."""
        if self.may_repeat:
            self.take_back(names)
        delivery = Delivery(consumer, now_ms, 1, names)
        self.pending.update(dict.fromkeys(names, delivery))
        self.file(delivery, names)
        if self.order is not None:
            self.extend_order(self.order, names)

    def assign(self, consumer: Consumer | None, names: list[bytes], time_ms: int, count: int) -> None:
        """Entries become pending with the consumer whatever they were before: claimed, read again, or forced."""
        pending = self.pending
        fresh: list[bytes] = []
        arriving: list[bytes] = []
        for name in names:
            held = pending.get(name)
            if held is None:
                fresh.append(name)
                arriving.append(name)
            else:
                self.leave(held)
                if held.consumer is not consumer:
                    arriving.append(name)
        # The caller may name entries in any order; NameOrder is told of them by ID.
        fresh.sort(key=id_of)
        arriving.sort(key=id_of)
        delivery = Delivery(consumer, time_ms, count, names)
        for name in names:
            pending[name] = delivery
        self.file(delivery, arriving)
        if consumer is None:
            self.released += len(names)
        if fresh:
            if any([id_of(name) > self.last_id for name in fresh]):
                self.may_repeat = True
            if self.order is not None:
                self.extend_order(self.order, fresh)

    def file(self, delivery: Delivery, arriving: list[bytes]) -> None:
        """Put a delivery where it is found by time, and with its consumer, who had not all of its names before."""
        deliveries = self.deliveries
        if deliveries and deliveries[-1].time_ms > delivery.time_ms:
            self.is_time_sorted = False
        deliveries.append(delivery)
        consumer = delivery.consumer
        if consumer is not None:
            consumer.deliveries.append(delivery)
            if consumer.order is not None and arriving:
                self.extend_consumer_order(consumer, consumer.order, arriving)

    def take_back(self, names: list[bytes]) -> None:
        """Take names out of the deliveries that hold them. They stay in `pending` until given a new one."""
        pending = self.pending
        for name in names:
            delivery = pending.get(name)
            if delivery is not None:
                self.leave(delivery)

    def leave(self, delivery: Delivery) -> None:
        """One entry less in a delivery."""
        delivery.left -= 1
        consumer = delivery.consumer
        if consumer is None:
            self.released -= 1
        if delivery.left == 0:
            self.emptied += 1
            if self.emptied > SWEEP_AT and self.emptied * 2 > len(self.deliveries):
                self.deliveries = deque([kept for kept in self.deliveries if kept.left])
                self.emptied = 0
            if consumer is not None:
                consumer.emptied += 1
                if consumer.emptied > SWEEP_AT and consumer.emptied * 2 > len(consumer.deliveries):
                    consumer.deliveries = deque([kept for kept in consumer.deliveries if kept.left])
                    consumer.emptied = 0
        elif delivery.left * 4 < len(delivery.names):
            self.shrink(delivery)

    # Acknowledging

    def ack(self, names: list[bytes]) -> list[bytes]:
        """Entries that are pending no longer are. Those that were, in the order given."""
        pending = self.pending
        acked: list[bytes] = []
        for name in names:
            delivery = pending.pop(name, None)
            if delivery is None:
                continue
            acked.append(name)
            if delivery.left > 1 and delivery.consumer is not None:
                delivery.left -= 1
                if delivery.left * 4 < len(delivery.names):
                    self.shrink(delivery)
            else:
                self.leave(delivery)
        return acked

    def shrink(self, delivery: Delivery) -> None:
        """Forget the settled names of a large delivery of which little is left."""
        if len(delivery.names) > SWEEP_AT:
            pending = self.pending
            delivery.names = [name for name in delivery.names if pending.get(name) is delivery]

    # Orders

    def extend_order(self, order: NameOrder, names: list[bytes]) -> None:
        if len(order.names) > 2 * len(self.pending) + SWEEP_AT:
            self.order = None
        else:
            order.add(names)

    def extend_consumer_order(self, consumer: Consumer, order: NameOrder, names: list[bytes]) -> None:
        if len(order.names) > 2 * len(self.pending) + SWEEP_AT:
            consumer.order = None
        else:
            order.add(names)

    def get_order(self) -> NameOrder:
        """All pending names by ID; some may be stale."""
        order = self.order
        if order is None:
            order = NameOrder(list(self.pending))
            self.order = order
        order.sort()
        return order

    def pending_between(self, start: int, end: int, count: int, consumer: Consumer | None) -> list[bytes]:
        """Pending names with start <= ID <= end, by ID, at most count (0: all), of one consumer or of all."""
        if consumer is None:
            order = self.get_order()
        else:
            own = consumer.order
            if own is None:
                own = NameOrder(self.names_of(consumer))
                consumer.order = own
            own.sort()
            order = own
        pending = self.pending
        found: list[bytes] = []
        stale = 0
        for index in range(order.find(start), len(order.names)):
            name = order.names[index]
            delivery = pending.get(name)
            if delivery is None or (consumer is not None and delivery.consumer is not consumer):
                stale += 1
                continue
            if id_of(name) > end:
                break
            found.append(name)
            if len(found) == count:
                break
        self.sweep(order, consumer, stale)
        return found

    def sweep(self, order: NameOrder, consumer: Consumer | None, stale: int) -> None:
        """So many stale names were passed over: take them all out once that has cost as much as sweeping does."""
        order.passed += stale
        if order.passed <= len(order.names):
            return
        order.passed = 0
        pending = self.pending
        if consumer is None:
            order.names = [name for name in order.names if name in pending]
        else:
            own = set(self.names_of(consumer))
            order.names = [name for name in order.names if name in own]

    def edges(self) -> tuple[bytes, bytes]:
        """The lowest and the highest pending name. There must be one."""
        order = self.get_order()
        names = order.names
        pending = self.pending
        low = 0
        while names[low] not in pending:
            low += 1
        high = len(names) - 1
        while names[high] not in pending:
            high -= 1
        self.sweep(order, None, low + len(names) - 1 - high)
        return names[low], names[high]

    def sort_times(self) -> None:
        if not self.is_time_sorted:
            self.deliveries = deque(sorted(self.deliveries, key=delivery_time))
            self.is_time_sorted = True
        while self.deliveries and self.deliveries[0].left == 0:
            self.deliveries.popleft()
            self.emptied -= 1

    def idle_deliveries(self, latest_ms: int) -> Iterator[Delivery]:
        """Deliveries made at latest_ms or before, the longest idle first. Costs what is looked at, not what is pending.

        Nothing may be delivered or acknowledged before the last one is taken.
        """
        self.sort_times()
        for delivery in self.deliveries:
            if delivery.time_ms > latest_ms:
                break
            if delivery.left:
                yield delivery

    def names_from(self, delivery: Delivery, start: int, most: int) -> tuple[list[bytes], int]:
        """Up to `most` names that are still in the delivery, from a place on, and the place behind the last of them."""
        pending = self.pending
        names = delivery.names
        place = start
        while place < len(names) and pending.get(names[place]) is not delivery:
            place += 1
        if start == 0 and place > STALE_FRONT:
            names = names[place:]
            delivery.names = names
            place = 0
        found: list[bytes] = []
        while place < len(names) and len(found) < most:
            if pending.get(names[place]) is delivery:
                found.append(names[place])
            place += 1
        return found, place

    def first_time_after(self, latest_ms: int) -> int:
        """Time of the oldest delivery made after latest_ms with something left; -1 when there is none."""
        self.sort_times()
        for delivery in self.deliveries:
            if delivery.time_ms > latest_ms and delivery.left and not delivery.is_gone:
                return delivery.time_ms
        return -1

    def look_again(self) -> None:
        """Entries that were gone may be back under their old IDs: the stream's last ID was set back."""
        for delivery in self.deliveries:
            delivery.is_gone = False


def delivery_time(delivery: Delivery) -> int:
    return delivery.time_ms

"""Consumer groups and their pending entries.

An entry is pending from its delivery until it is acked, claimed away or dropped. A Delivery is one batch given to one
consumer at one time: the names it was given, and how many of them are left. The group's `pending` maps each pending
name to its delivery and is the only truth: a name belongs to a delivery while `pending[name] is delivery`, so an ack
touches one dict and one counter. Whole deliveries that have been pending for long are folded there, small ones
together: they are put back before anything but reading happens to one of their names, and the orders by ID do not know
them.

Three orders are kept besides: by delivery time (the deque `deliveries`, for claiming what is idle), and by ID for the
group and for each consumer (`NameOrder`, made when first asked for). Emptied deliveries and stale names are swept when
they are the larger part.

Time arrives as now_ms. Replies and wire formats live in commands/.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from typing import Final

from headrace.engine.delivery import SWEEP_AT, Consumer, Delivery
from headrace.engine.fold import Fold
from headrace.engine.ids import id_of
from headrace.engine.name_order import NameOrder
from headrace.engine.node import Node
from headrace.engine.pending_entries import PendingEntries

RELEASED_MS: Final = 0  # Delivery time of an entry given back by XNACK: older than any threshold.
JOINED: Final = 128  # A delivery with so many entries is not joined by more.
STALE_FRONT: Final = 256  # So many names that left a delivery from its front are cut off.


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
        self.pending = PendingEntries()
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
        return [name for delivery in consumer.deliveries if delivery.left for name in pending.names_of(delivery)]

    def unfolded_names_of(self, consumer: Consumer) -> list[bytes]:
        """The same without what is folded."""
        unfolded = self.pending.unfolded
        return [
            name
            for delivery in consumer.deliveries
            if delivery.left
            for name in delivery.names
            if unfolded.get(name) is delivery
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
        elif self.join_last(consumer, names, now_ms):
            return
        delivery = Delivery(consumer, now_ms, 1, names)
        self.pending.give(delivery)
        self.file(delivery, names)
        if self.order is not None:
            self.extend_order(self.order, names)
        if len(self.pending.unfolded) > self.pending.most:
            self.fold_old()

    def join_last(self, consumer: Consumer, names: list[bytes], now_ms: int) -> bool:
        """Who reads one by one gets one delivery for all of a millisecond. Whether it was so."""
        deliveries = self.deliveries
        while deliveries and deliveries[-1].left == 0:
            deliveries.pop()
            self.emptied -= 1
        if not deliveries:
            return False
        last = deliveries[-1]
        if last.consumer is not consumer or last.time_ms != now_ms or last.count != 1 or last.left >= JOINED:
            return False
        if last.is_folded:
            return False
        last.is_gone = False
        self.pending.extend(last, names)
        if self.order is not None:
            self.extend_order(self.order, names)
        if consumer.order is not None:
            self.extend_consumer_order(consumer, consumer.order, names)
        if len(self.pending.unfolded) > self.pending.most:
            self.fold_old()
        return True

    def assign(self, consumer: Consumer | None, names: list[bytes], time_ms: int, count: int) -> None:
        """Entries become pending with the consumer whatever they were before: claimed, read again, or forced."""
        self.unfold_names(names)
        unfolded = self.pending.unfolded
        fresh: list[bytes] = []
        arriving: list[bytes] = []
        delivery = Delivery(consumer, time_ms, count, names)
        for name in names:
            held = unfolded.get(name)
            unfolded[name] = delivery  # Before it leaves the other one, which may forget names that have gone.
            if held is None:
                fresh.append(name)
                arriving.append(name)
            else:
                self.leave(held)
                if held.consumer is not consumer:
                    arriving.append(name)
        # The caller may name entries in any order; NameOrder is told of them by ID.
        fresh.sort(key=id_of)
        if consumer is not None and consumer.order is not None:
            arriving.sort(key=id_of)
        self.pending.note(delivery)
        self.file(delivery, arriving)
        if consumer is None:
            self.released += len(names)
        if fresh:
            if any([id_of(name) > self.last_id for name in fresh]):
                self.may_repeat = True
            if self.order is not None:
                self.extend_order(self.order, fresh)
        if len(unfolded) > self.pending.most:
            self.fold_old()

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
        self.unfold_names(names)
        unfolded = self.pending.unfolded
        for name in names:
            delivery = unfolded.get(name)
            if delivery is not None:
                self.leave(delivery)

    def leave(self, delivery: Delivery) -> None:
        """One entry less in a delivery."""
        delivery.left -= 1
        if delivery.consumer is None:
            self.released -= 1
        if delivery.left == 0:
            self.count_emptied(delivery)
        elif delivery.left * 4 < len(delivery.names):
            self.shrink(delivery)

    def count_emptied(self, delivery: Delivery) -> None:
        """A delivery has nothing left: it goes with the next sweep."""
        self.emptied += 1
        if self.emptied > SWEEP_AT and self.emptied * 2 > len(self.deliveries):
            self.deliveries = deque([kept for kept in self.deliveries if kept.left])
            self.emptied = 0
        if delivery.consumer is not None:
            delivery.consumer.count_emptied()

    # Acknowledging

    def ack(self, names: list[bytes]) -> list[bytes]:
        """Entries that are pending no longer are. Those that were, in the order given."""
        if self.pending.folds:
            self.unfold_names(names)
        unfolded = self.pending.unfolded
        acked: list[bytes] = []
        for name in names:
            delivery = unfolded.pop(name, None)
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
            unfolded = self.pending.unfolded
            delivery.names = [name for name in delivery.names if unfolded.get(name) is delivery]

    # Folding

    def fold_old(self) -> None:
        """There are so many pending entries that the oldest deliveries are folded."""
        for delivery in self.pending.fold_old():
            self.count_emptied(delivery)

    def unfold_names(self, names: list[bytes]) -> None:
        """Something other than reading is about to happen to these entries."""
        pending = self.pending
        if pending.folds:
            for name in names:
                if name not in pending.unfolded:
                    fold = pending.find_fold(name)
                    if fold is not None:
                        self.unfold(fold)

    def unfold(self, fold: Fold) -> None:
        place = self.place_of(fold.deliveries[0]) if fold.is_joined else 0
        deliveries = self.pending.unfold(fold)
        if fold.is_joined:
            self.part(place, fold.deliveries, deliveries)
        for delivery in deliveries:
            consumer = delivery.consumer
            if self.order is not None:
                self.extend_order(self.order, delivery.names)
            if consumer is not None and consumer.order is not None:
                self.extend_consumer_order(consumer, consumer.order, delivery.names)

    def place_of(self, delivery: Delivery) -> int:
        """Where a delivery with something left stands among all."""
        self.sort_times()
        place = bisect_left(self.deliveries, delivery.time_ms, key=delivery_time)
        while self.deliveries[place] is not delivery:
            place += 1
        return place

    def part(self, place: int, joined: list[Delivery], deliveries: list[Delivery]) -> None:
        """Deliveries that were folded together are filed again, where the first of those is that stood for them."""
        self.emptied += len(joined)
        filed = self.deliveries
        behind = len(filed) - place
        filed.rotate(-place)
        while behind and not filed[0].left:
            filed.popleft()
            self.emptied -= 1
            behind -= 1
        if behind and filed[0].time_ms < deliveries[-1].time_ms:
            self.is_time_sorted = False
        filed.extendleft(reversed(deliveries))
        filed.rotate(place)
        for delivery in deliveries:
            if delivery.consumer is not None:
                delivery.consumer.deliveries.append(delivery)
        for delivery in joined:
            if delivery.consumer is not None:
                delivery.consumer.count_emptied()

    def part_mixed(self) -> None:
        """Unfold what is folded together although something else was delivered in between: now all are in order."""
        self.sort_times()
        mixed: list[Delivery] = []
        latest: Delivery | None = None
        for delivery in self.deliveries:
            if not delivery.left:
                continue
            if latest is not None and delivery.time_ms < latest.last_ms and not are_together(latest, delivery):
                mixed += [latest, delivery]
            if latest is None or delivery.last_ms > latest.last_ms:
                latest = delivery
        for delivery in mixed:
            if delivery.is_folded:
                self.unfold(self.pending.fold_of(delivery))
        self.sort_times()

    # Orders

    def extend_order(self, order: NameOrder, names: list[bytes]) -> None:
        if len(order.names) > 2 * len(self.pending.unfolded) + SWEEP_AT:
            self.order = None
        else:
            order.add(names)

    def extend_consumer_order(self, consumer: Consumer, order: NameOrder, names: list[bytes]) -> None:
        if len(order.names) > 2 * len(self.pending.unfolded) + SWEEP_AT:
            consumer.order = None
        else:
            order.add(names)

    def get_order(self) -> NameOrder:
        """All names by ID that are pending and not folded; some may be stale."""
        order = self.order
        if order is None:
            order = NameOrder(list(self.pending.unfolded))
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
                own = NameOrder(self.unfolded_names_of(consumer))
                consumer.order = own
            own.sort()
            order = own
        unfolded = self.pending.unfolded
        found: list[bytes] = []
        stale = 0
        for index in range(order.find(start), len(order.names)):
            name = order.names[index]
            delivery = unfolded.get(name)
            if delivery is None or (consumer is not None and delivery.consumer is not consumer):
                stale += 1
                continue
            if id_of(name) > end:
                break
            found.append(name)
            if len(found) == count:
                break
        self.sweep(order, consumer, stale)
        folded = self.pending.folded_between(start, end, count, consumer) if self.pending.folds else []
        if folded and found:
            found = sorted(found + folded, key=id_of)
            return found[:count] if count > 0 else found
        return folded or found

    def sweep(self, order: NameOrder, consumer: Consumer | None, stale: int) -> None:
        """So many stale names were passed over: take them all out once that has cost as much as sweeping does."""
        order.passed += stale
        if order.passed <= len(order.names):
            return
        order.passed = 0
        unfolded = self.pending.unfolded
        if consumer is None:
            order.names = [name for name in order.names if name in unfolded]
        else:
            own = set(self.unfolded_names_of(consumer))
            order.names = [name for name in order.names if name in own]

    def edges(self) -> tuple[bytes, bytes]:
        """The lowest and the highest pending name. There must be one."""
        pending = self.pending
        ends: list[bytes] = []
        if pending.folds:
            ends += pending.edges()
        if pending.unfolded:
            order = self.get_order()
            names = order.names
            low = 0
            while names[low] not in pending.unfolded:
                low += 1
            high = len(names) - 1
            while names[high] not in pending.unfolded:
                high -= 1
            self.sweep(order, None, low + len(names) - 1 - high)
            ends += [names[low], names[high]]
        return min(ends, key=id_of), max(ends, key=id_of)

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
        given = 0
        while True:
            folded: Delivery | None = None
            skipping = given
            for delivery in self.deliveries:
                if delivery.time_ms > latest_ms:
                    return
                if not delivery.left:
                    continue
                if skipping:
                    skipping -= 1
                    continue
                if delivery.is_folded and not delivery.is_gone:
                    folded = delivery
                    break
                given += 1
                yield delivery
            if folded is None:
                return
            self.unfold(self.pending.fold_of(folded))
            self.sort_times()

    def names_from(self, delivery: Delivery, start: int, most: int) -> tuple[list[bytes], int]:
        """Up to `most` names that are still in the delivery, from a place on, and the place behind the last of them."""
        unfolded = self.pending.unfolded
        names = delivery.names
        place = start
        while place < len(names) and unfolded.get(names[place]) is not delivery:
            place += 1
        if start == 0 and place > STALE_FRONT:
            names = names[place:]
            delivery.names = names
            place = 0
        found: list[bytes] = []
        while place < len(names) and len(found) < most:
            if unfolded.get(names[place]) is delivery:
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


def are_together(one: Delivery, other: Delivery) -> bool:
    return one.is_folded and other.is_folded and one.first_id == other.first_id

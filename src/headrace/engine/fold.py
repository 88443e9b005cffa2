"""Deliveries that are kept packed: the names of their entries, and when and to whom each was given.

A fold holds the names of one delivery, or of many small ones that were made one after the other. The text in it, before
it is compressed, is the names joined by commas. Those of many are followed by four lists, each behind a semicolon: the
consumer of each delivery as its place in `deliveries`, its time as the distance from the one before, its count, and how
many names it has.

    e.g. three deliveries of one entry each, to two consumers:   5-0,7-0,8-0;0,1,0;0,12,3;1,1,1;1,1,1

One delivery comes back as the object that it was. Of many, one for each consumer stands for all of his meanwhile, in
`deliveries`: with the time of the first, and with all names counted in `left`.
"""

from headrace.engine.compression import compress, decompress
from headrace.engine.delivery import Consumer, Delivery


class Fold:
    __slots__ = ("deliveries", "first", "last", "size", "is_joined", "packed")

    def __init__(self, run: list[Delivery], first: int, last: int) -> None:
        """Of whole deliveries, one behind the other in time and in the IDs of their names."""
        self.first = first
        self.last = last
        self.is_joined = len(run) > 1
        self.size = sum([delivery.left for delivery in run])
        text = b",".join([name for delivery in run for name in delivery.names])
        owners: dict[Consumer | None, int] = {}
        places = [owners.setdefault(delivery.consumer, len(owners)) for delivery in run]
        if self.is_joined:
            times = [run[0].time_ms] + [delivery.time_ms for delivery in run]
            steps = [times[index + 1] - times[index] for index in range(len(run))]
            counts = [delivery.count for delivery in run]
            sizes = [delivery.left for delivery in run]
            text = b";".join([text, joined(places), joined(steps), joined(counts), joined(sizes)])
        self.packed = compress(text)
        self.deliveries: list[Delivery] = []
        for delivery, place in zip(run, places, strict=True):
            if place == len(self.deliveries):
                self.deliveries.append(delivery)
                delivery.is_folded = True
                delivery.first_id = first
                delivery.last_ms = run[-1].time_ms
            else:
                self.deliveries[place].left += delivery.left
                delivery.left = 0
            delivery.names = []

    def text(self) -> bytes:
        return decompress(self.packed)

    def names(self) -> list[bytes]:
        return self.text().partition(b";")[0].split(b",")

    def names_of(self, consumer: Consumer | None) -> list[bytes]:
        if len(self.deliveries) == 1:
            return self.names() if self.deliveries[0].consumer is consumer else []
        if not any([delivery.consumer is consumer for delivery in self.deliveries]):
            return []
        return [name for delivery in self.parts() if delivery.consumer is consumer for name in delivery.names]

    def parts(self) -> list[Delivery]:
        """The deliveries as they were: of many, new ones."""
        if not self.is_joined:
            only = self.deliveries[0]
            return [Delivery(only.consumer, only.time_ms, only.count, self.names())]
        names_text, places, steps, counts, sizes = self.text().split(b";")
        names = names_text.split(b",")
        time_ms = self.deliveries[0].time_ms
        start = 0
        found: list[Delivery] = []
        for place, step, count, size in zip(
            places.split(b","), steps.split(b","), counts.split(b","), sizes.split(b","), strict=True
        ):
            time_ms += int(step)
            end = start + int(size)
            found.append(Delivery(self.deliveries[int(place)].consumer, time_ms, int(count), names[start:end]))
            start = end
        return found

    def unfold(self, parts: list[Delivery]) -> list[Delivery]:
        """The deliveries again, made of these parts. Those that stood for many have nothing left."""
        for delivery in self.deliveries:
            delivery.is_folded = False
            delivery.last_ms = delivery.time_ms
        only = self.deliveries[0]
        if not self.is_joined:
            only.names = parts[0].names
            return [only]
        for delivery in self.deliveries:
            delivery.left = 0
        return parts


def joined(numbers: list[int]) -> bytes:
    return b",".join([b"%d" % number for number in numbers])

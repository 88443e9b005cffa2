"""A reliable queue as the fields of a payload (dump.py), and back.

    last ID, whether it takes in, whether it gives out, nacks, redeliveries, dead, expired,
    treatments: how many, each: retry time, most deliveries, dead letter key
    then the elements of each place, how many and each: ID, body, number of deliveries, time, end of life, treatment
        fresh      in their order; time 0
        returned   by ID; time 0
        delivered  by the time of the last delivery
        delayed    by the time they wait for, then by ID

A treatment is the number of one in the list, from 1; 0 is none. Times are Unix milliseconds, 0 for none. An element has
an end of life only before its first delivery.
"""

from typing import Final

from headrace.engine.ids import MAX_PART, id_of, name_of
from headrace.engine.payload import MAX_NUMBER, Reader, put_fields, put_numbers
from headrace.engine.queue_element import (
    DELAYED,
    DELIVERED,
    FRESH,
    RETURNED,
    Element,
    Options,
)
from headrace.engine.reliable_queue import ReliableQueue

MOST: Final = 2**31 - 1
COUNTED: Final = 2**62  # Whatever is counted can still grow, and stays a number of 64 bits.
HALF: Final = 2**63 - 1  # Neither half of an ID is near the end of its range, so that IDs never run out.


def put_queue(parts: list[bytes], queue: ReliableQueue) -> None:
    put_fields(parts, [queue.last_name()])
    put_numbers(parts, [int(queue.takes_in), int(queue.gives_out)])
    put_numbers(parts, [queue.nacks, queue.redeliveries, queue.dead, queue.expired])
    queue.put_in_order()
    queue.returned.sort()
    places: list[list[Element]] = [
        [element for element in queue.fresh if element.place == FRESH],
        [element for _, element in queue.returned],
        list(queue.delivered.values()),
        queue.delayed_from(0, len(queue.delayed)),
    ]
    numbers = number_treatments(places)
    put_numbers(parts, [len(numbers)])
    for retry_ms, max_deliveries, dead_letter in numbers:
        put_fields(parts, [b"%d" % retry_ms, b"%d" % max_deliveries, dead_letter])
    for elements in places:
        put_numbers(parts, [len(elements)])
        for element in elements:
            put_element(parts, element, numbers)


def number_treatments(places: list[list[Element]]) -> dict[tuple[int, int, bytes], int]:
    """Each treatment once, with its number."""
    numbers: dict[tuple[int, int, bytes], int] = {}
    for elements in places:
        for element in elements:
            if element.options is not None:
                numbers.setdefault(key_of(element.options), len(numbers) + 1)
    return numbers


def key_of(options: Options) -> tuple[int, int, bytes]:
    return options.retry_ms, options.max_deliveries, options.dead_letter


def put_element(parts: list[bytes], element: Element, numbers: dict[tuple[int, int, bytes], int]) -> None:
    time_ms = element.time_ms if element.place in (DELIVERED, DELAYED) else 0
    treatment = numbers[key_of(element.options)] if element.options is not None else 0
    put_fields(parts, [element.name, element.body])
    put_numbers(parts, [element.deliveries, time_ms, element.expires_ms, treatment])


def load_queue(reader: Reader) -> ReliableQueue:
    queue = ReliableQueue()
    last_id = reader.entry_id()
    if last_id >> 64 > HALF or last_id & MAX_PART > HALF:
        raise ValueError("a last ID that leaves no room for more")
    queue.last_ms = last_id >> 64
    queue.last_sequence = last_id & MAX_PART
    queue.takes_in = reader.flag()
    queue.gives_out = reader.flag()
    queue.nacks = reader.number(0, COUNTED)
    queue.redeliveries = reader.number(0, COUNTED)
    queue.dead = reader.number(0, COUNTED)
    queue.expired = reader.number(0, COUNTED)
    treatments: list[Options | None] = [None]
    for _ in range(reader.number()):
        treatments.append(Options(reader.number(0, HALF), reader.number(0, MOST), reader.text()))
    loader = Loader(reader, queue, treatments, last_id)
    loader.load_place(FRESH)
    loader.load_place(RETURNED)
    loader.load_place(DELIVERED)
    loader.load_place(DELAYED)
    if loader.used != len(treatments) - 1:
        raise ValueError("a treatment that no element has")
    return queue


class Loader:
    """Puts the elements of a payload where they belong."""

    __slots__ = ("reader", "queue", "treatments", "last_id", "names", "used")

    def __init__(self, reader: Reader, queue: ReliableQueue, treatments: list[Options | None], last_id: int) -> None:
        self.reader = reader
        self.queue = queue
        self.treatments = treatments
        self.last_id = last_id
        self.names: set[bytes] = set()
        self.used = 0  # Treatments that have been met, which is in the order of their numbers.

    def load_place(self, place: int) -> None:
        before = (0, 0)
        for _ in range(self.reader.number()):
            element = self.load_element(place)
            order = (0, 0)
            if place == RETURNED:
                order = (0, id_of(element.name))
            elif place == DELIVERED:
                order = (element.time_ms, 0)
            elif place == DELAYED:
                order = (element.time_ms, id_of(element.name))
            if order < before:
                raise ValueError("elements of a queue out of order")
            before = order
            self.put(element, place)

    def load_element(self, place: int) -> Element:
        reader = self.reader
        entry_id = reader.entry_id()
        name = name_of(entry_id)
        if entry_id > self.last_id or entry_id & MAX_PART == 0 or name in self.names:
            raise ValueError(f"{name!r} is not the ID of one element of this queue")
        self.names.add(name)
        body = reader.text()
        deliveries = reader.number(1 if place in (RETURNED, DELIVERED) else 0, COUNTED)
        is_timed = place in (DELIVERED, DELAYED)
        time_ms = reader.number(1 if place == DELAYED else 0, MAX_NUMBER if is_timed else 0)
        expires_ms = reader.number(0, 0 if deliveries else HALF)
        if place == FRESH and deliveries:
            raise ValueError("a delivered element among those that never were")
        treatment = reader.number(0, len(self.treatments) - 1)
        if treatment > self.used + 1:
            raise ValueError("treatments out of order")
        self.used = max(self.used, treatment)
        element = Element(name, body, self.treatments[treatment])
        element.deliveries = deliveries
        element.time_ms = time_ms
        element.expires_ms = expires_ms
        return element

    def put(self, element: Element, place: int) -> None:
        queue = self.queue
        if place == FRESH:
            queue.fresh.append(element)
            queue.alarms.set(element, element.expires_ms)
        elif place == RETURNED:
            queue.put_back(element)
        elif place == DELAYED:
            queue.delay(element, element.time_ms)
        else:
            element.place = DELIVERED
            queue.note_time(element.time_ms)
            queue.delivered[element.name] = element
            queue.room = len(queue.delivered)
            queue.set_retry(element)

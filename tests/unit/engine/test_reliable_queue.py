"""A reliable queue by itself: places, order, alarms, and memory that follows what is not acknowledged."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.engine.encodings import estimate_bytes
from headrace.engine.queue_element import Element, Options
from headrace.engine.reliable_queue import ReliableQueue


def pushed(count: int, now_ms: int = 1000) -> ReliableQueue:
    queue = ReliableQueue()
    queue.push(now_ms, [b"m%d" % number for number in range(count)])
    return queue


def deliver(queue: ReliableQueue, count: int, now_ms: int) -> list[bytes]:
    names = []
    for _ in range(count):
        element = queue.take()
        assert element is not None
        queue.deliver(element, now_ms)
        names.append(element.name)
    return names


def names(elements: Iterable[Element]) -> list[bytes]:
    return [element.name for element in elements]


def test_ids_do_not_follow_a_clock_that_goes_back() -> None:
    queue = ReliableQueue()
    assert queue.push(5000, [b"a", b"b"]) == [b"5000-1", b"5000-2"]
    assert queue.push(4000, [b"c"]) == [b"5000-3"]
    assert queue.push(5000, [b"d"]) == [b"5000-4"]
    assert queue.push(5001, [b"e"]) == [b"5001-1"]


def test_delivered_elements_stay_in_the_order_of_their_time_when_the_clock_goes_back() -> None:
    queue = pushed(4)
    first = deliver(queue, 2, now_ms=9000)
    second = deliver(queue, 2, now_ms=7000)

    assert names(queue.delivered_from(0, 4)) == second + first


def test_elements_can_be_looked_at_from_either_end() -> None:
    queue = pushed(9)
    back = deliver(queue, 3, now_ms=2000)
    for name in reversed(back):
        queue.give_back(name, 0)
    order = [b"1000-%d" % number for number in range(1, 10)]

    for start in range(9):
        for count in (1, 2, 5, 20):
            assert names(queue.undelivered_from(start, count)) == order[start : start + count]
    deliver(queue, 9, now_ms=3000)
    for start in range(9):
        for count in (1, 2, 5, 20):
            assert names(queue.delivered_from(start, count)) == order[start : start + count]


def test_a_body_is_stored_once() -> None:
    queue = ReliableQueue()
    body = b"x" * 1000
    queue.push(1, [body])
    deliver(queue, 1, now_ms=1)

    assert queue.delivered[b"1-1"].body is body


def test_memory_is_given_back_with_the_acknowledgements() -> None:
    queue = ReliableQueue()
    empty = estimate_bytes(queue)
    queue.push(1, [b"x" * 50] * 20_000)
    all_names = deliver(queue, 20_000, now_ms=2)
    assert estimate_bytes(queue) > 20_000 * 200
    for name in all_names[:18_000]:
        queue.ack(name)
    assert estimate_bytes(queue) < empty + 20_000 * 200
    for name in all_names[18_000:]:
        queue.ack(name)

    assert len(queue.delivered) == 0
    assert estimate_bytes(queue) < empty + 1024 * 1024


def test_acknowledged_elements_do_not_linger_in_their_alarms() -> None:
    queue = ReliableQueue()
    retry = Options(3_600_000, 0, b"")
    for _ in range(50):
        queue.push_with(1, [b"x" * 1000] * 100, retry, 0, 0)
        for name in deliver(queue, 100, now_ms=2):
            queue.ack(name)

    assert len(queue.alarms.heap) <= 64
    assert all(alarm[3].body == b"" for alarm in queue.alarms.heap)


def test_an_alarm_that_is_set_again_and_again_takes_one_place() -> None:
    queue = ReliableQueue()
    queue.push_with(1, [b"a"], Options(1000, 0, b""), 0, 0)
    [name] = deliver(queue, 1, now_ms=2)
    for now_ms in range(3, 5000):
        queue.restart(queue.delivered[name], now_ms % 7)

    assert len(queue.alarms.heap) <= 65
    assert queue.alarms.armed == 1


def test_expired_elements_leave_no_holes_behind() -> None:
    queue = ReliableQueue()
    queue.push(1, [b"stays"])
    queue.push_with(1, [b"goes"] * 1000, None, 0, 500)

    assert queue.advance(500) == 1000

    assert len(queue.fresh) <= 130
    assert queue.count_undelivered() == 1
    assert queue.expired == 1000
    assert [element.body for element in queue.undelivered_from(0, 9)] == [b"stays"]


def test_what_comes_due_does_not_depend_on_how_often_one_looks() -> None:
    def made() -> ReliableQueue:
        queue = pushed(2, now_ms=1)
        queue.push_with(1, [b"a", b"b"], Options(20, 0, b""), 0, 0)
        queue.push_with(1, [b"c"], None, 30, 40)
        queue.push_with(1, [b"d", b"e"], None, 25, 0)
        queue.push_with(1, [b"f"], None, 30, 29)
        deliver(queue, 4, now_ms=2)
        return queue

    once, often = made(), made()
    once.advance(60)
    for now_ms in range(1, 61):
        often.advance(now_ms)

    assert [one.body for one in once.undelivered_from(0, 9)] == [one.body for one in often.undelivered_from(0, 9)]
    assert [one.body for one in once.undelivered_from(0, 9)] == [b"a", b"b", b"d", b"e"]
    assert once.expired == often.expired == 2

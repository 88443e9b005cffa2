"""Who waits for which key, until when."""

from __future__ import annotations

from headrace.engine.waiters import NO_TIME, Waiter, Waiters


def waiter(
    client: int, keys: list[bytes], deadline_ms: int = NO_TIME, due_ms: int = NO_TIME, database: int = 0
) -> Waiter:
    return Waiter(client, database, keys, [b"XREAD"], deadline_ms, due_ms)


def clients(found: list[Waiter]) -> list[int]:
    return [one.client_id for one in found]


def test_those_who_wait_for_a_key_are_named_in_the_order_they_came() -> None:
    waiters = Waiters()
    for client in (7, 3, 5):
        waiters.add(waiter(client, [b"s"]))

    assert clients(waiters.on_key(0, b"s")) == [7, 3, 5]


def test_a_client_may_wait_for_several_keys() -> None:
    waiters = Waiters()
    waiters.add(waiter(1, [b"s", b"t", b"s"]))

    assert clients(waiters.on_key(0, b"s")) == clients(waiters.on_key(0, b"t")) == [1]


def test_the_same_key_of_another_database_is_another_key() -> None:
    waiters = Waiters()
    waiters.add(waiter(1, [b"s"], database=3))

    assert clients(waiters.on_key(0, b"s")) == []
    assert clients(waiters.on_key(3, b"s")) == [1]
    assert waiters.keys_in(3) == [b"s"]


def test_who_is_gone_waits_for_nothing() -> None:
    waiters = Waiters()
    waiters.add(waiter(1, [b"s", b"t"], deadline_ms=50))
    waiters.add(waiter(2, [b"s"]))
    waiters.remove(1)

    assert clients(waiters.on_key(0, b"s")) == [2]
    assert waiters.on_key(0, b"t") == []
    assert waiters.next_ms() == NO_TIME
    assert waiters.remove(1) is None


def test_nothing_is_kept_of_keys_nobody_waits_for() -> None:
    waiters = Waiters()
    for client in range(1000):
        waiters.add(waiter(client, [b"key %d" % client], deadline_ms=client))
        waiters.remove(client)

    assert (waiters.by_client, waiters.by_key) == ({}, {})
    assert len(waiters.times) <= 64


def test_the_next_time_is_the_earliest_deadline_or_due_time() -> None:
    waiters = Waiters()
    waiters.add(waiter(1, [b"s"], deadline_ms=300))
    waiters.add(waiter(2, [b"s"], deadline_ms=500, due_ms=200))
    waiters.add(waiter(3, [b"s"], due_ms=900))

    assert waiters.next_ms() == 200


def test_who_waits_for_ever_has_no_time() -> None:
    waiters = Waiters()
    waiters.add(waiter(1, [b"s"]))

    assert waiters.next_ms() == NO_TIME
    assert waiters.due(10**15) == []


def test_those_whose_time_has_come_are_named_in_the_order_they_came() -> None:
    waiters = Waiters()
    waiters.add(waiter(1, [b"s"], deadline_ms=300))
    waiters.add(waiter(2, [b"s"], deadline_ms=100))
    waiters.add(waiter(3, [b"s"], deadline_ms=900))

    assert clients(waiters.due(300)) == [1, 2]
    assert waiters.next_ms() == 900


def test_a_moved_due_time_replaces_the_old_one() -> None:
    waiters = Waiters()
    one = waiter(1, [b"s"], due_ms=100)
    waiters.add(one)
    one.due_ms = 700
    waiters.schedule(one)

    assert waiters.next_ms() == 700
    assert waiters.due(600) == []
    assert clients(waiters.due(700)) == [1]


def test_times_that_are_often_moved_do_not_pile_up() -> None:
    waiters = Waiters()
    one = waiter(1, [b"s"], due_ms=1)
    waiters.add(one)
    for due_ms in range(2, 10_000):
        one.due_ms = due_ms
        waiters.schedule(one)

    assert len(waiters.times) <= 65
    assert waiters.next_ms() == 9_999

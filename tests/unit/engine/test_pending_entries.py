"""Folded pending entries: out of the dict, found all the same, and back in it as soon as something happens to them."""

from __future__ import annotations

import pytest

from headrace.engine.delivery import Consumer
from headrace.engine.group import Group
from headrace.engine.ids import MAX_ID

BATCH = 100  # Too large to be folded together with others.


def names(first: int, last: int) -> list[bytes]:
    return [b"%d-0" % number for number in range(first, last + 1)]


def folded_group(batches: int = 10) -> tuple[Group, Consumer]:
    """Batches of a hundred, the newest two of them unfolded."""
    group = Group(0, 0)
    group.pending.most = 2 * BATCH
    ann = group.get_consumer(b"ann", 0)
    for number in range(batches):
        first = number * BATCH + 1
        group.deliver(ann, names(first, first + BATCH - 1), 1000 + number)
        group.last_id = (first + BATCH - 1) << 64
    return group, ann


def test_the_oldest_deliveries_are_folded() -> None:
    group, ann = folded_group()

    assert list(group.pending.unfolded) == names(801, 1000)
    assert (len(group.pending), group.pending.folded, ann.count_pending()) == (1000, 800, 1000)


def test_few_pending_entries_are_not_folded() -> None:
    group = Group(0, 0)
    ann = group.get_consumer(b"ann", 0)
    for first in range(1, 5001, BATCH):
        group.deliver(ann, names(first, first + BATCH - 1), first)

    assert group.pending.folds == []


@pytest.mark.parametrize("batch", [1, 7, BATCH])
def test_what_is_settled_in_time_leaves_nothing_behind(batch: int) -> None:
    group, ann = folded_group(0)
    for first in range(1, 50 * batch, batch):
        group.deliver(ann, names(first, first + batch - 1), first)
        group.ack(names(first, first + batch - 1))

    assert len(group.pending) == 0
    assert sum(len(delivery.names) for delivery in group.pending.recent) < 3 * batch + 40


@pytest.mark.parametrize("number", [1, 100, 101, 145, 800, 801, 1000])
def test_an_entry_is_found_folded_or_not(number: int) -> None:
    group, ann = folded_group()
    delivery = group.pending[b"%d-0" % number]

    assert (delivery.consumer, delivery.time_ms, delivery.count) == (ann, 1000 + (number - 1) // BATCH, 1)
    assert b"%d-0" % number in group.pending


ODD = [b"1001-0", b"0-0", b"45-1", b"045-0", b"45", b"45-", b"-", b"x", b"", b"9" * 5000 + b"-0"]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_nothing_else_is_found(text: bytes) -> None:
    group, _ = folded_group()

    assert text not in group.pending
    assert group.ack([text]) == []
    assert group.pending.folded == 800


def test_ranges_go_through_folded_and_unfolded_entries() -> None:
    group, ann = folded_group()
    bob = group.get_consumer(b"bob", 0)
    group.assign(bob, names(33, 34), 5000, 2)

    assert group.pending_between(0, MAX_ID, 0, None) == names(1, 1000)
    assert group.pending_between(15 << 64, 25 << 64, 0, None) == names(15, 25)
    assert group.pending_between(28 << 64, MAX_ID, 8, None) == names(28, 35)
    assert group.pending_between(28 << 64, MAX_ID, 8, ann) == names(28, 32) + names(35, 37)
    assert group.pending_between(0, MAX_ID, 0, bob) == names(33, 34)
    assert group.edges() == (b"1-0", b"1000-0")


def test_reading_folds_nothing_back() -> None:
    group, ann = folded_group()
    group.pending_between(0, MAX_ID, 0, ann)
    group.edges()
    group.pending.get(b"5-0")

    assert group.pending.folded == 800


def test_an_ack_unfolds_the_delivery_it_is_about() -> None:
    group, ann = folded_group()

    assert group.ack([b"145-0", b"145-0", b"7-0"]) == [b"145-0", b"7-0"]
    assert group.pending.folded == 600
    assert group.pending_between(0, MAX_ID, 0, ann) == [
        name for name in names(1, 1000) if name not in (b"145-0", b"7-0")
    ]
    assert ann.count_pending() == len(group.pending) == 998


def test_folded_entries_become_idle_like_others() -> None:
    group, _ = folded_group()
    idle = [(delivery.time_ms, group.names_from(delivery, 0, BATCH)[0]) for delivery in group.idle_deliveries(1001)]

    assert idle == [(1000, names(1, 100)), (1001, names(101, 200))]


def test_a_deleted_consumer_takes_its_folded_entries_along() -> None:
    group, _ = folded_group()

    assert group.delete_consumer(b"ann") == 1000
    assert (len(group.pending), group.pending.folds) == (0, [])


def test_an_entry_read_again_after_the_group_was_set_back_changes_its_delivery() -> None:
    group, ann = folded_group()
    bob = group.get_consumer(b"bob", 0)
    group.set_last_id(0)
    group.deliver(bob, names(15, 24), 9000)

    assert (ann.count_pending(), bob.count_pending(), len(group.pending)) == (990, 10, 1000)
    assert group.pending_between(0, MAX_ID, 0, bob) == names(15, 24)


def one_by_one(count: int = 400) -> tuple[Group, Consumer, Consumer]:
    """Every entry was read alone, three in a millisecond, every fourth one by another consumer."""
    group = Group(0, 0)
    group.pending.most = 80
    ann, bob = group.get_consumer(b"ann", 0), group.get_consumer(b"bob", 0)
    for number in range(1, count + 1):
        group.deliver(bob if number % 4 == 0 else ann, [b"%d-0" % number], 1000 + number // 3)
        group.last_id = number << 64
    return group, ann, bob


def test_entries_that_were_read_one_by_one_are_folded_together() -> None:
    group, ann, bob = one_by_one()

    assert len(group.pending.unfolded) <= 80
    assert len(group.pending.folds) <= 5
    assert (len(group.pending), ann.count_pending(), bob.count_pending()) == (400, 300, 100)
    assert group.pending_between(0, MAX_ID, 0, None) == names(1, 400)
    assert group.pending_between(0, MAX_ID, 0, bob) == [b"%d-0" % number for number in range(4, 401, 4)]


def test_little_is_left_in_memory_of_deliveries_that_are_folded_together() -> None:
    group, ann, bob = one_by_one(20_000)

    assert len(group.deliveries) < 20_000 // 10
    assert len(ann.deliveries) + len(bob.deliveries) < 20_000 // 10
    assert sum(len(fold.packed) for fold in group.pending.folds) < 20_000 * 12


@pytest.mark.parametrize("number", [1, 2, 3, 4, 63, 64, 65, 399, 400])
def test_each_of_them_keeps_its_consumer_and_time(number: int) -> None:
    group, ann, bob = one_by_one()
    delivery = group.pending[b"%d-0" % number]

    assert (delivery.consumer, delivery.time_ms, delivery.count) == (
        bob if number % 4 == 0 else ann, 1000 + number // 3, 1,
    )  # fmt: skip


def test_one_of_them_can_be_acked_alone() -> None:
    group, ann, bob = one_by_one()

    assert group.ack([b"30-0", b"32-0"]) == [b"30-0", b"32-0"]
    assert (len(group.pending), ann.count_pending(), bob.count_pending()) == (398, 299, 99)
    assert group.pending[b"31-0"].time_ms == 1010


def test_they_become_idle_one_after_the_other() -> None:
    group, _, _ = one_by_one()
    idle = [(delivery.time_ms, group.names_from(delivery, 0, 9)[0]) for delivery in group.idle_deliveries(1021)]

    assert [time_ms for time_ms, _ in idle] == sorted(time_ms for time_ms, _ in idle)
    assert sorted(number for _, found in idle for number in found) == sorted(names(1, 65))
    assert len(group.pending.folds) >= 1


def test_a_claim_into_the_past_takes_its_place_among_them() -> None:
    group, _, bob = one_by_one()
    group.assign(bob, [b"399-0"], 1005, 2)
    idle = [group.names_from(delivery, 0, 9)[0] for delivery in group.idle_deliveries(1005)]

    assert sorted(number for found in idle for number in found) == sorted([*names(1, 17), b"399-0"])


def test_what_was_unfolded_stays_so_until_as_much_was_delivered() -> None:
    group, ann, _ = one_by_one()
    group.ack([b"30-0"])
    unfolded = len(group.pending.unfolded)
    group.assign(ann, [b"399-0"], 2000, 2)

    assert len(group.pending.unfolded) == unfolded

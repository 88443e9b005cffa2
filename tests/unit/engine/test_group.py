"""Pending entries of a group: one owner each, found by ID and by time, and nothing kept of what is settled."""

from __future__ import annotations

from headrace.engine.delivery import Consumer
from headrace.engine.group import SWEEP_AT, Group
from headrace.engine.ids import MAX_ID, id_of

ANN, BOB = b"ann", b"bob"


def names(*numbers: int) -> list[bytes]:
    return [b"%d-0" % number for number in numbers]


def give(group: Group, consumer: bytes, numbers: list[int], now_ms: int) -> Consumer:
    owner = group.get_consumer(consumer, now_ms)
    group.deliver(owner, names(*numbers), now_ms)
    group.last_id = max(group.last_id, numbers[-1] << 64)
    return owner


def pending_of(group: Group, consumer: Consumer | None = None) -> list[bytes]:
    return group.pending_between(0, MAX_ID, 0, consumer)


def idle_names(group: Group, latest_ms: int) -> list[bytes]:
    """What was delivered at latest_ms or before, longest idle first."""
    found: list[bytes] = []
    for delivery in group.idle_deliveries(latest_ms):
        found += [name for name in delivery.names if group.pending.get(name) is delivery]
    return found


def test_delivered_entries_are_pending_with_their_consumer() -> None:
    group = Group(0, 0)
    ann, bob = give(group, ANN, [1, 2], 10), give(group, BOB, [3], 20)

    assert pending_of(group) == names(1, 2, 3)
    assert pending_of(group, ann) == names(1, 2)
    assert (ann.count_pending(), bob.count_pending()) == (2, 1)


def test_an_ack_counts_only_what_was_pending() -> None:
    group = Group(0, 0)
    give(group, ANN, [1, 2, 3], 10)

    assert group.ack(names(3, 3, 9, 1)) == names(3, 1)
    assert pending_of(group) == names(2)


def test_claimed_entries_move_to_their_new_owner() -> None:
    group = Group(0, 0)
    ann = give(group, ANN, [1, 2, 3], 10)
    bob = group.get_consumer(BOB, 20)
    group.assign(bob, names(2), 20, 2)

    assert (pending_of(group, ann), pending_of(group, bob)) == (names(1, 3), names(2))
    assert group.pending[b"2-0"].count == 2
    assert (ann.count_pending(), bob.count_pending()) == (2, 1)


def test_the_order_by_id_holds_whatever_the_order_of_claims() -> None:
    group = Group(9 << 64, 0)
    ann = group.get_consumer(ANN, 0)
    assert pending_of(group) == []  # From here on the order is kept.
    group.assign(ann, names(5, 1, 3), 0, 1)
    group.assign(ann, names(4, 2), 0, 1)

    assert pending_of(group) == names(1, 2, 3, 4, 5)
    assert pending_of(group, ann) == names(1, 2, 3, 4, 5)


def test_the_order_by_id_holds_when_entries_come_and_go_between_consumers() -> None:
    group = Group(0, 0)
    ann, bob = give(group, ANN, [1, 2, 3, 4], 10), group.get_consumer(BOB, 10)
    assert (pending_of(group, ann), pending_of(group, bob)) == (names(1, 2, 3, 4), [])
    for number in (4, 2):
        group.assign(bob, names(number), 20, 2)
    for number in (2, 4, 1):
        group.assign(ann, names(number), 30, 3)

    assert pending_of(group, ann) == names(1, 2, 3, 4)
    assert pending_of(group, bob) == []


def test_a_range_of_pending_entries_is_cut_at_both_ends_and_by_count() -> None:
    group = Group(0, 0)
    give(group, ANN, [1, 2, 3, 4, 5], 10)

    assert group.pending_between(2 << 64, 4 << 64, 0, None) == names(2, 3, 4)
    assert group.pending_between(2 << 64, 4 << 64, 2, None) == names(2, 3)
    assert group.pending_between(6 << 64, MAX_ID, 0, None) == []


def test_the_edges_are_the_lowest_and_the_highest_pending_entry() -> None:
    group = Group(0, 0)
    give(group, ANN, [1, 2, 3, 4], 10)
    group.ack(names(1, 4))

    assert group.edges() == (b"2-0", b"3-0")


def test_ids_are_ordered_as_numbers_and_not_as_text() -> None:
    group = Group(0, 0)
    give(group, ANN, [9, 10, 100], 10)

    assert pending_of(group) == names(9, 10, 100)


def test_the_longest_idle_come_first() -> None:
    group = Group(0, 0)
    give(group, ANN, [1], 10)
    give(group, ANN, [2], 20)
    give(group, BOB, [3], 30)
    group.assign(group.get_consumer(BOB, 40), names(1), 40, 2)

    assert idle_names(group, 40) == names(2, 3, 1)
    assert idle_names(group, 29) == names(2)


def test_an_entry_claimed_with_an_old_time_is_found_among_the_old() -> None:
    group = Group(0, 0)
    give(group, ANN, [1], 10)
    give(group, ANN, [2], 20)
    group.assign(group.get_consumer(BOB, 30), names(2), 5, 2)

    assert idle_names(group, 30) == names(2, 1)
    assert group.first_time_after(-1) == 5


def test_entries_of_one_time_stay_in_the_order_they_were_given() -> None:
    group = Group(0, 0)
    give(group, ANN, [1, 2], 10)
    give(group, BOB, [3], 10)
    group.assign(group.get_consumer(ANN, 10), names(1), 10, 2)

    assert idle_names(group, 10) == names(2, 3, 1)


def test_nothing_pending_has_no_oldest() -> None:
    group = Group(0, 0)
    give(group, ANN, [1], 10)
    group.ack(names(1))

    assert group.first_time_after(-1) == -1


def test_an_entry_read_again_after_a_step_back_changes_hands_once() -> None:
    group = Group(0, 0)
    ann = give(group, ANN, [1, 2, 3], 10)
    group.set_last_id(1 << 64)
    bob = give(group, BOB, [2, 3], 20)

    assert (ann.count_pending(), bob.count_pending()) == (1, 2)
    assert pending_of(group) == names(1, 2, 3)
    assert group.pending[b"2-0"].count == 1
    assert group.ack(names(1, 2, 3)) == names(1, 2, 3)
    assert (ann.count_pending(), bob.count_pending()) == (0, 0)


def test_a_forced_entry_ahead_of_the_group_is_not_pending_twice() -> None:
    group = Group(0, 0)
    ann = group.get_consumer(ANN, 0)
    group.assign(ann, names(2), 0, 1)
    bob = give(group, BOB, [1, 2], 10)

    assert (ann.count_pending(), bob.count_pending()) == (0, 2)
    assert len(group.pending) == 2


def test_deleting_a_consumer_drops_what_it_had() -> None:
    group = Group(0, 0)
    give(group, ANN, [1, 2], 10)
    give(group, BOB, [3], 10)

    assert group.delete_consumer(ANN) == 2
    assert group.delete_consumer(ANN) == 0
    assert pending_of(group) == names(3)


def test_a_released_entry_is_nobodys_and_the_first_to_be_found() -> None:
    group = Group(0, 0)
    ann = give(group, ANN, [1, 2], 10)
    group.assign(None, names(2), 0, 1)

    assert group.released == 1
    assert (ann.count_pending(), pending_of(group)) == (1, names(1, 2))
    assert idle_names(group, 10) == names(2, 1)


def test_a_released_entry_that_is_claimed_or_acked_is_released_no_more() -> None:
    group = Group(0, 0)
    ann = give(group, ANN, [1, 2], 10)
    group.assign(None, names(1, 2), 0, 1)
    group.assign(ann, names(1), 20, 2)
    assert group.released == 1
    group.ack(names(2))

    assert group.released == 0


def test_what_is_kept_stays_small_beside_one_stuck_entry() -> None:
    """100 000 deliveries acknowledged while the very first one never is, and everybody keeps asking for orders."""
    group = Group(0, 0)
    ann = give(group, ANN, [1], 0)
    for number in range(2, 100_002):
        name = b"%d-0" % number
        group.deliver(ann, [name], number)
        group.ack([name])
        if number % 1000 == 0:
            assert pending_of(group) == pending_of(group, ann) == names(1)
            assert group.first_time_after(-1) == 0

    assert len(group.pending) == 1
    assert len(group.deliveries) <= 2 * SWEEP_AT + 2
    assert len(ann.deliveries) <= 2 * SWEEP_AT + 2
    assert group.order is None or len(group.order.names) <= 1100
    assert ann.order is None or len(ann.order.names) <= 1100


def test_a_large_delivery_forgets_what_is_settled() -> None:
    group = Group(0, 0)
    ann = give(group, ANN, list(range(1, 10_001)), 0)
    group.ack(names(*range(2, 10_001)))

    [delivery] = ann.deliveries
    assert len(delivery.names) <= SWEEP_AT
    assert idle_names(group, 0) == names(1)


def test_claims_back_and_forth_leave_nothing_behind() -> None:
    group = Group(0, 0)
    ann, bob = give(group, ANN, [1, 2, 3], 0), group.get_consumer(BOB, 0)
    for turn in range(10_000):
        group.assign(bob if turn % 2 else ann, names(1, 2), turn, turn)
        if turn % 500 == 0:
            assert [id_of(name) >> 64 for name in pending_of(group)] == [1, 2, 3]

    limit = 2 * SWEEP_AT + 4
    assert max(len(group.deliveries), len(ann.deliveries), len(bob.deliveries)) <= limit


def test_entries_read_one_by_one_in_one_millisecond_share_a_delivery() -> None:
    group = Group(0, 0)
    for number in range(1, 301):
        ann = give(group, ANN, [number], 10)
    give(group, BOB, [301], 10)
    give(group, ANN, [302], 11)

    assert [delivery.left for delivery in group.deliveries] == [128, 128, 44, 1, 1]
    assert ann.count_pending() == 301
    assert pending_of(group) == names(*range(1, 303))


def test_a_delivery_of_which_all_is_settled_is_not_joined() -> None:
    group = Group(0, 0)
    give(group, ANN, [1], 10)
    group.ack(names(1))
    ann = give(group, ANN, [2], 10)

    assert [(delivery.left, delivery.names) for delivery in group.deliveries] == [(1, names(2))]
    assert (ann.count_pending(), pending_of(group)) == (1, names(2))

"""Entries of a stream: in order, found again, and gone when they are deleted, over any number of nodes."""

from __future__ import annotations

import tracemalloc
from random import Random

import hiredis
import pytest

from headrace.engine.group import Group
from headrace.engine.ids import MAX_ID, MAX_PART, id_of, name_of
from headrace.engine.node import name_in
from headrace.engine.shelf import NodeLimits
from headrace.engine.stream import OPEN_NODES, UNKNOWN, UNPACKED_NODES, Stream
from headrace.wire.encoder import encode_bulk, encode_entry


def new_stream(node_entries: int = 3) -> Stream:
    limits = NodeLimits()
    limits.max_entries = node_entries
    return Stream(limits)


def add(stream: Stream, ms: int, seq: int = 0, value: bytes = b"v") -> int:
    name = b"%d-%d" % (ms, seq)
    stream.append(ms, seq, name, encode_entry(encode_bulk(name), [b"f", value], 0))
    return ms << 64 | seq


def stream_of(count: int, node_entries: int = 3) -> Stream:
    """Entries 1-0 to count-0."""
    stream = new_stream(node_entries)
    for ms in range(1, count + 1):
        add(stream, ms)
    return stream


def ms(number: int) -> int:
    return number << 64


def listed(stream: Stream, start: int = 0, end: int = MAX_ID, count: int = 0) -> list[int]:
    """The milliseconds of the entries in a range."""
    found, pieces = stream.read_range(start, end, count)
    names = names_in(pieces)
    assert len(names) == found
    return [id_of(name) >> 64 for name in names]


def listed_backwards(stream: Stream, start: int = 0, end: int = MAX_ID, count: int = 0) -> list[int]:
    found, pieces = stream.read_range_backwards(start, end, count)
    assert len(pieces) == found
    return [id_of(name_in(piece)) >> 64 for piece in pieces]


def names_in(pieces: list[bytes]) -> list[bytes]:
    reader = hiredis.Reader()
    reader.feed(b"".join(pieces))
    names: list[bytes] = []
    while (entry := reader.gets()) is not False:
        names.append(entry[0])
    return names


# IDs


def test_the_first_entry_of_a_millisecond_has_sequence_0() -> None:
    assert new_stream().next_id(1000) == (1000, 0)


def test_entries_of_one_millisecond_count_on() -> None:
    stream = new_stream()
    add(stream, 1000, 7)

    assert stream.next_id(1000) == (1000, 8)


def test_ids_grow_also_when_the_clock_goes_back() -> None:
    stream = new_stream()
    add(stream, 1000)

    assert stream.next_id(10) == (1000, 1)


def test_a_used_up_millisecond_carries_over() -> None:
    stream = new_stream()
    add(stream, 1000, MAX_PART)

    assert stream.next_id(1000) == (1001, 0)


def test_there_is_no_id_behind_the_last_one() -> None:
    stream = new_stream()
    add(stream, MAX_PART, MAX_PART)

    assert stream.next_id(1000) == (0, 0)


@pytest.mark.parametrize(("ms", "seq"), [(1, 0), (1, 1), (2, 2047), (2, 2048), (2, MAX_PART), (MAX_PART, 5)])
def test_names_of_new_entries_are_written_right_in_any_order(ms: int, seq: int) -> None:
    stream = new_stream()
    stream.name_next(1, 0)

    assert stream.name_next(ms, seq) == b"%d-%d" % (ms, seq)


# Reading


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 40])
def test_entries_are_read_in_order_over_any_number_of_nodes(count: int) -> None:
    stream = stream_of(count)

    assert listed(stream) == list(range(1, count + 1))
    assert listed_backwards(stream) == list(range(count, 0, -1))


@pytest.mark.parametrize("start", range(12))
@pytest.mark.parametrize("end", range(12))
def test_a_range_holds_both_its_ends(start: int, end: int) -> None:
    stream = stream_of(10)
    expected = [number for number in range(1, 11) if start <= number <= end]

    assert listed(stream, ms(start), ms(end)) == expected
    assert listed_backwards(stream, ms(start), ms(end)) == expected[::-1]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9, 10, 11])
def test_a_count_ends_the_range_early(count: int) -> None:
    stream = stream_of(10)

    assert listed(stream, count=count) == list(range(1, 11))[:count]
    assert listed_backwards(stream, count=count) == list(range(10, 0, -1))[:count]


def test_a_range_between_two_entries_is_empty() -> None:
    stream = stream_of(10)

    assert listed(stream, ms(4) + 1, ms(5) - 1) == []
    assert listed_backwards(stream, ms(4) + 1, ms(5) - 1) == []


def test_reading_backwards_passes_over_a_node_that_begins_behind_the_end() -> None:
    """The node that would hold the end holds nothing up to it any more."""
    stream = stream_of(6)
    stream.delete([ms(4)])

    assert listed_backwards(stream, 0, ms(4)) == [3, 2, 1]


def test_ids_at_the_edges_of_64_bits_are_kept_apart() -> None:
    stream = new_stream()
    ids = [add(stream, 0, 1), add(stream, 0, MAX_PART), add(stream, 1, 0), add(stream, MAX_PART, 0)]
    ids.append(add(stream, MAX_PART, MAX_PART))

    for entry_id in ids:
        assert stream.find(entry_id) is not None
        assert stream.read_range(entry_id, entry_id, 0)[0] == 1
    assert stream.read_range(ids[0] + 1, ids[1] - 1, 0)[0] == 0
    assert stream.last_entry_id() == MAX_ID


def test_an_entry_is_found_by_its_id_and_no_other() -> None:
    stream = stream_of(10)

    assert name_in(stream.find(ms(5)) or b"") == b"5-0"
    assert stream.find(ms(5) + 1) is None
    assert stream.find(0) is None
    assert stream.find(ms(11)) is None


def test_entries_are_looked_up_by_name_with_none_for_the_missing() -> None:
    stream = stream_of(10)
    stream.delete([ms(4)])
    found = stream.entries_at([b"9-0", b"1-0", b"4-0", b"2-0", b"77-0"])

    assert [name_in(entry) if entry is not None else None for entry in found] == [b"9-0", b"1-0", None, b"2-0", None]


def test_old_nodes_are_packed_and_read_all_the_same() -> None:
    stream = new_stream(10)
    for number in range(1, 301):
        add(stream, number, 0, b"the same text in every entry")

    assert [node.is_packed for node in stream.nodes[: -UNPACKED_NODES - 1]] == [True] * (30 - UNPACKED_NODES - 1)
    assert not any(node.is_packed for node in stream.nodes[-UNPACKED_NODES:])
    assert listed(stream) == list(range(1, 301))
    assert listed_backwards(stream, ms(15), ms(35)) == list(range(35, 14, -1))


# Deleting


def test_deleting_reports_what_was_there() -> None:
    stream = stream_of(5)

    assert stream.delete([ms(2), ms(2), ms(9), ms(4)]) == [ms(2), ms(4)]
    assert listed(stream) == [1, 3, 5]


def test_the_highest_deleted_id_is_remembered() -> None:
    stream = stream_of(5)
    stream.delete([ms(4), ms(2)])

    assert stream.max_deleted == ms(4)


def test_deleting_the_first_entry_moves_the_first_id() -> None:
    stream = stream_of(5)
    stream.delete([ms(1), ms(3)])

    assert stream.first_id == ms(2)


def test_an_emptied_stream_has_no_nodes_and_goes_on() -> None:
    stream = stream_of(7)
    stream.delete([ms(number) for number in range(1, 8)])

    assert (stream.length, stream.nodes, stream.first_id) == (0, [], 0)
    add(stream, 8)
    assert listed(stream) == [8]


def test_a_deleted_entry_keeps_its_place_in_its_node() -> None:
    """As in Redis: nodes are filled by what was added, not by what is left."""
    stream = stream_of(2)
    stream.delete([ms(2)])
    add(stream, 3)
    add(stream, 4)

    assert [node.count for node in stream.nodes] == [2, 1]


def test_deleting_all_over_a_packed_stream_leaves_few_nodes_open() -> None:
    stream = stream_of(2000, 10)
    stream.delete([ms(number) for number in range(5, 2000, 10)])

    assert listed(stream) == [number for number in range(1, 2001) if number % 10 != 5]
    assert len([node for node in stream.nodes if node.names is not None]) <= OPEN_NODES + 1


@pytest.mark.parametrize("seed", range(20))
def test_entries_here_and_there_are_deleted_whatever_their_order(seed: int) -> None:
    random = Random(seed)
    stream = stream_of(300, 10)
    group = Group(0, 0)
    stream.groups[b"g"] = group
    left = set(range(1, 301))
    while left:
        names, _ = stream.read_new(group, random.choice([3, 40]))
        if names:
            stream.count_read(group, names)
        some = random.sample(range(1, 301), 25) + random.sample(sorted(left), min(len(left), 15))
        if random.random() < 0.5:
            some.sort()
        deleted = stream.delete([ms(number) for number in some])
        assert sorted(deleted) == [ms(number) for number in sorted(left & set(some))]
        left -= set(some)
        assert listed(stream) == sorted(left)
        assert (stream.length, stream.first_id) == (len(left), ms(min(left, default=0)))
    assert stream.opened == []


@pytest.mark.parametrize("total", [30_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_deleting_in_order_leaves_nothing_behind(total: int) -> None:
    stream = new_stream(100)
    for first in range(1, total + 1, 1000):
        for number in range(first, first + 1000):
            add(stream, number)
        stream.delete([ms(number) for number in range(first, first + 1000)])
        assert len(stream.nodes) <= 1
        assert len(stream.opened) <= OPEN_NODES

    assert stream.length == 0
    assert stream.entries_added == total


@pytest.mark.parametrize("total", [5000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_memory_is_back_where_it_began_when_all_entries_are_deleted_in_order(total: int) -> None:
    stream = new_stream(100)
    add(stream, 1)
    stream.delete([ms(1)])
    tracemalloc.start()
    try:
        start, _ = tracemalloc.get_traced_memory()
        for number in range(2, total + 2):
            add(stream, number)
        full, _ = tracemalloc.get_traced_memory()
        for number in range(2, total + 2):
            stream.delete([ms(number)])
        end, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert full - start > 5 * total
    assert end - start < min(2**20, 2 * total)


# Trimming


@pytest.mark.parametrize("below", range(13))
def test_trimming_by_id_removes_exactly_what_is_below(below: int) -> None:
    stream = stream_of(10)

    assert stream.trim_below(ms(below)) == len([number for number in range(1, 11) if number < below])
    assert listed(stream) == [number for number in range(1, 11) if number >= below]
    assert stream.first_id == (ms(max(1, below)) if below <= 10 else 0)


def test_trimming_does_not_count_as_deleting() -> None:
    stream = stream_of(10)
    stream.trim_below(ms(5))

    assert stream.max_deleted == 0


@pytest.mark.parametrize("length", range(12))
def test_the_newest_entries_begin_at_one_id(length: int) -> None:
    stream = stream_of(10)
    stream.trim_below(stream.first_kept(length))

    assert listed(stream) == list(range(1, 11))[max(0, 10 - length) :]


def test_approximate_trimming_removes_whole_nodes_and_never_too_much() -> None:
    stream = stream_of(10)  # Nodes 1-3, 4-6, 7-9, 10.
    stream.trim_below(stream.first_kept_by_nodes(5, 0, 0))

    assert listed(stream) == list(range(4, 11))


def test_approximate_trimming_by_id_removes_whole_nodes_below() -> None:
    stream = stream_of(10)
    stream.trim_below(stream.first_kept_by_nodes(-1, ms(6), 0))

    assert listed(stream) == list(range(4, 11))


def test_approximate_trimming_stops_at_its_limit() -> None:
    stream = stream_of(10)
    stream.trim_below(stream.first_kept_by_nodes(0, 0, 5))

    assert listed(stream) == list(range(4, 11))


def test_a_node_is_judged_by_the_highest_id_it_ever_held() -> None:
    """As in Redis, whose nodes keep deleted entries."""
    stream = stream_of(6)
    stream.delete([ms(3)])

    assert stream.first_kept_by_nodes(-1, ms(3), 0) == ms(1)
    assert stream.first_kept_by_nodes(-1, ms(4), 0) == ms(4)


# Reading for a group


def read(stream: Stream, group: Group, count: int = 0) -> list[int]:
    names, entries = stream.read_new(group, count)
    assert [name_in(entry) for entry in entries] == names
    if names:
        stream.count_read(group, names)
    return [id_of(name) >> 64 for name in names]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 100])
def test_a_group_reads_every_entry_once_and_in_order(count: int) -> None:
    stream, group = stream_of(10), Group(0, 0)
    found: list[int] = []
    while part := read(stream, group, count):
        assert len(part) <= count
        found += part

    assert found == list(range(1, 11))
    assert group.entries_read == 10


def test_a_group_goes_on_where_it_stopped_when_entries_are_added() -> None:
    stream, group = stream_of(2), Group(0, 0)
    assert read(stream, group) == [1, 2]
    for number in range(3, 9):
        add(stream, number)

    assert read(stream, group) == [3, 4, 5, 6, 7, 8]
    assert read(stream, group) == []


def test_deleting_where_a_group_stands_does_not_confuse_it() -> None:
    stream, group = stream_of(9), Group(0, 0)
    assert read(stream, group, 4) == [1, 2, 3, 4]
    stream.delete([ms(4), ms(5)])

    assert read(stream, group) == [6, 7, 8, 9]


def test_deleting_the_node_where_a_group_stands_does_not_confuse_it() -> None:
    stream, group = stream_of(9), Group(0, 0)
    assert read(stream, group, 4) == [1, 2, 3, 4]
    stream.delete([ms(4), ms(5), ms(6)])

    assert read(stream, group) == [7, 8, 9]


def test_deleting_the_node_behind_a_group_does_not_confuse_it() -> None:
    stream, group = stream_of(9), Group(0, 0)
    assert read(stream, group, 3) == [1, 2, 3]
    stream.delete([ms(4), ms(5), ms(6)])

    assert read(stream, group) == [7, 8, 9]


def test_trimming_ahead_of_a_group_does_not_confuse_it() -> None:
    stream, group = stream_of(9), Group(0, 0)
    assert read(stream, group, 2) == [1, 2]
    stream.trim_below(ms(8))

    assert read(stream, group) == [8, 9]


def test_a_group_that_read_everything_before_a_trim_gets_what_comes() -> None:
    stream, group = stream_of(4), Group(0, 0)
    assert read(stream, group) == [1, 2, 3, 4]
    stream.trim_below(ms(9))
    add(stream, 10)

    assert read(stream, group) == [10]


def test_a_group_set_back_reads_again() -> None:
    stream, group = stream_of(9), Group(0, 0)
    assert len(read(stream, group)) == 9
    group.set_last_id(ms(6))

    assert read(stream, group) == [7, 8, 9]


def test_a_group_set_ahead_skips() -> None:
    stream, group = stream_of(9), Group(0, 0)
    assert read(stream, group, 1) == [1]
    group.set_last_id(ms(7))

    assert read(stream, group) == [8, 9]


def test_sealing_the_node_where_a_group_stands_does_not_confuse_it() -> None:
    stream, group = stream_of(2), Group(0, 0)
    assert read(stream, group, 1) == [1]
    for number in range(3, 40):
        add(stream, number)

    assert read(stream, group, 3) == [2, 3, 4]
    assert read(stream, group) == list(range(5, 40))


# Counting


def test_the_lag_counts_what_was_not_read() -> None:
    stream, group = stream_of(6), Group(0, 0)
    read(stream, group, 2)

    assert stream.lag_of(group) == 4


def test_the_lag_is_unknown_when_an_unread_entry_was_deleted() -> None:
    stream, group = stream_of(6), Group(0, 0)
    read(stream, group, 2)
    stream.delete([ms(4)])

    assert stream.lag_of(group) is None


def test_the_lag_is_known_again_once_the_hole_is_passed() -> None:
    stream, group = stream_of(6), Group(0, 0)
    read(stream, group, 2)
    stream.delete([ms(4)])
    read(stream, group)

    assert stream.lag_of(group) == 0


def test_the_lag_of_an_arbitrary_position_is_unknown() -> None:
    stream = stream_of(6)

    assert stream.lag_of(Group(ms(3), UNKNOWN)) is None


def test_the_lag_of_a_position_before_all_entries_is_their_number() -> None:
    stream = stream_of(6)
    stream.trim_below(ms(4))

    assert stream.lag_of(Group(ms(2), UNKNOWN)) == 3


def test_an_empty_stream_has_no_lag() -> None:
    stream = stream_of(6)
    stream.trim_below(ms(9))

    assert stream.lag_of(Group(ms(3), UNKNOWN)) == 0


def test_an_entry_is_wanted_until_every_group_is_done_with_it() -> None:
    stream = stream_of(3)
    group = stream.groups[b"g"] = Group(0, 0)
    assert stream.is_wanted(ms(1))
    names, _ = stream.read_new(group, 1)
    stream.count_read(group, names)
    group.deliver(group.get_consumer(b"ann", 0), names, 0)
    assert stream.is_wanted(ms(1))
    group.ack([name_of(ms(1))])

    assert not stream.is_wanted(ms(1))
    assert stream.is_wanted(ms(2))

"""Parts: a key comes back as it was saved, and nothing but a whole part is accepted."""

from __future__ import annotations

import zlib
from collections import deque
from random import Random
from typing import Any

import pytest

from headrace.engine.dump import dump_value
from headrace.engine.shelf import NOWHERE, NodeLimits
from headrace.engine.snapshot import absent_part, dump_part, find_head, load_part, place_nodes, places_of
from headrace.engine.sorted_set import SortedSet
from headrace.engine.stream import UNPACKED_NODES, Stream
from support.memory import MemoryBroker
from support.shelf import Shelf

LIMITS = NodeLimits()


def nowhere(data: bytes) -> tuple[int, int, int]:
    raise AssertionError("nothing is to be placed")


def fields(*items: bytes) -> bytes:
    return b"".join(b"%d:%b" % (len(item), item) for item in items)


def head(*items: bytes, expires_ms: bytes = b"0") -> bytes:
    """A part of key `k`, whatever comes behind."""
    whose = fields(b"part1", b"0", b"k", b"7")
    return whose + fields(b"%d" % zlib.crc32(whose), expires_ms, *items)


def stream_part(**changes: bytes) -> bytes:
    """A stream without entries, with some fields changed."""
    shown = {"last": b"5-0", "added": b"2", "deleted": b"0-0", "first": b"0-0", "rows": b"", "tail": b"0"}
    shown |= {"room": b"0", "room_bytes": b"0", "spared": b"0", "idempotence": b"0", "ids": b"0", "groups": b"0"}
    return head(b"stream", *(shown | changes).values())


def row(first: int, count: int, segment: int = 1, size: int = 9, deleted: int = 0) -> bytes:
    numbers = [(first, 8), (0, 8), (deleted, 8), (0, 8), (count, 4), (segment, 4), (0, 8), (size, 4)]
    return b"".join(number.to_bytes(width, "little") for number, width in numbers)


@pytest.mark.parametrize(
    "value",
    [
        b"\x00text",
        b"",
        deque([b"a", b"", b"a"]),
        {b"f": b"v", b"": b""},
        {b"x", b"y", b""},
        SortedSet({b"a": 1.5, b"b": float("-inf")}),
        Stream(LIMITS),
    ],
)
def test_every_type_survives_with_its_key_and_expiry(value: Any) -> None:
    part = load_part(dump_part(3, b"k:1", value, 1234, 77, nowhere), LIMITS)

    assert (part.database, part.key, part.expires_ms, part.sequence) == (3, b"k:1", 1234, 77)
    assert type(part.value) is type(value)
    assert dump_value(part.value) == dump_value(value)
    assert part.places == []


def test_a_reliable_queue_survives(broker: MemoryBroker) -> None:
    broker("RQ.PUSH jobs 1 2 3")
    broker("RQ.POP jobs")
    queue = broker.state.databases[0].values[b"jobs"]
    part = load_part(dump_part(0, b"jobs", queue, 0, 1, nowhere), LIMITS)

    assert part.value is not None
    assert dump_value(part.value) == dump_value(queue)


def test_a_key_that_is_gone_is_known_to_be() -> None:
    part = load_part(absent_part(1, b"gone", 9), LIMITS)

    assert (part.database, part.key, part.value, part.expires_ms, part.sequence) == (1, b"gone", None, 0, 9)


def test_a_stream_survives_with_everything_it_remembers(stream: Stream) -> None:
    before = dump_value(stream)
    shelf = Shelf(stream.limits)
    payload = dump_part(0, b"orders", stream, 0, 1, shelf)
    part = load_part(payload, stream.limits)

    assert len(part.places) == len(stream.nodes) - 1
    assert part.places == places_of(stream) == places_of(part.value)
    assert shelf.fetches == 0
    assert dump_value(part.value) == before == dump_value(stream)
    assert dump_part(0, b"orders", part.value, 0, 1, nowhere) == payload


def test_a_node_is_placed_once(stream: Stream) -> None:
    shelf = Shelf(stream.limits)
    dump_part(0, b"orders", stream, 0, 1, shelf)
    placed = len(shelf.written)
    dump_part(0, b"orders", stream, 0, 2, shelf)
    assert len(shelf.written) == placed

    stream.delete([18 << 64])
    dump_part(0, b"orders", stream, 0, 3, shelf)
    assert len(shelf.written) == placed + 1


def test_nodes_are_placed_some_at_a_time(stream: Stream) -> None:
    shelf = Shelf(stream.limits)
    rounds = 1
    while not place_nodes(stream, shelf, most_bytes=1):
        assert len(shelf.written) == rounds
        rounds += 1

    assert rounds == len(stream.nodes) - 1
    dump_part(0, b"orders", stream, 0, 1, nowhere)


def test_nodes_move_out_of_segments_that_are_to_be_left(stream: Stream) -> None:
    before = dump_value(stream)
    shelf = Shelf(stream.limits)
    dump_part(0, b"orders", stream, 0, 1, shelf)
    stream.release()
    left = frozenset({1, 2})
    staying = [place for place in places_of(stream) if place[0] not in left]
    part = load_part(dump_part(0, b"orders", stream, 0, 2, shelf, left), stream.limits)

    assert not left & {segment for segment, _, _ in part.places}
    assert set(staying) < set(part.places)
    assert dump_value(stream) == before == dump_value(part.value)


def test_only_nodes_behind_the_readers_leave_memory(stream: Stream) -> None:
    stream.release()
    assert all(node.shelf is None for node in stream.nodes)

    dump_part(0, b"orders", stream, 0, 1, Shelf(stream.limits))
    stream.release()

    assert [node.shelf is not None for node in stream.nodes] == [
        index < len(stream.nodes) - UNPACKED_NODES - 1 for index in range(len(stream.nodes))
    ]


def test_a_placed_node_leaves_memory_when_the_readers_have_passed_it(broker: MemoryBroker, stream: Stream) -> None:
    dump_part(0, b"orders", stream, 0, 1, Shelf(stream.limits))
    stream.release()
    for _ in range(4 * UNPACKED_NODES):
        broker("XADD orders * item tea")

    assert all(node.shelf is not None for node in stream.nodes if node.place != NOWHERE)


def test_a_stream_whose_last_node_went_is_saved_without_one(broker: MemoryBroker) -> None:
    broker("CONFIG SET stream-node-max-entries 2")
    for number in range(1, 6):
        broker(f"XADD s {number}-0 f v")
    broker("XDEL s 5-0")
    stream = broker.state.databases[0].values[b"s"]
    shelf = Shelf(stream.limits)
    part = load_part(dump_part(0, b"s", stream, 0, 1, shelf), stream.limits)

    assert len(part.places) == 2
    broker.state.databases[0].values[b"t"] = part.value
    for name in ("s", "t"):
        broker(f"XADD {name} 6-0 f v")
    assert dump_value(part.value) == dump_value(stream)


def test_room_that_was_spared_for_the_next_node_is_remembered(broker: MemoryBroker) -> None:
    broker("CONFIG SET stream-node-max-entries 5")
    for line in ("XADD s 1-0 f v", "XADD s 2-0 f v", "XDEL s 2-0", "XTRIM s MINID 2"):
        broker(line)
    stream = broker.state.databases[0].values[b"s"]
    part = load_part(dump_part(0, b"s", stream, 0, 1, nowhere), stream.limits)

    assert part.value is not None
    assert part.value.spared_room == stream.spared_room == 3


# Refusals


def test_a_part_that_was_cut_or_has_bytes_behind_it_is_refused(stream: Stream) -> None:
    payload = dump_part(0, b"orders", stream, 0, 1, Shelf(stream.limits))
    for size in range(0, len(payload), 7):
        with pytest.raises(ValueError, match=r"no field begins|longer than the payload"):
            load_part(payload[:size], LIMITS)
    with pytest.raises(ValueError, match="left over"):
        load_part(payload + b"x", LIMITS)


def test_whatever_is_changed_in_a_part_there_is_no_other_error_than_value_error(stream: Stream) -> None:
    payload = dump_part(0, b"orders", stream, 0, 1, Shelf(stream.limits))
    random = Random(1)
    for _ in range(3000):
        spoiled = bytearray(payload)
        for _ in range(random.choice([1, 1, 2, 5])):
            spoiled[random.randrange(len(spoiled))] = random.randrange(256)
        try:
            load_part(bytes(spoiled), LIMITS)
        except ValueError:
            continue


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"", "no field begins"),
        (fields(b"part2", b"0", b"k", b"7", b"0", b"absent"), "not a part"),
        (fields(b"part1", b"16", b"k", b"7", b"0", b"absent"), "not a number that can stand here"),
        (fields(b"part1", b"0", b"k", b"-7", b"0", b"absent"), "not a number that can stand here"),
        (fields(b"part1", b"0", b"k", b"7", b"9", b"5", b"absent"), "checksum of its first fields"),
        (head(b"absent", expires_ms=b"5"), "absent and expires"),
        (head(b"tree"), "unknown type"),
        (stream_part(rows=b"x"), "not whole"),
        (stream_part(rows=row(2, 1) + row(2, 1), first=b"2-0"), "nodes out of order"),
        (stream_part(rows=row(2, 0), first=b"2-0"), "without entries"),
        (stream_part(rows=row(2, 1, segment=0), first=b"2-0"), "is no place"),
        (stream_part(rows=row(2, 1, size=0), first=b"2-0"), "is no place"),
        (stream_part(rows=row(6, 1), first=b"6-0"), "behind the stream's last ID"),
        (stream_part(rows=row(2, 3), first=b"2-0"), "more entries than were ever added"),
        (stream_part(rows=row(2, 1), first=b"1-0"), "not the ID of the first entry"),
        (stream_part(rows=row(2, 1) + row(4, 1), first=b"4-0"), "not the ID of the first entry"),
        (stream_part(first=b"1-0"), "not the ID of the first entry"),
        (stream_part(rows=row(2, 1), first=b"2-0", room=b"1"), "not a number that can stand here"),
        (stream_part(rows=row(2, 1), first=b"2-0", spared=b"1"), "not a number that can stand here"),
        (stream_part(tail=b"2"), "neither 0 nor 1"),
    ],
)
def test_what_the_layout_does_not_say_is_refused(payload: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        load_part(payload, LIMITS)


def test_the_parts_of_the_refusals_are_right_but_for_one_field() -> None:
    assert load_part(stream_part(), LIMITS).value is not None
    assert load_part(stream_part(rows=row(2, 1) + row(4, 1), first=b"2-0"), LIMITS).value is not None


def test_a_damaged_part_still_says_whose_it_was_unless_the_damage_is_there() -> None:
    part = head(b"list", b"1", b"tea")
    begin = len(part) - len(fields(b"0", b"list", b"1", b"tea"))

    for place in range(len(part)):
        damaged = part[:place] + bytes([part[place] ^ 1]) + part[place + 1 :]
        assert find_head(damaged) == ((0, b"k") if place >= begin else None), place

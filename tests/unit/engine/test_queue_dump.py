"""The payload of a reliable queue: a round trip is exact, and nothing but what the layout says is accepted."""

from __future__ import annotations

import zlib

import pytest

from headrace.engine.dump import MAGIC, dump_value, load_value
from headrace.engine.reliable_queue import ReliableQueue
from headrace.engine.stream import NodeLimits
from support.memory import ManualClock, MemoryBroker

LIMITS = NodeLimits()


def sealed(fields: list[bytes]) -> bytes:
    body = MAGIC + b"".join(b"%d:%b" % (len(field), field) for field in fields)
    return body + zlib.crc32(body).to_bytes(4, "big")


def fields_of(payload: bytes) -> list[bytes]:
    fields = []
    position = len(MAGIC)
    while position < len(payload) - 4:
        colon = payload.index(b":", position)
        end = colon + 1 + int(payload[position:colon])
        fields.append(payload[colon + 1 : end])
        position = end
    return fields


@pytest.fixture
def queue(broker: MemoryBroker, clock: ManualClock) -> ReliableQueue:
    """A queue with elements in every place and every counter above zero."""
    broker("RQ.PUSHX q MAXDELIVERIES 1 RETRY 50 ELEMENTS 1 poison")
    broker("RQ.PUSHX q TTL 10 ELEMENTS 1 stale")
    clock.advance(ms=10)
    broker("RQ.POP q")
    clock.advance(ms=50)
    names = broker("RQ.PUSH", "q", b"\r\n", b"", "c", "d", "e", "f")
    broker("RQ.PUSHX q RETRY 5000 MAXDELIVERIES 4 DEADLETTER dead ELEMENTS 2 g h")
    broker("RQ.POP COUNT 3 q")
    clock.advance(ms=1)
    broker("RQ.POP COUNT 4 q")
    broker("RQ.NACK", "q", names[0])
    broker("RQ.NACK", "q", "DELAY", 70, names[1])
    broker("RQ.PUSHX q DELAY 60 TTL 90 RETRY 1 ELEMENTS 2 later later")
    broker("RQ.PUSHX q TTL 900 ELEMENTS 1 soon")
    broker("RQ.PUSH q z")
    broker("RQ.PAUSE q OUT")
    found = broker.state.databases[0].values[b"q"]
    assert isinstance(found, ReliableQueue)
    assert found.nacks and found.dead and found.expired
    assert found.fresh and found.returned and found.delivered and found.delayed
    return found


def test_a_queue_survives_with_everything_it_remembers(broker: MemoryBroker, queue: ReliableQueue) -> None:
    payload = dump_value(queue)
    loaded = load_value(payload, LIMITS)
    assert dump_value(loaded) == payload
    broker.state.databases[0].values[b"copy"] = loaded
    for words in ("INSPECT {} 0 99", "INSPECT {} PENDING 0 99", "INSPECT {} DELAYED 0 99", "STATS {}"):
        assert broker("RQ." + words.format("copy")) == broker("RQ." + words.format("q"))


def test_a_queue_goes_on_where_it_was(broker: MemoryBroker, clock: ManualClock, queue: ReliableQueue) -> None:
    """The original loses its elements and its last ID here."""
    for name in ("q", "copy"):
        broker(f"RQ.PAUSE {name} NONE")
    broker.state.databases[0].values[b"copy"] = load_value(dump_value(queue), LIMITS)

    def both(words: str) -> None:
        ours, theirs = broker(words.format("copy")), broker(words.format("q"))
        if words.startswith("RQ.POP"):
            ours, theirs = [row[1:] for row in ours], [row[1:] for row in theirs]
        assert ours == theirs, words

    for ms in (0, 30, 40, 50, 900, 5000):
        clock.advance(ms=ms)
        both("RQ.PUSH {} a b")
        both("RQ.POP COUNT 3 {}")
        both("RQ.RECOVER {} 2 40")
        both("RQ.STATS {}")


def test_an_empty_queue_has_a_payload_too() -> None:
    payload = dump_value(ReliableQueue())
    assert dump_value(load_value(payload, LIMITS)) == payload


def test_a_changed_field_is_refused_or_gives_a_queue_with_that_payload(queue: ReliableQueue) -> None:
    """Whatever is accepted is a queue that dumps to exactly these bytes."""
    fields = fields_of(dump_value(queue))
    for index in range(1, len(fields)):
        for value in (
            b"",
            b"0",
            b"1",
            b"2",
            b"7",
            b"-1",
            b"99999999999999999999",
            b"1-1",
            b"5-0",
            fields[index] + b"0",
        ):
            payload = sealed(fields[:index] + [value] + fields[index + 1 :])
            try:
                loaded = load_value(payload, LIMITS)
            except ValueError:
                continue
            assert dump_value(loaded) == payload, (index, value)


def test_a_missing_field_is_refused(queue: ReliableQueue) -> None:
    fields = fields_of(dump_value(queue))
    for index in range(1, len(fields)):
        with pytest.raises(ValueError, match=r"."):
            load_value(sealed(fields[:index]), LIMITS)


@pytest.mark.parametrize("last", [b"9223372036854775808-1", b"1-9223372036854775808"])
def test_a_last_id_that_leaves_no_room_is_refused(last: bytes) -> None:
    fields = fields_of(dump_value(ReliableQueue()))
    with pytest.raises(ValueError, match="no room"):
        load_value(sealed([fields[0], last, *fields[2:]]), LIMITS)


def test_no_number_is_accepted_that_could_not_grow(broker: MemoryBroker) -> None:
    """What could be loaded and then counts one more can be dumped and loaded again."""
    broker("RQ.PUSH q a")
    broker("RQ.POP q")
    fields = fields_of(broker("DUMP q"))
    for index in range(2, len(fields)):
        payload = sealed([*fields[:index], b"%d" % (2**63 - 1), *fields[index + 1 :]])
        if isinstance(broker("RESTORE", "copy", 0, payload, "REPLACE"), bytes):
            for number in broker("RQ.RECOVER copy 10 0"):
                broker("RQ.NACK", "copy", number[0])
            assert broker("RESTORE", "again", 0, broker("DUMP copy"), "REPLACE") == b"OK", index

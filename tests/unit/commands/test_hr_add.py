"""HR.ADD: an entry once for each publish id, now or later."""

from __future__ import annotations

from typing import Any

import hiredis
import pytest

from headrace.commands.apply import apply
from headrace.commands.call import State
from headrace.engine.dump import dump_value
from support.memory import START_MS, ManualClock, MemoryBroker, Refusal

WRONG_TYPE = Refusal("WRONGTYPE Operation against a key holding the wrong kind of value")
BAD_FIELDS = Refusal("ERR FIELDS must be followed by an even number, 2 or more, and by exactly so many words")
ONCE = "ID {} WINDOW 60000 MAX 100 FIELDS 2 item tea"


def once(broker: MemoryBroker, publish_id: str, key: str = "orders") -> Any:
    return broker(f"HR.ADD {key} " + ONCE.format(publish_id))


def replayed(broker: MemoryBroker) -> dict[bytes, bytes]:
    """What the records alone make of nothing, as payloads."""
    reader = hiredis.Reader()
    reader.feed(b"".join(broker.state.records))
    state = State(START_MS)
    record = reader.gets()
    while record is not False:
        apply(state, record)
        record = reader.gets()
    return payloads(state)


def payloads(state: State) -> dict[bytes, bytes]:
    return {key: dump_value(value) for key, value in state.databases[0].values.items()}


def test_an_entry_without_an_id_is_added_each_time(broker: MemoryBroker) -> None:
    first, is_new = broker("HR.ADD orders FIELDS 4 item tea cups 2")
    assert is_new == 1
    second, is_new = broker("HR.ADD orders FIELDS 4 item tea cups 2")
    assert is_new == 1
    fields = [b"item", b"tea", b"cups", b"2"]
    assert broker("XRANGE orders - +") == [[first, fields], [second, fields]]


def test_a_repeated_publish_id_answers_the_first_entry_and_adds_nothing(broker: MemoryBroker) -> None:
    first, is_new = once(broker, "order-17")
    assert is_new == 1
    assert once(broker, "order-17") == [first, 0]
    assert once(broker, "order-18")[1] == 1
    assert broker("XLEN orders") == 2


def test_a_publish_id_is_remembered_after_its_entry_is_gone(broker: MemoryBroker) -> None:
    first, _ = once(broker, "order-17")
    broker("XTRIM orders MAXLEN 0")
    assert once(broker, "order-17") == [first, 0]
    assert broker("XLEN orders") == 0


def test_a_publish_id_counts_as_new_once_the_window_is_over(broker: MemoryBroker, clock: ManualClock) -> None:
    first, _ = once(broker, "order-17")
    clock.advance(ms=59_999)
    assert once(broker, "order-17") == [first, 0]
    clock.advance(ms=1)
    second, is_new = once(broker, "order-17")
    assert is_new == 1
    clock.advance(ms=59_999)
    assert once(broker, "order-17") == [second, 0]


def test_only_the_newest_publish_ids_are_remembered(broker: MemoryBroker) -> None:
    for number in range(4):
        assert broker(f"HR.ADD orders ID {number} WINDOW 60000 MAX 3 FIELDS 2 a b")[1] == 1
    assert [broker(f"HR.ADD orders ID {number} WINDOW 60000 MAX 3 FIELDS 2 a b")[1] for number in (1, 2, 3)] == [0] * 3
    assert broker("HR.ADD orders ID 0 WINDOW 60000 MAX 3 FIELDS 2 a b")[1] == 1


def test_a_smaller_limit_takes_effect_bit_by_bit(broker: MemoryBroker) -> None:
    for number in range(300):
        broker(f"HR.ADD orders ID {number} WINDOW 60000 MAX 1000 FIELDS 2 a b")
    for number in range(3):
        broker(f"HR.ADD orders ID new-{number} WINDOW 60000 MAX 3 FIELDS 2 a b")
    assert [broker(f"HR.ADD orders ID new-{number} WINDOW 60000 MAX 3 FIELDS 2 a b")[1] for number in range(3)] == [
        0
    ] * 3
    assert len(broker.state.databases[0].values[b"orders"].publish_ids.records) == 3


def test_publish_ids_out_of_the_window_do_not_pile_up(broker: MemoryBroker, clock: ManualClock) -> None:
    for number in range(250):
        once(broker, f"old-{number}")
    clock.advance(s=60)
    for number in range(3):
        once(broker, f"new-{number}")
    assert len(broker.state.databases[0].values[b"orders"].publish_ids.records) == 3


def test_a_clock_that_goes_back_forgets_nothing(broker: MemoryBroker, clock: ManualClock) -> None:
    first, _ = once(broker, "order-17")
    clock.time_ms -= 100_000
    assert once(broker, "order-17") == [first, 0]


@pytest.mark.parametrize("way", ["COPY orders other", "RENAME orders other"])
def test_publish_ids_travel_with_the_stream(broker: MemoryBroker, way: str) -> None:
    first, _ = once(broker, "order-17")
    broker(way)
    assert once(broker, "order-17", "other") == [first, 0]


def test_deleting_the_stream_forgets_its_publish_ids(broker: MemoryBroker) -> None:
    once(broker, "order-17")
    broker("DEL orders")
    assert once(broker, "order-17")[1] == 1


def test_waiting_readers_are_woken(broker: MemoryBroker) -> None:
    ann = broker.client()
    ann.send("XREAD BLOCK 0 STREAMS orders $")
    entry_id, _ = once(broker, "order-17")
    assert ann.replies() == [[[b"orders", [[entry_id, [b"item", b"tea"]]]]]]


def test_a_watched_stream_counts_as_changed(broker: MemoryBroker) -> None:
    ann = broker.client()
    ann("WATCH orders")
    once(broker, "order-17")
    ann("MULTI")
    ann("PING")
    assert ann("EXEC") is None


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("FIELDS 2 a", "ERR wrong number of arguments for 'hr.add' command"),
        ("FIELDS 2 a b c", str(BAD_FIELDS)),
        ("FIELDS 4 a b", str(BAD_FIELDS)),
        ("FIELDS 3 a b c", str(BAD_FIELDS)),
        ("FIELDS 0 a b", str(BAD_FIELDS)),
        ("FIELDS many a b", str(BAD_FIELDS)),
        ("ID x FIELDS 2 a b", "ERR ID, WINDOW and MAX must be given together"),
        ("ID x WINDOW 5 FIELDS 2 a b", "ERR ID, WINDOW and MAX must be given together"),
        ("WINDOW 5 MAX 5 FIELDS 2 a b", "ERR ID, WINDOW and MAX must be given together"),
        ('ID "" WINDOW 5 MAX 5 FIELDS 2 a b', "ERR ID must not be empty"),
        ("ID x WINDOW 0 MAX 5 FIELDS 2 a b", "ERR WINDOW must be positive"),
        ("ID x WINDOW 5 MAX -1 FIELDS 2 a b", "ERR MAX must be positive"),
        ("ID x WINDOW soon MAX 5 FIELDS 2 a b", "ERR value is not an integer or out of range"),
        ("ID x ID y WINDOW 5 MAX 5 FIELDS 2 a b", "ERR syntax error"),
        ("AT soon FIELDS 2 a b", "ERR value is not an integer or out of range"),
        ("AT 0 FIELDS 2 a b", "ERR AT is not a time in milliseconds"),
        ("DELAY -1 FIELDS 2 a b", "ERR DELAY is not a number of milliseconds"),
        ("AT 5 DELAY 5 FIELDS 2 a b", "ERR syntax error"),
        ("ONCE x FIELDS 2 a b", "ERR syntax error"),
        ("ID x WINDOW 5 MAX 5", "ERR syntax error"),
    ],
)
def test_a_faulty_add_changes_nothing(broker: MemoryBroker, words: str, error: str) -> None:
    assert broker(f"HR.ADD orders {words}") == Refusal(error)
    assert broker("EXISTS orders") == 0


def test_other_types_are_refused(broker: MemoryBroker) -> None:
    broker("SET key text")
    assert once(broker, "x", "key") == WRONG_TYPE


def test_no_id_is_left_to_give(broker: MemoryBroker) -> None:
    broker("XADD orders 18446744073709551615-18446744073709551615 a b")
    error = "ERR The stream has exhausted the last possible ID, unable to add more items"
    assert once(broker, "order-17") == Refusal(error)


def test_the_records_bring_the_publish_ids_back(clock: ManualClock) -> None:
    broker = MemoryBroker(clock, journaling=True)
    for number in range(120):
        broker(f"HR.ADD orders ID {number % 50} WINDOW 1000 MAX 30 FIELDS 2 n {number}")
        clock.advance(ms=number)
    broker("XGROUP CREATE orders slow 0")
    broker("XREADGROUP GROUP slow ann COUNT 20 STREAMS orders >")
    broker("HR.TRIM orders MAXLEN 5")
    broker("HR.TRIM orders MAXLEN 5 DRYRUN")
    broker("COPY orders other")
    once(broker, "3", "other")
    broker("HR.TRIM other MINID 5")
    written = replayed(broker)
    for stream in broker.state.databases[0].values.values():
        stream.groups[b"slow"].consumers[b"ann"].active_ms = stream.groups[b"slow"].consumers[b"ann"].seen_ms
    assert written == payloads(broker.state)


def test_the_steps_are_found_by_name(broker: MemoryBroker) -> None:
    names = ("add", "due", "extend", "release", "settle", "start", "sweep", "trim")
    assert sorted(broker("COMMAND LIST FILTERBY PATTERN hr.*")) == [f"hr.{name}".encode() for name in names]
    assert broker("COMMAND GETKEYS HR.ADD orders ID x WINDOW 5 MAX 5 FIELDS 2 a b") == [b"orders"]

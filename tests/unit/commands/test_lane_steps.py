"""LANE.*: what only a broker in memory can show.

What they promise on every server is in tests/contract/test_lane*.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from headrace.commands.lane_intake import find_key
from headrace.commands.lane_ticket import Ticket, read_ticket
from headrace.wire.encoder import encode_bulk, encode_entry
from support.memory import START_MS, ManualClock, MemoryBroker, Refusal
from support.replay import contents_of, state_of

SESSION = START_MS * 1000  # Of ann, who registers first; bob has the next number.
FENCE = SESSION + 2  # Of the first key that is taken; the next one has the next number.
BESIDE = b"hr:{s}:g:"
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
FENCED = "FENCED this consumer has another session, or none: register again"


@pytest.fixture
def lanes(broker: MemoryBroker) -> MemoryBroker:
    """The group g of `s`, in order by the field k: 1-0 and 2-0 of a, 3-0 of b. Ann and bob are registered."""
    broker("XGROUP CREATE s g 0 MKSTREAM")
    broker("LANE.CONFIG s g KEYFIELDS 1 k")
    for name in ("ann", "bob"):
        broker(f"LANE.REGISTER s g {name}")
    assert take(broker) == [[], 0]  # The rebuild that comes with the first settings.
    for number, key in enumerate("aab", 1):
        broker(f"XADD s {number}-0 k {key}")
    return broker


def take(broker: MemoryBroker, *, keys: int = 1, run: int = 1, lease_ms: int = 1000) -> Any:
    return broker(f"LANE.TAKE s g ann {SESSION} LEASE {lease_ms} KEYS {keys} RUN {run}")


def events_of(broker: MemoryBroker, *lines: str) -> list[tuple[bytes, bytes]]:
    """Key and event of each that these commands told."""
    broker("CONFIG SET notify-keyspace-events KA")
    listener = broker.client()
    listener.send("PSUBSCRIBE __keyspace*")
    listener.replies()
    for line in lines:
        assert not isinstance(broker(line), Refusal)
    prefix = b"__keyspace@0__:"
    return [(push[2].removeprefix(prefix).removeprefix(BESIDE), push[3]) for push in listener.replies()]


def test_taking_a_key_tells_its_events(lanes: MemoryBroker) -> None:
    told = events_of(lanes, f"LANE.TAKE s g ann {SESSION} LEASE 1000 KEYS 1 RUN 1")

    assert told == [
        (b"consumers", b"hset"), (b"s", b"xgroup-createconsumer"), (b"lane:a", b"rpush"),
        (b"s", b"xgroup-createconsumer"), (b"tickets", b"hset"), (b"until", b"zadd"), (b"order", b"hset"),
    ]  # fmt: skip


def test_settling_a_key_tells_its_events(lanes: MemoryBroker) -> None:
    take(lanes)

    told = events_of(lanes, f"LANE.SETTLE s g DONE a {FENCE} 1 1-0")

    assert told == [
        (b"lane:a", b"lpop"), (b"lane:a", b"del"), (b"s", b"xdel"), (b"tickets", b"hdel"), (b"tickets", b"del"),
        (b"until", b"zrem"), (b"until", b"del"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "touched"),
    [
        (f"LANE.SETTLE s g DONE a {FENCE} 1 1-0", b"s lane:a tickets until"),
        (f"LANE.SETTLE s g KEEP DONE a {FENCE} 1 1-0", b"lane:a tickets until"),
        (f"LANE.SETTLE s g DONE a {FENCE - 1} 1 1-0", b""),
        (f"LANE.SETTLE s g BACK a {FENCE}", b"tickets until ready"),
        (f"LANE.SETTLE s g FAIL a {FENCE} 1-0 500 no", b"tickets until"),
        (f"LANE.SETTLE s g BURY a {FENCE} 1-0 no trace", b"s lane:a tickets until dead"),
        (f"LANE.SETTLE s g DONE a {FENCE} 1 1-0 EFFECT 2 INCR n ADD t FIELDS 2 f v", b"s lane:a tickets until n t"),
        (f"LANE.EXTEND s g ann {SESSION} LEASE 9 1 a {FENCE}", b"tickets until consumers"),
        (f"LANE.LEAVE s g ann {SESSION}", b"tickets until ready consumers"),
        ("LANE.PARK s g a", b"tickets until"),
        ("LANE.RESUME s g a", b""),
        ("LANE.REBUILD s g", b"tickets until ready lane:a order"),
        ("LANE.CONFIG s g KEYFIELDS 1 k", b""),
        ("LANE.CONFIG s g KEYFIELDS 1 k LEASE 5", b"order"),
        ("LANE.INFO s g", b""),
    ],
)
def test_transactions_that_watch_what_changes_do_not_run(lanes: MemoryBroker, line: str, touched: bytes) -> None:
    assert take(lanes)[0][0][1] == FENCE
    watchers: dict[bytes, Any] = {}
    for name in b"s lane:a tickets until ready consumers order dead n t".split():
        watchers[name] = lanes.client()
        watchers[name](b"WATCH", name if len(name) == 1 else BESIDE + name)
        watchers[name]("MULTI")

    assert not isinstance(lanes(line), Refusal)

    stale = [name for name, watcher in watchers.items() if watcher("EXEC") is None]
    assert sorted(stale) == sorted(touched.split())


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("LANE.CONFIG s g KEYFIELDS 0 k", "ERR KEYFIELDS must be followed by a number, 1 to 64, and by as many names"),
        ("LANE.CONFIG s g KEYFIELDS 2 k", "ERR KEYFIELDS must be followed by a number, 1 to 64, and by as many names"),
        ('LANE.CONFIG s g KEYFIELDS 1 ""', "ERR a name of KEYFIELDS must not be empty"),
        ("LANE.CONFIG s g POISON SKIP LEASE 5", "ERR syntax error"),
        ("LANE.CONFIG s g KEYFIELDS 1 k POISON", "ERR syntax error"),
        ("LANE.CONFIG s g KEYFIELDS 1 k POISON FISH", "ERR syntax error"),
        ("LANE.CONFIG s g KEYFIELDS 1 k KEYFIELDS 1 k", "ERR syntax error"),
        ("LANE.CONFIG s g KEYFIELDS 1 k LEASE 0", "ERR LEASE is not a positive number of milliseconds"),
        ("LANE.CONFIG s g KEYFIELDS 1 k READER lanes", "ERR READER must be a consumer's name other than 'lanes'"),
        ("LANE.CONFIG s g KEYFIELDS 1 k MAPS m m", "ERR MAPS must name two different keys"),
        ("LANE.CONFIG s g KEYFIELDS 1 k MAPS s m", "ERR MAPS must not name the stream or another key of the group"),
        ("LANE.CONFIG s g KEYFIELDS 1 k MAPS text m", WRONG_TYPE),
        ("LANE.CONFIG s g KEYFIELDS 1 k LAYOUT SET",
         "ERR LAYOUT must be LIST here: SET is for servers that refuse keys nobody declared"),
        ("LANE.REGISTER s g master", "ERR this name is not for consumers: choose another"),
        ("LANE.REGISTER s g lanes", "ERR this name is not for consumers: choose another"),
        ("LANE.REGISTER s g eve CAPACITY 0", "ERR CAPACITY must be from 1 to 1000000"),
        ("LANE.REGISTER s g eve HEALTH", "ERR syntax error"),
        (f"LANE.TAKE s g ann {SESSION} LEASE 9 KEYS 1001 RUN 1", "ERR KEYS must be from 1 to 1000"),
        (f"LANE.TAKE s g ann {SESSION} LEASE 9 KEYS 1 RUN 0", "ERR RUN must be from 1 to 1000"),
        (f"LANE.TAKE s g ann {SESSION} LEASE 9 KEYS 1 RUN 1 LIMIT 0", "ERR LIMIT must be from 1 to 1000"),
        (f"LANE.TAKE s g ann {SESSION} LEASE 9 KEYS 1 RUN 1 MOST 1", "ERR syntax error"),
        (f"LANE.TAKE s g ann {SESSION} KEYS 9 LEASE 1 RUN 1", "ERR syntax error"),
        ("LANE.TAKE s g ann 1 LEASE 9 KEYS 1 RUN 1", FENCED),
        ("LANE.EXTEND s g ann 1 LEASE 9 0", FENCED),
        ("LANE.LEAVE s g ann 1", FENCED),
        (f"LANE.EXTEND s g ann {SESSION} LEASE 9 2 a 1",
         "ERR the number of keys must be from 0 to 1000, with a key and its fence for each"),
        ("LANE.SETTLE s g KEEP a b c", "ERR syntax error"),
        ("LANE.SETTLE s g DONE a 1 0 1-0",
         "ERR DONE must be followed by a key, its fence, the number of IDs, 1 or more, and as many IDs"),
        ("LANE.SETTLE s g DONE a 1 1 x", "ERR Invalid stream ID specified as stream command argument"),
        ("LANE.SETTLE s g BACK a 1 BACK a 2", "ERR one clause per key is possible in one call"),
        ("LANE.SETTLE s g BACK a 1 EFFECT 2 INCR n", "ERR syntax error"),
        (f"LANE.SETTLE s g DONE a {FENCE} 1 1-0 EFFECT 2 INCR text",
         "ERR value is not an integer or out of range"),
        (f"LANE.SETTLE s g DONE a {FENCE} 1 1-0 EFFECT 2 DEL hr:{{s}}:g:lane:b",
         "ERR an effect must not name a key that the step itself uses"),
        (f"LANE.SETTLE s g DONE a {FENCE} 1 1-0 ADD hr:{{s}}:g:ready FIELDS 2 f v",
         "ERR an effect must not name a key that the step itself uses"),
        ("LANE.PARK s g a REASON x", "ERR syntax error"),
        ("LANE.RESUME s g a JUMP", "ERR syntax error"),
        ("LANE.INFO s g LANE a", "ERR syntax error"),
    ],
)  # fmt: skip
def test_a_refused_step_changes_nothing(lanes: MemoryBroker, line: str, error: str) -> None:
    lanes("SET text word")
    take(lanes)
    before = contents_of(lanes.state)

    assert lanes(line) == Refusal(error)
    assert contents_of(lanes.state) == before


@pytest.mark.parametrize("name", ["tickets", "ready", "until", "consumers", "order"])
def test_a_key_of_another_type_refuses_every_step(broker: MemoryBroker, name: str) -> None:
    broker("XGROUP CREATE s g 0 MKSTREAM")
    broker("LANE.CONFIG s g KEYFIELDS 1 k")
    broker("DEL", BESIDE + name.encode())
    broker("SET", BESIDE + name.encode(), "text")
    for line in ("CONFIG s g KEYFIELDS 1 k", "REGISTER s g ann", "REBUILD s g", "PARK s g a", "SETTLE s g BACK a 1"):
        assert broker(f"LANE.{line}") == Refusal(WRONG_TYPE)


def test_a_rebuild_goes_on_page_by_page(lanes: MemoryBroker) -> None:
    for number in range(4, 2204):
        lanes(f"XADD s {number}-0 k key{number % 7}")
    lanes("XREADGROUP GROUP g zoe STREAMS s >")

    lanes("LANE.REBUILD s g")
    assert lanes("HGET", BESIDE + b"order", "rebuild") == b"1000-0"
    assert take(lanes) == [[], 0]
    assert lanes("HGET", BESIDE + b"order", "rebuild") == b"2000-0"
    assert take(lanes) == [[], 0]
    assert lanes("HGET", BESIDE + b"order", "rebuild") is None

    grants, _ = take(lanes, keys=1000, run=1)
    assert [(grant[0], grant[4][0][0]) for grant in grants[:3]] == [(b"a", b"1-0"), (b"b", b"3-0"), (b"key4", b"4-0")]
    assert lanes("LLEN", BESIDE + b"lane:key0") == 314
    assert lanes("XINFO CONSUMERS s g")[-1][3] == 0  # Zoe has nothing any more.


def test_more_strays_than_one_call_takes_hold_new_entries_back(lanes: MemoryBroker) -> None:
    for number in range(4, 1504):
        lanes(f"XADD s {number}-0 k c")
    lanes("XREADGROUP GROUP g master STREAMS s >")
    lanes("XADD s 2000-0 k d")

    grants, wait_ms = take(lanes, keys=10, run=1)
    assert ([grant[0] for grant in grants], wait_ms) == ([b"a", b"b", b"c"], 0)
    grants, wait_ms = take(lanes, keys=10, run=1)
    assert ([grant[0] for grant in grants], wait_ms) == ([b"d"], 1000)
    assert lanes("LLEN", BESIDE + b"lane:c") == 1500


def test_a_repeated_read_leaves_what_is_held_with_its_holder(lanes: MemoryBroker) -> None:
    take(lanes, keys=2, run=2)
    lanes("XGROUP SETID s g 0")

    assert take(lanes)[0] == []
    rows = [(name, owner) for name, owner, _, _ in lanes("XPENDING s g - + 9")]
    assert rows == [(b"1-0", b"ann"), (b"2-0", b"ann"), (b"3-0", b"ann")]


def test_fences_go_on_when_the_clock_was_set_back(lanes: MemoryBroker, clock: ManualClock) -> None:
    clock.time_ms -= 3_600_000

    grants, _ = take(lanes, keys=2)
    assert [grant[1] for grant in grants] == [FENCE, FENCE + 1]


def test_nobody_is_left_behind_who_leaves(lanes: MemoryBroker) -> None:
    take(lanes)

    assert lanes(f"LANE.LEAVE s g ann {SESSION}") == 1
    assert lanes("HKEYS", BESIDE + b"consumers") == [b"bob"]
    assert [row[1] for row in lanes("XINFO CONSUMERS s g")] == [b"lanes"]
    assert lanes(f"LANE.LEAVE s g ann {SESSION}") == 0


def test_a_step_is_one_piece_of_the_journal() -> None:
    broker = MemoryBroker(journaling=True)
    broker("CONFIG SET stream-node-max-entries 3")
    broker("XGROUP CREATE s g 0 MKSTREAM")
    broker("LANE.CONFIG s g KEYFIELDS 1 k MAXATTEMPTS 1 POISON SKIP")
    broker("LANE.REGISTER s g ann")
    for number in range(1, 9):
        broker(f"XADD s {number}-0 k {'ab'[number % 2]}")
    take(broker)
    for line in (
        f"LANE.TAKE s g ann {SESSION} LEASE 5 KEYS 9 RUN 9",
        f"LANE.SETTLE s g DONE a {SESSION + 2} 1 2-0 EFFECT 2 INCR n FAIL b {SESSION + 1} 1-0 5 no",
        "LANE.REGISTER s g ann",
    ):
        pieces = len(broker.state.records)
        assert not isinstance(broker(line), Refusal)
        assert len(broker.state.records) == pieces + 1
        assert contents_of(state_of(broker.state.records)) == contents_of(broker.state)


def test_a_lane_that_was_cleared_of_done_messages_is_the_same_after_a_replay() -> None:
    broker = MemoryBroker(journaling=True)
    broker("CONFIG SET stream-node-max-entries 3")
    broker("XGROUP CREATE s g 0 MKSTREAM")
    broker("LANE.CONFIG s g KEYFIELDS 1 k")
    broker("LANE.REGISTER s g ann")
    for number in range(1, 4):
        broker(f"XADD s {number}-0 k a")
    broker("XREADGROUP GROUP g ann STREAMS s >")
    take(broker)
    broker("PEXPIRE", BESIDE + b"lane:a", 60_000)
    broker("XACK s g 2-0")

    grants, _ = take(broker, run=9)
    assert [entry[0] for entry in grants[0][4]] == [b"1-0", b"3-0"]
    assert contents_of(state_of(broker.state.records)) == contents_of(broker.state)


# Pure parts


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (b"ready 0", (b"ready", 0, 0, 0, 0, b"", b"")),
        (b"ready 3 it broke", (b"ready", 3, 0, 0, 0, b"", b"it broke")),
        (b"held 1 1700000000000000 1700000001000 2 ann of acme",
         (b"held", 1, 1700000001000, 1700000000000000, 2, b"ann of acme", b"")),
        (b"waiting 2 1700000001000 late\nagain", (b"waiting", 2, 1700000001000, 0, 0, b"", b"late\nagain")),
        (b"parked 2 1700000001000", (b"parked", 2, 1700000001000, 0, 0, b"", b"")),
    ],
)  # fmt: skip
def test_a_ticket_is_read_as_it_is_written(text: bytes, seen: tuple[Any, ...]) -> None:
    ticket = read_ticket(text)
    assert facts_of(ticket) == seen
    assert ticket.encode() == text


@pytest.mark.parametrize(
    "text",
    [b"", b"ready", b"ready -1", b"ready x", b"held 1 2 3 0 ann", b"held 1 2 3 1", b"held  2 3 1 ann", b"waiting 1",
     b"parked 1 x", b"parked 1 " + b"9" * 40, b"fish 1 2", b"READY 1"],
)  # fmt: skip
def test_what_is_no_ticket_counts_as_ready(text: bytes) -> None:
    assert facts_of(read_ticket(text)) == (b"ready", 0, 0, 0, 0, b"", b"")


def facts_of(ticket: Ticket) -> tuple[Any, ...]:
    return (
        ticket.state, ticket.attempts, ticket.time_ms, ticket.fence, ticket.given, ticket.consumer, ticket.error
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ([b"k", b"7"], b"7"),
        ([b"x", b"1", b"k", b"7", b"k", b"8"], b"7"),
        ([b"other", b"5", b"k", b"7"], b"7"),
        ([b"k", b"", b"other", b"5"], b"5"),
        ([b"k\r\n$1\r\n7", b"$1\r\nk\r\n$1\r\n8\r\n"], b""),
        ([b"data", b'{"k": "\\u00e9"}'], b"\xc3\xa9"),
        ([b"data", b'{"k": 12}'], b"12"),
        ([b"data", b'{"k": 1e3}'], b"1000"),
        ([b"data", b'{"k": -0.0}'], b"0"),
        ([b"data", b'{"k": 1.5, "other": true}'], b"true"),
        ([b"data", b'{"k": 9007199254740992}'], b""),
        ([b"data", b'{"k": "\xff"}'], b"\xff"),
        ([b"data", b'{"k": "\\ud800"}'], b""),
        ([b"data", b'{"k": ["7"], "other": null}'], b""),
        ([b"data", b'["k"]'], b""),
        ([b"data", b'{"k": '], b""),
        ([b"data", b'{"k":' * 100_000], b""),
        ([b"data", b'{"k": ' + b"9" * 5000 + b"}"], b""),
        ([b"data", b'{"k": 1}', b"k", b"2"], b"2"),
        ([b"data", b'{"id": 1}', b"id", b"2"], b"1"),
        ([b"id", b"2"], b"2"),
    ],
)
def test_the_key_of_an_entry(words: list[bytes], key: bytes) -> None:
    assert find_key(encode_entry(encode_bulk(b"1700000000000-0"), words, 0), [b"k", b"other", b"id"]) == key

"""HR.DUE, HR.START, HR.EXTEND, HR.RELEASE, HR.SETTLE, HR.SWEEP: what only a broker in memory can show.

What they promise on every server is in tests/support/worker_rows/.
"""

from __future__ import annotations

from typing import Any

import pytest

from support.memory import START_MS, ManualClock, MemoryBroker, Refusal
from support.replay import contents_of, state_of


@pytest.fixture
def busy(broker: MemoryBroker) -> MemoryBroker:
    """Five entries of `s`, 1-0 to 5-0, read by ann of the group g."""
    broker("XGROUP CREATE s g 0 MKSTREAM")
    for number in range(1, 6):
        broker(f"XADD s {number}-0 n {number}")
    broker("XREADGROUP GROUP g ann STREAMS s >")
    return broker


def events_of(broker: MemoryBroker, *lines: str) -> list[tuple[bytes, bytes]]:
    """Key and event of each that these commands told."""
    broker("CONFIG SET notify-keyspace-events KA")
    listener = broker.client()
    listener.send("PSUBSCRIBE __keyspace*")
    listener.replies()
    for line in lines:
        assert not isinstance(broker(line), Refusal)
    prefix = b"__keyspace@0__:"
    return [(push[2].removeprefix(prefix), push[3]) for push in listener.replies()]


def test_a_settle_tells_its_events(busy: MemoryBroker) -> None:
    told = events_of(
        busy, "HR.SETTLE s g ann RETRY 2-0 9 1 e BURY 3-0 e t 1 ACK 1 1-0 EFFECT 2 INCR a ADD t FIELDS 2 a b"
    )

    due, attempts, dead = (b"hr:{s}:g:" + name for name in (b"due", b"attempts", b"dead"))
    assert told == [
        (due, b"zadd"), (attempts, b"hset"), (dead, b"xadd"), (b"a", b"incrby"), (b"t", b"xadd"), (b"s", b"xdel"),
    ]  # fmt: skip


def test_what_goes_with_its_last_record_is_told(busy: MemoryBroker) -> None:
    busy("HR.SETTLE s g ann RETRY 2-0 0 1 e")

    told = events_of(busy, "HR.DUE s g bob COUNT 1", "HR.SETTLE s g bob ACK 1 2-0", "HR.SWEEP s g IDLE 0")

    due, attempts = b"hr:{s}:g:due", b"hr:{s}:g:attempts"
    assert told == [
        (b"s", b"xgroup-createconsumer"), (due, b"zrem"), (due, b"del"), (b"s", b"xdel"), (attempts, b"hdel"),
        (attempts, b"del"), (b"s", b"xgroup-delconsumer"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "touched"),
    [
        ("HR.SETTLE s g ann ACK 1 1-0", b"s"),
        ("HR.SETTLE s g ann KEEP ACK 1 1-0", b""),
        ("HR.SETTLE s g ann ACK 1 9-0", b""),
        ("HR.SETTLE s g ann ACK 1 1-0 ADD t FIELDS 2 a b", b"s t"),
        ("HR.SETTLE s g ann ACK 1 1-0 EFFECT 3 SADD m x", b"s m"),
        ("HR.SETTLE s g ann RETRY 1-0 0 1 e", b"hr:{s}:g:due hr:{s}:g:attempts"),
        ("HR.SETTLE s g ann BURY 1-0 e t 1", b"s hr:{s}:g:dead"),
        ("HR.START s g ann 1-0", b"hr:{s}:g:attempts"),
        ("HR.EXTEND s g ann 1-0", b""),
        ("HR.RELEASE s g ann 1-0", b"hr:{s}:g:due hr:{s}:g:attempts"),
        ("HR.DUE s g ann COUNT 1", b""),
        ("HR.SWEEP s g IDLE 0", b""),
    ],
)
def test_transactions_that_watch_what_changes_do_not_run(busy: MemoryBroker, line: str, touched: bytes) -> None:
    busy("XGROUP CREATECONSUMER s g bob")
    watchers: dict[bytes, Any] = {}
    for key in (b"s", b"t", b"m", b"hr:{s}:g:due", b"hr:{s}:g:attempts", b"hr:{s}:g:dead"):
        watchers[key] = busy.client()
        watchers[key]("WATCH", key)

    busy(line)

    stale = []
    for key, watcher in watchers.items():
        watcher("MULTI")
        watcher("PING")
        if watcher("EXEC") is None:
            stale.append(key)
    assert stale == touched.split()


def test_a_delayed_message_wakes_a_reader_that_waits(busy: MemoryBroker, clock: ManualClock) -> None:
    busy("HR.ADD s DELAY 1000 FIELDS 2 n late")
    cat = busy.client()
    cat.send("XREADGROUP GROUP g cat BLOCK 0 STREAMS s >")
    clock.advance(s=1)
    assert cat.replies() == []

    busy("HR.DUE s g ann COUNT 1")

    [[[_, [[name, words]]]]] = cat.replies()
    assert (name, words) == (b"%d-0" % (START_MS + 1000), [b"n", b"late"])


def test_a_message_is_never_early(busy: MemoryBroker, clock: ManualClock) -> None:
    busy("HR.ADD s DELAY 1000 FIELDS 2 n late")
    busy("HR.SETTLE s g ann RETRY 1-0 1000 1 e")
    for _ in range(2):
        clock.advance(ms=499)
        assert busy("HR.DUE s g ann COUNT 9")[0] == []
    assert busy("HR.DUE s g ann COUNT 9") == [[], 2, 0]
    clock.advance(ms=2)
    assert busy("HR.DUE s g ann COUNT 9") == [[[b"1-0", [b"n", b"1"]]], -1, 0]
    assert busy("XLEN s") == 6


def test_a_released_entry_is_given_to_a_reader_that_waits_to_claim(busy: MemoryBroker) -> None:
    cat = busy.client()
    cat.send("XREADGROUP GROUP g cat BLOCK 0 CLAIM 60000 STREAMS s >")
    assert cat.replies() == []

    busy("HR.RELEASE s g ann 3-0")

    assert cat.replies() == [[[b"s", [[b"3-0", [b"n", b"3"], START_MS, 1]]]]]
    assert busy("HR.START s g cat 3-0") == [[1, b""]]


def test_what_a_settle_adds_wakes_readers(busy: MemoryBroker) -> None:
    cat = busy.client()
    cat.send("XREAD BLOCK 0 STREAMS t $")
    dan = busy.client()
    dan.send("BLPOP l 0")

    busy("HR.SETTLE s g ann ACK 1 1-0 EFFECT 3 RPUSH l x ADD t FIELDS 2 a b")

    assert cat.replies() == [[[b"t", [[b"%d-0" % START_MS, [b"a", b"b"]]]]]]
    assert dan.replies() == [[b"l", b"x"]]


def test_nobody_is_woken_when_nothing_happens(busy: MemoryBroker, clock: ManualClock) -> None:
    cat = busy.client()
    cat.send("XREADGROUP GROUP g cat BLOCK 0 CLAIM 60000 STREAMS s >")
    clock.time_ms += 10  # Without serving those who wait.

    busy("HR.DUE s g ann COUNT 1")
    busy("HR.RELEASE s g bob 1-0")

    [_, cats] = busy("XINFO CONSUMERS s g")
    assert cats[1:6:4] == [b"cat", 10]  # Nobody looked for it meanwhile.
    busy("HR.RELEASE s g ann 1-0")
    assert len(cat.replies()) == 1


def test_a_step_counts_as_a_sign_of_life(busy: MemoryBroker, clock: ManualClock) -> None:
    for line in (
        "HR.START s g ann 1-0",
        "HR.EXTEND s g ann 1-0",
        "HR.SETTLE s g ann ACK 1 1-0",
        "HR.RELEASE s g ann 2-0",
    ):
        clock.advance(s=10)
        busy(line)
        [consumer] = busy("XINFO CONSUMERS s g")
        assert consumer[5] == 0, line


def test_steps_run_in_a_transaction(busy: MemoryBroker) -> None:
    busy("MULTI")
    busy("HR.SETTLE s g ann RETRY 1-0 0 1 e")
    busy("HR.DUE s g bob COUNT 1")
    busy("HR.SETTLE s g bob ACK 1 1-0")

    assert busy("EXEC") == [[1], [[[b"1-0", [b"n", b"1"]]], -1, 0], [1]]


def test_nulls_are_those_of_the_protocol(busy: MemoryBroker) -> None:
    client = busy.client(protocol=3)

    assert client("HR.ADD s DELAY 1000 FIELDS 2 a b") == [None, 1]
    assert client("HR.DUE s g ann COUNT 1") == [[], 1000, 0]


def test_keys_that_have_expired_are_new(clock: ManualClock) -> None:
    broker = MemoryBroker(clock, journaling=True)
    broker("XGROUP CREATE s g 0 MKSTREAM")
    broker("XADD s 1-0 n 1")
    broker("XREADGROUP GROUP g ann STREAMS s >")
    broker("SET a text PX 1000")
    clock.time_ms += 1000

    assert broker("HR.SETTLE s g ann ACK 1 1-0 EFFECT 2 INCR a EFFECT 3 PEXPIRE a 500") == [1]
    assert (broker("GET a"), broker("PTTL a")) == (b"1", 500)
    state = state_of(broker.state.records)
    state.settings.limits.max_entries = broker.state.settings.limits.max_entries
    assert contents_of(state)[0, b"a"] == contents_of(broker.state)[0, b"a"]


def test_no_id_is_left_to_give(busy: MemoryBroker) -> None:
    busy("XADD t 18446744073709551615-18446744073709551614 a b")

    add = "ADD t FIELDS 2 a b"
    assert busy(f"HR.SETTLE s g ann ACK 1 1-0 {add} {add}") == Refusal(
        "ERR The stream has exhausted the last possible ID, unable to add more items"
    )
    assert busy("XLEN t") == 1
    assert len(busy("XPENDING s g - + 10")) == 5


def test_a_delayed_message_waits_when_no_id_is_left(busy: MemoryBroker, clock: ManualClock) -> None:
    busy("HR.ADD s DELAY 5 FIELDS 2 a b")
    busy("XADD s 18446744073709551615-18446744073709551615 a b")
    clock.advance(ms=5)

    assert busy("HR.DUE s g ann COUNT 9") == [[], 0, 0]
    assert busy("ZCARD hr:{s}:delayed") == 1


def test_the_names_of_the_keys_beside_a_stream(broker: MemoryBroker) -> None:
    """As client/worker_keys.py has them."""
    from headrace.client import worker_keys
    from headrace.commands import hr_keys

    for stream in ("s", "{shop}:orders", "a{b}c{d}", "x{}y", "{", "hr:{s}:g:again", "hr:{shop}:{shop}:orders:g:again"):
        ours, theirs = hr_keys.GroupKeys(stream.encode(), b"g"), worker_keys.group_keys(stream, "g")
        assert [ours.due, ours.attempts, ours.dead, ours.again] == [
            name.encode() for name in (theirs.due, theirs.attempts, theirs.dead, theirs.again)
        ]
        keys = worker_keys.stream_keys(stream)
        assert [hr_keys.delayed_key(stream.encode()), hr_keys.bodies_key(stream.encode())] == [
            keys.delayed.encode(), keys.bodies.encode(),
        ]  # fmt: skip
    again = worker_keys.group_keys("hr:{s}:g:again", "g")
    assert (again.due, again.dead) == ("hr:{s}:g:again:due", "hr:{s}:g:dead")

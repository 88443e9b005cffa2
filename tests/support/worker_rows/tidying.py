"""Delayed messages, consumers that went away, and mistakes."""

from __future__ import annotations

from headrace.client.worker_keys import group_keys, stream_keys

from ..wire import ErrorReply
from .row import (
    INVALID_ID,
    LONG_MS,
    SOON_MS,
    SYNTAX,
    WRONG_TYPE,
    WorkerSteps,
    beside_keys,
    due,
    given,
    names_in,
    now_ms,
    pending,
    row,
    wait_for_delayed,
)

# Delayed messages


@row
def a_delayed_message_comes_later(steps: WorkerSteps, key: str) -> None:
    given(steps, key, 0)
    before = now_ms(steps)
    assert steps("HR.ADD", key, "DELAY", SOON_MS, "FIELDS", 4, "a", b"\x00:1\r\n", "b", "") == [None, 1]
    assert steps("XLEN", key) == 0

    wait_for_delayed(steps, key)
    [[name, words]] = steps("XRANGE", key, "-", "+")
    assert int(name.split(b"-")[0]) >= before + SOON_MS
    assert words == [b"a", b"\x00:1\r\n", b"b", b""]
    assert pending(steps, key) == beside_keys(steps, key) == []


@row
def delayed_messages_come_in_the_order_of_their_times(steps: WorkerSteps, key: str) -> None:
    given(steps, key, 0)
    soon = now_ms(steps) + 10 * SOON_MS
    for number, at in ((1, soon + 2), (2, soon), (3, soon + 1), (4, soon), (5, soon)):
        assert steps("HR.ADD", key, "AT", at, "FIELDS", 2, "n", number) == [None, 1]

    assert due(steps, key)[1] < LONG_MS
    wait_for_delayed(steps, key, count=2)
    assert [entry[1][1] for entry in steps("XRANGE", key, "-", "+")] == [b"2", b"4", b"5", b"3", b"1"]


@row
def a_time_that_has_passed_is_now(steps: WorkerSteps, key: str) -> None:
    name, is_new = steps("HR.ADD", key, "AT", 17, "FIELDS", 2, "a", "b")

    assert (names_in(steps, key), is_new) == ([name], 1)
    assert steps("HR.ADD", key, "DELAY", 0, "FIELDS", 2, "a", "b")[1] == 1
    assert beside_keys(steps, key) == []


@row
def a_publish_id_counts_while_its_message_is_delayed_and_after(steps: WorkerSteps, key: str) -> None:
    once = ("HR.ADD", key, "ID", "order-17", "WINDOW", LONG_MS, "MAX", 100)
    fields = ("FIELDS", 2, "a", "b")

    assert steps(*once, "DELAY", SOON_MS, *fields) == [None, 1]
    assert steps(*once, "DELAY", SOON_MS, *fields) == [None, 0]
    assert steps(*once, *fields) == [None, 0]
    assert steps("XLEN", key) == 0
    steps("XGROUP", "CREATE", key, "g", "0", "MKSTREAM")
    wait_for_delayed(steps, key)
    assert steps(*once, *fields) == [names_in(steps, key)[0], 0]


# Consumers that went away


@row
def idle_consumers_that_hold_nothing_are_swept(steps: WorkerSteps, key: str) -> None:
    given(steps, key, 1)
    for consumer in ("bob", "eve"):
        steps("XGROUP", "CREATECONSUMER", key, "g", consumer)

    assert steps("HR.SWEEP", key, "g", "IDLE", LONG_MS) == []
    assert steps("HR.SWEEP", key, "g", "IDLE", 0, "CONSUMER", "eve") == [b"eve"]
    assert steps("HR.SWEEP", key, "g", "IDLE", 0, "CONSUMER", "ann") == []
    assert steps("HR.SWEEP", key, "g", "IDLE", 0) == [b"bob"]
    assert len(pending(steps, key)) == 1
    assert steps("HR.SWEEP", key, "other", "IDLE", 0) == []
    assert steps("HR.SWEEP", f"none{{{key}}}", "g", "IDLE", 0) == []


@row
def what_is_gone_from_the_stream_keeps_no_name_of_a_consumer(steps: WorkerSteps, key: str) -> None:
    """Nobody can claim it: XREADGROUP with CLAIM passes over entries that were deleted."""
    names = given(steps, key, 3)
    steps("HR.SETTLE", key, "g", "ann", "RETRY", names[0], LONG_MS, 1, "slow", "RETRY", names[1], LONG_MS, 1, "slow")
    steps("XDEL", key, names[0], names[2])

    assert steps("HR.SWEEP", key, "g", "IDLE", LONG_MS) == []
    assert steps("HR.SWEEP", key, "g", "IDLE", 0, "CONSUMER", "bob") == []
    assert len(pending(steps, key)) == 3
    assert steps("HR.SWEEP", key, "g", "IDLE", 0) == []
    assert pending(steps, key) == [[names[1], b"ann", 1]]
    records = group_keys(key, "g")
    assert steps("ZRANGE", records.due, 0, -1) == steps("HKEYS", records.attempts) == [names[1]]
    steps("XDEL", key, names[1])
    assert steps("HR.SWEEP", key, "g", "IDLE", 0) == [b"ann"]
    assert pending(steps, key) == [] and beside_keys(steps, key) == []


@row
def a_sweep_looks_at_a_hundred_entries_and_the_next_at_others(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 120)
    given(steps, key, 1, "bob")
    steps("XDEL", key, *names)

    assert steps("HR.SWEEP", key, "g", "IDLE", 0) == []
    assert len(pending(steps, key)) == 21
    assert steps("HR.SWEEP", key, "g", "IDLE", 0) == [b"ann"]
    assert [consumer for _, consumer, _ in pending(steps, key)] == [b"bob"]


@row
def records_that_were_left_behind_are_swept_when_nothing_is_pending(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)
    steps("HR.SETTLE", key, "g", "ann", "RETRY", names[0], LONG_MS, 1, "slow")
    steps("XACK", key, "g", names[0])

    assert steps("HR.SWEEP", key, "g", "IDLE", LONG_MS) == []
    assert len(beside_keys(steps, key)) == 2
    steps("XACK", key, "g", names[1])
    assert steps("HR.SWEEP", key, "g", "IDLE", LONG_MS) == []
    assert beside_keys(steps, key) == []


@row
def what_others_wrote_into_the_keys_does_no_harm(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 4)
    times, records, later = group_keys(key, "g").due, group_keys(key, "g").attempts, stream_keys(key)
    steps("ZADD", times, "-inf", "no-id", "-inf", names[0], "inf", names[1], "1.5", names[2])
    steps("HSET", records, names[0], "many", names[2], "9" * 5000, names[3], "3 x\ny")
    steps("ZADD", later.delayed, 1, "a", 2, "b", 3, "c", 4, "d", "inf", "e")
    steps("HSET", later.bodies, "a", "junk", "b", "9" * 5000 + ":x", "c", "0:1:a", "d", "0:1:a99:b", "", "last")

    entries, wait_ms, _ = due(steps, key, "ann", count=3)
    assert ([entry[0] for entry in entries], wait_ms) == ([names[0], names[2]], 0)
    assert steps("HR.START", key, "g", "ann", names[0], names[2], names[3]) == [[1, b""], [1, b""], [4, b"y"]]
    [[attempt, _]] = steps("HR.START", key, "g", "ann", names[1])
    assert attempt < -LONG_MS
    assert due(steps, key, "ann")[1] > LONG_MS
    assert steps("XLEN", key) == 4
    assert steps("HR.ADD", key, "DELAY", LONG_MS, "FIELDS", 2, "a", "b") == [None, 1]
    assert LONG_MS - 60_000 < due(steps, key, "ann")[1] <= LONG_MS


# Mistakes


@row
def a_missing_group_is_named_when_something_is_asked_for(steps: WorkerSteps, key: str) -> None:
    assert steps("HR.DUE", key, "g", "ann", "COUNT", 1) == ErrorReply(
        f"NOGROUP No such key '{key}' or consumer group 'g'"
    )


@row
def a_refused_settle_has_changed_nothing(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)
    target = f"next{{{key}}}"
    steps("SET", f"text{{{key}}}", "x")
    good = ("ACK", 1, names[0], "ADD", target, "FIELDS", 2, "a", "b")
    count = ErrorReply("ERR ACK must be followed by the number of its IDs, 1 or more, and by as many IDs")
    fields = ErrorReply("ERR FIELDS must be followed by an even number, 2 to 7000, and by as many words")
    attempt = ErrorReply("ERR the attempt is not a positive number")
    delay = ErrorReply("ERR the delay of RETRY is not a number of milliseconds")

    for words, error in (
        (("ACK", 1, "x-1"), INVALID_ID),
        (("ACK", 2, names[1], "never"), INVALID_ID),
        (("ACK", 0, names[1]), count),
        (("ACK", 2, names[1]), count),
        (("ACK", "many", names[1]), count),
        (("ACK",), SYNTAX),
        (("RETRY", names[1], "soon", 1, "e"), delay),
        (("RETRY", names[1], -1, 1, "e"), delay),
        (("RETRY", names[1], 5, 0, "e"), attempt),
        (("RETRY", names[1], 5, 1), SYNTAX),
        (("BURY", names[1], "e", "t", "often"), attempt),
        (("BURY", names[1], "e", "t"), SYNTAX),
        (("BURY", "x-1", "e", "t", 1), INVALID_ID),
        (("RETRY", names[1], 5, 1, "e", "ADD", target, "FIELDS", 2, "a", "b"), SYNTAX),
        (("ACK", 1, names[1], "ADD", target, "FIELDS", 3, "a", "b", "c"), fields),
        (("ACK", 1, names[1], "ADD", target, "FIELDS", 4, "a", "b"), fields),
        (("ACK", 1, names[1], "ADD", target, "FIELDS", 7002, *["a"] * 7002), fields),
        (("ACK", 1, names[1], "ADD", target, "WORDS", 2, "a", "b"), SYNTAX),
        (("ACK", 1, names[1], "ADD", f"text{{{key}}}", "FIELDS", 2, "a", "b"), WRONG_TYPE),
        (("FORGET", 1, names[1]), SYNTAX),
    ):
        assert steps("HR.SETTLE", key, "g", "ann", *good, *words) == error, words
    assert len(pending(steps, key)) == 2
    assert steps("EXISTS", target) == 0
    assert beside_keys(steps, key) == []


@row
def other_types_are_refused(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    text = f"text{{{key}}}"
    steps("SET", text, "x")
    for words in (
        ("HR.DUE", text, "g", "ann", "COUNT", 1),
        ("HR.START", text, "g", "ann", name),
        ("HR.EXTEND", text, "g", "ann", name),
        ("HR.RELEASE", text, "g", "ann", name),
        ("HR.SETTLE", text, "g", "ann", "ACK", 1, name),
        ("HR.SWEEP", text, "g", "IDLE", 0),
        ("HR.ADD", text, "DELAY", LONG_MS, "FIELDS", 2, "a", "b"),
    ):
        assert steps(*words) == WRONG_TYPE, words


@row
def keys_of_other_types_beside_the_stream_are_refused(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    keys = group_keys(key, "g")
    bury = ("HR.SETTLE", key, "g", "ann", "BURY", name, "e", "t", 1)
    retry = ("HR.SETTLE", key, "g", "ann", "RETRY", name, 0, 1, "e")
    start, release = ("HR.START", key, "g", "ann", name), ("HR.RELEASE", key, "g", "ann", name)
    asked = ("HR.DUE", key, "g", "ann", "COUNT", 1)
    for place, refused in (
        (keys.due, (retry, start, release, asked)),
        (keys.attempts, (retry, start, release, asked)),
        (keys.dead, (bury,)),
        (keys.again, (asked,)),
        (stream_keys(key).delayed, (asked, ("HR.ADD", key, "DELAY", LONG_MS, "FIELDS", 2, "a", "b"))),
        (stream_keys(key).bodies, (asked, ("HR.ADD", key, "DELAY", LONG_MS, "FIELDS", 2, "a", "b"))),
    ):
        steps("SET", place, "x")
        for words in refused:
            assert steps(*words) == WRONG_TYPE, (place, words)
        steps("DEL", place)
    assert pending(steps, key) == [[name, b"ann", 1]]
    assert beside_keys(steps, key) == []


@row
def numbers_that_are_none_are_refused(steps: WorkerSteps, key: str) -> None:
    given(steps, key, 1)
    for words, error in (
        (("HR.DUE", key, "g", "ann", "COUNT", 0), "ERR COUNT must be from 1 to 1000"),
        (("HR.DUE", key, "g", "ann", "COUNT", 1001), "ERR COUNT must be from 1 to 1000"),
        (("HR.DUE", key, "g", "ann", "COUNT", "all"), "ERR value is not an integer or out of range"),
        (("HR.DUE", key, "g", "ann", "MOST", 1), "ERR syntax error"),
        (("HR.SWEEP", key, "g", "IDLE", -1), "ERR IDLE must not be negative"),
        (("HR.SWEEP", key, "g", "IDLE", "long"), "ERR value is not an integer or out of range"),
        (("HR.SWEEP", key, "g", "OLD", 1), "ERR syntax error"),
        (("HR.SWEEP", key, "g", "IDLE", 1, "NAMED", "x"), "ERR syntax error"),
        (("HR.START", key, "g", "ann", "x"), str(INVALID_ID.text)),
        (("HR.EXTEND", key, "g", "ann", "1-0", "x"), str(INVALID_ID.text)),
        (("HR.RELEASE", key, "g", "ann", "1-2-3"), str(INVALID_ID.text)),
    ):
        assert steps(*words) == ErrorReply(error), words

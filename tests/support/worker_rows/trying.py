"""What is not done yet: retries, dead letters, attempts, leases that are extended or given back."""

from __future__ import annotations

from typing import Any

from headrace.client.worker_keys import group_keys

from ..servers import wait_until
from .row import INVALID_ID, LONG_MS, SOON_MS, WorkerSteps, beside_keys, due, given, names_in, now_ms, pending, row

# Retrying


@row
def a_retry_comes_when_its_time_has_come(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    assert steps("HR.SETTLE", key, "g", "ann", "RETRY", name, LONG_MS, 1, "Timeout: slow") == [1]
    assert pending(steps, key) == [[name, b"ann", 1]]
    entries, wait_ms, again = due(steps, key)
    assert (entries, again) == ([], 0)
    assert LONG_MS - 60_000 < wait_ms <= LONG_MS

    before = now_ms(steps)
    assert steps("HR.SETTLE", key, "g", "ann", "RETRY", name, SOON_MS, 1, "Timeout: slow") == [1]
    found: list[Any] = []
    wait_until(lambda: found.extend(due(steps, key)[0]) or bool(found), "the retry")
    assert now_ms(steps) >= before + SOON_MS
    assert found == [[name, [b"n", b"0"]]]
    assert pending(steps, key) == [[name, b"bob", 2]]
    assert due(steps, key) == [[], -1, 0]
    assert steps("HR.START", key, "g", "bob", name) == [[2, b"Timeout: slow"]]
    assert steps("HR.SETTLE", key, "g", "bob", "ACK", 1, name) == [1]
    assert beside_keys(steps, key) == []


@row
def retries_are_given_out_by_their_times(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 4)
    times = group_keys(key, "g").due
    steps("ZADD", times, 30, names[0], 10, names[1], 20, names[2])
    steps("ZADD", times, 4_000_000_000_000, names[3])

    entries, wait_ms, _ = due(steps, key, count=2)
    assert ([entry[0] for entry in entries], wait_ms) == ([names[1], names[2]], 0)
    entries, wait_ms, _ = due(steps, key, count=2)
    assert [entry[0] for entry in entries] == [names[0]]
    assert wait_ms > LONG_MS


@row
def a_waiting_retry_is_left_alone_by_who_claims_it(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    steps("HR.SETTLE", key, "g", "ann", "RETRY", name, LONG_MS, 1, "slow")
    steps("XCLAIM", key, "g", "bob", 0, name)

    [[attempt, error]] = steps("HR.START", key, "g", "bob", name)
    assert (-LONG_MS <= attempt < -LONG_MS + 60_000, error) == (True, b"")
    assert steps("ZCARD", group_keys(key, "g").due) == 1


@row
def a_retry_that_is_due_leaves_the_list_when_it_starts(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    steps("HR.SETTLE", key, "g", "ann", "RETRY", name, 0, 1, "slow")
    steps("XCLAIM", key, "g", "bob", 0, name)

    assert steps("HR.START", key, "g", "bob", name) == [[2, b"slow"]]
    assert due(steps, key, "eve") == [[], -1, 0]


@row
def what_was_settled_or_deleted_meanwhile_is_not_given_out(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 3)
    for name in names:
        steps("HR.SETTLE", key, "g", "ann", "RETRY", name, 0, 1, "x")
    steps("XACK", key, "g", names[0])
    steps("XDEL", key, names[1])

    entries, wait_ms, _ = due(steps, key)
    assert ([entry[0] for entry in entries], wait_ms) == ([names[2]], -1)
    assert pending(steps, key) == [[names[2], b"bob", 2]]
    assert steps("HKEYS", group_keys(key, "g").attempts) == [names[2]]


# Burying


@row
def a_dead_letter_tells_its_story(steps: WorkerSteps, key: str) -> None:
    given(steps, key, 0)
    name = steps("XADD", key, "*", "data", b"\xff\x00", "key", "k", "data", "again")
    steps("XREADGROUP", "GROUP", "g", "ann", "STREAMS", key, ">")

    assert steps("HR.SETTLE", key, "g", "ann", "BURY", name, "ValueError: no", "line 1\nline 2", 4) == [1]
    [[_, words]] = steps("XRANGE", group_keys(key, "g").dead, "-", "+")
    assert words[:6] == [b"data", b"\xff\x00", b"key", b"k", b"data", b"again"]
    story = [b"hr:stream", key.encode(), b"hr:id", name, b"hr:group", b"g", b"hr:attempts", b"4"]
    story += [b"hr:error", b"ValueError: no", b"hr:traceback", b"line 1\nline 2", b"hr:at"]
    assert words[6:-1] == story
    assert words[-1].isdigit()
    assert pending(steps, key) == names_in(steps, key) == []


@row
def a_dead_letter_that_dies_again_keeps_its_origin(steps: WorkerSteps, key: str) -> None:
    keys = group_keys(key, "g")
    given(steps, key, 0)
    steps("XGROUP", "CREATE", keys.again, "g", "0", "MKSTREAM")
    story = ("hr:stream", key, "hr:id", "5-0", "hr:group", "g", "hr:attempts", "4", "hr:error", "old")
    name = steps("XADD", keys.again, "*", "data", "x", *story, "hr:traceback", "old", "hr:at", "17")
    steps("XREADGROUP", "GROUP", "g", "ann", "STREAMS", keys.again, ">")
    assert due(steps, key)[2] == 1

    assert steps("HR.SETTLE", keys.again, "g", "ann", "RETRY", name, 0, 1, "first") == [1]
    assert steps("HGETALL", group_keys(keys.again, "g").attempts) == [name, b"1\nfirst"]
    entries, wait_ms, again = due(steps, keys.again, "ann")
    assert ([entry[0] for entry in entries], wait_ms, again) == ([name], -1, 0)
    assert steps("HR.SETTLE", keys.again, "g", "ann", "BURY", name, "new", "trace", 2) == [1]
    [[_, words]] = steps("XRANGE", keys.dead, "-", "+")
    expected = [b"data", b"x", b"hr:stream", key.encode(), b"hr:id", b"5-0", b"hr:group", b"g", b"hr:attempts", b"2"]
    assert words[:-1] == [*expected, b"hr:error", b"new", b"hr:traceback", b"trace", b"hr:at"]
    assert due(steps, key)[2] == 0
    assert beside_keys(steps, key) == sorted([keys.dead.encode(), keys.again.encode()])


# Attempts


@row
def the_first_run_is_attempt_1_and_a_redelivered_entry_was_tried_once(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)
    assert steps("HR.START", key, "g", "ann", names[0]) == [[1, b""]]
    steps("XCLAIM", key, "g", "bob", 0, *names)

    assert steps("HR.START", key, "g", "bob", *names) == [[2, b""], [2, b""]]
    steps("XCLAIM", key, "g", "bob", 0, names[0])
    assert steps("HR.START", key, "g", "bob", names[0]) == [[3, b""]]


@row
def a_start_that_is_repeated_counts_once(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    steps("XCLAIM", key, "g", "bob", 0, name)

    assert [steps("HR.START", key, "g", "bob", name) for _ in range(3)] == [[[2, b""]]] * 3
    steps("HR.SETTLE", key, "g", "bob", "RETRY", name, 0, 2, "late")
    due(steps, key, "bob")
    assert [steps("HR.START", key, "g", "bob", name) for _ in range(2)] == [[[3, b"late"]]] * 2


@row
def an_entry_without_a_record_was_never_tried_where_every_try_is_recorded(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)
    assert steps("HR.START", key, "g", "ann", "RECORDED", names[0]) == [[1, b""]]
    steps("XCLAIM", key, "g", "bob", 0, *names)

    assert steps("HR.START", key, "g", "bob", "recorded", *names) == [[2, b""], [1, b""]]
    assert steps("HR.START", key, "g", "bob", "RECORDED", *names) == [[2, b""], [1, b""]]
    assert steps("HR.START", key, "g", "bob", "RECORDED") == INVALID_ID


@row
def what_is_not_ours_cannot_be_started(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)

    assert steps("HR.START", key, "g", "bob", name, "5-5") == [[0, b""], [0, b""]]
    assert steps("HR.START", key, "other", "ann", name) == [[0, b""]]
    assert steps("HR.START", f"none{{{key}}}", "g", "ann", name) == [[0, b""]]
    assert beside_keys(steps, key) == []


# Extending and releasing


@row
def an_extended_entry_is_not_idle(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 3)
    steps("XCLAIM", key, "g", "ann", 0, *names[:2], "IDLE", 90_000, "JUSTID")
    steps("XCLAIM", key, "g", "bob", 0, names[1], "IDLE", 90_000, "JUSTID")

    assert steps("HR.EXTEND", key, "g", "ann", names[1], names[0], names[0], "9-9") == [0, 1, 1, 0]
    assert [row[0] for row in steps("XPENDING", key, "g", "IDLE", 80_000, "-", "+", 10)] == [names[1]]
    assert [count for _, _, count in pending(steps, key)] == [1, 1, 1]
    assert steps("HR.EXTEND", key, "other", "ann", names[0]) == [0]


@row
def an_entry_that_was_deleted_is_still_held(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)
    steps("XDEL", key, names[0])

    assert steps("HR.EXTEND", key, "g", "ann", *names) == [1, 1]
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 2, *names) == [1, 1]


@row
def released_entries_are_free_at_once(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)

    assert steps("HR.RELEASE", key, "g", "ann", names[0], "9-9") == [1, 0]
    assert [row[0] for row in steps("XPENDING", key, "g", "IDLE", LONG_MS, "-", "+", 10)] == [names[0]]
    entries, wait_ms, _ = due(steps, key)
    assert ([entry[0] for entry in entries], wait_ms) == ([names[0]], -1)
    assert steps("HR.START", key, "g", "bob", names[0]) == [[1, b""]]
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[0]) == [0]


@row
def releasing_twice_is_releasing_once(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    for _ in range(3):
        steps("XCLAIM", key, "g", "ann", 0, name)

    assert [steps("HR.RELEASE", key, "g", "ann", name) for _ in range(2)] == [[1], [1]]
    assert pending(steps, key) == [[name, b"ann", 3]]


@row
def a_released_attempt_does_not_count(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    steps("XCLAIM", key, "g", "bob", 0, name)
    assert steps("HR.START", key, "g", "bob", name) == [[2, b""]]

    assert steps("HR.RELEASE", key, "g", "bob", name) == [1]
    due(steps, key, "eve")
    assert steps("HR.START", key, "g", "eve", name) == [[2, b""]]
    steps("HR.SETTLE", key, "g", "eve", "RETRY", name, 0, 2, "late")
    due(steps, key, "eve")
    steps("HR.RELEASE", key, "g", "eve", name)
    due(steps, key, "ann")
    assert steps("HR.START", key, "g", "ann", name) == [[3, b"late"]]


@row
def a_redelivered_entry_that_never_ran_still_counts_as_tried_when_released(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    steps("XCLAIM", key, "g", "bob", 0, name)
    steps("HR.RELEASE", key, "g", "bob", name)
    due(steps, key, "eve")

    assert steps("HR.START", key, "g", "eve", name) == [[2, b""]]


@row
def a_deleted_entry_is_pending_no_more_when_released(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)
    steps("HR.START", key, "g", "ann", *names)
    steps("XDEL", key, names[0])

    assert steps("HR.RELEASE", key, "g", "ann", *names) == [1, 1]
    assert [row[0] for row in pending(steps, key)] == [names[1]]
    assert steps("HKEYS", group_keys(key, "g").attempts) == [names[1]]

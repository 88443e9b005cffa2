"""What the steps of workers must do, whichever server they are on: one function per promise.

A row talks through `steps("HR.SETTLE", key, …)` alone. On our broker these are commands; on a Redis or Valkey the same
words go to server functions (`StepWords`). Replies are plain: bytes, int, list, None for null, ErrorReply for an error.
Each row has a stream of its own, `key`, with the group `g`; names that hold `{key}` are the row's too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from headrace.client.flows import beside
from headrace.client.worker_keys import group_keys, stream_keys

from .servers import wait_until
from .wire import ErrorReply

WRONG_TYPE = ErrorReply("WRONGTYPE Operation against a key holding the wrong kind of value")
INVALID_ID = ErrorReply("ERR Invalid stream ID specified as stream command argument")
SYNTAX = ErrorReply("ERR syntax error")
SOON_MS = 60  # Long enough to be told apart from at once.
LONG_MS = 3_600_000


class WorkerSteps(Protocol):
    def __call__(self, *argv: str | bytes | int) -> Any: ...


Row = Callable[[WorkerSteps, str], None]
ROWS: list[Row] = []


def row(function: Row) -> Row:
    ROWS.append(function)
    return function


def words_to_step(argv: tuple[str | bytes | int, ...]) -> tuple[str, list[str], list[str | bytes | int]]:
    """The words of an HR command as a step, its keys and its arguments."""
    name, stream, *words = argv
    key = str(stream)
    if name == "HR.ADD":
        return add_to_step(key, words)
    of_stream, of_group = stream_keys(key), group_keys(key, str(words[0]))
    keys = {
        "HR.DUE": [
            of_stream.delayed, of_stream.bodies, of_group.due, of_group.attempts, of_group.again, beside(key, "ids"),
        ],
        "HR.START": [of_group.due, of_group.attempts],
        "HR.RELEASE": [of_group.due, of_group.attempts],
        "HR.EXTEND": [],
        "HR.SWEEP": [of_group.due, of_group.attempts],
        "HR.SETTLE": [of_group.due, of_group.attempts, of_group.dead, *named_keys(words)],
    }[str(name)]  # fmt: skip
    return str(name).lower().replace("hr.", "worker_"), [key, *keys], words


def add_to_step(key: str, words: list[Any]) -> tuple[str, list[str], list[Any]]:
    at = words.index("FIELDS")
    options = dict(zip(words[:at:2], words[1:at:2], strict=True))
    once = [options.get("ID", ""), options.get("WINDOW", LONG_MS), options.get("MAX", 100)]
    when = [pair for word in ("AT", "DELAY") if word in options for pair in (word, options[word])] or ["DELAY", 0]
    of_stream = stream_keys(key)
    keys = [key, beside(key, "ids"), beside(key, "ids:age"), of_stream.delayed, of_stream.bodies]
    return "delay", keys, [*once, *when, *words[at + 2 :]]


def named_keys(words: list[Any]) -> list[str]:
    """Streams behind ADD, and keys behind EFFECT, a number and the name of a command."""
    added = [str(words[at + 1]) for at, word in enumerate(words) if word == "ADD"]
    return added + [str(words[at + 3]) for at, word in enumerate(words) if word == "EFFECT"]


def given(steps: WorkerSteps, key: str, count: int, consumer: str = "ann") -> list[bytes]:
    """The names of so many new entries that a consumer was given."""
    if steps("EXISTS", key) == 0:
        steps("XGROUP", "CREATE", key, "g", "0", "MKSTREAM")
    names = [steps("XADD", key, "*", "n", number) for number in range(count)]
    steps("XREADGROUP", "GROUP", "g", consumer, "STREAMS", key, ">")
    return names


def pending(steps: WorkerSteps, key: str) -> list[list[Any]]:
    """ID, consumer and deliveries of what is pending."""
    return [[name, consumer, count] for name, consumer, _, count in steps("XPENDING", key, "g", "-", "+", 2000)]


def names_in(steps: WorkerSteps, key: str) -> list[bytes]:
    return [entry[0] for entry in steps("XRANGE", key, "-", "+")]


def due(steps: WorkerSteps, key: str, consumer: str = "bob", count: int = 100) -> Any:
    return steps("HR.DUE", key, "g", consumer, "COUNT", count)


def now_ms(steps: WorkerSteps) -> int:
    seconds, micros = steps("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


def wait_for_delayed(steps: WorkerSteps, key: str, count: int = 100) -> None:
    wait_until(lambda: due(steps, key, count=count)[1] == -1, "the delayed messages")


def beside_keys(steps: WorkerSteps, key: str) -> list[bytes]:
    """The keys that are left beside the stream."""
    return sorted(steps("KEYS", f"hr:{{{key}}}:*"))


# Acknowledging


@row
def acknowledged_entries_are_gone(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 5)

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 3, names[0], names[3], names[1]) == [1, 1, 1]
    assert names_in(steps, key) == [names[2], names[4]]
    assert [row[0] for row in pending(steps, key)] == [names[2], names[4]]
    assert beside_keys(steps, key) == []


@row
def what_another_consumer_holds_is_not_settled(steps: WorkerSteps, key: str) -> None:
    mine, theirs = given(steps, key, 1), given(steps, key, 1, "bob")

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 3, theirs[0], mine[0], "1-1") == [0, 1, 0]
    assert pending(steps, key) == [[theirs[0], b"bob", 1]]
    assert steps("HR.SETTLE", key, "g", "nobody", "ACK", 1, theirs[0]) == [0]
    assert steps("HR.SETTLE", key, "other", "bob", "ACK", 1, theirs[0]) == [0]
    assert steps("HR.SETTLE", f"none{{{key}}}", "g", "bob", "ACK", 1, theirs[0]) == [0]


@row
def a_repeated_settle_changes_nothing(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)
    target = f"next{{{key}}}"
    words = ("HR.SETTLE", key, "g", "ann", "ACK", 1, names[0], "ADD", target, "FIELDS", 2, "a", "b")

    assert steps(*words, "BURY", names[1], "bad", "trace", 3) == [1, 1]
    assert steps(*words, "BURY", names[1], "bad", "trace", 3) == [0, 0]
    assert steps("XLEN", target) == 1
    assert steps("XLEN", group_keys(key, "g").dead) == 1


@row
def an_id_that_is_named_twice_is_settled_once(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 2, name, name, "RETRY", name, 0, 1, "x") == [1, 0, 0]
    assert beside_keys(steps, key) == []


@row
def ids_may_be_written_in_any_way(steps: WorkerSteps, key: str) -> None:
    steps("XGROUP", "CREATE", key, "g", "0", "MKSTREAM")
    for name in ("5-0", "7-3", "10-0", "99-0"):
        steps("XADD", key, name, "a", "b")
    steps("XREADGROUP", "GROUP", "g", "ann", "STREAMS", key, ">")

    assert steps("HR.START", key, "g", "ann", "5", "07-03", "10-0") == [[1, b""], [1, b""], [1, b""]]
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 4, "0099-0", "5", "07-03", "10-00") == [1, 1, 1, 1]
    assert pending(steps, key) == []
    assert beside_keys(steps, key) == []


@row
def entries_stay_until_every_group_is_done_with_them(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 4)
    steps("XGROUP", "CREATE", key, "h", "0")
    steps("XGROUP", "CREATE", key, "i", names[3])  # Needs nothing of this.
    steps("XREADGROUP", "GROUP", "h", "eve", "COUNT", 2, "STREAMS", key, ">")

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 4, *names) == [1] * 4
    assert names_in(steps, key) == names
    assert steps("HR.SETTLE", key, "h", "eve", "ACK", 1, names[1]) == [1]
    assert names_in(steps, key) == [names[0], names[2], names[3]]
    steps("XREADGROUP", "GROUP", "h", "eve", "STREAMS", key, ">")
    assert steps("HR.SETTLE", key, "h", "eve", "ACK", 3, *names[:1], *names[2:]) == [1] * 3
    assert names_in(steps, key) == []


@row
def a_slow_group_with_much_pending_keeps_its_entries(steps: WorkerSteps, key: str) -> None:
    """More of it lies between the settled ones than is looked at in one go."""
    names = given(steps, key, 60)
    steps("XGROUP", "CREATE", key, "h", "0")
    steps("XREADGROUP", "GROUP", "h", "eve", "STREAMS", key, ">")
    steps("XACK", key, "h", names[59])

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 2, names[0], names[59]) == [1, 1]
    assert names_in(steps, key) == names[:59]


@row
def a_group_that_was_set_back_needs_the_entry_again(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)
    steps("XGROUP", "SETID", key, "g", "0")

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[0]) == [1]
    assert names_in(steps, key) == names


@row
def kept_entries_are_acknowledged_only(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)

    assert steps("HR.SETTLE", key, "g", "ann", "KEEP", "ACK", 1, names[0], "BURY", names[1], "e", "t", 1) == [1, 1]
    assert names_in(steps, key) == names
    assert pending(steps, key) == []


@row
def a_deleted_entry_is_acknowledged_all_the_same(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)
    steps("XDEL", key, *names)

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[0]) == [1]
    assert steps("HR.SETTLE", key, "g", "ann", "BURY", names[1], "lost", "trace", 2) == [1]
    assert pending(steps, key) == []
    [[_, words]] = steps("XRANGE", group_keys(key, "g").dead, "-", "+")
    assert words[:6] == [b"hr:stream", key.encode(), b"hr:id", names[1], b"hr:group", b"g"]


@row
def many_ids_are_settled_at_once(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 1001)

    refused = ErrorReply("ERR at most 1000 IDs are possible in one call")
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1001, *names) == refused
    assert steps("HR.EXTEND", key, "g", "ann", *names) == refused
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1000, *reversed(names[1:])) == [1] * 1000
    assert names_in(steps, key) == names[:1]


# Adding with an acknowledgement


@row
def what_an_acknowledgement_adds_comes_with_it(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 3)
    one, other = f"one{{{key}}}", f"other{{{key}}}"

    words = ("ADD", one, "FIELDS", 4, "a", b"\x00\r\n", "a", "", "ADD", other, "FIELDS", 2, "c", "d")
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 2, *names[:2], *words) == [1, 1]
    [[_, fields]] = steps("XRANGE", one, "-", "+")
    assert fields == [b"a", b"\x00\r\n", b"a", b""]
    assert steps("XLEN", other) == 1
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[2], "ADD", key, "FIELDS", 2, "n", "next") == [1]
    [[_, fields]] = steps("XRANGE", key, "-", "+")
    assert fields == [b"n", b"next"]


@row
def nothing_is_added_when_one_of_the_ids_is_not_ours(steps: WorkerSteps, key: str) -> None:
    mine, theirs = given(steps, key, 2), given(steps, key, 1, "bob")
    target = f"next{{{key}}}"
    words = ("ACK", 3, *mine, *theirs, "ADD", target, "FIELDS", 2, "a", "b")

    assert steps("HR.SETTLE", key, "g", "ann", *words) == [0, 0, 0]
    assert steps("EXISTS", target) == 0
    assert len(pending(steps, key)) == 3
    assert steps("HR.SETTLE", key, "g", "ann", *words, "ACK", 1, mine[0]) == [0, 0, 0, 1]
    assert steps("EXISTS", target) == 0


@row
def clauses_are_independent_of_each_other(steps: WorkerSteps, key: str) -> None:
    mine, theirs = given(steps, key, 2), given(steps, key, 1, "bob")
    target = f"next{{{key}}}"
    add = ("ADD", target, "FIELDS", 2, "a")

    reply = steps("HR.SETTLE", key, "g", "ann", "ACK", 1, *theirs, *add, "no", "ACK", 1, mine[0], *add, "yes")
    assert reply == [0, 1]
    assert [entry[1] for entry in steps("XRANGE", target, "-", "+")] == [[b"a", b"yes"]]


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


# Effects


@row
def effects_happen_with_the_acknowledgement(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    text, totals, seen, ranks, log = (f"{word}{{{key}}}" for word in ("text", "totals", "seen", "ranks", "log"))
    steps("SET", text, 41)
    effects = (
        ("INCR", text), ("set", f"other{{{key}}}", b"\x00\xff"), ("HSET", totals, "a", 1, "b", 2),
        ("HINCRBY", totals, "a", 10), ("HDEL", totals, "b"), ("HSETNX", totals, "c", "x"), ("SADD", seen, "m", "n"),
        ("SREM", seen, "n"), ("ZADD", ranks, 1.5, "ann", -2, "bob"), ("ZINCRBY", ranks, 3, "bob"),
        ("ZREM", ranks, "ann"), ("RPUSH", log, "x", "y"), ("LPUSH", log, "w"), ("PEXPIRE", log, LONG_MS),
    )  # fmt: skip
    words = [word for effect in effects for word in ("EFFECT", len(effect), *effect)]

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, name, *words) == [1]
    assert steps("GET", text) == b"42"
    assert steps("GET", f"other{{{key}}}") == b"\x00\xff"
    assert sorted(steps("HGETALL", totals)) == sorted([b"a", b"11", b"c", b"x"])
    assert steps("SMEMBERS", seen) == [b"m"]
    assert steps("ZRANGE", ranks, 0, -1, "WITHSCORES") == [b"bob", b"1"]
    assert steps("LRANGE", log, 0, -1) == [b"w", b"x", b"y"]
    assert LONG_MS - 60_000 < steps("PTTL", log) <= LONG_MS
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, name, "EFFECT", 2, "INCR", text) == [0]
    assert steps("GET", text) == b"42"


@row
def no_effect_happens_when_one_of_the_ids_is_not_ours(steps: WorkerSteps, key: str) -> None:
    mine, theirs = given(steps, key, 2), given(steps, key, 1, "bob")
    text = f"text{{{key}}}"
    steps("SET", text, "no number")
    words = ("ACK", 2, mine[0], *theirs, "EFFECT", 3, "SET", text, "5")

    assert steps("HR.SETTLE", key, "g", "ann", *words) == [0, 0]
    assert steps("GET", text) == b"no number"
    # What does not happen does not count for what follows either.
    refused = ErrorReply("ERR value is not an integer or out of range")
    assert steps("HR.SETTLE", key, "g", "ann", *words, "ACK", 1, mine[1], "EFFECT", 2, "INCR", text) == refused
    assert len(pending(steps, key)) == 3


@row
def numbers_are_followed_through_the_effects(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 3)
    text, totals = f"text{{{key}}}", f"totals{{{key}}}"
    steps("SET", text, "abc")

    words = ("EFFECT", 3, "SET", text, "7", "EFFECT", 3, "DECRBY", text, "10", "EFFECT", 3, "SETNX", text, "x")
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[0], *words, "EFFECT", 2, "DECR", text) == [1]
    assert steps("GET", text) == b"-4"
    steps("HSET", totals, "a", "abc", "b", "1")
    words = ("EFFECT", 4, "HDEL", totals, "a", "b", "EFFECT", 4, "HINCRBY", totals, "a", "-3")
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[1], *words) == [1]
    assert steps("HGETALL", totals) == [b"a", b"-3"]
    words = ("EFFECT", 4, "HSETNX", totals, "b", "x", "EFFECT", 4, "HINCRBY", totals, "b", "1")
    refused = ErrorReply("ERR hash value is not an integer")
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[2], *words) == refused
    assert steps("HGETALL", totals) == [b"a", b"-3"]


@row
def an_effect_that_could_fail_refuses_the_whole_step(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    text, totals, big, target = (f"{word}{{{key}}}" for word in ("text", "totals", "big", "next"))
    steps("SET", text, "abc")
    steps("SET", big, 2**53 - 1)
    steps("HSET", totals, "a", "abc")
    good = ("ACK", 1, name, "EFFECT", 3, "SADD", f"seen{{{key}}}", "m", "ADD", target, "FIELDS", 2, "a", "b")
    number, overflow = "ERR value is not an integer or out of range", "ERR increment or decrement would overflow"
    one_type = "ERR the effects on one key must be of one type, and DEL stands alone"
    own = "ERR an effect must not name a key that the step itself uses"
    bad_count = "ERR EFFECT must be followed by the number of its words, 2 to 1000, and by as many words"

    for effects, error in (
        ([("INCR", text)], number),
        ([("INCR", totals)], WRONG_TYPE.text),
        ([("SET", totals, "x")], WRONG_TYPE.text),
        ([("INCRBY", f"new{{{key}}}", "x")], number),
        ([("INCR", big)], overflow),
        ([("DECRBY", f"new{{{key}}}", 2**53 + 2)], overflow),
        ([("HINCRBY", totals, "a", 1)], "ERR hash value is not an integer"),
        ([("HSET", totals, "a")], "ERR wrong number of words for EFFECT HSET"),
        ([("HSET", totals, "a", "b", "c")], "ERR wrong number of words for EFFECT HSET"),
        ([("SET", text, "x", "NX")], "ERR wrong number of words for EFFECT SET"),
        ([("ZADD", f"new{{{key}}}", "high", "m")], "ERR value is not a valid float"),
        ([("ZADD", f"new{{{key}}}", "1e-999", "m")], "ERR value is not a valid float"),
        ([("ZADD", f"new{{{key}}}", "1e300", "m")], "ERR a score is too large for an effect"),
        ([("ZADD", f"new{{{key}}}", "inf", "m")], "ERR value is not a valid float"),
        ([("PEXPIRE", text, 0)], overflow),
        ([("PEXPIRE", text, "soon")], number),
        ([("DEL", text), ("SET", text, "x")], one_type),
        ([("PERSIST", text), ("DEL", text)], one_type),
        ([("SADD", f"new{{{key}}}", "x"), ("RPUSH", f"new{{{key}}}", "x")], one_type),
        ([("DEL", key)], own),
        ([("DEL", target)], own),
        ([("DEL", group_keys(key, "g").due)], own),
    ):
        words = [word for effect in effects for word in ("EFFECT", len(effect), *effect)]
        assert steps("HR.SETTLE", key, "g", "ann", *good, *words) == ErrorReply(error), effects
    assert steps("HR.SETTLE", key, "g", "ann", *good, "EFFECT", 3, "INCR", text) == ErrorReply(bad_count)
    assert steps("HR.SETTLE", key, "g", "ann", *good, "EFFECT", 1, "INCR", text) == ErrorReply(bad_count)
    assert steps("HR.SETTLE", key, "g", "ann", "RETRY", name, 0, 1, "e", "EFFECT", 2, "INCR", text) == SYNTAX
    refused = steps("HR.SETTLE", key, "g", "ann", *good, "EFFECT", 2, "FLUSHALL", text)
    assert refused.text.startswith("ERR EFFECT cannot be FLUSHALL; possible are DECR, DECRBY, DEL, HDEL,")
    assert steps("EXISTS", target, f"seen{{{key}}}", f"new{{{key}}}") == 0
    assert (steps("GET", text), len(pending(steps, key))) == (b"abc", 1)

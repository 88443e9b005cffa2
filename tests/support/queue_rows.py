"""What every reliable queue must do, whichever server it is on: one function per promise.

A row talks through `queues("RQ.PUSH", key, …)` alone. On our broker these are commands; on a Redis or Valkey the same
words go to server functions. Replies are plain: bytes, int, list, None for null, ErrorReply for an error. Statuses
(OK, the type's name) are bytes too. `queues.connect()` is one more connection.

Where servers differ on purpose, `queues.dialect` says so. Each row has a queue of its own, `key`; names that begin with
it are the row's too.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from .servers import wait_until
from .wire import ErrorReply

WRONG_TYPE = ErrorReply("WRONGTYPE Operation against a key holding the wrong kind of value")
NOT_AN_INTEGER = ErrorReply("ERR value is not an integer or out of range")
INVALID_ID = ErrorReply("ERR Invalid stream ID specified as stream command argument")
SOON_MS = 60  # Long enough to be told apart from at once.


@dataclass(frozen=True)
class Dialect:
    """The differences between servers."""

    first_sequence: int = 1  # Of the first ID in a millisecond; streams begin at 0.
    type_name: bytes = b"RELIABLEQ"
    arity_error: str = "ERR wrong number of arguments for 'rq.push' command"


class Queues(Protocol):
    @property
    def dialect(self) -> Dialect: ...

    def __call__(self, *argv: str | bytes | int) -> Any: ...

    def connect(self) -> Queues: ...


Row = Callable[[Queues, str], None]
ROWS: list[Row] = []  # Of the original module, its mistakes left out.
EXTENSION_ROWS: list[Row] = []  # Delays, retries, dead letters, pausing.


def row(function: Row) -> Row:
    ROWS.append(function)
    return function


def extension(function: Row) -> Row:
    EXTENSION_ROWS.append(function)
    return function


def id_of(name: bytes) -> tuple[int, int]:
    milliseconds, sequence = name.split(b"-")
    return int(milliseconds), int(sequence)


def bodies(reply: Any) -> list[bytes]:
    return [entry[-1] for entry in reply]


def is_usage(reply: Any) -> bool:
    return isinstance(reply, ErrorReply) and reply.text.startswith("ERR usage: RQ.")


def info(queues: Queues, key: str) -> tuple[int, int]:
    names = queues("RQ.INFO", key)
    assert names[::2] == [b"undelivered", b"delivered"]
    return names[1], names[3]


def stats(queues: Queues, key: str) -> dict[bytes, Any]:
    reply = queues("RQ.STATS", key)
    return dict(zip(reply[::2], reply[1::2], strict=True))


# Push


@row
def a_push_answers_with_the_ids_from_left_to_right(queues: Queues, key: str) -> None:
    """Row 184."""
    names = queues("RQ.PUSH", key, "b", "c", "d")

    first, second, third = [id_of(name) for name in names]
    assert first[1] == queues.dialect.first_sequence
    assert first < second < third
    assert queues("RQ.INSPECT", key, 0, 10) == [[names[0], b"b"], [names[1], b"c"], [names[2], b"d"]]


@row
def ids_only_grow(queues: Queues, key: str) -> None:
    """Row 185. Also when everything that had the lower ones is gone."""
    names: list[bytes] = []
    for _ in range(20):
        names += queues("RQ.PUSH", key, "a", "b")
        queues("RQ.POP", "COUNT", 2, key)
        assert queues("RQ.ACK", key, *names[-2:]) == names[-2:]

    assert sorted(set(names), key=id_of) == names


@row
def any_bytes_come_back_as_they_were(queues: Queues, key: str) -> None:
    sent = [b"", b"\r\n", b"*2\r\n$1", bytes(range(256)), b"x" * 100_000]
    queues("RQ.PUSH", key, *sent)

    assert bodies(queues("RQ.POP", "COUNT", 10, key)) == sent


@row
def a_push_without_an_element_is_refused(queues: Queues, key: str) -> None:
    """Row 186."""
    assert queues("RQ.PUSH", key) == ErrorReply(queues.dialect.arity_error)
    assert queues("EXISTS", key) == 0


@row
def another_type_is_refused_by_every_command(queues: Queues, key: str) -> None:
    """Row 186."""
    queues("SET", key, "text")

    for words in (
        ("RQ.PUSH", key, "a"),
        ("RQ.POP", key),
        ("RQ.POP", "BLOCK", 10, key),
        ("RQ.ACK", key, "1-1"),
        ("RQ.RECOVER", key, 1, 0),
        ("RQ.INSPECT", key, 0, 1),
        ("RQ.INSPECT", key, "PENDING", 0, 1),
        ("RQ.INFO", key),
    ):
        assert queues(*words) == WRONG_TYPE, words
    assert queues("GET", key) == b"text"


# Pop


@row
def a_pop_gives_queue_id_and_body(queues: Queues, key: str) -> None:
    """Rows 187 and 183. One element unless COUNT says more."""
    names = queues("RQ.PUSH", key, "b", "c", "d")

    assert queues("RQ.POP", "COUNT", 2, key) == [[key.encode(), names[0], b"b"], [key.encode(), names[1], b"c"]]
    assert queues("RQ.POP", key) == [[key.encode(), names[2], b"d"]]
    assert info(queues, key) == (0, 3)


@row
def the_first_queue_comes_first(queues: Queues, key: str) -> None:
    """Row 188."""
    high, low = f"{key}{{t}}high", f"{key}{{t}}low"
    queues("RQ.PUSH", high, "h1", "h2")
    queues("RQ.PUSH", low, "l1", "l2")

    reply = queues("RQ.POP", "COUNT", 3, high, low)

    assert [(found, body) for found, _, body in reply] == [
        (high.encode(), b"h1"),
        (high.encode(), b"h2"),
        (low.encode(), b"l1"),
    ]
    assert info(queues, low) == (1, 1)


@row
def nothing_to_pop_is_an_empty_array(queues: Queues, key: str) -> None:
    """Row 189."""
    assert queues("RQ.POP", f"{key}missing") == []
    assert queues("EXISTS", f"{key}missing") == 0
    queues("RQ.PUSH", f"{key}{{t}}b", "x")

    assert bodies(queues("RQ.POP", "COUNT", 5, f"{key}{{t}}a", f"{key}{{t}}b")) == [b"x"]


@row
def waiting_in_vain_ends_with_null(queues: Queues, key: str) -> None:
    """Row 190."""
    assert queues("RQ.POP", "BLOCK", 30, key) is None


@row
def a_pop_that_waits_for_ever_gets_the_next_element(queues: Queues, key: str) -> None:
    """Rows 190 and 191."""
    other = queues.connect()
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(other, "RQ.POP", "BLOCK", 0, f"{key}{{t}}a", f"{key}{{t}}b")
        [name] = queues("RQ.PUSH", f"{key}{{t}}b", "late")

        assert waiting.result(20) == [[f"{key}{{t}}b".encode(), name, b"late"]]


@row
def a_negative_time_to_wait_is_refused(queues: Queues, key: str) -> None:
    """Row 191."""
    assert queues("RQ.POP", "BLOCK", -1, key) == ErrorReply("ERR timeout is negative")
    assert queues("RQ.POP", "BLOCK", "x", key) == ErrorReply("ERR timeout is not an integer or out of range")


@row
def count_and_block_come_in_either_order(queues: Queues, key: str) -> None:
    """Row 192."""
    queues("RQ.PUSH", key, "a", "b", "c", "d")

    assert bodies(queues("RQ.POP", "COUNT", 2, "BLOCK", 10, key)) == [b"a", b"b"]
    assert bodies(queues("rq.pop", "block", 10, "count", 2, key)) == [b"c", b"d"]


@row
def a_wrong_count_is_refused(queues: Queues, key: str) -> None:
    """Row 192."""
    queues("RQ.PUSH", key, "a")

    assert queues("RQ.POP", "COUNT", "x", key) == NOT_AN_INTEGER
    assert is_usage(queues("RQ.POP", "COUNT", -1, key))
    assert queues("RQ.POP", "COUNT", 0, key) == []
    assert info(queues, key) == (1, 0)


@row
def what_was_popped_is_pending(queues: Queues, key: str) -> None:
    """Rows 194 and 205."""
    [name] = queues("RQ.PUSH", key, "a")
    before = int(queues("TIME")[0]) * 1000
    queues("RQ.POP", key)

    [[found, body, delivered_ms, elapsed_ms, deliveries]] = queues("RQ.INSPECT", key, "PENDING", 0, 10)

    assert (found, body, deliveries) == (name, b"a", 1)
    assert before <= delivered_ms <= before + 60_000
    assert 0 <= elapsed_ms < 60_000


# Acknowledge


@row
def an_ack_answers_with_what_it_acknowledged(queues: Queues, key: str) -> None:
    """Row 195."""
    names = queues("RQ.PUSH", key, "a", "b", "c")
    queues("RQ.POP", "COUNT", 3, key)

    assert queues("RQ.ACK", key, names[2], names[0], names[2]) == [names[2], names[0]]
    assert queues("RQ.ACK", key, names[0]) == []
    assert queues("RQ.ACK", key, "1-1") == []
    assert queues("RQ.ACK", f"{key}missing", "1-1") is None
    assert info(queues, key) == (0, 1)


@row
def what_is_not_delivered_cannot_be_acknowledged(queues: Queues, key: str) -> None:
    """Row 196."""
    [name] = queues("RQ.PUSH", key, "a")

    assert queues("RQ.ACK", key, name) == []
    assert info(queues, key) == (1, 0)


@row
def a_malformed_id_is_refused_and_nothing_is_acknowledged(queues: Queues, key: str) -> None:
    """Row 197."""
    [name] = queues("RQ.PUSH", key, "a")
    queues("RQ.POP", key)

    for wrong in ("foo", "", "1-", "-", "1-1-1", "1" * 200, "18446744073709551616-1"):
        assert queues("RQ.ACK", key, name, wrong) == INVALID_ID, wrong
        assert queues("RQ.ACK", f"{key}missing", wrong) == INVALID_ID, wrong
    assert info(queues, key) == (0, 1)


@row
def a_late_ack_is_visible(queues: Queues, key: str) -> None:
    """Row 211."""
    [name] = queues("RQ.PUSH", key, "a")
    queues("RQ.POP", key)
    assert queues("RQ.RECOVER", key, 1, 0) == [[name, b"a"]]

    assert [queues("RQ.ACK", key, name), queues("RQ.ACK", key, name)] == [[name], []]


# Recover


@row
def recover_gives_what_nobody_acknowledged_oldest_delivery_first(queues: Queues, key: str) -> None:
    """Row 199."""
    names = queues("RQ.PUSH", key, "a", "b", "c")
    queues("RQ.POP", key)
    queues("RQ.POP", "COUNT", 2, key)
    queues("RQ.ACK", key, names[1])

    assert queues("RQ.RECOVER", key, 1, 0) == [[names[0], b"a"]]
    assert queues("RQ.RECOVER", key, 1, 0) == [[names[2], b"c"]]
    assert queues("RQ.RECOVER", key, 2, 0) == [[names[0], b"a"], [names[2], b"c"]]


@row
def recover_waits_for_the_time_to_elapse(queues: Queues, key: str) -> None:
    """Row 199."""
    [name] = queues("RQ.PUSH", key, "a")
    queues("RQ.POP", key)

    assert queues("RQ.RECOVER", key, 10, 600_000) == []
    wait_until(lambda: queues("RQ.RECOVER", key, 10, SOON_MS) == [[name, b"a"]], "the element to be due")
    assert queues("RQ.RECOVER", key, 10, 600_000) == []


@row
def recover_knows_missing_and_empty_queues(queues: Queues, key: str) -> None:
    """Rows 199 and 208."""
    assert queues("RQ.RECOVER", f"{key}missing", 10, 0) is None
    queues("RQ.PUSH", key, "a")

    assert queues("RQ.RECOVER", key, 10, 0) == []
    assert queues("RQ.RECOVER", key, 0, 0) == []


@row
def a_recovered_element_is_delivered_anew(queues: Queues, key: str) -> None:
    """Row 200."""
    names = queues("RQ.PUSH", key, "a", "b")
    queues("RQ.POP", "COUNT", 2, key)
    before = queues("RQ.INSPECT", key, "PENDING", 0, 10)
    assert [entry[0] for entry in before] == names

    assert bodies(queues("RQ.RECOVER", key, 1, 0)) == [b"a"]

    after = queues("RQ.INSPECT", key, "PENDING", 0, 10)
    assert [(entry[1], entry[4]) for entry in after] == [(b"b", 1), (b"a", 2)]
    assert after[1][2] >= before[0][2]


@row
def recover_gives_an_element_once_per_call(queues: Queues, key: str) -> None:
    """Row 201."""
    names = queues("RQ.PUSH", key, "a", "b", "c", "d")
    queues("RQ.POP", "COUNT", 4, key)

    assert [entry[0] for entry in queues("RQ.RECOVER", key, 10, 0)] == names


@row
def wrong_numbers_of_recover_are_refused(queues: Queues, key: str) -> None:
    """Row 202. Also when there is no such queue."""
    queues("RQ.PUSH", key, "a")

    for name in (key, f"{key}missing"):
        for numbers in (("x", "y"), (1, "y"), ("x", 0), (-1, 0), (1, -1), ("", 0), ("1.5", 0)):
            assert is_usage(queues("RQ.RECOVER", name, *numbers)), numbers


# Look


@row
def inspect_shows_undelivered_elements_and_takes_nothing(queues: Queues, key: str) -> None:
    """Rows 203 and 204."""
    names = queues("RQ.PUSH", key, "a", "b", "c", "d")
    rows = [[name, body] for name, body in zip(names, (b"a", b"b", b"c", b"d"), strict=True)]

    assert queues("RQ.INSPECT", key, 0, 10) == rows
    assert queues("RQ.INSPECT", key, 1, 2) == rows[1:3]
    assert queues("RQ.INSPECT", key, 3, 5) == rows[3:]
    assert queues("RQ.INSPECT", key, -2, 2) == rows[2:]
    assert queues("RQ.INSPECT", key, -4, 1) == rows[:1]
    assert queues("RQ.INSPECT", key, -1, 5) == rows[3:]
    assert queues("RQ.INSPECT", key, -10, 2) == []
    assert queues("RQ.INSPECT", key, 4, 1) == []
    assert queues("RQ.INSPECT", key, 9, 2) == []
    assert info(queues, key) == (4, 0)


@row
def inspect_pending_counts_from_both_ends_too(queues: Queues, key: str) -> None:
    """Rows 204 and 205."""
    names = queues("RQ.PUSH", key, "a", "b", "c", "d")
    queues("RQ.POP", "COUNT", 4, key)

    def pending(start: int, count: int) -> list[bytes]:
        return [entry[0] for entry in queues("RQ.INSPECT", key, "pending", start, count)]

    assert pending(0, 10) == names
    assert pending(-2, 2) == names[2:]
    assert pending(2, 1) == [names[2]]
    assert pending(-5, 2) == pending(4, 2) == []


@row
def inspect_refuses_what_it_cannot_show(queues: Queues, key: str) -> None:
    """Row 206."""
    queues("RQ.PUSH", key, "a")

    for count in (0, -1):
        assert queues("RQ.INSPECT", key, 0, count) == ErrorReply("ERR count must be 1 or more")
    assert queues("RQ.INSPECT", key, "x", 1) == NOT_AN_INTEGER
    assert queues("RQ.INSPECT", key, 0, "x") == NOT_AN_INTEGER
    assert queues("RQ.INSPECT", key, "NONSENSE", 0, 1) == ErrorReply("ERR syntax error")
    missing = queues("RQ.INSPECT", f"{key}missing", 0, 1)
    assert isinstance(missing, ErrorReply) and missing.text.startswith("EMPTYKEY ")


@row
def inspect_of_an_empty_queue_is_empty(queues: Queues, key: str) -> None:
    """Row 206. The original module brings its server down here."""
    empty(queues, key)

    for start in (3, 0, -1, -3):
        assert queues("RQ.INSPECT", key, start, 1) == []
        assert queues("RQ.INSPECT", key, "PENDING", start, 1) == []
    assert queues("PING") == b"PONG"


@row
def info_counts_both_lists(queues: Queues, key: str) -> None:
    """Row 207."""
    queues("RQ.PUSH", key, "a", "b", "c")
    queues("RQ.POP", key)

    assert queues("RQ.INFO", key) == [b"undelivered", 2, b"delivered", 1]
    missing = queues("RQ.INFO", f"{key}missing")
    assert isinstance(missing, ErrorReply) and missing.text.startswith("EMPTYKEY ")


@row
def an_empty_queue_stays(queues: Queues, key: str) -> None:
    """Row 208."""
    empty(queues, key)

    assert queues("EXISTS", key) == 1
    assert queues("RQ.POP", key) == []
    assert queues("RQ.ACK", key, "1-1") == []
    assert queues("RQ.RECOVER", key, 1, 0) == []
    assert info(queues, key) == (0, 0)
    assert queues("DEL", key) == 1
    assert queues("RQ.ACK", key, "1-1") is None


@row
def the_type_has_a_name_and_commands_come_in_any_case(queues: Queues, key: str) -> None:
    """Row 300."""
    queues("rq.push", key, "a")
    queues("Rq.Push", key, "b")

    assert queues("TYPE", key) == queues.dialect.type_name
    assert bodies(queues("Rq.pOP", "Count", 2, key)) == [b"a", b"b"]


def empty(queues: Queues, key: str) -> None:
    """Make a queue that has nothing left."""
    names = queues("RQ.PUSH", key, "a", "b")
    queues("RQ.POP", "COUNT", 2, key)
    assert queues("RQ.ACK", key, *names) == names


# Row 212: beyond the original


@extension
def what_is_given_back_is_served_first(queues: Queues, key: str) -> None:
    names = queues("RQ.PUSH", key, "a", "b", "c")
    queues("RQ.POP", "COUNT", 2, key)

    assert queues("RQ.NACK", key, names[1], names[2], names[1]) == [names[1]]
    assert queues("RQ.NACK", key, names[0]) == [names[0]]

    assert bodies(queues("RQ.INSPECT", key, 0, 10)) == [b"a", b"b", b"c"]
    assert bodies(queues("RQ.POP", "COUNT", 3, key)) == [b"a", b"b", b"c"]
    assert [entry[4] for entry in queues("RQ.INSPECT", key, "PENDING", 0, 10)] == [2, 2, 1]
    assert stats(queues, key)[b"nacks"] == 2
    assert stats(queues, key)[b"redeliveries"] == 2


@extension
def what_is_given_back_with_a_delay_comes_later(queues: Queues, key: str) -> None:
    names = queues("RQ.PUSH", key, "a", "b")
    queues("RQ.POP", "COUNT", 2, key)

    assert queues("RQ.NACK", key, "DELAY", 600_000, names[0]) == [names[0]]
    assert queues("RQ.POP", key) == []
    assert stats(queues, key)[b"delayed"] == 1
    assert queues("RQ.ACK", key, names[0]) == []

    assert queues("RQ.NACK", key, "DELAY", SOON_MS, names[1]) == [names[1]]
    wait_until(lambda: bodies(queues("RQ.POP", key)) == [b"b"], "the delay to be over")


@extension
def giving_back_knows_missing_queues_and_wrong_ids(queues: Queues, key: str) -> None:
    [name] = queues("RQ.PUSH", key, "a")
    queues("RQ.POP", key)

    assert queues("RQ.NACK", f"{key}missing", "1-1") is None
    assert queues("RQ.EXTEND", f"{key}missing", "1-1") is None
    assert queues("RQ.NACK", key, name, "foo") == INVALID_ID
    assert queues("RQ.EXTEND", key, name, "foo") == INVALID_ID
    assert isinstance(queues("RQ.NACK", key, "DELAY", -1, name), ErrorReply)
    assert info(queues, key) == (0, 1)


@extension
def extending_starts_the_time_again(queues: Queues, key: str) -> None:
    names = queues("RQ.PUSH", key, "a", "b")
    queues("RQ.POP", "COUNT", 2, key)

    assert queues("RQ.EXTEND", key, names[0], "1-1") == [names[0]]

    after = queues("RQ.INSPECT", key, "PENDING", 0, 10)
    assert [(entry[1], entry[4]) for entry in after] == [(b"b", 1), (b"a", 1)]


@extension
def a_delayed_push_comes_later(queues: Queues, key: str) -> None:
    [name] = queues("RQ.PUSHX", key, "DELAY", SOON_MS, "ELEMENTS", 1, "late")
    queues("RQ.PUSH", key, "early")

    assert bodies(queues("RQ.INSPECT", key, 0, 10)) == [b"early"]
    wait_until(lambda: info(queues, key)[0] == 2, "the delay to be over")
    assert queues("RQ.POP", "COUNT", 2, key)[1][1:] == [name, b"late"]


@extension
def a_waiting_pop_wakes_when_a_delay_is_over(queues: Queues, key: str) -> None:
    queues("RQ.PUSHX", key, "DELAY", SOON_MS, "ELEMENTS", 2, "a", "b")

    assert bodies(queues("RQ.POP", "COUNT", 2, "BLOCK", 20_000, key)) == [b"a", b"b"]


@extension
def an_element_that_is_not_delivered_in_time_is_dropped(queues: Queues, key: str) -> None:
    queues("RQ.PUSHX", key, "TTL", SOON_MS, "ELEMENTS", 2, "stale", "stale too")
    queues("RQ.PUSHX", key, "TTL", 600_000, "ELEMENTS", 1, "good")

    wait_until(lambda: info(queues, key)[0] == 1, "the elements to expire")
    assert bodies(queues("RQ.POP", "COUNT", 5, key)) == [b"good"]
    assert stats(queues, key)[b"expired"] == 2


@extension
def an_element_that_is_not_acknowledged_in_time_goes_back(queues: Queues, key: str) -> None:
    [name] = queues("RQ.PUSHX", key, "RETRY", SOON_MS, "ELEMENTS", 1, "a")
    queues("RQ.PUSH", key, "b")
    queues("RQ.POP", key)

    wait_until(lambda: info(queues, key) == (2, 0), "the retry time to be over")
    assert queues("RQ.ACK", key, name) == []
    assert bodies(queues("RQ.POP", "COUNT", 2, key)) == [b"a", b"b"]


@extension
def an_element_delivered_too_often_goes_to_the_dead_letters(queues: Queues, key: str) -> None:
    dead = f"{key}dead"
    [name] = queues("RQ.PUSHX", key, "MAXDELIVERIES", 2, "DEADLETTER", dead, "ELEMENTS", 1, "poison")
    for _ in range(2):
        assert bodies(queues("RQ.POP", key)) == [b"poison"]
        assert queues("RQ.NACK", key, name) == [name]

    assert queues("RQ.POP", key) == []

    assert info(queues, key) == (0, 0)
    assert stats(queues, key)[b"dead"] == 1
    assert bodies(queues("RQ.POP", dead)) == [b"poison"]


@extension
def recover_buries_too(queues: Queues, key: str) -> None:
    queues("RQ.PUSHX", key, "MAXDELIVERIES", 1, "ELEMENTS", 1, "poison")
    queues("RQ.PUSH", key, "fine")
    queues("RQ.POP", "COUNT", 2, key)

    assert bodies(queues("RQ.RECOVER", key, 10, 0)) == [b"fine"]
    assert info(queues, key) == (0, 1)
    assert stats(queues, key)[b"dead"] == 1


@extension
def a_queue_paused_in_takes_nothing(queues: Queues, key: str) -> None:
    queues("RQ.PUSH", key, "a")
    assert queues("RQ.PAUSE", key, "IN") == b"OK"

    for words in (("RQ.PUSH", key, "b"), ("RQ.PUSHX", key, "ELEMENTS", 1, "b")):
        refusal = queues(*words)
        assert isinstance(refusal, ErrorReply) and refusal.text.startswith("PAUSED ")
    assert bodies(queues("RQ.POP", key)) == [b"a"]
    assert stats(queues, key)[b"paused"] == b"in"
    assert queues("RQ.PAUSE", key, "none") == b"OK"
    assert len(queues("RQ.PUSH", key, "b")) == 1


@extension
def a_queue_paused_out_gives_nothing(queues: Queues, key: str) -> None:
    queues("RQ.PUSH", key, "a", "b")
    queues("RQ.POP", key)
    assert queues("RQ.PAUSE", key, "OUT") == b"OK"

    assert queues("RQ.POP", key) == []
    assert queues("RQ.POP", "BLOCK", 20, key) is None
    assert queues("RQ.RECOVER", key, 10, 0) == []
    assert len(queues("RQ.PUSH", key, "c")) == 1
    assert stats(queues, key)[b"paused"] == b"out"

    assert queues("RQ.PAUSE", key, "ALL") == b"OK"
    assert stats(queues, key)[b"paused"] == b"all"
    assert queues("RQ.PAUSE", key, "NONE") == b"OK"
    assert bodies(queues("RQ.POP", "COUNT", 5, key)) == [b"b", b"c"]


@extension
def a_missing_queue_can_be_paused_before_it_is_used(queues: Queues, key: str) -> None:
    assert queues("RQ.PAUSE", key, "NONE") == b"OK"
    assert queues("EXISTS", key) == 0
    assert queues("RQ.PAUSE", key, "IN") == b"OK"
    assert info(queues, key) == (0, 0)
    assert queues("RQ.PAUSE", key, "SIDEWAYS") == ErrorReply("ERR syntax error")


@extension
def statistics_tell_everything(queues: Queues, key: str) -> None:
    names = queues("RQ.PUSH", key, "a", "b")
    queues("RQ.POP", key)

    found = stats(queues, key)

    assert list(found) == [
        b"undelivered", b"delivered", b"delayed", b"nacks", b"redeliveries", b"dead", b"expired", b"paused", b"last-id",
    ]  # fmt: skip
    assert list(found.values()) == [1, 1, 0, 0, 0, 0, 0, b"none", names[1]]
    missing = queues("RQ.STATS", f"{key}missing")
    assert isinstance(missing, ErrorReply) and missing.text.startswith("EMPTYKEY ")


@extension
def a_wrong_push_changes_nothing(queues: Queues, key: str) -> None:
    for words in (
        ("ELEMENTS", 0, "a"),
        ("ELEMENTS", 2, "a"),
        ("ELEMENTS", 1, "a", "b"),
        ("ELEMENTS", "x", "a"),
        ("DELAY", -1, "ELEMENTS", 1, "a"),
        ("TTL", 0, "ELEMENTS", 1, "a"),
        ("RETRY", "x", "ELEMENTS", 1, "a"),
        ("MAXDELIVERIES", 0, "ELEMENTS", 1, "a"),
        ("DEADLETTER", f"{key}dead", "ELEMENTS", 1, "a"),
        ("MAXDELIVERIES", 1, "DEADLETTER", key, "ELEMENTS", 1, "a"),
        ("TTL", 1, "TTL", 1, "ELEMENTS", 1, "a"),
        ("NONSENSE", 1, "ELEMENTS", 1, "a"),
        ("TTL", 1, "a"),
    ):
        assert isinstance(queues("RQ.PUSHX", key, *words), ErrorReply), words
    assert queues("EXISTS", key) == 0

"""MULTI and EXEC: all at once, or not at all when a watched key has changed."""

from __future__ import annotations

import pytest

from support.memory import ManualClock, MemoryBroker, Refusal
from support.wire import encode


def test_queued_commands_run_together_at_exec(broker: MemoryBroker) -> None:
    assert broker("MULTI") == b"OK"
    assert broker("XADD s 1-0 f v") == b"QUEUED"
    assert broker.client()("XLEN s") == 0
    assert broker("XLEN s") == b"QUEUED"

    assert broker("EXEC") == [b"1-0", 1]


def test_an_error_at_run_time_does_not_stop_the_others(broker: MemoryBroker) -> None:
    for command in ("MULTI", "SET k text", "XADD k * f v", "XLEN none"):
        broker(command)

    assert broker("EXEC") == [
        b"OK",
        Refusal("WRONGTYPE Operation against a key holding the wrong kind of value"),
        0,
    ]


@pytest.mark.parametrize("wrong", ["NOSUCH", "XADD s", "XINFO FOO s"])
def test_a_command_that_cannot_run_spoils_the_transaction(broker: MemoryBroker, wrong: str) -> None:
    broker("MULTI")
    broker("XADD s 1-0 f v")
    assert isinstance(broker(wrong), Refusal)

    assert broker("EXEC") == Refusal("EXECABORT Transaction discarded because of previous errors.")
    assert broker("EXISTS s") == 0


def test_exec_that_cannot_run_ends_the_transaction(broker: MemoryBroker) -> None:
    for command in ("WATCH k", "MULTI", "SET k text"):
        broker(command)

    because = "EXECABORT Transaction discarded because of: "
    assert broker("EXEC now") == Refusal(because + "wrong number of arguments for 'exec' command")
    assert broker("EXEC") == Refusal("ERR EXEC without MULTI")
    broker("SUBSCRIBE news")
    assert str(broker("EXEC")).startswith(because + "Can't execute 'exec': only (P|S)SUBSCRIBE")
    broker("UNSUBSCRIBE")
    assert broker("EXISTS k") == 0


def test_discard_forgets_what_was_queued(broker: MemoryBroker) -> None:
    broker("MULTI")
    broker("XADD s 1-0 f v")

    assert broker("DISCARD") == b"OK"
    assert (broker("EXISTS s"), broker("EXEC")) == (0, Refusal("ERR EXEC without MULTI"))


@pytest.mark.parametrize(
    "change",
    [
        "XADD s 9-0 f v",
        "XDEL s 1-0",
        "XTRIM s MAXLEN 0",
        "DEL s",
        "RENAME s t",
        "SET s text",
        "FLUSHALL",
        "SWAPDB 0 1",
        "MOVE s 3",
    ],
)
def test_a_watched_key_that_changes_cancels_the_transaction(broker: MemoryBroker, change: str) -> None:
    broker("XADD s 1-0 f v")
    broker("WATCH s")
    broker.client()(change)
    broker("MULTI")
    broker("SET mark 1")

    assert broker("EXEC") is None
    assert broker("EXISTS mark") == 0


def test_a_watched_key_that_expires_cancels_the_transaction(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("XADD s 1-0 f v")
    broker("PEXPIRE s 100")
    broker("WATCH s")
    clock.advance(ms=100)
    broker("MULTI")
    broker("PING")

    assert broker("EXEC") is None


@pytest.mark.parametrize("harmless", ["XLEN s", "XADD other * f v", "XDEL s 77-7", "XREAD STREAMS s 0", "XACK s g 1-0"])
def test_what_changes_nothing_does_not_cancel(broker: MemoryBroker, harmless: str) -> None:
    broker("XADD s 1-0 f v")
    broker("WATCH s")
    broker.client()(harmless)
    broker("MULTI")
    broker("PING")

    assert broker("EXEC") == [b"PONG"]


@pytest.mark.parametrize(
    ("watched", "change"),
    [("s", "COPY s t"), ("t", "COPY s t DB 1"), ("none", "DEL s none"), ("none", "UNLINK none s")],
)
def test_a_command_of_several_keys_cancels_only_by_those_it_changed(
    broker: MemoryBroker, watched: str, change: str
) -> None:
    broker("XADD s 1-0 f v")
    broker("WATCH", watched)
    assert broker.client()(change) == 1
    broker("MULTI")
    broker("PING")

    assert broker("EXEC") == [b"PONG"]


def test_unwatch_forgets_the_keys(broker: MemoryBroker) -> None:
    broker("WATCH s")
    broker("UNWATCH")
    broker.client()("XADD s 1-0 f v")
    broker("MULTI")

    assert broker("EXEC") == []


def test_watched_keys_count_for_one_transaction_only(broker: MemoryBroker) -> None:
    broker("WATCH s")
    broker("MULTI")
    broker("EXEC")
    broker.client()("XADD s 1-0 f v")
    broker("MULTI")

    assert broker("EXEC") == []


@pytest.mark.parametrize(
    "command",
    ["XREAD BLOCK 0 STREAMS s $", "XREADGROUP GROUP g ann BLOCK 0 STREAMS s >", "XREAD BLOCK 0 STREAMS none 0"],
)
def test_nothing_waits_inside_a_transaction(broker: MemoryBroker, command: str) -> None:
    broker("XGROUP CREATE s g $ MKSTREAM")
    broker("MULTI")
    broker(command)

    assert broker("EXEC") == [None]


def test_claiming_works_inside_a_transaction(broker: MemoryBroker) -> None:
    broker("XADD s 1-0 f v")
    broker("XGROUP CREATE s g 0")
    broker("XREADGROUP GROUP g ann STREAMS s >")
    broker("MULTI")
    broker("XREADGROUP GROUP g bob CLAIM 0 STREAMS s >")

    assert broker("EXEC") == [[[b"s", [[b"1-0", [b"f", b"v"], 0, 1]]]]]


def test_those_who_wait_are_served_once_the_transaction_is_through(broker: MemoryBroker) -> None:
    reader = broker.client()
    reader.send("XREAD BLOCK 0 STREAMS s $")
    for command in ("MULTI", "XADD s 1-0 f v", "XADD s 2-0 f v", "EXEC"):
        broker(command)

    assert [entry[0] for entry in reader.replies()[0][0][1]] == [b"1-0", b"2-0"]


def test_an_entry_that_came_and_went_in_one_transaction_wakes_nobody(broker: MemoryBroker) -> None:
    reader = broker.client()
    reader.send("XREAD BLOCK 0 STREAMS s $")
    for command in ("MULTI", "XADD s 1-0 f v", "DEL s", "EXEC"):
        broker(command)

    assert reader.replies() == []
    assert reader.is_waiting


def test_a_whole_transaction_may_come_in_one_piece(broker: MemoryBroker) -> None:
    commands = [[b"MULTI"], [b"XADD", b"s", b"1-0", b"f", b"v"], [b"EXEC"]]
    broker.first.send_bytes(b"".join(map(encode, commands)))

    assert broker.first.replies() == [b"OK", b"QUEUED", [b"1-0"]]


@pytest.mark.parametrize(
    ("before", "command", "text"),
    [
        ("MULTI", "MULTI", "ERR MULTI calls can not be nested"),
        ("MULTI", "WATCH s", "ERR WATCH inside MULTI is not allowed"),
        ("PING", "EXEC", "ERR EXEC without MULTI"),
        ("PING", "DISCARD", "ERR DISCARD without MULTI"),
    ],
)
def test_steps_out_of_order_are_refused(broker: MemoryBroker, before: str, command: str, text: str) -> None:
    broker(before)

    assert broker(command) == Refusal(text)


def test_very_many_keys_can_be_watched_and_forgotten(broker: MemoryBroker) -> None:
    keys = [f"key{number}" for number in range(50_000)]
    assert broker("WATCH", *keys) == b"OK"
    broker.client()("SET key49999 new")
    broker("MULTI")
    assert broker("EXEC") is None

    assert not broker.state.watched


def test_a_watched_key_that_expires_before_exec_counts_as_changed(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("SET k 1 PX 100")
    broker("WATCH k")
    broker("MULTI")
    broker("INCR k")
    clock.time_ms += 100  # Nobody has looked at the key since.

    assert broker("EXEC") is None
    assert broker("EXISTS k") == 0


def test_a_watched_key_that_had_expired_already_has_not_changed(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("SET k 1 PX 100")
    clock.time_ms += 100
    broker("WATCH k")
    broker("MULTI")
    broker("EXISTS k")

    assert broker("EXEC") == [0]


def test_a_transaction_that_grows_without_end_is_ended(broker: MemoryBroker) -> None:
    client = broker.client()
    client("MULTI")
    client.call.queue_bytes = 1024**3 - 10  # As if so much was queued already.
    assert client("GET abcdefgh") == Refusal("ERR the commands since MULTI exceed the query buffer limit")
    assert client.is_closed


def test_many_short_commands_in_a_transaction_count_as_what_they_take(broker: MemoryBroker) -> None:
    client = broker.client()
    client("MULTI")
    for _ in range(100):
        client("GET k")
    assert client.call.queue_bytes > 10_000


@pytest.mark.parametrize("has_stale", [False, True], ids=["nothing", "an expired key"])
def test_an_expired_key_in_exchange_for_nothing_is_no_change(broker: MemoryBroker, has_stale: bool) -> None:
    broker.state.debugging.expires_actively = False
    broker("SET k v PX 1")
    broker("SELECT 1")
    if has_stale:
        broker("SET k w PX 1")
    broker.clock.advance(ms=2)
    broker("WATCH k")

    broker("SWAPDB 0 1")

    broker("MULTI")
    broker("PING")
    assert broker("EXEC") == [b"PONG"]

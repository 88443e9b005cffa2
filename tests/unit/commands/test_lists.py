"""Lists: pushing, popping, reading, and waiting for an element."""

from __future__ import annotations

import pytest

from support.memory import ManualClock, MemoryBroker, Refusal

WRONG_TYPE = Refusal("WRONGTYPE Operation against a key holding the wrong kind of value")


def test_both_ends_can_be_pushed_and_popped(broker: MemoryBroker) -> None:
    assert broker("RPUSH list b c") == 2
    assert broker("LPUSH list a z") == 4
    assert broker("LRANGE list 0 -1") == [b"z", b"a", b"b", b"c"]
    assert broker("LPOP list") == b"z"
    assert broker("RPOP list 2") == [b"c", b"b"]
    assert broker("LLEN list") == 1


def test_an_emptied_list_is_gone(broker: MemoryBroker) -> None:
    broker("RPUSH list a")
    broker("LPOP list")
    assert broker("EXISTS list") == 0


def test_popping_from_nothing(broker: MemoryBroker) -> None:
    wire = broker.wire()
    assert broker("LPOP missing") is None
    assert repr(wire("LPOP missing 2")) == "NULL_ARRAY"
    broker("RPUSH list a")
    assert broker("LPOP list 0") == []
    assert broker("LPOP list -1") == Refusal("ERR value is out of range, must be positive")
    assert broker("RPOP list 1 2") == Refusal("ERR wrong number of arguments for 'rpop' command")


def test_a_range_may_count_from_the_right(broker: MemoryBroker) -> None:
    broker("RPUSH list a b c d")
    assert broker("LRANGE list -3 -2") == [b"b", b"c"]
    assert broker("LRANGE list 2 99") == [b"c", b"d"]
    assert broker("LRANGE list 3 1") == []
    assert broker("LRANGE missing 0 -1") == []


@pytest.mark.parametrize("command", ["LPUSH key a", "RPOP key", "LLEN key", "LRANGE key 0 1", "BLPOP key 0"])
def test_other_types_are_refused(broker: MemoryBroker, command: str) -> None:
    broker("SET key 1")
    assert broker(command) == WRONG_TYPE


def test_who_waits_longest_is_served_first(broker: MemoryBroker) -> None:
    first, second = broker.client(), broker.client()
    first.send("BLPOP list 0")
    second.send("BRPOP list 0")
    broker("RPUSH list a b c")
    assert first.replies() == [[b"list", b"a"]]
    assert second.replies() == [[b"list", b"c"]]
    assert broker("LRANGE list 0 -1") == [b"b"]


def test_the_first_list_with_something_serves(broker: MemoryBroker) -> None:
    broker("RPUSH second x")
    assert broker("BLPOP first second 0") == [b"second", b"x"]


def test_waiting_ends_with_null_when_the_time_is_up(broker: MemoryBroker, clock: ManualClock) -> None:
    client = broker.client()
    client.send("BLPOP list 1.5")
    clock.advance(ms=1_499)
    assert client.replies() == []
    clock.advance(ms=1)
    assert client.replies() == [None]
    assert client("PING") == b"PONG"


def test_another_type_does_not_disturb_who_waits_already(broker: MemoryBroker) -> None:
    client = broker.client()
    client.send("BLPOP list 0")
    broker("SET list text")
    assert client.is_waiting
    broker("DEL list")
    broker("RPUSH list a")
    assert client.replies() == [[b"list", b"a"]]


def test_nobody_waits_inside_a_transaction(broker: MemoryBroker) -> None:
    broker("MULTI")
    broker("BLPOP list 0")
    assert broker("EXEC") == [None]


@pytest.mark.parametrize(
    ("timeout", "error"),
    [
        ("x", "ERR timeout is not a float or out of range"),
        ("-1", "ERR timeout is negative"),
        ("nan", "ERR timeout is not a float or out of range"),
        ("1e300", "ERR timeout is out of range"),
        ("inf", "ERR timeout is out of range"),
    ],
)
def test_a_wrong_timeout_does_not_wait(broker: MemoryBroker, timeout: str, error: str) -> None:
    assert broker(f"BLPOP list {timeout}") == Refusal(error)

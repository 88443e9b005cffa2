"""Lists with the clock moved by hand: waiting, and what the journal gets. The commands are in tests/conformance."""

from __future__ import annotations

import pytest

from support.memory import ManualClock, MemoryBroker, Refusal

WAITING = ["BLPOP list {}", "BRPOP list {}", "BLMPOP {} 1 list LEFT", "BLMOVE list to LEFT LEFT {}"]


def test_who_waits_longest_is_served_first(broker: MemoryBroker) -> None:
    first, second = broker.client(), broker.client()
    first.send("BLPOP list 0")
    second.send("BRPOP list 0")
    broker("RPUSH list a b c")
    assert first.replies() == [[b"list", b"a"]]
    assert second.replies() == [[b"list", b"c"]]
    assert broker("LRANGE list 0 -1") == [b"b"]


@pytest.mark.parametrize("command", WAITING)
def test_waiting_ends_with_null_when_the_time_is_up(broker: MemoryBroker, clock: ManualClock, command: str) -> None:
    client = broker.client()
    client.send(command.format(1.5))
    clock.advance(ms=1_499)
    assert client.replies() == []
    clock.advance(ms=1)
    assert client.replies() == [None]
    assert client("PING") == b"PONG"
    assert broker("RPUSH list a") == 1
    assert broker("LLEN list") == 1


def test_a_time_that_is_up_takes_nothing_from_the_next(broker: MemoryBroker, clock: ManualClock) -> None:
    hasty, patient = broker.client(), broker.client()
    hasty.send("BLPOP list 1")
    patient.send("BLPOP list 0")
    clock.advance(s=2)
    broker("RPUSH list a")
    assert hasty.replies() == [None]
    assert patient.replies() == [[b"list", b"a"]]


def test_a_list_that_expired_before_it_came_serves_nobody(broker: MemoryBroker, clock: ManualClock) -> None:
    client = broker.client()
    broker("SELECT 1")
    broker("RPUSH list a")
    broker("PEXPIRE list 10")
    client.send("BLPOP list 5")
    clock.time_ms += 10
    broker("SWAPDB 0 1")
    assert client.is_waiting
    clock.advance(s=5)
    assert client.replies() == [None]


def test_looking_again_does_not_make_the_waiting_longer(broker: MemoryBroker, clock: ManualClock) -> None:
    client = broker.client()
    client.send("BLPOP list 1")
    clock.advance(ms=900)
    broker("MULTI")
    broker("RPUSH list a")
    broker("LPOP list")
    broker("EXEC")
    clock.advance(ms=100)
    assert client.replies() == [None]


def test_a_hundred_wait_and_one_dies(broker: MemoryBroker) -> None:
    clients = [broker.client() for _ in range(100)]
    for client in clients:
        client.send("BLPOP list 0")
    clients[0].close()
    for number in range(99):
        broker(f"RPUSH list {number}")
    assert [client.replies() for client in clients[1:]] == [[[b"list", b"%d" % number]] for number in range(99)]
    assert broker("EXISTS list") == 0


def test_a_paused_pop_waits_from_the_end_of_the_pause(broker: MemoryBroker, clock: ManualClock) -> None:
    client = broker.client()
    broker("CLIENT PAUSE 10000 WRITE")
    client.send("BLPOP list 1")
    clock.advance(s=5)
    assert client.replies() == []
    broker("CLIENT UNPAUSE")
    clock.advance(ms=999)
    assert client.replies() == []
    clock.advance(ms=1)
    assert client.replies() == [None]


@pytest.mark.parametrize("command", ["SORT list BY weight_*", "SORT list GET object_*", "SORT_RO list GET #"])
def test_sorting_by_other_keys_is_refused_in_one_sentence(broker: MemoryBroker, command: str) -> None:
    broker("RPUSH list 2 1")
    refusal = Refusal("ERR BY with a pattern and GET are left out of SORT here: read the other keys by their names")
    assert broker(command) == refusal

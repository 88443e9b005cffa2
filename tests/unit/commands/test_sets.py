"""Sets, as far as stream users meet them."""

from __future__ import annotations

import pytest

from support.memory import MemoryBroker, Refusal


def test_members_are_counted_once(broker: MemoryBroker) -> None:
    assert broker("SADD set a b a") == 2
    assert broker("SADD set b c") == 1
    assert broker("SCARD set") == 3
    assert sorted(broker("SMEMBERS set")) == [b"a", b"b", b"c"]
    assert broker("SISMEMBER set c") == 1
    assert broker("SISMEMBER set d") == 0


def test_an_emptied_set_is_gone(broker: MemoryBroker) -> None:
    broker("SADD set a b")
    assert broker("SREM set a b c") == 2
    assert broker("EXISTS set") == 0
    assert broker("SREM set a") == 0
    assert broker("SMEMBERS set") == []


def test_members_are_a_set_in_resp3(broker: MemoryBroker) -> None:
    wire = broker.wire(protocol=3)
    wire("SADD set a")
    assert type(wire("SMEMBERS set")).__name__ == "SetReply"


@pytest.mark.parametrize("command", ["SADD key a", "SREM key a", "SMEMBERS key", "SCARD key", "SISMEMBER key a"])
def test_other_types_are_refused(broker: MemoryBroker, command: str) -> None:
    broker("XADD key * a b")
    assert broker(command) == Refusal("WRONGTYPE Operation against a key holding the wrong kind of value")

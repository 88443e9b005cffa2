"""maxmemory: what may need memory is refused above it."""

from __future__ import annotations

import pytest

from support.memory import ManualClock, MemoryBroker, Refusal

OUT_OF_MEMORY = Refusal("OOM command not allowed when used memory > 'maxmemory'.")


@pytest.fixture
def small(broker: MemoryBroker) -> MemoryBroker:
    """A broker with room for a few hundred kilobytes."""
    broker("CONFIG SET maxmemory 300kb")
    return broker


@pytest.mark.parametrize(
    "command", [("SET", "k"), ("XADD", "s", "*", "f"), ("SUBSCRIBE",), ("PSUBSCRIBE",), ("SSUBSCRIBE",), ("RPUSH", "l")]
)
def test_one_command_that_is_too_large_is_refused(small: MemoryBroker, command: tuple[str, ...]) -> None:
    assert small(*command, "x" * 400_000) == OUT_OF_MEMORY
    assert small("DBSIZE") == 0


def test_small_commands_are_refused_once_the_memory_is_full(small: MemoryBroker, clock: ManualClock) -> None:
    replies = []
    for number in range(1000):
        replies.append(small("SET", f"k{number}", "x" * 1000))
        clock.advance(ms=10)

    assert replies[:100] == [b"OK"] * 100
    assert replies[-1] == OUT_OF_MEMORY
    assert small("GET k1") == b"x" * 1000
    assert small("DEL", *[f"k{number}" for number in range(200)]) == 200
    clock.advance(ms=100)
    assert small("SET k v") == b"OK"


def test_channels_count_too(small: MemoryBroker, clock: ManualClock) -> None:
    ear = small.client()
    replies = [ear("SUBSCRIBE", f"{number}".ljust(2000)) for number in range(300)]

    assert replies[-1] == OUT_OF_MEMORY
    ear.close()
    clock.advance(ms=100)
    assert small("SET k v") == b"OK"


def test_emptying_the_database_makes_room_at_once(small: MemoryBroker) -> None:
    while small("RPUSH", "l", "x" * 10_000) != OUT_OF_MEMORY:
        pass

    small("FLUSHALL")
    assert small("RPUSH", "l", "x" * 10_000) == 1


def test_a_transaction_that_needs_memory_is_refused(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("MULTI")
    broker("SET k v")
    broker.client()("CONFIG SET maxmemory 1")

    assert broker("EXEC") == Refusal(f"EXECABORT Transaction discarded because of: {OUT_OF_MEMORY}")
    assert broker("DISCARD") == Refusal("ERR DISCARD without MULTI")
    broker("MULTI")
    assert broker("GET k") == b"QUEUED"
    assert broker("EXEC") == [None]


def test_without_a_limit_nothing_is_refused_any_more(small: MemoryBroker) -> None:
    small("CONFIG SET maxmemory 1")
    assert small("SET k v") == OUT_OF_MEMORY
    small("CONFIG SET maxmemory 0")
    assert small("SET", "k", "x" * 1_000_000) == b"OK"
    assert not small.first.call.is_gated

"""Known scripts, called by their digest. Locks are in tests/conformance/test_locks.py, on every server."""

from __future__ import annotations

import pytest

from support.memory import START_MS, ManualClock, MemoryBroker, Refusal

RELEASE = "c3f8721cbb97f72bc19e972846bd7aaf91901658"
EXTEND = "a4e8783852e6b949f9ef3a97212805108459a890"
REFRESH_BINDING = "ef7a9e205fbaf46bf959e1522ff796622fc676c7"
SWEEP_BINDINGS = "9a2b966a0a2d2d0e36ec32bc30fc89342b94a4bf"
WRONG_TYPE = Refusal("WRONGTYPE Operation against a key holding the wrong kind of value")


def refresh(broker: MemoryBroker, exchange: str, member: str, duration_ms: int) -> object:
    return broker("EVALSHA", REFRESH_BINDING, 2, f"bound.{exchange}", "deadlines", member, exchange, duration_ms)


def sweep(broker: MemoryBroker, limit: int = 100) -> object:
    return broker("EVALSHA", SWEEP_BINDINGS, 1, "deadlines", "bound.", "permanent.", limit)


def test_a_binding_table_lives_until_its_deadline(broker: MemoryBroker, clock: ManualClock) -> None:
    assert refresh(broker, "news", "ann", 1000) is None
    assert broker("SMEMBERS bound.news") == [b"ann"]
    assert broker("ZSCORE deadlines news") == b"%d" % (START_MS + 1000)
    assert sweep(broker) == 0
    clock.advance(ms=1000)
    assert sweep(broker) == 1
    assert broker("EXISTS bound.news deadlines") == 0


def test_a_deadline_moves_on_and_never_back(broker: MemoryBroker) -> None:
    refresh(broker, "news", "ann", 5000)
    refresh(broker, "news", "bob", 1000)
    assert broker("ZSCORE deadlines news") == b"%d" % (START_MS + 5000)
    assert broker("SCARD bound.news") == 2


def test_a_table_with_permanent_bindings_stays(broker: MemoryBroker, clock: ManualClock) -> None:
    refresh(broker, "news", "ann", 10)
    broker("SADD permanent.news bob")
    clock.advance(ms=10)
    assert sweep(broker) == 1
    assert broker("EXISTS bound.news deadlines") == 1


def test_no_more_tables_are_swept_than_asked_for(broker: MemoryBroker, clock: ManualClock) -> None:
    for number in range(5):
        refresh(broker, f"news-{number}", "ann", 10)
    clock.advance(ms=10)
    assert [sweep(broker, 2) for _ in range(4)] == [2, 2, 1, 0]


def test_one_key_cannot_be_the_table_and_the_deadlines(broker: MemoryBroker) -> None:
    assert broker("EVALSHA", REFRESH_BINDING, 2, "k", "k", "ann", "news", 10) == WRONG_TYPE
    assert broker("DBSIZE") == 0


@pytest.mark.parametrize("key", ["bound.news", "deadlines"])
def test_a_step_on_a_wrong_type_changes_nothing(broker: MemoryBroker, key: str) -> None:
    broker("SET", key, "text")
    assert refresh(broker, "news", "ann", 10) == WRONG_TYPE
    assert broker("DBSIZE") == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([RELEASE, 0], "ERR this script takes 1 keys and 1 more arguments"),
        ([RELEASE, 1, "lock"], "ERR this script takes 1 keys and 1 more arguments"),
        ([RELEASE, 2, "lock", "token"], "ERR this script takes 1 keys and 1 more arguments"),
        ([EXTEND, 1, "lock", "token", "x", "0"], "ERR value is not an integer or out of range"),
    ],
)
def test_a_known_script_with_wrong_arguments_is_refused(
    broker: MemoryBroker, words: list[str | int], error: str
) -> None:
    broker("SET lock token PX 100")
    assert broker("EVALSHA", *words) == Refusal(error)
    assert broker("PTTL lock") == 100


def test_the_changes_of_a_step_are_counted_one_by_one(broker: MemoryBroker) -> None:
    before = broker.state.changes
    refresh(broker, "news", "ann", 10)
    assert broker.state.changes == before + 2
    refresh(broker, "news", "ann", 10)
    assert broker.state.changes == before + 2

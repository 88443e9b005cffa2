"""Hashes: fields and their values."""

from __future__ import annotations

import pytest

from support.memory import ManualClock, MemoryBroker, Refusal


def test_fields_are_set_and_read(broker: MemoryBroker) -> None:
    assert broker("HSET bookmarks ann 1-0 bob 2-0") == 2
    assert broker("HSET bookmarks ann 3-0 cat 4-0") == 1
    assert broker("HGET bookmarks ann") == b"3-0"
    assert broker("HGET bookmarks dan") is None
    assert broker("HMGET bookmarks cat dan bob") == [b"4-0", None, b"2-0"]
    assert broker("HLEN bookmarks") == 3
    assert broker("HKEYS bookmarks") == [b"ann", b"bob", b"cat"]
    assert broker("HVALS bookmarks") == [b"3-0", b"2-0", b"4-0"]
    assert broker("HGETALL bookmarks") == [b"ann", b"3-0", b"bob", b"2-0", b"cat", b"4-0"]
    assert broker("HSTRLEN bookmarks ann") == 3
    assert broker("HEXISTS bookmarks ann") == 1
    assert broker("HEXISTS bookmarks dan") == 0
    assert broker("TYPE bookmarks") == b"hash"


def test_a_field_set_twice_in_one_call_keeps_the_last_value(broker: MemoryBroker) -> None:
    assert broker("HSET hash a 1 a 2") == 1
    assert broker("HGETALL hash") == [b"a", b"2"]


def test_a_missing_hash_is_empty(broker: MemoryBroker) -> None:
    for command, reply in {
        "HGET none a": None,
        "HMGET none a b": [None, None],
        "HGETALL none": [],
        "HKEYS none": [],
        "HVALS none": [],
        "HLEN none": 0,
        "HEXISTS none a": 0,
        "HSTRLEN none a": 0,
        "HDEL none a": 0,
    }.items():
        assert broker(command) == reply
    assert broker("EXISTS none") == 0


def test_an_emptied_hash_is_gone(broker: MemoryBroker) -> None:
    broker("HSET hash a 1 b 2 c 3")
    assert broker("HDEL hash a a x") == 1
    assert broker("HDEL hash b c") == 2
    assert broker("EXISTS hash") == 0


def test_a_field_is_set_only_when_missing(broker: MemoryBroker) -> None:
    assert broker("HSETNX hash a 1") == 1
    assert broker("HSETNX hash a 2") == 0
    assert broker("HGET hash a") == b"1"


def test_numbers_in_fields_are_counted_up(broker: MemoryBroker) -> None:
    assert broker("HINCRBY hash n 5") == 5
    assert broker("HINCRBY hash n -7") == -2
    broker("HSET hash word tea most 9223372036854775807")
    assert broker("HINCRBY hash word 1") == Refusal("ERR hash value is not an integer")
    assert broker("HINCRBY hash most 1") == Refusal("ERR increment or decrement would overflow")
    assert broker("HINCRBY hash n much") == Refusal("ERR value is not an integer or out of range")
    assert broker("HINCRBY none n much") == Refusal("ERR value is not an integer or out of range")
    assert broker("EXISTS none") == 0


def test_all_fields_are_a_map_in_resp3(broker: MemoryBroker) -> None:
    wire = broker.wire(protocol=3)
    assert dict(wire("HGETALL none")) == {}
    wire("HSET hash a 1")
    reply = wire("HGETALL hash")
    assert type(reply).__name__ == "Map"
    assert dict(reply) == {b"a": b"1"}


def test_a_field_without_value_is_refused_before_the_type_is_looked_at(broker: MemoryBroker) -> None:
    broker("SET key text")
    assert broker("HSET key a 1 b") == Refusal("ERR wrong number of arguments for 'hset' command")
    assert broker("HMSET key a 1 b") == Refusal("ERR wrong number of arguments for 'hmset' command")


@pytest.mark.parametrize(
    "command",
    [
        "HSET key a 1", "HMSET key a 1", "HSETNX key a 1", "HGET key a", "HMGET key a", "HGETALL key", "HDEL key a",
        "HLEN key", "HEXISTS key a", "HKEYS key", "HVALS key", "HINCRBY key a 1", "HSTRLEN key a",
    ],
)  # fmt: skip
@pytest.mark.parametrize("made_by", ["XADD key * a b", "SET key text", "RPUSH key a", "SADD key a"])
def test_other_types_are_refused(broker: MemoryBroker, made_by: str, command: str) -> None:
    broker(made_by)
    assert broker(command) == Refusal("WRONGTYPE Operation against a key holding the wrong kind of value")


@pytest.mark.parametrize("command", ["GET hash", "LPUSH hash a", "SADD hash a", "XADD hash * a b", "INCR hash"])
def test_a_hash_is_no_other_type(broker: MemoryBroker, command: str) -> None:
    broker("HSET hash a 1")
    assert broker(command) == Refusal("WRONGTYPE Operation against a key holding the wrong kind of value")


def test_a_hash_is_copied_renamed_and_restored_in_its_order(broker: MemoryBroker) -> None:
    broker("HSET hash z 1 a 2 m 3")
    broker("COPY hash copy")
    broker("HSET hash b 4")
    broker("RENAME copy other")
    broker("RESTORE", "again", 0, broker("DUMP other"))
    assert broker("HGETALL again") == [b"z", b"1", b"a", b"2", b"m", b"3"]
    assert broker("HLEN hash") == 4


def test_a_hash_expires_as_a_whole(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("HSET hash a 1")
    broker("PEXPIRE hash 100")
    broker("HSET hash b 2")
    clock.advance(ms=100)
    assert broker("HGETALL hash") == []
    broker("HSET hash c 3")
    assert broker("PTTL hash") == -1


def test_its_inner_form_is_named_as_in_redis(broker: MemoryBroker) -> None:
    broker("HSET hash a 1")
    assert broker("OBJECT ENCODING hash") == b"listpack"
    small = broker("MEMORY USAGE hash")
    broker("HSET", "hash", "a", "x" * 65)
    assert broker("OBJECT ENCODING hash") == b"hashtable"
    assert broker("MEMORY USAGE hash") > small
    for number in range(513):
        broker(f"HSET large {number} x")
    assert broker("OBJECT ENCODING large") == b"hashtable"


def test_a_watched_hash_counts_as_changed(broker: MemoryBroker) -> None:
    ann = broker.client()
    ann("WATCH hash")
    broker("HSET hash a 1")
    ann("MULTI")
    ann("HGET hash a")
    assert ann("EXEC") is None

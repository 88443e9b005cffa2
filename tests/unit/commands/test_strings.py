"""Strings: SET with all its options, and the small relatives."""

from __future__ import annotations

import pytest

from support.memory import START_MS, MemoryBroker, Refusal

NOT_AN_INTEGER = Refusal("ERR value is not an integer or out of range")
WRONG_TYPE = Refusal("WRONGTYPE Operation against a key holding the wrong kind of value")


def test_set_replaces_a_value_of_any_type_and_its_expiry(broker: MemoryBroker) -> None:
    broker("RPUSH key a")
    broker("EXPIRE key 10")
    assert broker("SET key text") == b"OK"
    assert broker("GET key") == b"text"
    assert broker("TTL key") == -1


def test_set_nx_and_xx_look_whether_the_key_exists(broker: MemoryBroker) -> None:
    assert broker("SET key 1 XX") is None
    assert broker("SET key 1 NX") == b"OK"
    assert broker("SET key 2 NX") is None
    assert broker("SET key 2 XX") == b"OK"
    assert broker("GET key") == b"2"


def test_set_get_gives_the_old_value_even_when_it_stays(broker: MemoryBroker) -> None:
    assert broker("SET key 1 GET") is None
    assert broker("SET key 2 NX GET") == b"1"
    assert broker("SET key 3 GET") == b"1"
    broker("LPUSH list a")
    assert broker("SET list 1 GET") == WRONG_TYPE
    assert broker("TYPE list") == b"list"


def test_set_takes_an_expiry_in_every_unit(broker: MemoryBroker) -> None:
    seconds = START_MS // 1000
    for words in ("EX 100", "PX 100000", f"EXAT {seconds + 100}", f"PXAT {START_MS + 100_000}"):
        broker(f"SET key 1 {words}")
        assert broker("PTTL key") == 100_000
    broker("SET key 2 KEEPTTL")
    assert broker("PTTL key") == 100_000


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("NX XX", "ERR syntax error"),
        ("EX 1 PX 1", "ERR syntax error"),
        ("EX 1 KEEPTTL", "ERR syntax error"),
        ("EX", "ERR syntax error"),
        ("WHAT", "ERR syntax error"),
        ("EX x", "ERR value is not an integer or out of range"),
        ("EX 0", "ERR invalid expire time in 'set' command"),
        ("PX -1", "ERR invalid expire time in 'set' command"),
        ("EX 9223372036854775807", "ERR invalid expire time in 'set' command"),
    ],
)
def test_a_wrong_set_sets_nothing(broker: MemoryBroker, words: str, error: str) -> None:
    assert broker(f"SET key 1 {words}") == Refusal(error)
    assert broker("GET key") is None


def test_a_replaced_key_tells_a_waiting_group_reader(broker: MemoryBroker) -> None:
    broker("XGROUP CREATE orders billing $ MKSTREAM")
    reader = broker.client()
    reader.send("XREADGROUP GROUP billing ann BLOCK 0 STREAMS orders >")
    broker("SET orders text")
    assert str(reader.replies()[0]).startswith("WRONGTYPE")


def test_several_strings_at_once(broker: MemoryBroker) -> None:
    assert broker("MSET a 1 b 2") == b"OK"
    broker("SADD set x")
    assert broker("MGET a b set missing") == [b"1", b"2", None, None]
    assert broker("MSET a 1 b") == Refusal("ERR wrong number of arguments for 'mset' command")


def test_getdel_takes_the_string_away(broker: MemoryBroker) -> None:
    broker("SET key 1")
    assert broker("GETDEL key") == b"1"
    assert broker("GETDEL key") is None


def test_numbers_count_up_and_down_and_keep_their_expiry(broker: MemoryBroker) -> None:
    assert broker("INCR count") == 1
    broker("EXPIRE count 10")
    assert broker("INCRBY count 41") == 42
    assert broker("DECR count") == 41
    assert broker("DECRBY count 50") == -9
    assert broker("TTL count") == 10


@pytest.mark.parametrize("value", ["text", " 1", "1 ", "+1", "01", "9223372036854775808", ""])
def test_only_integers_can_be_counted(broker: MemoryBroker, value: str) -> None:
    broker("SET", "key", value)
    assert broker("INCR key") == NOT_AN_INTEGER
    assert broker("INCRBY", "other", value) == NOT_AN_INTEGER


def test_counting_stops_at_64_bits(broker: MemoryBroker) -> None:
    broker("SET key 9223372036854775807")
    assert broker("INCR key") == Refusal("ERR increment or decrement would overflow")
    assert broker("DECRBY key -9223372036854775808") == Refusal("ERR decrement would overflow")
    assert broker("GET key") == b"9223372036854775807"


def test_append_and_strlen(broker: MemoryBroker) -> None:
    assert broker("APPEND key ab") == 2
    assert broker("APPEND key cd") == 4
    assert broker("STRLEN key") == 4
    assert broker("STRLEN missing") == 0
    broker("LPUSH list a")
    assert broker("STRLEN list") == WRONG_TYPE


def test_the_old_names_of_set(broker: MemoryBroker) -> None:
    assert broker("SETNX key 1") == 1
    assert broker("SETNX key 2") == 0
    assert broker("SETEX key 10 1") == b"OK"
    assert broker("TTL key") == 10
    assert broker("PSETEX key 10 1") == b"OK"
    assert broker("SETEX key 0 1") == Refusal("ERR invalid expire time in 'setex' command")

"""DUMP and RESTORE: a value of any type goes out and comes back on the same server."""

import pytest

from support.wire import NULL_BULK, ErrorReply, Wire

VALUES = {
    "string": ("SET k text", "GET {}"),
    "list": ("RPUSH k a b c", "LRANGE {} 0 -1"),
    "hash": ("HSET k a 1 b 2", "HGETALL {}"),
    "set": ("SADD k 1 2 3", "SMEMBERS {}"),
    "sorted set": ("ZADD k 1 a 2.5 b", "ZRANGE {} 0 -1 WITHSCORES"),
    "stream": ("XADD k 1-0 f v", "XRANGE {} - +"),
}


@pytest.mark.parametrize(("write", "read"), VALUES.values(), ids=VALUES)
def test_a_value_comes_back_as_it_was(client: Wire, write: str, read: str) -> None:
    client(write)
    assert client("RESTORE", "copy", 0, client("DUMP k")) == "OK"
    assert client(read.format("copy")) == client(read.format("k"))
    assert client("TTL copy") == -1


def test_a_restored_key_expires_when_it_is_told_to(client: Wire) -> None:
    client("SET k text EX 1000")
    payload = client("DUMP k")
    client("RESTORE", "after", 500_000, payload)
    assert 490 < client("TTL after") <= 500
    client("RESTORE", "at", 99_999_999_999_000, payload, "ABSTTL")
    assert client("EXPIRETIME at") == 99_999_999_999
    assert client("RESTORE", "past", 1, payload, "ABSTTL") == "OK"
    assert client("EXISTS past") == 0


def test_a_key_that_exists_is_replaced_only_on_demand(client: Wire) -> None:
    client("SET k text")
    payload = client("DUMP k")
    client("SET k other EX 100")
    assert client("RESTORE", "k", 0, payload) == ErrorReply("BUSYKEY Target key name already exists.")
    assert client("RESTORE", "k", 0, payload, "REPLACE", "IDLETIME", 10) == "OK"
    assert client("GET k") == b"text"
    assert client("TTL k") == -1
    assert client("RESTORE", "k", 0, payload, "FREQ", 5, "REPLACE") == "OK"


def test_a_damaged_payload_is_refused(client: Wire) -> None:
    client("SET k text")
    payload = bytearray(client("DUMP k"))
    payload[1] ^= 1
    assert client("RESTORE", "copy", 0, bytes(payload)) == ErrorReply("ERR DUMP payload version or checksum are wrong")
    assert client("EXISTS copy") == 0
    assert client("DUMP missing") == NULL_BULK

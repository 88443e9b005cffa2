"""Keys of any type: existence, names, moving, copying, payloads, expiry."""

from __future__ import annotations

import pytest

from support.memory import START_MS, ManualClock, MemoryBroker, Refusal

NO_KEY = Refusal("ERR no such key")
SAME = Refusal("ERR source and destination objects are the same")


def test_deleting_counts_what_was_there(broker: MemoryBroker) -> None:
    broker("MSET a 1 b 2 c 3")
    assert broker("DEL a a missing") == 1
    assert broker("UNLINK b c") == 2
    assert broker("DBSIZE") == 0


def test_exists_counts_a_key_as_often_as_it_is_named(broker: MemoryBroker) -> None:
    broker("SET a 1")
    assert broker("EXISTS a a b") == 2
    assert broker("TOUCH a b") == 1


def test_every_value_has_a_type(broker: MemoryBroker) -> None:
    broker("SET string 1")
    broker("LPUSH list 1")
    broker("SADD set 1")
    broker("XADD stream * a b")
    kinds = [broker(f"TYPE {name}") for name in ("string", "list", "set", "stream", "missing")]
    assert kinds == [b"string", b"list", b"set", b"stream", b"none"]


def test_keys_are_found_by_pattern_and_expired_ones_are_not(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("MSET orders:1 a orders:2 b other c")
    broker("SET orders:3 d PX 5")
    clock.time_ms += 5
    assert sorted(broker("KEYS orders:*")) == [b"orders:1", b"orders:2"]
    assert broker("KEYS nothing") == []


def test_randomkey_gives_every_key_some_time_and_no_expired_one(broker: MemoryBroker, clock: ManualClock) -> None:
    assert broker("RANDOMKEY") is None
    broker("MSET a 1 b 2")
    broker("SET c 3 PX 5")
    clock.time_ms += 5
    assert {broker("RANDOMKEY") for _ in range(100)} == {b"a", b"b"}
    for number in range(1000):
        broker(f"SET key-{number} x PX 5")
    clock.time_ms += 5
    assert broker("RANDOMKEY") in (b"a", b"b")
    broker("DEL a b")
    assert broker("RANDOMKEY") is None


# Moving and copying


def test_rename_replaces_and_keeps_the_expiry(broker: MemoryBroker) -> None:
    broker("SET a 1 EX 100")
    broker("SET b 2")
    assert broker("RENAME a b") == b"OK"
    assert broker("GET b") == b"1"
    assert broker("TTL b") == 100
    assert broker("EXISTS a") == 0
    assert broker("RENAME missing b") == NO_KEY
    assert broker("RENAME b b") == b"OK"


def test_renamenx_does_not_replace(broker: MemoryBroker) -> None:
    broker("MSET a 1 b 2")
    assert broker("RENAMENX a b") == 0
    assert broker("RENAMENX a a") == 0
    assert broker("RENAMENX a c") == 1
    assert broker("RENAMENX missing d") == NO_KEY


def test_a_list_renamed_into_place_serves_who_waits_there(broker: MemoryBroker) -> None:
    waiting = broker.client()
    waiting.send("BLPOP queue 0")
    broker("RPUSH draft a")
    broker("RENAME draft queue")
    assert waiting.replies() == [[b"queue", b"a"]]


def test_a_copy_is_independent_of_its_source(broker: MemoryBroker) -> None:
    broker("XADD orders 1-0 item tea")
    broker("XGROUP CREATE orders billing 0")
    broker("XREADGROUP GROUP billing ann STREAMS orders >")
    assert broker("COPY orders copy") == 1
    broker("XADD copy 2-0 item milk")
    broker("XACK copy billing 1-0")
    assert broker("XLEN orders") == 1
    assert broker("XPENDING orders billing")[0] == 1
    assert broker("XPENDING copy billing")[0] == 0


def test_copy_needs_replace_for_a_key_that_exists(broker: MemoryBroker) -> None:
    broker("MSET a 1 b 2")
    assert broker("COPY a b") == 0
    assert broker("COPY a b REPLACE") == 1
    assert broker("GET b") == b"1"
    assert broker("COPY a a") == SAME
    assert broker("COPY a a DB 1") == 1
    assert broker("COPY a b DB 99") == Refusal("ERR DB index is out of range")
    assert broker("COPY a b WHAT") == Refusal("ERR syntax error")
    assert broker("COPY missing c") == 0


def test_move_takes_a_key_to_another_database(broker: MemoryBroker) -> None:
    broker("SET a 1 EX 100")
    assert broker("MOVE a 1") == 1
    assert broker("EXISTS a") == 0
    broker("SET a 2")
    assert broker("MOVE a 1") == 0
    assert broker("MOVE a 0") == SAME
    broker("SELECT 1")
    assert broker("GET a") == b"1"
    assert broker("TTL a") == 100


# Payloads


@pytest.mark.parametrize("command", ["SET key text", "RPUSH key a b c", "SADD key x y", "XADD key 1-0 item tea"])
def test_what_was_dumped_can_be_restored(broker: MemoryBroker, command: str) -> None:
    broker(command)
    payload = broker("DUMP key")
    assert broker("RESTORE", "copy", 0, payload) == b"OK"
    assert broker("DUMP copy") == payload
    assert broker("TYPE copy") == broker("TYPE key")
    assert broker("DUMP missing") is None


def test_restore_does_not_replace_unless_asked(broker: MemoryBroker) -> None:
    broker("SET key 1")
    payload = broker("DUMP key")
    assert broker("RESTORE", "key", 0, payload) == Refusal("BUSYKEY Target key name already exists.")
    assert broker("RESTORE", "key", 0, payload, "REPLACE") == b"OK"


def test_restore_takes_a_ttl_or_a_time(broker: MemoryBroker) -> None:
    broker("SET key 1")
    payload = broker("DUMP key")
    broker("RESTORE", "a", 5000, payload)
    assert broker("PTTL a") == 5000
    broker("RESTORE", "b", START_MS + 7000, payload, "ABSTTL")
    assert broker("PTTL b") == 7000
    assert broker("RESTORE", "c", START_MS - 1, payload, "ABSTTL") == b"OK"
    assert broker("EXISTS c") == 0


def test_a_damaged_or_foreign_payload_is_refused(broker: MemoryBroker) -> None:
    broker("SET key text")
    payload = bytearray(broker("DUMP key"))
    payload[6] ^= 1
    wrong = Refusal("ERR DUMP payload version or checksum are wrong")
    assert broker("RESTORE", "a", 0, bytes(payload)) == wrong
    assert broker("RESTORE", "a", 0, b"\x00\x03bar\x0b\x00\x00\x00") == wrong
    assert broker("EXISTS a") == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("-1 x", "ERR Invalid TTL value, must be >= 0"),
        ("0 x IDLETIME -1", "ERR Invalid IDLETIME value, must be >= 0"),
        ("0 x FREQ 256", "ERR Invalid FREQ value, must be >= 0 and <= 255"),
        ("0 x IDLETIME 1 FREQ 1", "ERR syntax error"),
        ("0 x WHAT", "ERR syntax error"),
    ],
)
def test_restore_checks_its_options(broker: MemoryBroker, words: str, error: str) -> None:
    assert broker(f"RESTORE key {words}") == Refusal(error)


# OBJECT


def test_encodings_are_named_as_in_redis(broker: MemoryBroker) -> None:
    broker("MSET", "int", "12", "embstr", "text", "raw", "x" * 45)
    broker("RPUSH list a")
    broker("SADD intset 1 2")
    broker("SADD listpack a")
    broker("XADD stream * a b")
    for name in ("int", "embstr", "raw", "intset", "listpack", "stream"):
        assert broker(f"OBJECT ENCODING {name}") == name.encode()
    assert broker("OBJECT ENCODING list") == b"listpack"
    assert broker("OBJECT ENCODING missing") is None


def test_what_is_not_tracked_is_said_so(broker: MemoryBroker) -> None:
    broker("SET key 1")
    assert broker("OBJECT REFCOUNT key") == 1
    assert broker("OBJECT IDLETIME key") == 0
    assert "access frequency not tracked" in str(broker("OBJECT FREQ key"))
    assert broker("OBJECT FREQ missing") is None
    assert broker("OBJECT HELP")[0].startswith(b"OBJECT <subcommand>")


# Expiry


def test_a_key_is_gone_when_its_time_comes(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("SET key 1")
    assert broker("EXPIRE key 10") == 1
    assert broker("TTL key") == 10
    clock.advance(ms=9_999)
    assert broker("EXISTS key") == 1
    clock.advance(ms=1)
    assert broker("EXISTS key") == 0
    assert broker("TTL key") == -2


def test_expiry_can_be_set_in_four_ways(broker: MemoryBroker) -> None:
    broker("MSET a 1 b 1 c 1 d 1")
    seconds = START_MS // 1000
    broker("EXPIRE a 100")
    broker("PEXPIRE b 100000")
    broker(f"EXPIREAT c {seconds + 100}")
    broker(f"PEXPIREAT d {START_MS + 100_000}")
    assert [broker(f"PTTL {name}") for name in "abcd"] == [100_000] * 4
    assert broker("EXPIRETIME a") == seconds + 100
    assert broker("PEXPIRETIME a") == START_MS + 100_000


def test_a_time_in_the_past_deletes_at_once(broker: MemoryBroker) -> None:
    broker("SET key 1")
    assert broker("EXPIRE key -1") == 1
    assert broker("DBSIZE") == 0


def test_persist_lifts_the_expiry(broker: MemoryBroker) -> None:
    broker("SET key 1 EX 10")
    assert broker("PERSIST key") == 1
    assert broker("PERSIST key") == 0
    assert broker("TTL key") == -1


def test_conditions_compare_with_the_present_expiry(broker: MemoryBroker) -> None:
    broker("SET key 1")
    assert broker("EXPIRE key 100 XX") == 0
    assert broker("EXPIRE key 100 GT") == 0
    assert broker("EXPIRE key 100 LT") == 1
    assert broker("EXPIRE key 100 NX") == 0
    assert broker("EXPIRE key 50 GT") == 0
    assert broker("EXPIRE key 200 GT") == 1
    assert broker("EXPIRE key 300 LT") == 0
    assert broker("EXPIRE key 50 XX LT") == 1
    assert broker("TTL key") == 50


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("x", "ERR value is not an integer or out of range"),
        ("9223372036854775807", "ERR invalid expire time in 'expire' command"),
        ("1 WHAT", "ERR Unsupported option WHAT"),
        ("1 NX XX", "ERR NX and XX, GT or LT options at the same time are not compatible"),
        ("1 GT LT", "ERR GT and LT options at the same time are not compatible"),
    ],
)
def test_a_wrong_expiry_changes_nothing(broker: MemoryBroker, words: str, error: str) -> None:
    broker("SET key 1")
    assert broker(f"EXPIRE key {words}") == Refusal(error)
    assert broker("TTL key") == -1

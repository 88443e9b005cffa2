"""Keyspace events: what is published when something happens to a key.

Each row is a command and the events that follow it, as `event key`.
"""

from collections.abc import Callable

import pytest

from support.servers import Server, wait_until
from support.session import Session
from support.wire import ErrorReply, Wire

Settings = Callable[[str, object], None]

END = b"that is all"

STREAMS = [
    ("XADD s 1-0 f v", "xadd s"),
    ("XADD s MAXLEN 1 2-0 f v", "xadd s, xtrim s"),
    ("XADD s NOMKSTREAM 3-0 f v", "xadd s"),
    ("XADD s 1-0 f v", ""),
    ("XADD none NOMKSTREAM 1-0 f v", ""),
    ("XGROUP CREATE s g 0", "xgroup-create s"),
    ("XGROUP CREATE t g $ MKSTREAM", "xgroup-create t"),
    ("XGROUP CREATECONSUMER s g ann", "xgroup-createconsumer s"),
    ("XGROUP CREATECONSUMER s g ann", ""),
    ("XREADGROUP GROUP g bob COUNT 1 STREAMS s >", "xgroup-createconsumer s"),
    ("XREADGROUP GROUP g bob COUNT 1 STREAMS s >", ""),
    ("XCLAIM s g cid 0 2-0", "xgroup-createconsumer s"),
    ("XAUTOCLAIM s g dan 0 0", "xgroup-createconsumer s"),
    ("XACK s g 2-0", ""),
    ("XGROUP DELCONSUMER s g nobody", ""),
    ("XGROUP DELCONSUMER s g bob", "xgroup-delconsumer s"),
    ("XGROUP SETID s g 0", "xgroup-setid s"),
    ("XGROUP DESTROY s g", "xgroup-destroy s"),
    ("XGROUP DESTROY s g", ""),
    ("XTRIM s MAXLEN 1", "xtrim s"),
    ("XTRIM s MAXLEN 100", ""),
    ("XDEL s 3-0", "xdel s"),
    ("XDEL s 3-0", ""),
    ("XSETID s 9-0", "xsetid s"),
    ("DEL s t", "del s, del t"),
]

STRINGS = [
    ("SET a 1", "set a"),
    ("SET a 1 XX EX 100", "set a, expire a"),
    ("SET a 1 NX", ""),
    ("SET a 2 KEEPTTL", "set a"),
    ("SETNX a 1", ""),
    ("SETNX b 1", "set b"),
    ("SETEX b 100 v", "set b, expire b"),
    ("PSETEX b 100000 v", "set b, expire b"),
    ("MSET c 1 d 2", "set c, set d"),
    ("APPEND c 1", "append c"),
    ("APPEND new 1", "append new"),
    ("INCR c", "incrby c"),
    ("INCRBY c 5", "incrby c"),
    ("DECR c", "incrby c"),
    ("DECRBY c 2", "incrby c"),
    ("GETDEL c", "del c"),
    ("GETDEL c", ""),
    ("GET a", ""),
]

HASHES_AND_SETS = [
    ("HSET h a 1 b 2", "hset h"),
    ("HMSET h a 1", "hset h"),
    ("HSETNX h a 1", ""),
    ("HSETNX h c 1", "hset h"),
    ("HINCRBY h c 1", "hincrby h"),
    ("HDEL h a x", "hdel h"),
    ("HDEL h x", ""),
    ("HDEL h b c", "hdel h, del h"),
    ("SADD m a b", "sadd m"),
    ("SADD m a b", ""),
    ("SREM m a x", "srem m"),
    ("SREM m x", ""),
    ("SREM m b", "srem m, del m"),
]

KEYS = [
    ("SET a 1", "set a"),
    ("EXPIRE a 100", "expire a"),
    ("EXPIRE a 100 NX", ""),
    ("PEXPIRE a 100000", "expire a"),
    ("PERSIST a", "persist a"),
    ("PERSIST a", ""),
    ("EXPIRE none 100", ""),
    ("RENAME a b", "rename_from a, rename_to b"),
    ("RENAMENX b a", "rename_from b, rename_to a"),
    ("COPY a b", "copy_to b"),
    ("COPY a b", ""),
    ("COPY a b REPLACE", "copy_to b"),
    ("DEL a b none", "del a, del b"),
    ("SET a 1", "set a"),
    ("UNLINK a", "del a"),
    ("SET a 1", "set a"),
    ("FLUSHDB", ""),
]

NEW = [
    ("SET a 1", "new a, set a"),
    ("SET a 2", "set a"),
    ("APPEND b 1", "new b, append b"),
    ("APPEND b 1", "append b"),
    ("INCR n", "new n, incrby n"),
    ("HSET h a 1", "new h, hset h"),
    ("HSET h a 1", "hset h"),
    ("SADD m a", "new m, sadd m"),
    ("XADD s 1-0 f v", "new s, xadd s"),
    ("XADD s * f v", "xadd s"),
    ("XADD u * f v", "new u, xadd u"),
    ("XGROUP CREATE t g $ MKSTREAM", "new t, xgroup-create t"),
    ("RENAME a c", "new c, rename_from a, rename_to c"),
    ("RENAME c b", "new b, rename_from c, rename_to b"),
    ("COPY b d", "new d, copy_to d"),
    ("COPY b d REPLACE", "new d, copy_to d"),
]

MISSED = [
    ("GET a", "keymiss a"),
    ("SET a 1", ""),
    ("GET a", ""),
    ("EXISTS a b b", "keymiss b, keymiss b"),
    ("TYPE b", "keymiss b"),
    ("TTL b", "keymiss b"),
    ("MGET a b c", "keymiss b, keymiss c"),
    ("GETDEL b", "keymiss b"),
    ("SET b 1 GET", "keymiss b"),
    ("OBJECT ENCODING none", ""),
    ("HGET none f", "keymiss none"),
    ("SMEMBERS none", "keymiss none"),
    ("XLEN none", "keymiss none"),
    ("XRANGE none - +", "keymiss none"),
    ("COPY none x", "keymiss none"),
    ("DEL none", ""),
    ("INCR none", ""),
    ("XADD none2 NOMKSTREAM * f v", ""),
]

OVERWRITTEN = [
    ("SET a 1", "set a"),
    ("SET a 2", "overwritten a, set a"),
    ("INCR a", "incrby a"),
    ("APPEND a 1", "append a"),
    ("HSET h f v", "hset h"),
    ("SET h v EX 100", "overwritten h, type_changed h, set h, expire h"),
    ("MSET h v new v", "overwritten h, set h, set new"),
    ("SADD m a", "sadd m"),
    ("RENAME m h", "rename_from m, rename_to h, overwritten h, type_changed h"),
    ("COPY h a REPLACE", "copy_to a, overwritten a, type_changed a"),
    ("COPY h a REPLACE", "copy_to a, overwritten a"),
    ("COPY h fresh", "copy_to fresh"),
    ("XADD a * f v", ""),
    ("DEL a", "del a"),
    ("XADD a * f v", "xadd a"),
    ("EXPIRE a -1", "del a"),
]

POLICIES = [
    ("XADD s 1-0 f v", "xadd s"),
    ("XADD s 2-0 f v", "xadd s"),
    ("XADD s 3-0 f v", "xadd s"),
    ("XGROUP CREATE s g 0", "xgroup-create s"),
    ("XREADGROUP GROUP g ann STREAMS s >", "xgroup-createconsumer s"),
    ("XACKDEL s g IDS 1 1-0", "xdel s"),
    ("XACKDEL s g IDS 1 1-0", ""),
    ("XDELEX s ACKED IDS 1 2-0", ""),
    ("XDELEX s DELREF IDS 1 2-0", "xdel s"),
    ("XDELEX s IDS 1 2-0", ""),
    ("XTRIM s MAXLEN 0 ACKED", ""),
    ("XTRIM s MAXLEN 0 DELREF", "xtrim s"),
]


def check(talk: Session, rows: list[tuple[str, str]]) -> None:
    ear, wire = talk.wire("ear"), talk.wire()
    ear("PSUBSCRIBE __key*")
    for number, (command, expected) in enumerate(rows):
        wire(command)
        wire("PUBLISH", "__key", END)
        heard: list[str] = []
        _, _, channel, message = ear.read()
        while message != END:
            assert channel.startswith(b"__keyevent@0__:"), channel
            heard.append(f"{channel.decode().split(':', 1)[1]} {message.decode()}")
            _, _, channel, message = ear.read()
        assert ", ".join(heard) == expected, f"row {number}: {command}"


@pytest.mark.parametrize("rows", [STREAMS, STRINGS, HASHES_AND_SETS, KEYS], ids=["streams", "strings", "sets", "keys"])
def test_commands_tell_what_they_did(talk: Session, settings: Settings, rows: list[tuple[str, str]]) -> None:
    settings("notify-keyspace-events", "EA")
    check(talk, rows)


def test_new_keys_are_told_first(talk: Session, settings: Settings) -> None:
    settings("notify-keyspace-events", "EAn")
    check(talk, NEW)


def test_keys_that_were_asked_for_in_vain(talk: Session, settings: Settings) -> None:
    settings("notify-keyspace-events", "Em")
    check(talk, MISSED)


@pytest.mark.since("8.6")
def test_values_that_gave_way_to_others(talk: Session, settings: Settings) -> None:
    settings("notify-keyspace-events", "EAoc")
    check(talk, OVERWRITTEN)


@pytest.mark.since("8.6")
def test_deleting_by_policy_is_told_when_something_went(talk: Session, settings: Settings) -> None:
    settings("notify-keyspace-events", "EA")
    check(talk, POLICIES)


def test_restored_keys(talk: Session, settings: Settings) -> None:
    settings("notify-keyspace-events", "Eg")
    ear, wire = talk.wire("ear"), talk.wire()
    wire("SET a 1")
    payload = wire("DUMP a")
    ear("PSUBSCRIBE __key*")
    wire("RESTORE", "a", 0, payload, "REPLACE")
    wire("RESTORE", "b", 1, payload, "ABSTTL")
    wire("RESTORE", "a", 1, payload, "REPLACE", "ABSTTL")
    wire("RESTORE", "c", 0, payload)
    events = [ear.read()[2:] for _ in range(3)]
    assert events == [
        [b"__keyevent@0__:" + event, key] for event, key in ((b"restore", b"a"), (b"del", b"a"), (b"restore", b"c"))
    ]


def test_keys_that_move_are_told_in_both_databases(talk: Session, settings: Settings) -> None:
    settings("notify-keyspace-events", "KEg")
    ear, wire = talk.wire("ear"), talk.wire()
    ear("PSUBSCRIBE __key*")
    wire("SET a 1")
    wire("MOVE a 5")
    wire("SELECT 5")
    wire("COPY a b DB 0")
    wire("DEL a")
    assert [ear.read()[2:] for _ in range(8)] == [
        [b"__keyspace@0__:a", b"move_from"],
        [b"__keyevent@0__:move_from", b"a"],
        [b"__keyspace@5__:a", b"move_to"],
        [b"__keyevent@5__:move_to", b"a"],
        [b"__keyspace@0__:b", b"copy_to"],
        [b"__keyevent@0__:copy_to", b"b"],
        [b"__keyspace@5__:a", b"del"],
        [b"__keyevent@5__:del", b"a"],
    ]


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_expired_keys_are_told_once(server: Server, talk: Session, settings: Settings, is_asked_for: bool) -> None:
    settings("notify-keyspace-events", "Exg$")
    ear, wire = talk.wire("ear"), talk.wire()
    ear("PSUBSCRIBE __key*")
    wire("SET a 1 PX 20")
    if is_asked_for:
        wait_until(lambda: wire("EXISTS a") == 0, "the key to expire")
    events = [ear.read()[2:] for _ in range(3)]
    assert events == [[b"__keyevent@0__:" + event, b"a"] for event in (b"set", b"expire", b"expired")]


def test_a_key_that_expired_is_told_before_what_follows_it(talk: Session, settings: Settings) -> None:
    settings("notify-keyspace-events", "EA")
    ear, wire = talk.wire("ear"), talk.wire()
    for command in ("MULTI", "SET a 1 PX 1", "PSETEX b 1 v", "EXEC"):
        wire(command)
    ear("PSUBSCRIBE __key*")
    wait_until(lambda: wire("SET a 1 NX") == "OK", "the key to expire")
    heard = [ear.read()[2:]]
    while heard[-1] != [b"__keyevent@0__:set", b"a"]:
        heard.append(ear.read()[2:])
    assert [event for event in heard if event[1] == b"a"][-2:] == [
        [b"__keyevent@0__:expired", b"a"],
        [b"__keyevent@0__:set", b"a"],
    ]


def test_events_inside_a_transaction_come_in_order(talk: Session, settings: Settings) -> None:
    settings("notify-keyspace-events", "EA")
    ear, wire = talk.wire("ear"), talk.wire()
    ear("PSUBSCRIBE __key*")
    for command in ("MULTI", "SET a 1", "PUBLISH __key between", "DEL a", "EXEC"):
        wire(command)
    assert [ear.read()[3] for _ in range(3)] == [b"a", b"between", b"a"]


@pytest.mark.since("7.2")
def test_a_waiting_reader_s_command_is_told_behind_the_one_that_woke_it(talk: Session, settings: Settings) -> None:
    settings("notify-keyspace-events", "EA")
    talk.wire("ear")("PSUBSCRIBE __key*")
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        waiting> XREADGROUP GROUP g ann BLOCK 0 STREAMS s >
        (blocks)
        > XADD s 1-0 f v
        waiting<
    """)
    events = [talk.wire("ear").read()[2].split(b":")[1] for _ in range(3)]
    assert events == [b"xgroup-create", b"xgroup-createconsumer", b"xadd"]


@pytest.mark.since("7.2")
def test_an_event_for_oneself_comes_behind_the_reply(talk3: Session, settings: Settings) -> None:
    settings("notify-keyspace-events", "KA")
    wire = talk3.wire()
    wire("SUBSCRIBE __keyspace@0__:a")
    assert wire("SET a 1") == "OK"
    assert wire.read() == [b"message", b"__keyspace@0__:a", b"set"]


@pytest.mark.parametrize(
    ("letters", "shown"),
    [
        ("KEA", "AKE"), ("gKE", "gKE"), ("$lshzxeKE", "$lshzxeKE"), ("EKx", "xKE"), ("g$lshzxetdK", "AK"), ("", ""),
        ("Emn", "nEm"), ("KAm", "AKm"), ("AAAA", "A"), ("dtE", "tdE"),
    ],
)  # fmt: skip
def test_the_letters_are_shown_in_redis_s_order(client: Wire, settings: Settings, letters: str, shown: str) -> None:
    settings("notify-keyspace-events", letters)
    assert client("CONFIG GET notify-keyspace-events") == [b"notify-keyspace-events", shown.encode()]


@pytest.mark.since("8.6")
@pytest.mark.parametrize(("letters", "shown"), [("co", "oc"), ("EAnoc", "AE"), ("mEcnog", "gnocEm")])
def test_the_newer_letters(client: Wire, settings: Settings, letters: str, shown: str) -> None:
    settings("notify-keyspace-events", letters)
    assert client("CONFIG GET notify-keyspace-events") == [b"notify-keyspace-events", shown.encode()]


@pytest.mark.parametrize("letters", ["KEAq", "k", "K E", "KE,A"])
def test_wrong_letters_are_refused(client: Wire, letters: str) -> None:
    refused = client("CONFIG", "SET", "notify-keyspace-events", letters)
    assert isinstance(refused, ErrorReply)
    assert refused.text.startswith(
        "ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event class character."
    )


def test_nothing_is_published_without_a_place(talk: Session, settings: Settings) -> None:
    settings("notify-keyspace-events", "A")
    ear, wire = talk.wire("ear"), talk.wire()
    ear("PSUBSCRIBE *")
    wire("SET a 1")
    wire("PUBLISH news hi")
    assert ear.read() == [b"pmessage", b"*", b"news", b"hi"]

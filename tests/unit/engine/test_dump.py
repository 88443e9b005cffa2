"""Payloads: a round trip is exact, and nothing but a whole payload is accepted."""

from __future__ import annotations

import zlib
from collections import deque

import pytest

from headrace.engine.dump import MAGIC, dump_value, is_intact, load_value
from headrace.engine.shelf import NodeLimits
from headrace.engine.stream import Stream
from support.memory import ManualClock, MemoryBroker

LIMITS = NodeLimits()


def sealed(body: bytes) -> bytes:
    """A payload with the right checksum, whatever its body says."""
    return MAGIC + body + zlib.crc32(MAGIC + body).to_bytes(4, "big")


def fields(*items: bytes) -> bytes:
    return b"".join(b"%d:%b" % (len(item), item) for item in items)


def test_a_stream_survives_with_everything_it_remembers(broker: MemoryBroker, stream: Stream) -> None:
    payload = dump_value(stream)
    loaded = load_value(payload, LIMITS)
    assert dump_value(loaded) == payload
    broker.state.databases[0].values[b"copy"] = loaded
    for question in (
        "XRANGE {} - +",
        "XINFO STREAM {} FULL COUNT 0",
        "XINFO GROUPS {}",
        "XINFO CONSUMERS {} billing",
        "XPENDING {} billing - + 100",
        "XPENDING {} billing",
    ):
        assert broker(question.format("copy")) == broker(question.format("orders")), question


def test_what_happens_next_is_the_same_to_both(broker: MemoryBroker, stream: Stream, clock: ManualClock) -> None:
    broker("COPY orders copy")
    clock.advance(s=60)
    for change in (
        "XADD {} 50000000000000-0 more 1",
        "XREADGROUP GROUP billing carl COUNT 5 STREAMS {} >",
        "XREADGROUP GROUP billing carl COUNT 5 CLAIM 1000 STREAMS {} >",
        "XAUTOCLAIM {} billing ann 0 0 COUNT 3",
        "XTRIM {} MAXLEN ~ 20",
        "XACK {} billing 11-2 12-0",
        "XGROUP DELCONSUMER {} billing bob",
        "XADD {} 50000000000001-0 more 2",
    ):
        both = [str(broker(change.format(name))).replace("copy", "orders") for name in ("orders", "copy")]
        assert both[0] == both[1], change
    values = broker.state.databases[0].values
    assert dump_value(values[b"copy"]) == dump_value(values[b"orders"])


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"text",
        b"\x00\r\n:$",
        deque([b"a", b"", b"a"]),
        {b"a", b"b", b""},
        {b"b": b"", b"": b"\r\n"},
        Stream(LIMITS),
    ],
    ids=["empty string", "string", "bytes", "list", "set", "hash", "empty stream"],
)
def test_every_type_survives(value: object) -> None:
    payload = dump_value(value)
    assert is_intact(payload)
    loaded = load_value(payload, LIMITS)
    assert type(loaded) is type(value)
    assert dump_value(loaded) == payload
    if not isinstance(value, Stream):
        assert loaded == value


def test_no_damaged_byte_goes_unnoticed(stream: Stream) -> None:
    payload = dump_value(stream)
    for position in range(0, len(payload), 7):
        damaged = bytearray(payload)
        damaged[position] ^= 0x21
        assert not is_intact(bytes(damaged))


def test_no_part_of_a_payload_is_a_payload(stream: Stream) -> None:
    payload = dump_value(stream)
    for size in [*range(60), len(payload) // 2, len(payload) - 1]:
        assert not is_intact(payload[:size])
        with pytest.raises(ValueError, match="not a headrace payload"):
            load_value(payload[:size], LIMITS)


def test_a_body_cut_anywhere_is_refused_even_with_a_right_checksum(stream: Stream) -> None:
    body = dump_value(stream)[len(MAGIC) : -4]
    for size in range(0, len(body), 11):
        with pytest.raises(ValueError, match=r"."):
            load_value(sealed(body[:size]), LIMITS)


EMPTY_STREAM = (b"stream", b"9-0", b"1", b"0-0")
ENTRY = b"*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"


def one_entry(entry: bytes, first: bytes = b"1-0") -> bytes:
    return fields(*EMPTY_STREAM, b"1", b"99", b"999", first, b"0-0", b"%d" % len(entry), entry, b"0", b"0", b"0")


def test_the_example_with_one_entry_is_accepted() -> None:
    loaded = load_value(sealed(one_entry(ENTRY)), LIMITS)
    assert loaded.length == 1 and loaded.first_id == 1 << 64


@pytest.mark.parametrize(
    "entry",
    [
        b"+OK\r\n",
        b"",
        ENTRY + b"+OK\r\n",
        ENTRY[:-2],
        ENTRY.replace(b"$1\r\na", b"$2\r\na"),
        ENTRY.replace(b"*2\r\n$1", b"*3\r\n$1"),
        ENTRY.replace(b"*2\r\n$1", b"*0\r\n$1"),
        ENTRY.replace(b"1-0", b"01-"),
        ENTRY.replace(b"$1\r\na", b"+1\r\na"),
        ENTRY.replace(b"$1\r\na", b"$01\r\na"),
    ],
)
def test_an_entry_that_would_forge_replies_is_refused(entry: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_value(sealed(one_entry(entry)), LIMITS)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        fields(b"hash", b"0"),
        fields(b"hash", b"1", b"a"),
        fields(b"hash", b"2", b"a", b"b", b"a", b"c"),
        fields(b"heap", b"0"),
        fields(b"string"),
        fields(b"string", b"a", b"b"),
        fields(b"list", b"2", b"a"),
        fields(b"list", b"-1"),
        fields(b"list", b"01", b"a"),
        fields(b"set", b"2", b"b", b"a"),
        fields(b"set", b"2", b"a", b"a"),
        b"99999999999999999999999:a",
        b"-1:a",
        b"6:string9:text",
        b"06:string4:text",
        fields(*EMPTY_STREAM, b"0", b"0", b"0", b"2", b"0"),
        one_entry(ENTRY, first=b"2-0"),
        fields(b"stream", b"0-5", b"1", b"0-0") + one_entry(ENTRY)[len(fields(*EMPTY_STREAM)) :],
        fields(*EMPTY_STREAM, *b"0 0 0 0 2 a 1-0 5 a 2-0 6 0".split()),
        fields(*EMPTY_STREAM, *b"0 0 0 0 0 1 g 0-0 0 0 0 1 0 1 1 1-0".split()),
        fields(b"list", b"0"),
        fields(b"set", b"0"),
        fields(b"zset", b"0"),
        fields(b"zset", b"1", b"a"),
        fields(b"zset", b"1", b"a", b"nan"),
        fields(b"zset", b"1", b"a", b"1"),
        fields(b"zset", b"1", b"a", b"one"),
        fields(b"zset", b"1", b"a", b"1" * 30),
        fields(b"zset", b"2", b"a", b"2.0", b"b", b"1.0"),
        fields(b"zset", b"2", b"b", b"1.0", b"a", b"1.0"),
        fields(b"zset", b"2", b"a", b"1.0", b"a", b"2.0"),
        one_entry(ENTRY.replace(b"1-0", b"0-0"), first=b"0-0"),
        fields(b"stream", b"9-0", b"0", b"0-0") + one_entry(ENTRY)[len(fields(*EMPTY_STREAM)) :],
        fields(b"stream", b"9-0", b"9223372036854775808", b"0-0", *b"0 0 0 0 0 0".split()),
        fields(*EMPTY_STREAM, *b"0 0 0 0 0 1 g 1-0 0 0 1 ann 1 1 1 0 1 9223372036854775808 1-0".split()),
        fields(*EMPTY_STREAM, *b"0 0 0 0 0 1 g 1-0 0 0 1 ann 1 1 1 0 1 1 2-0".split()),
    ],
)  # fmt: skip
def test_what_the_layout_does_not_say_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_value(sealed(body), LIMITS)


def one_delivery(names: bytes, may_repeat: bytes = b"0") -> bytes:
    return fields(*EMPTY_STREAM, *b"0 0 0 0 0 1 g 1-5 0".split(), may_repeat, *b"1 ann 1 1 1 0 1 1".split(), names)


@pytest.mark.parametrize("names", [b"1-0", b"1-0,0-7,1-5", b"1-0,0-18446744073709551615", b"0-0"])
def test_pending_names_are_accepted_whatever_their_order(names: bytes) -> None:
    loaded = load_value(sealed(one_delivery(names)), LIMITS)
    assert list(loaded.groups[b"g"].pending.unfolded) == names.split(b",")


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (b"", "not an entry ID"),
        (b"1-0,", "not an entry ID"),
        (b"1-0,,1-1", "not an entry ID"),
        (b"1-0,01-1", "not an entry ID"),
        (b"1-0, 1-1", "not an entry ID"),
        (b"1-0\n", "not an entry ID"),
        (b"1", "not an entry ID"),
        (b"1-18446744073709551616", "not an entry ID"),
        (b"1-0,1-1,1-0", "pending twice"),
        (b"1-0,1-6,1-1", "not delivered yet"),
    ],
)
def test_pending_names_that_are_none_are_refused(names: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        load_value(sealed(one_delivery(names)), LIMITS)


def test_names_behind_the_last_delivered_one_may_be_pending_where_the_group_was_set_back() -> None:
    last = b"18446744073709551615-18446744073709551615"
    loaded = load_value(sealed(one_delivery(last, may_repeat=b"1")), LIMITS)
    assert list(loaded.groups[b"g"].pending.unfolded) == [last]


def test_a_copy_remembers_what_was_deleted_from_the_end_of_a_node(broker: MemoryBroker) -> None:
    broker("CONFIG SET stream-node-max-entries 3")
    for number in (1, 2, 4):
        broker(f"XADD s {number}-0 f v")
    broker("XDEL s 4-0")
    broker("COPY s t")

    broker("XADD t MINID ~ 3-0 5-0 f w")

    assert broker("XLEN t") == 3


def test_a_copy_can_be_made_whatever_the_settings_and_counters_are(broker: MemoryBroker) -> None:
    top = 2**63 - 1
    broker(f"CONFIG SET stream-node-max-bytes {top} stream-node-max-entries {top}")
    broker("XADD s 1-0 f v")
    broker(f"XSETID s 1-0 ENTRIESADDED {top}")
    broker(f"XGROUP CREATE s g 1-0 ENTRIESREAD {top}")
    broker("XADD s 2-0 f v")
    broker("XREADGROUP GROUP g ann STREAMS s >")

    assert broker("COPY s t") == 1
    assert broker("RESTORE", "u", 0, broker("DUMP s")) == b"OK"
    for key in ("s", "t", "u"):
        assert broker(f"XINFO STREAM {key}")[11] == top
        assert broker(f"XINFO GROUPS {key}")[0][9] == top

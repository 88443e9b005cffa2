"""Parts and frames become memory, each effect once; what does not fit is refused and named."""

from __future__ import annotations

from collections import deque

import pytest

from headrace.commands.call import State
from headrace.commands.recovery import Recovery
from headrace.engine.snapshot import absent_part, dump_part
from headrace.engine.stream import Stream
from headrace.journal.record import CLEAR, MOVE, PUSH, REMOVE, RENAME, SWAP, encode_append, encode_record
from headrace.wire.encoder import encode_bulk, encode_entry
from support.shelf import Shelf


def value_at(recovery: Recovery, key: bytes) -> object:
    return recovery.state.databases[0].values.get(key)


def push(key: bytes, element: bytes) -> bytes:
    return encode_record(PUSH, 0, key, b"right", element)


def add(key: bytes, name: bytes, *words: bytes, database: int = 0) -> bytes:
    return encode_append(database, key, encode_entry(encode_bulk(name), list(words), 0))


def entries_at(recovery: Recovery, key: bytes) -> bytes:
    stream = value_at(recovery, key)
    assert isinstance(stream, Stream)
    return b"".join([node.joined() for node in stream.nodes])


def part_of(key: bytes, elements: list[bytes], sequence: int) -> bytes:
    return dump_part(0, key, deque(elements), 0, sequence, Shelf())


def test_a_frame_is_skipped_for_the_keys_whose_parts_are_as_new() -> None:
    recovery = Recovery(State(0), 4)
    recovery.part(part_of(b"early", [b"a"], 5))
    recovery.part(part_of(b"late", [b"a", b"b"], 6))
    recovery.part(absent_part(0, b"gone", 6))

    assert recovery.frame(4, push(b"late", b"a")) == 0
    assert recovery.frame(5, push(b"early", b"a") + push(b"gone", b"a")) == 0
    assert recovery.frame(6, push(b"early", b"b") + push(b"late", b"b") + encode_record(REMOVE, 0, b"gone")) == 1
    assert recovery.frame(7, push(b"late", b"c") + push(b"gone", b"x") + push(b"new", b"n")) == 3

    assert value_at(recovery, b"early") == deque([b"a", b"b"])
    assert value_at(recovery, b"late") == deque([b"a", b"b", b"c"])
    assert value_at(recovery, b"gone") == deque([b"x"])
    assert value_at(recovery, b"new") == deque([b"n"])


def test_the_expiry_of_a_part_counts() -> None:
    recovery = Recovery(State(0))
    recovery.part(dump_part(2, b"k", b"text", 99, 1, Shelf()))

    assert recovery.state.databases[2].expires_ms == {b"k": 99}


def test_without_a_checkpoint_every_frame_counts() -> None:
    recovery = Recovery(State(0))

    assert recovery.frame(1, push(b"l", b"a") + encode_record(RENAME, 0, b"l", b"m")) == 2
    assert value_at(recovery, b"l") is None


def test_entries_are_added_again_byte_by_byte_whatever_they_hold() -> None:
    recovery = Recovery(State(0))
    odd = [b"", b"\r\n", add(b"s", b"9-9", b"f", b"v"), b"x" * 1000, b"$5\r\n", b"*4\r\n"]
    entries = [encode_entry(encode_bulk(b"%d-0" % number), odd[:number], 0) for number in (2, 4, 6)]

    frame = b"".join([encode_append(0, b"s", entry) for entry in entries])
    assert (
        recovery.frame(1, frame + add(b"t", b"1-0", b"a", b"b") + push(b"l", b"a") + add(b"t", b"2-0", b"c", b"d")) == 6
    )

    assert entries_at(recovery, b"s") == b"".join(entries)
    assert entries_at(recovery, b"t").count(b"-0") == 2
    assert value_at(recovery, b"l") == deque([b"a"])


def test_entries_that_a_part_has_are_not_added_twice() -> None:
    recovery = Recovery(State(0), 4)
    recovery.part(absent_part(0, b"s", 6))
    recovery.part(absent_part(0, b"t", 5))

    assert recovery.frame(6, add(b"s", b"1-0", b"f", b"v") + add(b"t", b"1-0", b"f", b"v")) == 1
    assert recovery.frame(7, add(b"s", b"2-0", b"f", b"v") + add(b"t", b"2-0", b"f", b"v")) == 2

    assert entries_at(recovery, b"s").count(b"-0") == 1
    assert entries_at(recovery, b"t").count(b"-0") == 2


def test_entries_go_to_the_stream_that_is_there_now() -> None:
    recovery = Recovery(State(0))
    recovery.frame(1, add(b"s", b"1-0", b"f", b"v"))
    recovery.frame(2, encode_record(REMOVE, 0, b"s"))
    recovery.frame(3, add(b"s", b"2-0", b"f", b"v"))

    assert entries_at(recovery, b"s").count(b"-0") == 1


@pytest.mark.parametrize("size", range(1, len(add(b"s", b"1-0", b"f", b"value"))))
def test_half_an_entry_is_refused(size: int) -> None:
    whole = add(b"s", b"1-0", b"f", b"value")
    with pytest.raises(ValueError, match="cut off"):
        Recovery(State(0)).frame(1, whole + whole[:size])


def test_a_key_is_in_the_checkpoint_once() -> None:
    recovery = Recovery(State(0))
    recovery.part(part_of(b"l", [b"a"], 1))
    with pytest.raises(ValueError, match="is in the checkpoint twice"):
        recovery.part(absent_part(0, b"l", 2))


def test_a_part_from_before_the_checkpoint_is_refused() -> None:
    with pytest.raises(ValueError, match="before the checkpoint began"):
        Recovery(State(0), 7).part(part_of(b"l", [b"a"], 6))


def test_frames_come_in_order() -> None:
    recovery = Recovery(State(0))
    recovery.frame(5, push(b"l", b"a"))
    with pytest.raises(ValueError, match="frame 5 comes after frame 5"):
        recovery.frame(5, push(b"l", b"a"))


@pytest.mark.parametrize(
    "record",
    [
        encode_record(RENAME, 0, b"l", b"m"),
        encode_record(MOVE, 0, b"l", b"1"),
        encode_record(SWAP, 0, b"1"),
        encode_record(CLEAR, 0),
    ],
)
def test_a_structural_record_cannot_lie_between_the_parts(record: bytes) -> None:
    recovery = Recovery(State(0), 1)
    recovery.part(part_of(b"l", [b"a"], 3))
    with pytest.raises(ValueError, match="while the checkpoint was written"):
        recovery.frame(2, record)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (encode_record(b"new-kind", 0, b"k"), "newer headrace"),
        (encode_record(MOVE, 0, b"absent", b"1"), "of frame 1 does not fit what is there"),
        (encode_record(PUSH, 16, b"k", b"right", b"a"), "of frame 1 does not fit what is there"),
        (push(b"l", b"a")[:-1], "cut off"),
        (push(b"l", b"a") + add(b"l", b"1-0", b"f", b"v"), "of frame 1 does not fit what is there"),
        (add(b"s", b"x", b"f", b"v"), "of frame 1 does not fit what is there"),
        (add(b"s", b"1-0", b"f", b"v").replace(b"$1\r\n0", b"$2\r\n16"), "of frame 1 does not fit what is there"),
        (b"*4\r\n$6\r\nappend\r\n$-9\r\n", "."),
        (b"*4\r\n$6\r\nappend\r\n$1\r\n0\r\n$1\r\ns\r\n*2\r\n$1\r\nx\r\n:1\r\n", "does not fit"),
        (b"*1\r\n+x\r\n", "something among the records is none"),
        (b":5\r\n", "something among the records is none"),
        (b"-ERR\r\n", "something among the records is none"),
        (b"junk", "Protocol error"),
    ],
)
def test_records_that_do_not_fit_are_refused(payload: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Recovery(State(0)).frame(1, payload)


def test_a_damaged_part_is_refused() -> None:
    with pytest.raises(ValueError, match="no field begins"):
        Recovery(State(0)).part(b"junk")

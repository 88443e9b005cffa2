"""Parts and frames become memory, each effect once; what does not fit is refused and named."""

from __future__ import annotations

from collections import deque

import pytest

from headrace.commands.call import State
from headrace.commands.recovery import Recovery
from headrace.engine.snapshot import absent_part, dump_part
from headrace.journal.record import CLEAR, MOVE, PUSH, REMOVE, RENAME, SWAP, encode_record
from support.shelf import Shelf


def value_at(recovery: Recovery, key: bytes) -> object:
    return recovery.state.databases[0].values.get(key)


def push(key: bytes, element: bytes) -> bytes:
    return encode_record(PUSH, 0, key, b"right", element)


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

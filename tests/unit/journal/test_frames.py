"""Frames: written whole, read back whole, and never taken for what they are not."""

import zlib
from random import Random

import pytest

from headrace.errors import NewerFormat
from headrace.journal.frames import (
    CHECKSUM,
    FRAME_BYTES,
    HEADER,
    FrameReader,
    Opening,
    encode_frame,
    find_frames,
    parse_opening,
    seed_of,
)
from support.fake_disk import FakeDisk, FakeFile

SEED = seed_of("log-00000001")


def file_of(data: bytes) -> FakeFile:
    disk = FakeDisk(Random(0))
    file = disk.create("log-00000001")
    file.content.data += data
    return file


def frame(sequence: int, payload: bytes, synced: int = 0) -> bytes:
    return b"".join(encode_frame(SEED, sequence, payload, synced))


def test_frames_come_back_in_order_with_their_places() -> None:
    payloads = [b"one", b"", b"x" * 3_000_000, b"HRF1"]
    data = b"".join(frame(number, payload, number * 7) for number, payload in enumerate(payloads))
    reader = FrameReader(file_of(data), SEED)

    found = [reader.next() for _ in payloads]

    assert [(one.sequence, one.synced, one.payload) for one in found if one] == [
        (number, number * 7, payload) for number, payload in enumerate(payloads)
    ]
    assert found[-1] is not None and found[-1].end == len(data)
    assert reader.next() is None and reader.problem == ""


def test_every_changed_byte_is_noticed() -> None:
    data = frame(1, b"a payload")
    for place in range(len(data)):
        for bit in (1, 128):
            harmed = bytearray(data)
            harmed[place] ^= bit
            reader = FrameReader(file_of(bytes(harmed)), SEED)
            assert reader.next() is None and reader.problem


def test_every_cut_is_noticed() -> None:
    data = frame(1, b"a payload")
    for size in range(1, len(data)):
        reader = FrameReader(file_of(data[:size]), SEED)
        assert reader.next() is None and reader.problem


def test_a_frame_of_another_file_is_none() -> None:
    reader = FrameReader(file_of(frame(1, b"a payload")), seed_of("log-00000002"))

    assert reader.next() is None


@pytest.mark.parametrize("between", [b"", b"HRF1", b"\0" * 100, b"HRF1" * 50, frame(7, b"torn")[:-1]])
def test_frames_are_found_behind_anything(between: bytes) -> None:
    data = between + frame(2, b"two") + between + frame(3, b"three")

    assert [one.payload for one in find_frames(file_of(data), SEED, 0)] == [b"two", b"three"]


def test_frames_are_found_over_the_ends_of_what_is_read_at_once() -> None:
    for size in range(1024 * 1024 - 50, 1024 * 1024 + 4, 3):
        data = b"\1" * size + frame(9, b"nine")
        assert [one.offset for one in find_frames(file_of(data), SEED, 0)] == [size]


def test_an_opening_says_what_a_file_is() -> None:
    assert parse_opening(Opening("log", 12, 4711).encode()) == Opening("log", 12, 4711)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "not the beginning"),
        (b"headrace log 1 12", "not the beginning"),
        (b"headrace log 1 12 x", "not the beginning"),
        (b"another log 1 12 0", "not the beginning"),
    ],
)
def test_any_other_opening_is_refused(payload: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_opening(payload)


def test_a_newer_format_is_told_from_damage() -> None:
    with pytest.raises(NewerFormat, match="written in format 2, and this version of headrace knows format 1"):
        parse_opening(b"headrace log 2 12 0")
    header = HEADER.pack(b"HRF2", 3, 1, 0, 0)
    newer = header + CHECKSUM.pack(zlib.crc32(header, SEED)) + b"abc"
    with pytest.raises(NewerFormat, match="format 2"):
        FrameReader(file_of(newer), SEED).next()
    for place in range(len(header)):
        flipped = newer[:place] + bytes([newer[place] ^ 4]) + newer[place + 1 :]
        assert FrameReader(file_of(flipped), SEED).next() is None


def test_the_size_of_a_frame_is_known() -> None:
    assert len(frame(1, b"12345")) == FRAME_BYTES + 5

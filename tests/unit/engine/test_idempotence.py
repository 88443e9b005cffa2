"""Messages a stream has seen before, by producer, for a while."""

from __future__ import annotations

import pytest

from headrace.engine.idempotence import Idempotence, digest_fields

NOW_MS = 1_000_000
ENTRY = NOW_MS << 64


def test_a_message_seen_before_is_recognised() -> None:
    known = Idempotence(100, 10)
    known.record(b"p", b"m", ENTRY)

    assert known.find(b"p", b"m", NOW_MS) == ENTRY


def test_producers_do_not_share_their_messages() -> None:
    known = Idempotence(100, 10)
    known.record(b"p", b"m", ENTRY)

    assert known.find(b"q", b"m", NOW_MS) == 0
    assert known.find(b"p", b"n", NOW_MS) == 0


def test_a_message_is_forgotten_when_its_time_is_over() -> None:
    known = Idempotence(100, 10)
    known.record(b"p", b"m", ENTRY)

    assert known.find(b"p", b"m", NOW_MS + 99_999) == ENTRY
    assert known.find(b"p", b"m", NOW_MS + 100_000) == 0


def test_only_the_newest_messages_of_a_producer_are_kept() -> None:
    known = Idempotence(100, 3)
    for number in range(5):
        known.record(b"p", b"m%d" % number, ENTRY + number)

    assert [known.find(b"p", b"m%d" % number, NOW_MS) for number in range(5)] == [0, 0, ENTRY + 2, ENTRY + 3, ENTRY + 4]
    assert known.count_records() == 3
    assert known.added == 5


def test_a_producer_without_messages_is_forgotten() -> None:
    known = Idempotence(100, 10)
    known.record(b"p", b"m", ENTRY)
    known.expire(NOW_MS + 100_000)

    assert known.producers == {}


@pytest.mark.parametrize(("duration_s", "max_size", "kept"), [(100, 10, 1), (200, 10, 0), (100, 20, 0)])
def test_new_limits_forget_everything_and_the_same_limits_nothing(duration_s: int, max_size: int, kept: int) -> None:
    known = Idempotence(100, 10)
    known.record(b"p", b"m", ENTRY)
    known.configure(duration_s, max_size)

    assert known.count_records() == kept


def test_the_digest_does_not_depend_on_the_order_of_fields() -> None:
    assert digest_fields([b"a", b"1", b"b", b"2"], 0) == digest_fields([b"b", b"2", b"a", b"1"], 0)


@pytest.mark.parametrize(
    "words",
    [[b"a", b"12"], [b"a1", b"2"], [b"a", b"1", b"a", b"1"], [b"b", b"1", b"a", b"2"], [b"", b"a1"], [b"a", b"2"]],
)
def test_different_fields_have_different_digests(words: list[bytes]) -> None:
    assert digest_fields(words, 0) != digest_fields([b"a", b"1"], 0)
    assert digest_fields(words, 0) != digest_fields([b"a", b"1", b"b", b"2"], 0)

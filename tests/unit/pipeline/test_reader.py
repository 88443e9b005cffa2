"""What a reader makes of replies: how far a page goes, how much to ask for next, and what was lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import ProtocolError
from headrace.pipeline import reader
from headrace.pipeline.ranges import Slice
from headrace.pipeline.reader import LossCheck, Reading, find_loss, guess_last_id, parse_length
from support.pages import encode_reply

PIECE = Slice("orders", "10-0", "50-0", first="11-0", deleted="5-0")


def info(first, deleted="0-0"):
    facts = {b"first-entry": [first.encode(), [b"a", b"b"]] if first else None}
    if deleted is not None:
        facts[b"max-deleted-entry-id"] = deleted.encode()
    return facts


@pytest.mark.parametrize(
    ("after", "next_id", "facts", "words"),
    [
        ("10-0", "11-0", info("1-0"), None),
        ("10-0", "11-0", info("11-0"), None),
        ("10-0", "11-0", info("12-0"), "it begins with 12-0 now"),
        ("10-0", "11-0", info(None), "the stream is empty now"),
        ("10-0", "60-0", info("70-0"), None),
        ("10-0", None, info("30-0"), None),
        ("10-0", None, None, "the stream is gone, it was deleted"),
        ("10-0", None, info("1-0", "5-0"), None),
        ("10-0", None, info("1-0", "10-0"), None),
        ("10-0", None, info("1-0", "11-0"), "11-0 was deleted, perhaps others"),
        ("10-0", None, info("1-0", "50-0"), "50-0 was deleted, perhaps others"),
        ("10-0", None, info("1-0", "50-1"), None),
        ("30-0", "31-0", info("1-0", "30-0"), None),
        ("30-0", "31-0", info("32-0", None), "it begins with 32-0 now"),
        ("30-0", "31-0", info("31-0", None), None),
    ],
)
def test_lost_entries_are_told_by_the_first_one_left_and_the_highest_deleted(after, next_id, facts, words):
    assert find_loss(PIECE, after, next_id, facts) == words


def test_what_was_deleted_when_the_slice_was_planned_is_no_loss():
    piece = Slice("orders", "10-0", "50-0", deleted="20-0")

    assert find_loss(piece, "10-0", None, info("1-0", "20-0")) is None
    assert find_loss(piece, "10-0", None, info("1-0", "20-1")) is not None


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**64 - 1), st.lists(st.tuples(st.binary(max_size=5), st.binary(max_size=5)), min_size=1)
        ),
        min_size=1,
        max_size=5,
    )
)
def test_the_last_id_is_seen_without_decoding_the_page(entries):
    reply = memoryview(encode_reply([(b"%d-7" % ms, pairs) for ms, pairs in entries]))

    assert guess_last_id(reply) == f"{entries[-1][0]}-7"
    assert parse_length(reply) == len(entries)


def test_no_id_is_guessed_where_the_last_entry_is_too_large_to_see_its_beginning():
    reply = memoryview(encode_reply([(b"1-0", [(b"blob", b"x" * reader.TAIL_BYTES)])]))

    assert guess_last_id(reply) is None


def test_an_answer_that_is_no_list_is_refused():
    with pytest.raises(ProtocolError):
        parse_length(memoryview(b"+OK\r\n"))


@pytest.mark.parametrize(
    ("count", "entry_bytes", "info_bytes", "expected"),
    [
        (0, 100, 200, 100),  # At first no more than a hundred.
        (100, 100, 200, 800),  # Then more and more,
        (3000, 100, 200, 5000),  # up to the limit.
        (5000, 10_000, 200, 209),  # About two megabytes a page,
        (100, 1 << 20, 2 << 20, 16),  # more where XINFO itself is large,
        (100, 100 << 20, 200 << 20, 2),  # and always two entries at least.
    ],
)
def test_pages_grow_to_about_two_megabytes(count, entry_bytes, info_bytes, expected):
    reading = Reading("redis://localhost", PIECE, 5000, LossCheck(), 10.0)
    reading.count = count

    reading.adapt(entry_bytes, info_bytes)

    assert reading.count == expected

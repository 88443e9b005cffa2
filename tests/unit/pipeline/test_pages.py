"""A reply to XRANGE is read as what it holds, the fast way and the slow way."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace import ProtocolError
from headrace.pipeline import pages
from headrace.pipeline.pages import Page, parse_lines, parse_objects, parse_page
from support.pages import encode_reply, page_of

MAX_PART = 2**64 - 1
ODD_WORDS = [
    b"", b"\r\n", b"\r", b"\n", b"\r\n\r\n", b"*", b"*2", b"*2\r\n", b"$", b"$1\r\nx\r\n", b"-1", b"$-1\r\n", b"*-1",
    b"*2\r\n$3\r\n9-9\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n", b"\xff\xfe", "é".encode(), b"x" * 999, b"x" * 1000,
    b"*\r\n*\r\n*",
]  # fmt: skip
words = st.sampled_from(ODD_WORDS) | st.binary(max_size=12) | st.sampled_from([b"user", b"amount", b"key", b"data"])
ids = st.builds(lambda ms, seq: b"%d-%d" % (ms, seq), st.integers(0, MAX_PART), st.integers(0, MAX_PART))
pairs_of_an_entry = st.lists(st.tuples(words, words), max_size=5)
unhurried = settings(deadline=None)  # A busy machine is no bug.
entries_of_a_page = st.lists(st.tuples(ids, pairs_of_an_entry), max_size=8)


def content(page: Page) -> list[tuple[bytes, list[tuple[bytes, bytes]]]]:
    ids, names, values = page.ids.to_pylist(), page.names.to_pylist(), page.values.to_pylist()
    offsets = page.pair_offsets.tolist()
    return [
        (ids[place], list(zip(names[begin:end], values[begin:end], strict=True)))
        for place, (begin, end) in enumerate(pairwise(offsets))
    ]


@unhurried
@given(entries_of_a_page)
@example([(b"0-1", [(b"a", b"x\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na")])])
@example([(b"1-0", [(b"a", b"b\r\nc")]), (b"2-0", [])])
@example([(b"1-0", [(b"a", b"1"), (b"b", b"2")]), (b"2-0", [(b"a", b"1\r\n$1\r\nb\r\n$1\r\n2")])])
def test_a_page_holds_what_the_server_sent_whatever_it_is(entries):
    reply = encode_reply(entries)

    assert content(parse_page(reply)) == entries
    assert content(parse_objects(reply)) == entries
    quick = parse_lines(reply)
    assert quick is None or content(quick) == entries


@unhurried
@given(st.lists(st.tuples(ids, st.lists(st.tuples(words, words), max_size=5)), max_size=8))
def test_words_without_line_ends_never_need_the_slow_way(entries):
    entries = [
        (entry_id, [(name.replace(b"\r\n", b""), value.replace(b"\r\n", b"")) for name, value in pairs])
        for entry_id, pairs in entries
    ]

    assert parse_lines(encode_reply(entries)) is not None


@unhurried
@given(st.lists(st.tuples(st.integers(0, MAX_PART), st.integers(0, MAX_PART)), max_size=20))
@example([(0, 1), (MAX_PART, MAX_PART), (0, 0)])
def test_both_halves_of_an_id_are_numbers_of_64_bits(halves):
    page = parse_page(encode_reply([(b"%d-%d" % half, [(b"n", b"1")]) for half in halves]))

    assert list(zip(page.ms.tolist(), page.seq.tolist(), strict=True)) == halves
    assert page.ms.dtype == page.seq.dtype == np.uint64


@unhurried
@given(entries_of_a_page, words)
def test_the_last_pair_of_a_name_is_found_in_every_entry(entries, name):
    expected = [dict(pairs).get(name) for _, pairs in entries]

    assert parse_page(encode_reply(entries)).last_values(name).to_pylist() == expected


@unhurried
@given(st.lists(words, max_size=4), st.lists(st.binary(max_size=5), min_size=1, max_size=5), words)
def test_the_last_pair_of_a_name_is_found_where_all_entries_have_the_same_names(names, values, name):
    page = page_of(*([(one, value) for one in names] for value in values))

    assert page.shared_names == names
    expected = [value if name in names else None for value in values]
    assert page.last_values(name).to_pylist() == expected


def test_names_are_not_shared_when_only_their_bytes_together_are_the_same():
    page = page_of([(b"ab", b"1"), (b"c", b"2")], [(b"a", b"3"), (b"bc", b"4")])

    assert page.shared_names is None
    assert page.last_values(b"c").to_pylist() == [b"2", None]


@unhurried
@given(entries_of_a_page, st.data())
def test_the_head_of_a_page_is_its_first_entries(entries, data):
    count = data.draw(st.integers(0, len(entries)))

    head = parse_page(encode_reply(entries)).head(count)

    assert head.count == count
    assert content(head) == entries[:count]
    if count:
        assert head.last_id == entries[count - 1][0].decode()


def test_a_value_of_many_megabytes_is_read_whole():
    value = bytes(range(256)) * (20 * 4096)

    page = parse_page(encode_reply([(b"1-0", [(b"a", value)]), (b"2-0", [(b"a", b"")])]))

    assert page.values.to_pylist() == [value, b""]


def test_a_page_may_be_empty():
    page = parse_page(b"*0\r\n")

    assert page.count == 0
    assert content(page) == []
    assert page.last_values(b"key").to_pylist() == []
    assert page.ms.tolist() == []


@pytest.mark.parametrize("reply", [b"*-1\r\n", b"$-1\r\n", b"+OK\r\n", b":1\r\n"])
def test_an_answer_that_is_no_list_of_entries_is_refused(reply):
    with pytest.raises(ProtocolError):
        parse_page(reply)


def test_a_reply_beyond_the_offsets_of_a_column_is_refused(monkeypatch):
    monkeypatch.setattr(pages, "MAX_BYTES", 10)

    with pytest.raises(ProtocolError, match="too large"):
        parse_page(encode_reply([(b"1-0", [(b"a", b"b")])]))

"""What is written of a node comes back as it was, and nothing else does."""

from __future__ import annotations

import os
from array import array
from itertools import accumulate, pairwise

import pytest

from headrace.engine.shelf import (
    KEPT_BYTES,
    KEPT_NODES,
    NOWHERE,
    NodeLimits,
    decode_node,
    encode_node,
    join_place,
    split_place,
)
from headrace.errors import HeadraceError
from support.shelf import Shelf

WORDS = [b"tea", b"", b"milk" * 1000]
NOISE = [os.urandom(30), os.urandom(3)]


def written(entries: list[bytes]) -> bytes:
    return encode_node((b"".join(entries), array("I", accumulate(map(len, entries), initial=0))))


@pytest.mark.parametrize(("entries", "codec"), [(WORDS, b"z"), (NOISE, b"p"), ([b"x"], b"p")])
def test_a_node_comes_back_and_names_its_codec(entries: list[bytes], codec: bytes) -> None:
    data = written(entries)
    joined, offsets = decode_node(data)

    assert data[:1] == codec
    assert [joined[low:high] for low, high in pairwise(offsets)] == entries


@pytest.mark.parametrize("entries", [WORDS, NOISE])
def test_a_node_that_was_cut_or_has_bytes_behind_it_is_refused(entries: list[bytes]) -> None:
    data = written(entries)
    for size in range(len(data)):
        with pytest.raises(ValueError, match="stored node"):
            decode_node(data[:size])
    if data[:1] == b"p":
        with pytest.raises(ValueError, match="do not add up"):
            decode_node(data + b"x")


@pytest.mark.parametrize("data", [b"", b"l" + written(NOISE)[1:], b"zjunk", b"p\xff\xff\xff\xff"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="stored node"):
        decode_node(data)


@pytest.mark.parametrize("place", [(1, 0, 1), (2**32 - 1, 2**48 - 1, 2**32 - 1), (7, 300, 16384)])
def test_a_place_is_one_integer_and_back(place: tuple[int, int, int]) -> None:
    joined = join_place(*place)

    assert joined != NOWHERE
    assert split_place(joined) == place


@pytest.mark.parametrize("place", [(0, 0, 1), (1, 0, 0), (1, -1, 1), (2**32, 0, 1), (1, 2**48, 1), (1, 0, 2**32)])
def test_what_cannot_be_a_place_is_refused(place: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="is no place"):
        join_place(*place)


def test_a_node_that_was_just_fetched_is_not_fetched_again() -> None:
    limits = NodeLimits()
    shelf = Shelf(limits)
    place = join_place(*shelf(written(WORDS)))

    assert limits.fetch_entries(place, 3) == limits.fetch_entries(place, 3)
    assert shelf.fetches == 1


def test_few_fetched_nodes_stay_in_memory_and_no_large_ones() -> None:
    limits = NodeLimits()
    shelf = Shelf(limits)
    for number in range(KEPT_NODES * 3):
        limits.fetch_entries(join_place(*shelf(written([b"%d" % number]))), 1)
    large = join_place(*shelf(written([b"x" * (KEPT_BYTES + 1)])))
    limits.fetch_entries(large, 1)

    assert len(limits.kept) == KEPT_NODES
    assert large not in limits.kept


def test_another_shelf_may_have_other_bytes_at_the_same_place() -> None:
    limits = NodeLimits()
    place = join_place(*Shelf(limits)(written([b"tea"])))
    assert limits.fetch_entries(place, 1)[0] == b"tea"
    assert join_place(*Shelf(limits)(written([b"pie"]))) == place

    assert limits.fetch_entries(place, 1)[0] == b"pie"


def test_a_node_of_another_count_is_refused() -> None:
    limits = NodeLimits()
    place = join_place(*Shelf(limits)(written(WORDS)))
    with pytest.raises(ValueError, match="a node of 2 entries is stored with 3"):
        limits.fetch_entries(place, 2)


def test_a_broker_without_a_disk_says_so() -> None:
    with pytest.raises(HeadraceError, match="nothing lies on disk"):
        NodeLimits().fetch_entries(join_place(1, 2, 3), 1)

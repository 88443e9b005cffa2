"""Verbs on a list, held against plain Python lists."""

from __future__ import annotations

from collections import deque
from random import Random

import pytest

from headrace.engine.lists import (
    LEFT,
    RIGHT,
    find_bounds,
    find_places,
    insert_element,
    move_element,
    put_elements,
    remove_elements,
    slice_elements,
    take_elements,
)

LETTERS = [b"a", b"b", b"c"]


def random_list(random: Random) -> list[bytes]:
    return random.choices(LETTERS, k=random.randrange(1, 12))


@pytest.mark.parametrize("seed", range(50))
def test_every_range_is_found_from_either_end(seed: int) -> None:
    plain = [b"%d" % number for number in range(seed + 1)]
    for start in range(-seed - 3, seed + 4):
        for stop in range(-seed - 3, seed + 4, 5):
            first, last = find_bounds(len(plain), start, stop)
            wanted = plain[max(0, start + len(plain)) if start < 0 else start :]
            wanted = wanted[: max(0, (stop + len(plain) if stop < 0 else stop) + 1 - (len(plain) - len(wanted)))]
            found = slice_elements(deque(plain), first, last) if first <= last else []
            assert found == wanted


@pytest.mark.parametrize("seed", range(50))
def test_removing_counts_from_the_side_that_was_asked_for(seed: int) -> None:
    random = Random(seed)
    plain = random_list(random)
    for count in (-3, -1, 0, 1, 2, 99):
        places = [place for place, element in enumerate(plain) if element == b"a"]
        gone = places[count:] if count < 0 else places[: count or None]
        elements = deque(plain)
        assert remove_elements(elements, b"a", count) == len(gone)
        assert list(elements) == [element for place, element in enumerate(plain) if place not in gone]


@pytest.mark.parametrize("seed", range(50))
def test_places_are_counted_from_the_left_whichever_way_one_looks(seed: int) -> None:
    random = Random(seed)
    plain = random_list(random)
    places = [place for place, element in enumerate(plain) if element == b"b"]
    for rank in (1, 2, 3):
        for count in (0, 1, 2):
            assert find_places(deque(plain), b"b", rank, count, 0) == places[rank - 1 :][: count or None]
            assert find_places(deque(plain), b"b", -rank, count, 0) == places[::-1][rank - 1 :][: count or None]
    assert find_places(deque(plain), b"b", 1, 0, 4) == [place for place in places if place < 4]
    assert find_places(deque(plain), b"b", -1, 0, 4) == [place for place in places[::-1] if place >= len(plain) - 4]


def test_pushing_and_taking_at_both_ends() -> None:
    elements = deque([b"m"])
    put_elements(elements, LEFT, [b"b", b"a"])
    put_elements(elements, RIGHT, [b"y", b"z"])
    assert list(elements) == [b"a", b"b", b"m", b"y", b"z"]
    assert take_elements(elements, RIGHT, 2) == [b"z", b"y"]
    assert take_elements(elements, LEFT, 9) == [b"a", b"b", b"m"]
    assert not elements


def test_inserting_beside_the_first_pivot() -> None:
    elements = deque([b"a", b"b", b"a"])
    assert insert_element(elements, b"a", b"x", is_after=True) == 1
    assert insert_element(elements, b"b", b"y", is_after=False) == 2
    assert insert_element(elements, b"missing", b"z", is_after=True) == -1
    assert list(elements) == [b"a", b"x", b"y", b"b", b"a"]


def test_an_element_moves_between_lists_and_round_one() -> None:
    source, target = deque([b"a", b"b"]), deque([b"c"])
    assert move_element(source, target, LEFT, RIGHT) == b"a"
    assert (list(source), list(target)) == ([b"b"], [b"c", b"a"])
    assert move_element(target, target, RIGHT, LEFT) == b"a"
    assert list(target) == [b"a", b"c"]

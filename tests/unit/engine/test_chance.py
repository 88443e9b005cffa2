"""Chance: the same seed gives the same choices, and every choice comes up about as often."""

from __future__ import annotations

from collections import Counter

import pytest

from headrace.engine.chance import Chance


def test_the_same_seed_gives_the_same_choices() -> None:
    assert [Chance(7).below(1000) for _ in range(3)] == [Chance(7).below(1000)] * 3
    one, other = Chance(7), Chance(7)
    assert [one.below(10**9) for _ in range(20)] == [other.below(10**9) for _ in range(20)]
    assert Chance(8).below(10**9) != Chance(7).below(10**9)


def test_every_number_comes_up_about_as_often() -> None:
    chance = Chance(1)
    drawn = Counter(chance.below(10) for _ in range(20_000))
    assert sorted(drawn) == list(range(10))
    assert all(1800 < times < 2200 for times in drawn.values())


@pytest.mark.parametrize(("size", "count"), [(10, 3), (10, 10), (10, 50), (1, 1), (100_000, 5)])
def test_a_sample_has_different_places(size: int, count: int) -> None:
    drawn = Chance(3).sample(size, count)
    assert len(drawn) == len(set(drawn)) == min(size, count)
    assert all(0 <= place < size for place in drawn)


def test_every_place_is_sampled_about_as_often() -> None:
    chance = Chance(2)
    drawn = Counter(place for _ in range(5000) for place in chance.sample(8, 3))
    assert all(1700 < drawn[place] < 2050 for place in range(8))

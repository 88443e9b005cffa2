"""A sorted set against a plain sorted list, through sizes at which its chunks split and join."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from headrace.engine.sorted_set import LARGEST_CHUNK, SMALLEST_CHUNK, SortedSet


def check(members: SortedSet, model: dict[bytes, float]) -> None:
    """Everything a sorted set keeps agrees with the scores alone."""
    pairs = sorted((score, member) for member, score in model.items())
    assert members.scores == model
    assert members.pairs(0, len(model)) == pairs
    assert [pair for chunk in members.chunks for pair in chunk.cut(0, LARGEST_CHUNK)] == pairs
    assert members.lasts.cut(0, len(pairs)) == [chunk.cut(0, LARGEST_CHUNK)[-1] for chunk in members.chunks]
    assert all(0 < len(chunk.members) == len(chunk.scores) <= LARGEST_CHUNK for chunk in members.chunks)
    ranks = [sum(len(chunk.members) for chunk in members.chunks[:index]) for index in range(len(members.chunks))]
    assert members.starts == ranks[: len(members.starts)]


@pytest.mark.parametrize("seed", range(6))
def test_it_holds_what_a_sorted_list_would(seed: int) -> None:
    random = Random(seed)
    members, model = SortedSet(), dict[bytes, float]()
    size = random.choice([20, 2000, 6000])
    for turn in range(4):
        grows = turn % 2 == 0
        for step in range(size):
            member = b"%d" % random.randrange(size)
            if random.random() < (0.8 if grows else 0.2):
                score = random.choice([float(random.randrange(50)), random.random(), inf, -inf, -0.0])
                assert members.put(member, score) == (member not in model)
                if model.get(member) != score:
                    model[member] = score
            else:
                assert members.remove(member) == (model.pop(member, None) is not None)
            if step % 97 == 0 and model:
                known = random.choice(sorted(model))
                assert members.rank(known) == sorted((s, m) for m, s in model.items()).index((model[known], known))
        check(members, model)


@pytest.mark.parametrize("seed", range(6))
def test_many_members_at_once_are_the_same_as_one_after_the_other(seed: int) -> None:
    random = Random(seed)
    members, model = SortedSet(), dict[bytes, float]()
    size = random.choice([20, 2000, 6000])
    for turn in range(60):
        some = [b"%d" % random.randrange(size) for _ in range(random.choice([1, 5, 100, 400]))]
        if random.random() < 0.6:
            score = float(random.choice([turn, turn, random.randrange(60)]))  # Mostly the highest, as times are.
            assert members.put_all(some, score) == [one for one in dict.fromkeys(some) if model.get(one) != score]
            model.update(dict.fromkeys(some, score))
        else:
            some += random.sample(sorted(model), len(model) // 3)
            assert members.remove_all(some) == [one for one in dict.fromkeys(some) if one in model]
            model = {member: score for member, score in model.items() if member not in some}
        check(members, model)


def test_members_that_came_together_go_together() -> None:
    members, model = SortedSet(), dict[bytes, float]()
    for turn in range(40):
        some = [b"%d-%d" % (turn, number) for number in range(100)]
        members.put_all(some, float(turn // 3))
        model.update(dict.fromkeys(some, float(turn // 3)))
    check(members, model)
    for turn in range(0, 40, 2):
        some = [b"%d-%d" % (turn, number) for number in range(100)]
        assert members.remove_all(some) == some
        model = {member: score for member, score in model.items() if member not in some}
        check(members, model)


def test_ranks_between_scores() -> None:
    members = SortedSet({b"%04d" % number: float(number // 2) for number in range(4000)})

    assert members.rank_of_score(5.0, after=False) == 10
    assert members.rank_of_score(5.0, after=True) == 12
    assert members.rank_of_score(5.5, after=False) == members.rank_of_score(5.5, after=True) == 12
    assert members.rank_of_score(-inf, after=True) == 0
    assert members.rank_of_score(inf, after=False) == members.rank_of_score(inf, after=True) == 4000


def test_ranks_between_members_of_one_score() -> None:
    members = SortedSet({b"%04d" % number: 0.0 for number in range(4000)})

    assert members.rank_of_member(b"0010", after=False) == 10
    assert members.rank_of_member(b"0010", after=True) == 11
    assert members.rank_of_member(b"0010x", after=False) == 11
    assert members.rank_of_member(b"", after=False) == 0
    assert members.rank_of_member(b"z", after=True) == 4000


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (0, 1), (7, 3), (5, 9000), (0, 5000), (100, 4900), (4990, 5000)])
def test_a_range_of_ranks_is_removed(start: int, stop: int) -> None:
    scores = {b"%d" % number: float(number) for number in range(5000)}
    members = SortedSet(dict(scores))
    expected = sorted((score, member) for member, score in scores.items())[start:stop]

    assert members.remove_ranks(start, stop) == expected

    gone = {member for _, member in expected}
    check(members, {member: score for member, score in scores.items() if member not in gone})


def test_few_members_left_over_stand_in_few_chunks() -> None:
    members = SortedSet({b"%d" % number: float(number) for number in range(100_000)})
    for number in range(100_000):
        if number % 1000:
            members.remove(b"%d" % number)

    assert len(members) == 100
    assert len(members.chunks) <= 1 + len(members) // SMALLEST_CHUNK + LARGEST_CHUNK // SMALLEST_CHUNK


def test_minus_zero_becomes_zero() -> None:
    members = SortedSet({b"b": -0.0})
    members.put(b"a", -0.0)
    assert [str(score) for score in members.scores.values()] == ["0.0", "0.0"]
    assert members.remove(b"b")
    assert members.rank_of_score(0.0, after=False) == 0
    assert members.rank_of_score(-0.0, after=True) == 1

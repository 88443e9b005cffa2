"""The verdict of a proof finds what is wrong: each promise fails on evidence against it, and on nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from headrace.errors import ConfigError
from headrace.ordered.prove_crew import Loss
from headrace.ordered.prove_plan import MOST_KEYS, Plan
from headrace.ordered.prove_verdict import Again, Evidence, Work, judge, parse_work

PLAN = Plan(keys=2, messages=40, lease_ms=2000, seed=3)
SECOND = 1_000_000_000


def works_of(count: int) -> list[Work]:
    return [Work(number, 1, 100 + number, 1, number * SECOND, number * SECOND + 5) for number in range(count)]


def evidence(changes: dict[str, Sequence[Work]] | None = None, losses: Sequence[Loss] = ()) -> Evidence:
    done = {key: works_of(count) for key, count in PLAN.counts().items()}
    return Evidence({**done, **(changes or {})}, {"keys": 0, "pending": 0}, refused=3, losses=losses)


def failing(found: Evidence) -> list[str]:
    return [verdict.promise for verdict in judge(PLAN, found) if not verdict.holds]


def test_all_promises_hold_when_all_is_well() -> None:
    verdicts = list(judge(PLAN, evidence()))

    assert len(verdicts) == 7 and all(verdict.holds for verdict in verdicts)
    assert verdicts[4].found == "3 refused, 0 accepted"


def test_two_that_changed_places_are_out_of_order() -> None:
    one, two, *rest = works_of(PLAN.counts()["0"])
    swapped = [replace(two, begin_ns=0, end_ns=1), replace(one, fence=101, begin_ns=2, end_ns=3), *rest]

    assert failing(evidence({"0": swapped})) == ["each key's messages were done in order"]


@pytest.mark.parametrize("place", [0, 5, -1])
def test_a_missing_one_is_lost(place: int) -> None:
    works = works_of(PLAN.counts()["1"])
    del works[place]

    assert failing(evidence({"1": works})) == ["no message was lost"]
    assert failing(replace(evidence(), done={})) == ["no message was lost"]


def test_one_that_was_done_again_is_done_twice() -> None:
    works = works_of(PLAN.counts()["1"])

    assert failing(evidence({"1": [*works, replace(works[-1], begin_ns=works[-1].end_ns)]})) == [
        "no message was done twice"
    ]


def test_work_that_began_before_the_work_before_it_ended_overlaps() -> None:
    works = works_of(PLAN.counts()["0"])
    works[3] = replace(works[3], end_ns=works[4].begin_ns + 1)

    assert failing(evidence({"0": works})) == ["one consumer at a time worked on a key"]


def test_work_under_an_older_fence_was_accepted_too_late() -> None:
    works = works_of(PLAN.counts()["0"])
    works[3] = replace(works[3], fence=7)

    assert failing(evidence({"0": works})) == ["who came too late was refused"]


def test_work_that_was_accepted_after_another_had_begun_with_it_came_too_late() -> None:
    third = works_of(3)[2]
    before, after = Again(third.fence + 1, third.end_ns - 1), Again(third.fence + 1, third.end_ns)
    its_own = Again(third.fence, third.begin_ns)

    assert failing(replace(evidence(), again={"0": [before]})) == ["who came too late was refused"]
    assert failing(replace(evidence(), again={"0": [after, its_own]})) == []


def test_a_key_that_waits_longer_than_the_lease_and_a_second_has_stalled() -> None:
    works = [replace(work, begin_ns=work.begin_ns * 4, end_ns=work.end_ns * 4) for work in works_of(20)]
    plan = replace(PLAN, keys=1, messages=20)

    def stalls(found: Evidence) -> tuple[str, bool]:
        [verdict] = [one for one in judge(plan, found) if one.promise.startswith("a dead one's keys")]
        return verdict.found, verdict.holds

    base = Evidence({"0": works}, {}, 0, [])
    assert stalls(base) == ("no key was in the hands of one", True)
    assert stalls(replace(base, losses=[Loss("0", 9 * SECOND, 5)])) == ("3.0 s at most, 1 keys", True)
    lost = replace(base, losses=[Loss("0", 9 * SECOND - 1, 5), Loss("0", 400 * SECOND, 5)])
    assert stalls(lost) == ("3.0 s at most, 1 keys", False)
    assert stalls(replace(lost, outages=[(10 * SECOND, 11 * SECOND)])) == ("no key was in the hands of one", True)
    superseded = replace(base, losses=[Loss("0", 8 * SECOND + 1, 5), Loss("0", 11 * SECOND, 5)])
    assert stalls(superseded) == ("1.0 s at most, 1 keys", True)


def test_an_attempt_by_the_next_holder_ends_a_stall_and_one_of_the_lost_holder_does_not() -> None:
    works = [Work(0, 1, 100, 3, 9 * SECOND, 10 * SECOND)]
    lost = Evidence({"0": works}, {}, 0, [Loss("0", SECOND, fence=50)])

    def stalls(*again: Again) -> tuple[str, bool]:
        found = judge(replace(PLAN, keys=1, messages=1), replace(lost, again={"0": again}))
        [verdict] = [one for one in found if one.promise.startswith("a dead one's keys")]
        return verdict.found, verdict.holds

    assert stalls() == ("8.0 s at most, 1 keys", False)
    assert stalls(Again(50, 3 * SECOND)) == ("8.0 s at most, 1 keys", False)
    assert stalls(Again(60, 3 * SECOND)) == ("2.0 s at most, 1 keys", True)


def test_what_is_left_over_is_named() -> None:
    found = list(judge(PLAN, replace(evidence(), left_over={"keys": 2, "pending": 0})))[-1]

    assert (found.promise, found.found, found.holds) == ("nothing is left over", "keys 2", False)


def test_a_line_of_accepted_work_is_read_back() -> None:
    assert parse_work(b"4 4711 1794782551375001 2 10 20") == Work(4, 4711, 1794782551375001, 2, 10, 20)


def test_a_plan_is_the_same_for_the_same_seed_and_touches_only_names_of_its_own() -> None:
    again = Plan(keys=2, messages=40, lease_ms=2000, seed=3)

    assert list(again.numbered()) == list(PLAN.numbered())
    assert again.counts().total() == 40
    assert again.stream != PLAN.stream
    word = PLAN.stream.split("{")[1]
    names = list(PLAN.all_keys())
    assert len(names) == len(set(names))
    assert all(f"{{{word}" in name for name in names)


@pytest.mark.parametrize(
    "wrong", [{"keys": 0}, {"keys": MOST_KEYS + 1}, {"messages": 0}, {"consumers": 1}, {"lease_ms": 10}]
)
def test_a_plan_has_limits(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} is .* it must be from"):
        Plan(**wrong)

"""What ends gathers by key, and is settled in the order in which it ended."""

import asyncio
from types import SimpleNamespace

import pytest

from headrace.client.lane_steps import Back, Bury, Done, Fail, Grant
from headrace.client.results import Entry
from headrace.client.worker_steps import Ack, Retry
from headrace.client.worker_steps import Bury as BuryOne
from headrace.worker.counters import Counters
from headrace.worker.ordered_keys import HeldKey
from headrace.worker.ordered_settling import OrderedSettler


class Recorder:
    """A runner and its keys: what they are told."""

    def __init__(self):
        self.counters = Counters()
        self.told = []

    def acked(self, source, deliveries):
        self.told.append(("acked", [delivery.id for delivery in deliveries]))

    def answered(self, delivery, clause, was_ours):
        self.told.append((type(clause).__name__, delivery.id, was_ours))

    def lost(self, held, *, is_told):
        self.told.append(("lost", held.key, is_told))

    def remove(self, held):
        self.told.append(("removed", held.key))


def held_key(key, count):
    entries = [Entry(f"{number}-0", ((b"n", b"1"),), "tickets") for number in range(1, count + 1)]
    return HeldKey(Grant(key, 5, 1, "", entries), "tickets", 0.0)


@pytest.fixture
def runner():
    return Recorder()


@pytest.fixture
def settler(runner):
    return OrderedSettler(runner, runner, keep=False)


def begin(held):
    return held.waiting.popleft()


def clauses(sent):
    return [one.clause for one in sent]


def test_messages_of_a_key_that_are_done_are_one_clause_and_those_of_others_go_along(settler, runner):
    first, second = held_key("a", 3), held_key("b", 1)
    settler.ack(begin(first))
    settler.ack(begin(second))
    settler.ack(begin(first))

    sent = settler.collect()

    assert clauses(sent) == [Done("a", 5, ["1-0", "2-0"]), Done("b", 5, ["1-0"])]
    assert [one.frees_key for one in sent] == [False, True]
    settler.settled(sent, [True, True], is_repeated=False)
    assert runner.told == [("acked", ["1-0", "2-0", "1-0"])] and not settler.endings


def test_a_key_has_one_clause_in_a_call_and_the_rest_follows_in_order(settler):
    held = held_key("a", 3)
    settler.ack(begin(held))
    settler.settle(BuryOne("2-0", "no", "", 1), begin(held))
    settler.settle(Retry("3-0", 100, 1, "not now"), begin(held))

    assert clauses(settler.collect()) == [Done("a", 5, ["1-0"])]
    assert clauses(settler.collect()) == [Bury("a", 5, "2-0", "no", "")]
    assert clauses(settler.collect()) == [Fail("a", 5, "3-0", 100, "not now")]
    assert settler.collect() == [] and held.is_over


def test_only_what_somebody_waits_for_or_ends_a_run_is_urgent(settler):
    held = held_key("a", 2)
    settler.ack(begin(held))
    assert settler.filled.is_set() and not settler.is_urgent.is_set()
    settler.ack(begin(held))
    assert settler.is_urgent.is_set()
    settler.collect()
    assert not settler.is_urgent.is_set()


def test_a_refused_clause_loses_the_key_and_gives_it_back_in_case_it_is_ours_still(settler, runner):
    held = held_key("a", 2)
    settler.ack(begin(held))
    settler.settled(settler.collect(), [False], is_repeated=False)
    assert runner.told == [("NoneType", "1-0", False), ("lost", "a", False)]
    assert clauses(settler.collect()) == [Back("a", 5)]


def test_a_repeated_clause_that_is_refused_may_have_been_done_the_first_time(settler, runner):
    held = held_key("a", 2)
    settler.ack(begin(held))
    settler.settled(settler.collect(), [False], is_repeated=True)
    assert runner.told == [("NoneType", "1-0", False)] and not settler.endings


def test_what_is_put_back_goes_before_all_else_of_its_key(settler):
    held = held_key("a", 3)
    for _ in range(2):
        settler.ack(begin(held))
    [sent] = settler.collect()
    settler.ack(begin(held))
    settler.put_back(sent)
    assert clauses(settler.collect()) == [Done("a", 5, ["1-0", "2-0", "3-0"])]


def test_whoever_commits_gets_the_answer_or_what_the_server_refuses_it_with(runner):
    async def program():
        settler = OrderedSettler(runner, runner, keep=False)
        held = held_key("a", 2)
        answers = []
        for reply in (True, ValueError("no"), False):
            waiting = asyncio.ensure_future(settler.settle_surely(Ack(["1-0"]), [SimpleNamespace(held=held, id="1-0")]))
            await asyncio.sleep(0)
            [sent] = settler.collect()
            if isinstance(reply, Exception):
                assert settler.refused(sent, reply)
            else:
                settler.settled([sent], [reply], is_repeated=False)
            answers += await asyncio.gather(waiting, return_exceptions=True)
        return answers

    yes, refused, no = asyncio.run(program())
    assert (yes, no) == (True, False) and isinstance(refused, ValueError)
    assert ("Ack", "1-0", True) in runner.told and ("lost", "a", True) in runner.told


def test_no_more_than_a_thousand_messages_are_settled_in_one_call(settler):
    keys = [held_key(str(number), 300) for number in range(5)]
    for held in keys:
        while held.waiting:
            settler.ack(begin(held))
    sizes = []
    while settler.endings:
        sizes.append(sum(one.size for one in settler.collect()))
    assert sizes == [1000, 500]

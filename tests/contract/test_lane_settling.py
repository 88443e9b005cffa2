"""Order per key on every deployment: what becomes of messages, all of it or nothing."""

from __future__ import annotations

import pytest

from headrace.client.lane_steps import Add, Back, Bury, Done, Fail, Park
from headrace.errors import CommandError, WrongType
from support.ordered import GROUP, LONG_MS, SHORT_MS, Lanes, MakeLanes, ids_of, shape
from support.servers import wait_until

pytestmark = pytest.mark.any_socket


# Done


def test_a_part_of_a_run_can_be_done(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(4)]
    [grant] = lanes.grants("ann", run=3)

    assert lanes.settle(Done("a", grant.fence, ids[:2])) == [True]
    ticket = lanes.ticket("a")
    assert (ticket.state, ticket.attempts, ticket.fence, ticket.given) == ("held", 1, grant.fence, 1)
    assert lanes.settle(Done("a", grant.fence, ids[2:3])) == [True]
    assert lanes.ticket("a").state == "ready"
    assert lanes.pending() == [(ids[3], "lanes", 1)]


def test_only_the_first_messages_can_be_done_and_only_under_the_fence(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(3)]
    [grant] = lanes.grants("ann", run=2)

    for clause in (
        Done("a", grant.fence, [ids[1]]),
        Done("a", grant.fence, ids),
        Done("a", grant.fence, [ids[0], ids[2]]),
        Done("a", grant.fence - 1, [ids[0]]),
        Done("b", grant.fence, [ids[0]]),
        Fail("a", grant.fence, ids[1], 0, "x"),
        Bury("a", grant.fence, ids[1], "x", ""),
        Park("a", grant.fence + 1, "x"),
        Back("a", 1),
    ):
        assert lanes.settle(clause) == [False]
    assert lanes.lane("a") == ids
    assert lanes.ticket("a").given == 2
    assert lanes.finish(grant) == [True]


def test_a_repeated_settle_changes_nothing(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(2)]
    [grant] = lanes.grants("ann", run=2)
    done = Done("a", grant.fence, ids[:1], effects=[("INCR", f"total{{{lanes.stream}}}")])

    assert lanes.settle(done) == [True]
    assert lanes.settle(done) == [False]
    assert lanes("GET", f"total{{{lanes.stream}}}") == b"1"


def test_done_messages_stay_while_another_group_needs_them_or_they_are_kept(lanes: Lanes) -> None:
    lanes("XGROUP", "CREATE", lanes.stream, "other", "0")
    lanes.add("a")
    lanes.finish(*lanes.grants("ann"))
    assert lanes("XLEN", lanes.stream) == 1
    lanes("XGROUP", "DESTROY", lanes.stream, "other")
    kept = lanes.add("a")
    [grant] = lanes.grants("ann")
    assert lanes.settle(Done("a", grant.fence, [kept]), keep=True) == [True]
    assert (lanes("XLEN", lanes.stream), lanes.pending()) == (2, [])


def test_effects_and_new_messages_happen_with_done_or_not_at_all(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(2)]
    [grant] = lanes.grants("ann", run=2)
    total, target = f"total{{{lanes.stream}}}", f"next{{{lanes.stream}}}"
    extras = {"adds": [Add(target, [(b"x", b"y")])], "effects": [("HINCRBY", total, "n", 2), ("HSET", total, "m", "v")]}

    assert lanes.settle(Done("a", grant.fence - 1, ids[:1], **extras)) == [False]
    assert lanes("EXISTS", total, target) == 0
    assert lanes.settle(Done("a", grant.fence, ids[:1], **extras)) == [True]
    assert (lanes("HGET", total, "n"), lanes("HGET", total, "m"), lanes("XLEN", target)) == (b"2", b"v", 1)
    with pytest.raises(CommandError, match="hash value is not an integer"):
        lanes.settle(Done("a", grant.fence, ids[1:], effects=[("HINCRBY", total, "m", 1)]))
    lanes("SET", f"text{{{lanes.stream}}}", "x")
    with pytest.raises(WrongType):
        lanes.settle(Done("a", grant.fence, ids[1:], adds=[Add(f"text{{{lanes.stream}}}", [(b"x", b"y")])]))
    for key in lanes.order.keys[:7]:
        with pytest.raises(CommandError, match="must not name a key"):
            lanes.settle(Done("a", grant.fence, ids[1:], effects=[("DEL", key)]))
    assert lanes.ticket("a").given == 1
    assert lanes.pending() == [(ids[1], "ann", 1)]


def test_many_keys_are_settled_in_one_call(lanes: Lanes) -> None:
    for number in range(500):
        lanes.add(f"key-{number % 250}")
    grants = lanes.grants("ann", keys=250, run=2)

    assert len(grants) == 250
    assert lanes.finish(*grants) == [True] * 250
    assert (lanes.pending(), lanes("XLEN", lanes.stream), lanes.run("info").keys) == ([], 0, 0)


# Failing


def test_a_failed_message_is_tried_again_after_its_pause(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(3)]
    [grant] = lanes.grants("ann", run=2)

    assert lanes.settle(Fail("a", grant.fence, ids[0], LONG_MS, "ValueError: a  b\nc")) == [True]
    ticket = lanes.ticket("a")
    assert (ticket.state, ticket.attempts, ticket.error) == ("waiting", 1, "ValueError: a  b\nc")
    assert lanes.pending() == [(one, "lanes", 1) for one in ids]
    taken = lanes.take("bob")
    assert taken.grants == []
    assert LONG_MS - 60_000 < (taken.wait_ms or 0) <= LONG_MS
    assert lanes.run("resume", "a") is True
    [grant] = lanes.grants("bob")
    assert (grant.attempt, ids_of(grant)) == (1, ids[:1])

    assert lanes.settle(Fail("a", grant.fence, ids[0], SHORT_MS, "slow")) == [True]
    [grant] = lanes.wait_for_grants("bob")
    assert (grant.attempt, grant.last_error) == (2, "slow")
    assert lanes.settle(Fail("a", grant.fence, ids[0], 0, "slower")) == [True]
    [grant] = lanes.grants("ann", run=9)
    assert (grant.attempt, grant.last_error, ids_of(grant)) == (3, "slower", ids)
    assert lanes.pending()[:2] == [(ids[0], "ann", 3), (ids[1], "ann", 1)]


def test_attempts_begin_anew_with_the_next_message(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(2)]
    [grant] = lanes.grants("ann")
    lanes.settle(Fail("a", grant.fence, ids[0], 0, "x"))
    [grant] = lanes.grants("ann", run=2)

    assert lanes.settle(Done("a", grant.fence, ids[:1])) == [True]
    assert lanes.ticket("a").attempts == 1
    lanes.settle(Fail("a", grant.fence, ids[1], 0, "y"))
    [grant] = lanes.grants("ann")
    assert (grant.attempt, grant.last_error) == (2, "y")


def test_a_message_that_failed_too_often_parks_its_key(make_lanes: MakeLanes) -> None:
    lanes = make_lanes(max_attempts=2)
    ids = [lanes.add("a") for _ in range(2)]
    for _ in range(2):
        [grant] = lanes.grants("ann")
        assert lanes.settle(Fail("a", grant.fence, ids[0], 0, "bad")) == [True]

    ticket = lanes.ticket("a")
    assert (ticket.state, ticket.attempts, ticket.error) == ("parked", 2, "bad")
    assert lanes.take("ann").grants == []
    assert lanes.run("info").timed == 0


def test_a_message_that_failed_too_often_may_be_skipped(make_lanes: MakeLanes) -> None:
    lanes = make_lanes(max_attempts=2, poison="skip")
    ids = [lanes.add("a", n=number) for number in range(3)]
    for _ in range(2):
        [grant] = lanes.grants("ann", run=2)
        assert lanes.settle(Fail("a", grant.fence, ids[0], 0, "bad")) == [True]

    [letter] = lanes.letters()
    assert (letter["hr:id"], letter["hr:attempts"], letter["hr:error"], letter["n"]) == (ids[0], "2", "bad", "0")
    [grant] = lanes.grants("ann", run=5)
    assert (ids_of(grant), grant.attempt) == (ids[1:], 1)
    assert lanes("XLEN", lanes.stream) == 2


@pytest.mark.parametrize("poison", ["park", "skip"])
def test_consumers_that_end_count_as_attempts(make_lanes: MakeLanes, poison: str) -> None:
    lanes = make_lanes(max_attempts=1, poison=poison)
    first, second = lanes.add("a"), lanes.add("a")
    lanes.grants("ann", lease_ms=SHORT_MS)

    if poison == "park":

        def is_parked() -> bool:
            assert lanes.grants("bob") == []
            return bool(lanes.ticket("a").state == "parked")

        wait_until(is_parked, "the key to be parked")
        assert lanes.ticket("a").error == "its consumers ended while they ran it"
        assert lanes.letters() == []
    else:
        assert shape(lanes.wait_for_grants("bob")) == {"a": [second]}
        [letter] = lanes.letters()
        assert (letter["hr:id"], letter["hr:error"]) == (first, "its consumers ended while they ran it")


# Burying, parking, giving back


def test_a_buried_message_goes_to_the_dead_letters_and_the_key_goes_on(lanes: Lanes) -> None:
    ids = [lanes.add("a", n=number) for number in range(3)]
    [grant] = lanes.grants("ann", run=2)

    assert lanes.settle(Bury("a", grant.fence, ids[0], "Bad: x", "line 1\nline 2")) == [True]
    [letter] = lanes.letters()
    assert {name: letter[name] for name in ("n", "hr:stream", "hr:id", "hr:group", "hr:attempts")} == {
        "n": "0", "hr:stream": lanes.stream, "hr:id": ids[0], "hr:group": GROUP, "hr:attempts": "1",
    }  # fmt: skip
    assert (letter["hr:error"], letter["hr:traceback"]) == ("Bad: x", "line 1\nline 2")
    assert lanes.settle(Done("a", grant.fence, [ids[1]])) == [True]
    assert shape(lanes.grants("bob")) == {"a": [ids[2]]}


def test_a_parked_key_stands_still_and_others_go_on(lanes: Lanes) -> None:
    ids = [lanes.add(key) for key in "aab"]
    [a, b] = lanes.grants("ann", run=2)

    assert lanes.settle(Park("a", a.fence, "look at it"), Done("b", b.fence, [ids[2]])) == [True, True]
    ticket = lanes.ticket("a")
    assert (ticket.state, ticket.attempts, ticket.error) == ("parked", 1, "look at it")
    assert ticket.until_ms > 1_600_000_000_000
    lanes.add("a")
    assert lanes.grants("bob") == []
    assert len(lanes.lane("a")) == 3
    assert [row[1] for row in lanes.pending()] == ["lanes"] * 3


def test_a_key_given_back_is_next_and_the_attempt_does_not_count(lanes: Lanes) -> None:
    ids = [lanes.add(key) for key in "aaab"]
    [a] = lanes.grants("ann", keys=1)
    lanes.settle(Fail("a", a.fence, ids[0], 0, "x"))
    [a] = lanes.grants("ann", keys=1, run=2)
    assert a.attempt == 2
    assert shape(lanes.grants("bob")) == {"b": [ids[3]]}
    lanes.add("c")
    lanes.run("wait", 1)

    assert lanes.settle(Back("a", a.fence)) == [True]
    assert lanes.pending()[:2] == [(ids[0], "lanes", 1), (ids[1], "lanes", 1)]
    assert lanes.ticket("a").attempts == 1
    assert [grant.key for grant in lanes.grants("bob")] == ["a", "c"]


def test_clauses_of_all_kinds_in_one_call(lanes: Lanes) -> None:
    ids = {key: lanes.add(key) for key in "abcde"}
    fence = {grant.key: grant.fence for grant in lanes.grants("ann")}

    flags = lanes.settle(
        Done("a", fence["a"], [ids["a"]]), Fail("b", fence["b"], ids["b"], LONG_MS, "x"),
        Bury("c", fence["c"], ids["c"], "y", "z"), Park("d", fence["d"], ""), Back("e", fence["e"]), Back("f", 7),
    )  # fmt: skip
    assert flags == [True, True, True, True, True, False]
    states = {key: lanes.ticket(key) and lanes.ticket(key).state for key in "abcde"}
    assert states == {"a": None, "b": "waiting", "c": None, "d": "parked", "e": "ready"}
    assert [row[0] for row in lanes.pending()] == [ids["b"], ids["d"], ids["e"]]


# Refusals


def test_what_cannot_be_read_is_refused_and_nothing_changes(lanes: Lanes) -> None:
    first = lanes.add("a")
    [grant] = lanes.grants("ann")
    good = Done("a", grant.fence, [first])

    for clause, error in (
        (Done("b", 1, ["never"]), "Invalid stream ID"),
        (Done("b", 1, []), "DONE must be followed by|syntax|number"),
        (Fail("b", 1, "1-0", -1, "x"), "delay"),
        (Done("b", 1, ["1-0"], effects=[("FLUSHALL", f"x{{{lanes.stream}}}")]), "EFFECT cannot be FLUSHALL"),
    ):
        with pytest.raises(CommandError, match=error):
            lanes.settle(good, clause)
    assert lanes.pending() == [(first, "ann", 1)]
    assert lanes.settle(good) == [True]


def test_an_id_may_be_written_short(lanes: Lanes) -> None:
    lanes("XADD", lanes.stream, "5-0", "k", "a")
    [grant] = lanes.grants("ann")

    assert lanes.settle(Done("a", grant.fence, ["5"])) == [True]

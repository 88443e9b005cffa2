"""Order per key on every deployment: who gets which messages, in which order.

On other servers one flavour has a list per key and the other one sorted set for all.
"""

from __future__ import annotations

from typing import Any

import pytest

from headrace.client.lane_steps import Back, Taken
from headrace.errors import CommandError, Fenced, NoLanes, NotFound, WrongType
from support.ordered import GROUP, LONG_MS, SHORT_MS, Lanes, MakeLanes, ids_of, shape
from support.servers import wait_until

pytestmark = pytest.mark.any_socket

# Taking


def test_messages_of_a_key_come_in_order_and_one_after_the_other(lanes: Lanes) -> None:
    first, other, second, third = (lanes.add(key) for key in "abaa")

    [a, b] = lanes.grants("ann")
    assert (a.key, ids_of(a), a.attempt, a.last_error) == ("a", [first], 1, "")
    assert (b.key, ids_of(b)) == ("b", [other])
    assert a.entries[0].fields == {"k": "a"}
    assert lanes.grants("bob") == []
    assert lanes.finish(a, b) == [True, True]
    [a] = lanes.grants("bob")
    assert (a.key, ids_of(a), a.attempt) == ("a", [second], 1)
    assert lanes.finish(a) == [True]
    assert shape(lanes.grants("ann")) == {"a": [third]}


def test_a_run_holds_the_first_messages_of_a_key(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(5)]

    assert shape(lanes.grants("ann", keys=1, run=3)) == {"a": ids[:3]}
    assert lanes.pending()[:3] == [(one, "ann", 1) for one in ids[:3]]


def test_runs_of_busy_keys_are_filled_from_the_stream(lanes: Lanes) -> None:
    ids = [lanes.add("ab"[number % 2]) for number in range(40)]

    assert shape(lanes.grants("ann", keys=2, run=100)) == {"a": ids[::2], "b": ids[1::2]}


def test_no_key_is_read_that_nobody_asked_for(lanes: Lanes) -> None:
    ids = [lanes.add(key) for key in "aabca"]

    assert shape(lanes.grants("ann", keys=1, run=10)) == {"a": ids[:2]}
    assert len(lanes.pending()) == 2
    assert shape(lanes.grants("bob", keys=1, run=10)) == {"b": [ids[2]]}
    assert lanes("LLEN", lanes.order.keys[2]) == 0


def test_pending_entries_tell_who_works_on_what_and_how_often(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(3)]
    lanes.grants("ann", keys=2)

    assert lanes.pending() == [(ids[0], "ann", 1), (ids[1], "lanes", 1), (ids[2], "lanes", 1)]


def test_a_limit_counts_what_the_consumer_holds_already(lanes: Lanes) -> None:
    for key in "abcde":
        lanes.add(key)
    session = lanes.session("ann")

    def take(keys: int, limit: int, lease_ms: int = LONG_MS) -> list[str]:
        taken: Taken = lanes.run("take", "ann", session, lease_ms, keys, 1, limit)
        return [grant.key for grant in taken.grants]

    assert take(1, 3) == ["a"]
    assert take(9, 3) == ["b", "c"]
    assert take(9, 3) == take(9, 1) == []
    lanes("XACK", lanes.stream, GROUP, lanes.lane("a")[0])
    assert take(9, 3, SHORT_MS) == ["d"]
    wait_until(lambda: take(9, 3) == ["d"], "the lease of d to end")


def test_fences_grow_with_every_grant(lanes: Lanes) -> None:
    fences = [lanes.register("ann").number]
    for _ in range(3):
        for key in "abc":
            lanes.add(key)
        grants = lanes.grants("ann")
        fences += [grant.fence for grant in grants]
        lanes.finish(*grants)

    assert fences == sorted(set(fences))
    assert len(fences) == 10
    assert lanes.run("info").last_fence >= fences[-1]


def test_keys_take_turns(lanes: Lanes) -> None:
    for key in "aabb":
        lanes.add(key)
    order = []
    for _ in range(4):
        [grant] = lanes.grants("ann", keys=1)
        order.append(grant.key)
        lanes.finish(grant)

    assert sorted(order) == ["a", "a", "b", "b"]
    lanes.add("a")
    lanes.add("a")
    lanes.add("b")
    [a, b] = lanes.grants("ann", keys=3)
    lanes.add("b")
    lanes.grants("bob", keys=2)
    lanes.finish(b)
    lanes.finish(a)
    assert [grant.key for grant in lanes.grants("ann")] == ["b", "a"]


def test_nothing_is_left_when_all_is_done(lanes: Lanes) -> None:
    for number in range(20):
        lanes.add(str(number % 3))
    while grants := lanes.grants("ann", run=3):
        assert all(lanes.finish(*grants))

    assert (lanes.pending(), lanes("XLEN", lanes.stream)) == ([], 0)
    assert lanes.run("leave", "ann", lanes.session("ann")) == 0
    assert lanes.left() == []
    assert lanes("XINFO", "CONSUMERS", lanes.stream, GROUP) is not None


def test_a_reply_holds_a_thousand_messages_at_the_most(lanes: Lanes) -> None:
    stream = lanes.client.stream(lanes.stream)
    stream.add_many([{"k": str(number % 3)} for number in range(2400)])

    taken = lanes.take("ann", keys=3, run=1000)
    assert sum(len(grant.entries) for grant in taken.grants) <= 1000
    assert taken.wait_ms == 0
    done = 0
    while taken.grants:
        done += sum(len(grant.entries) for grant in taken.grants)
        assert all(lanes.finish(*taken.grants))
        taken = lanes.take("ann", keys=3, run=1000)
    assert (done, lanes.pending()) == (2400, [])


def test_another_key_is_found_behind_many_messages_of_a_held_one(lanes: Lanes) -> None:
    stream = lanes.client.stream(lanes.stream)
    stream.add_many([{"k": "busy"} for _ in range(1500)])
    last = lanes.add("calm")
    lanes.grants("ann", keys=1, run=5)

    taken = lanes.take("bob", keys=1)
    assert taken == Taken([], 0)
    assert shape(lanes.grants("bob", keys=1)) == {"calm": [last]}
    assert len(lanes.lane("busy")) == 1000


def test_how_long_to_wait_is_told(lanes: Lanes) -> None:
    assert lanes.take("ann") == Taken([], None)
    lanes.add("a")
    lanes.add("b")
    assert lanes.take("ann", keys=1).wait_ms == 0
    assert 0 < (lanes.take("ann", keys=2, lease_ms=5000).wait_ms or 0) <= 5000


# Keys


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"key": "x", "k": "y"}, "y"),
        ({"key": "x", "k": ""}, "x"),
        ({"data": '{"k":"ä","key":"x"}'}, "ä"),
        ({"data": '{"k":17}'}, "17"),
        ({"data": '{"k":-3.0}'}, "-3"),
        ({"data": '{"k":true}'}, "true"),
        ({"data": '{"k":false}'}, "false"),
        ({"data": '{"k":1.5,"key":"x"}'}, "x"),
        ({"data": '{"k":9007199254740992,"key":"x"}'}, "x"),
        ({"data": '{"k":null,"key":"x"}'}, "x"),
        ({"data": '{"k":[1],"key":{"a":1}}', "key": "x"}, "x"),
        ({"data": "{broken", "key": "x"}, "x"),
        ({"data": '["k"]', "key": "x"}, "x"),
        ({"data": '{"k":"in"}', "k": "out"}, "out"),
        ({"k": "a b:\n{}"}, "a b:\n{}"),
    ],
)
def test_the_key_is_a_field_or_a_member_of_the_object(lanes: Lanes, fields: dict[str, str], key: str) -> None:
    lanes("XADD", lanes.stream, "*", *(word for pair in fields.items() for word in pair))

    [grant] = lanes.grants("ann")
    assert grant.key == key
    assert lanes.finish(grant) == [True]
    assert lanes.run("info").keys == 0


def test_fields_of_the_layout_are_no_keys_beside_data(make_lanes: MakeLanes) -> None:
    lanes = make_lanes(keyfields=("id", "type"))
    for words in (("data", '{"id":"in"}', "id", "publish-1"), ("id", "own"), ("data", "x", "type", "text/plain")):
        lanes("XADD", lanes.stream, "*", *words)

    keys = [grant.key for grant in lanes.grants("ann")]
    assert keys[:2] == ["in", "own"]
    assert keys[2].startswith("id:")


def test_bytes_of_a_key_survive(lanes: Lanes) -> None:
    lanes("XADD", lanes.stream, "*", "k", b"\xff\x00\n ")

    [grant] = lanes.grants("ann")
    assert grant.key == "\udcff\0\n "
    assert lanes.run("extend", "ann", lanes.session("ann"), LONG_MS, [(grant.key, grant.fence)]) == [True]
    assert lanes.ticket(grant.key).state == "held"
    assert lanes.finish(grant) == [True]


def test_a_message_without_a_key_waits_for_nobody(lanes: Lanes) -> None:
    ids = [lanes("XADD", lanes.stream, "*", "other", "x").decode() for _ in range(2)]

    grants = lanes.grants("ann")
    assert shape(grants) == {f"id:{one}": [one] for one in ids}
    assert lanes.finish(*grants) == [True, True]


def test_messages_without_a_key_may_go_to_the_dead_letters(make_lanes: MakeLanes) -> None:
    lanes = make_lanes(keyless="dead")
    dead = lanes("XADD", lanes.stream, "*", "other", "x").decode()
    alive = lanes.add("a")

    assert shape(lanes.grants("ann")) == {"a": [alive]}
    [letter] = lanes.letters()
    assert (letter["hr:id"], letter["other"], letter["hr:attempts"]) == (dead, "x", "0")
    assert letter["hr:error"] == "no key: the message has none of k, key"
    assert [entry.id for entry in lanes.client.stream(lanes.stream).range()] == [alive]


# When consumers end


def test_a_key_goes_on_when_its_lease_has_ended(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(3)]
    [late] = lanes.grants("ann", run=2, lease_ms=SHORT_MS)

    [grant] = lanes.wait_for_grants("bob", run=2)
    assert (ids_of(grant), grant.attempt, grant.last_error) == (ids[:2], 2, "")
    assert grant.fence > late.fence
    assert lanes.pending() == [(ids[0], "bob", 2), (ids[1], "bob", 1), (ids[2], "lanes", 1)]
    assert lanes.finish(late) == [False]
    assert lanes.finish(grant) == [True]


def test_the_earliest_lease_is_served_first(lanes: Lanes) -> None:
    for key in "abc":
        lanes.add(key)
    for leases, grant in zip((6, 2, 4), lanes.grants("ann"), strict=True):
        lanes.run("extend", "ann", lanes.session("ann"), leases * SHORT_MS, [(grant.key, grant.fence)])
    ends = {key: lanes.ticket(key).until_ms for key in "abc"}  # b, c and a, unless the machine was held up meanwhile.

    keys: list[str] = []
    while len(keys) < 3:
        keys += [grant.key for grant in lanes.grants("bob", keys=1)]
    assert keys == sorted(ends, key=lambda key: (ends[key], key))


def test_registering_again_frees_the_keys_of_the_name_at_once(lanes: Lanes) -> None:
    ids = [lanes.add(key) for key in "ab"]
    before = lanes.register("ann").number
    grants = lanes.grants("ann")

    assert lanes.register("ann").number > before
    for step, *words in (("take", LONG_MS, 1, 1), ("extend", LONG_MS, []), ("leave",)):
        with pytest.raises(Fenced, match="register again"):
            lanes.run(step, "ann", before, *words)
    assert lanes.finish(*grants) == [False, False]
    again = lanes.grants("bob")
    assert shape(again) == {"a": [ids[0]], "b": [ids[1]]}
    assert [grant.attempt for grant in again] == [2, 2]


def test_who_is_not_registered_is_refused(lanes: Lanes) -> None:
    with pytest.raises(Fenced):
        lanes.run("take", "nobody", 7, LONG_MS, 1, 1)
    for name in ("lanes", "master", ""):
        with pytest.raises(CommandError):
            lanes.register(name)


def test_leaving_gives_keys_back_and_counts_no_attempt(lanes: Lanes) -> None:
    ids = [lanes.add(key) for key in "aab"]
    lanes.grants("ann", run=2)

    assert lanes.run("leave", "ann", lanes.session("ann")) == 2
    assert lanes.run("leave", "ann", lanes.session("ann")) == 0
    assert lanes.run("consumers") == []
    assert [row[1] for row in lanes.pending()] == ["lanes"] * 3
    again = lanes.grants("bob")
    assert shape(again) == {"a": [ids[0]], "b": [ids[2]]}
    assert [grant.attempt for grant in again] == [1, 1]
    names = [row[row.index(b"name") + 1] for row in map(flat, lanes("XINFO", "CONSUMERS", lanes.stream, GROUP))]
    assert b"ann" not in names


def flat(row: Any) -> list[Any]:
    return [word for pair in row.items() for word in pair] if isinstance(row, dict) else row


# What others do to the stream


def test_a_message_acknowledged_by_hand_is_passed_over(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(4)]
    [grant] = lanes.grants("ann", run=2, lease_ms=SHORT_MS)
    lanes("XACK", lanes.stream, GROUP, ids[0], ids[2])

    [grant] = lanes.wait_for_grants("bob", run=2)
    assert (ids_of(grant), grant.attempt) == ([ids[1], ids[3]], 1)
    assert lanes.finish(grant) == [True]
    assert lanes.ticket("a") is None


def test_a_key_whose_messages_were_all_acknowledged_by_hand_is_forgotten(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(2)]
    lanes.grants("ann", keys=2)
    lanes.run("leave", "ann", lanes.sessions.pop("ann").number)
    lanes("XACK", lanes.stream, GROUP, *ids)

    assert lanes.take("bob") == Taken([], None)
    assert lanes.ticket("a") is None
    assert lanes.run("info").keys == 0


def test_a_deleted_message_is_passed_over_and_acknowledged(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(3)]
    lanes.grants("ann", run=3)
    lanes.run("leave", "ann", lanes.sessions.pop("ann").number)
    lanes("XDEL", lanes.stream, ids[0], ids[1])

    assert shape(lanes.grants("bob")) == {"a": [ids[2]]}
    assert lanes.pending() == [(ids[2], "bob", 1)]


def test_what_somebody_waited_for_comes_first(lanes: Lanes) -> None:
    first, second = lanes.add("a"), lanes.add("a")
    assert lanes.run("wait", 1000) is True
    third = lanes.add("a")

    assert lanes.pending() == [(first, "master", 1)]
    assert lanes.run("info").strays == 1
    assert shape(lanes.grants("ann", run=10)) == {"a": [first, second, third]}
    assert lanes.run("wait", 1) is False


def test_messages_that_are_read_again_are_not_done_twice(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(4)]
    [grant] = lanes.grants("ann", run=2)
    lanes("XGROUP", "SETID", lanes.stream, GROUP, "0")
    last = lanes.add("a")

    assert lanes.grants("bob") == []
    assert lanes.lane("a") == [*ids, last]
    assert [row[1] for row in lanes.pending()] == ["ann", "ann", "lanes", "lanes", "lanes"]
    assert lanes.finish(grant) == [True]
    assert shape(lanes.grants("bob", run=10)) == {"a": [*ids[2:], last]}


def test_a_late_stray_comes_at_its_place_but_behind_what_was_given(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(5)]
    [grant] = lanes.grants("ann", keys=1, run=5)
    lanes.run("leave", "ann", lanes.sessions.pop("ann").number)
    for one in (ids[0], ids[3]):  # As if they had never been in their lane.
        lanes("XACK", lanes.stream, GROUP, one)
    [grant] = lanes.grants("bob", keys=1, run=2)
    assert ids_of(grant) == ids[1:3]
    for one in (ids[0], ids[3]):
        lanes("XCLAIM", lanes.stream, GROUP, "master", 0, one, "FORCE", "JUSTID")

    assert lanes.grants("ann") == []
    assert lanes.lane("a") == [ids[1], ids[2], ids[0], ids[3], ids[4]]
    assert lanes.finish(grant) == [True]
    assert shape(lanes.grants("ann", run=10)) == {"a": [ids[0], ids[3], ids[4]]}


def test_a_deleted_map_of_tickets_is_made_anew(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(3)]
    [grant] = lanes.grants("ann", run=1)
    lanes.grants("bob")
    lanes("DEL", lanes.order.tickets)

    last = lanes.add("a")
    again = lanes.grants("bob", run=10) or lanes.grants("bob", run=10)
    assert shape(again) == {"a": [*ids, last]}
    assert lanes.finish(grant) == [False]
    assert lanes.finish(*again) == [True]


def test_a_rebuild_begins_by_itself_when_all_tickets_are_gone(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(2)]
    lanes.grants("ann", keys=2)
    lanes.run("leave", "ann", lanes.sessions.pop("ann").number)
    lanes("DEL", lanes.order.tickets, lanes.order.keys[2])

    assert lanes.take("bob") == Taken([], 0)
    lanes.end_rebuild()
    assert shape(lanes.grants("bob", run=5)) == {"a": ids}


@pytest.mark.parametrize("nonsense", ["", "held", "held 1 2", "held 1 2 3 0 ann", "gone 1 2 3", "ready x", "parked 1"])
def test_nonsense_in_a_ticket_counts_as_ready(lanes: Lanes, nonsense: str) -> None:
    first = lanes.add("a")
    [grant] = lanes.grants("ann", lease_ms=SHORT_MS)
    lanes("HSET", lanes.order.tickets, "a", nonsense)

    assert lanes.finish(grant) == [False]
    [again] = lanes.wait_for_grants("bob")
    assert (ids_of(again), again.attempt) == ([first], 1)
    assert lanes.finish(again) == [True]


def test_a_key_whose_ticket_is_nonsense_goes_on_with_its_next_message(lanes: Lanes) -> None:
    lanes.session("ann")
    lanes("HSET", lanes.order.tickets, "a", "nonsense")
    first = lanes.add("a")

    assert shape(lanes.grants("ann")) == {"a": [first]}


@pytest.mark.parametrize("is_set_back", [False, True])
@pytest.mark.parametrize("nonsense", ["nonsense", "", "1-1-1", "9" * 60])
def test_nonsense_in_a_lane_is_passed_over(lanes: Lanes, nonsense: str, is_set_back: bool) -> None:
    first = [lanes.add("a") for _ in range(2)]
    [grant] = lanes.grants("ann", run=2)
    if lanes.settings.layout == "list":
        lanes("RPUSH", f"hr:{{{lanes.stream}}}:{GROUP}:lane:a", nonsense)
    else:
        lanes("ZADD", lanes.order.keys[7], 0, f"1:a:9{nonsense}")
    if is_set_back:
        lanes("XGROUP", "SETID", lanes.stream, GROUP, 0)
    more = [lanes.add("a") for _ in range(2)]

    assert lanes.grants("bob") == []
    assert ids_of(grant) == first
    assert lanes.finish(grant) == [True]
    assert shape(lanes.grants("bob", run=9)) == {"a": more}
    assert [name for name, *_ in lanes.pending()] == more


def test_what_has_the_name_of_a_lane_and_is_none_goes(lanes: Lanes) -> None:
    lanes("SET", f"hr:{{{lanes.stream}}}:{GROUP}:lane:a", "text")
    first = lanes.add("a")

    [grant] = lanes.grants("ann")
    assert shape([grant]) == {"a": [first]}
    assert lanes.finish(grant) == [True]


# Refusals


def test_a_group_must_be_set_up_first(make_lanes: MakeLanes) -> None:
    lanes = make_lanes(configure=False)
    lanes("XGROUP", "CREATE", lanes.stream, GROUP, "0", "MKSTREAM")
    for step, *words in (
        ("register", "ann"), ("take", "ann", 1, LONG_MS, 1, 1), ("extend", "ann", 1, LONG_MS, []), ("leave", "ann", 1),
        ("park", "a"), ("resume", "a"), ("rebuild",), ("info",), ("info_key", "a"), ("settle", [Back("a", 1)]),
    ):  # fmt: skip
        with pytest.raises(NoLanes, match=r"LANE\.CONFIG first"):
            lanes.run(step, *words)


def test_a_missing_group_is_named(make_lanes: MakeLanes) -> None:
    lanes = make_lanes(configure=False)
    with pytest.raises(NotFound, match=f"stream '{lanes.stream}' has no group '{GROUP}'"):
        lanes.run("config")
    lanes("XGROUP", "CREATE", lanes.stream, GROUP, "0", "MKSTREAM")
    lanes.configure()
    session = lanes.session("ann")
    lanes("XGROUP", "DESTROY", lanes.stream, GROUP)
    with pytest.raises(NotFound, match=f"has no group '{GROUP}'"):
        lanes.run("take", "ann", session, LONG_MS, 1, 1)


def test_keys_of_other_types_are_refused(lanes: Lanes) -> None:
    lanes.add("a")
    lanes.session("ann")
    for place in (1, 2, 3):
        key = lanes.order.keys[place]
        lanes("DEL", key)
        lanes("SET", key, "x")
        with pytest.raises((WrongType, CommandError), match=r"wrong kind of value|is not a stream"):
            lanes.take("ann")
        lanes("DEL", key)
    assert lanes.pending() == []
    assert len(lanes.grants("ann")) == 1


def test_numbers_out_of_range_are_refused(lanes: Lanes) -> None:
    session = lanes.session("ann")
    lanes.add("a")
    for numbers in ((0, 1, 1), (LONG_MS, 0, 1), (LONG_MS, 1, 0), (LONG_MS, -1, 1), (LONG_MS, 1, 1, -1)):
        with pytest.raises(CommandError):
            lanes.run("take", "ann", session, *numbers)
    assert lanes.pending() == []

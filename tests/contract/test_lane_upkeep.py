"""Order per key on every deployment: settings, leases, standing still, rebuilding, and what can be seen of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.client.lane_keys import Settings
from headrace.client.lane_steps import Fail, Taken
from headrace.client.lane_views import Registered
from headrace.errors import CommandError
from support.ordered import GROUP, LONG_MS, SHORT_MS, Lanes, MakeLanes, ids_of, shape

pytestmark = pytest.mark.any_socket


# Extending


def test_a_lease_that_is_extended_does_not_end(lanes: Lanes) -> None:
    for key in "ab":
        lanes.add(key)
    [a, b] = lanes.grants("ann", lease_ms=LONG_MS)
    session = lanes.session("ann")
    before = lanes.ticket("a").until_ms

    held = [("a", a.fence), ("b", b.fence + 1), ("c", 7)]
    assert lanes.run("extend", "ann", session, 2 * LONG_MS, held) == [True, False, False]
    assert lanes.ticket("a").until_ms >= before + LONG_MS
    assert lanes.ticket("b").until_ms <= before
    assert lanes.run("extend", "ann", session, LONG_MS, []) == []
    assert lanes.run("extend", "bob", lanes.session("bob"), LONG_MS, [("a", a.fence)]) == [False]
    assert lanes.finish(a, b) == [True, True]


def test_an_extension_shortens_a_lease_too(lanes: Lanes) -> None:
    first = lanes.add("a")
    [grant] = lanes.grants("ann")
    assert lanes.run("extend", "ann", lanes.session("ann"), SHORT_MS, [("a", grant.fence)]) == [True]

    [again] = lanes.wait_for_grants("bob")
    assert (ids_of(again), again.attempt) == ([first], 2)
    assert lanes.run("extend", "ann", lanes.session("ann"), LONG_MS, [("a", grant.fence)]) == [False]


def test_what_was_acknowledged_by_hand_is_seen_when_extending(lanes: Lanes) -> None:
    ids = [lanes.add("a") for _ in range(4)]
    [grant] = lanes.grants("ann", run=3)
    session = lanes.session("ann")

    lanes("XACK", lanes.stream, GROUP, ids[0])
    assert lanes.run("extend", "ann", session, LONG_MS, [("a", grant.fence)]) == [True]
    assert (lanes.lane("a"), lanes.ticket("a").given, lanes.ticket("a").attempts) == (ids[1:], 2, 1)
    lanes("XACK", lanes.stream, GROUP, ids[1], ids[2])
    assert lanes.run("extend", "ann", session, LONG_MS, [("a", grant.fence)]) == [False]
    assert shape(lanes.grants("bob")) == {"a": [ids[3]]}
    lanes("XACK", lanes.stream, GROUP, ids[3])
    fence = lanes.ticket("a").fence
    assert lanes.run("extend", "bob", lanes.session("bob"), LONG_MS, [("a", fence)]) == [False]
    assert lanes.ticket("a") is None


def test_keys_of_a_lost_answer_are_given_back(lanes: Lanes) -> None:
    ids = [lanes.add(key) for key in "abc"]
    [known] = lanes.grants("ann", keys=1)
    lanes.grants("ann")  # This answer is lost.

    assert lanes.run("extend", "ann", lanes.session("ann"), LONG_MS, [("a", known.fence)], only=True) == [True]
    again = lanes.grants("bob")
    assert shape(again) == {"b": [ids[1]], "c": [ids[2]]}
    assert [grant.attempt for grant in again] == [1, 1]
    assert lanes.finish(known) == [True]


# Standing still


def test_any_key_can_be_parked_and_its_holder_is_fenced(lanes: Lanes) -> None:
    ids = [lanes.add(key) for key in "aab"]
    [a, b] = lanes.grants("ann")
    lanes.settle(Fail("b", b.fence, ids[2], LONG_MS, "slow"))

    assert lanes.run("park", "a", "by hand") is True
    assert lanes.run("park", "b") is True
    assert lanes.run("park", "nobody") is False
    assert lanes.finish(a) == [False]
    assert (lanes.ticket("a").state, lanes.ticket("a").error) == ("parked", "by hand")
    assert (lanes.ticket("b").state, lanes.ticket("b").error) == ("parked", "slow")
    assert lanes.run("info").timed == 0
    assert lanes.take("bob") == Taken([], None)


def test_a_ready_key_that_is_parked_leaves_the_queue(lanes: Lanes) -> None:
    lanes.add("a")
    lanes.run("wait", 1)
    lanes.register("ann")
    lanes.run("register", "bob")
    first = lanes.add("b")
    [b] = lanes.grants("ann", keys=2)[1:]
    lanes.run("leave", "ann", lanes.sessions.pop("ann").number)

    assert lanes.run("info").ready == 2
    assert lanes.run("park", "a") is True
    assert lanes.run("info").ready == 1
    assert shape(lanes.grants("bob")) == {"b": [first]}
    assert b.key == "b"


def test_a_key_that_is_resumed_goes_on_with_or_without_its_first_message(lanes: Lanes) -> None:
    ids = [lanes.add("a", n=number) for number in range(3)]
    [grant] = lanes.grants("ann")
    lanes.settle(Fail("a", grant.fence, ids[0], 0, "bad"))
    lanes.grants("ann")
    lanes.run("park", "a", "look")

    assert lanes.run("resume", "a", skip=True) is True
    [letter] = lanes.letters()
    assert (letter["hr:id"], letter["hr:attempts"], letter["hr:error"]) == (ids[0], "2", "look")
    assert lanes.run("resume", "a", skip=True) is False  # It is ready now.
    assert lanes.run("resume", "nobody") is False
    [grant] = lanes.grants("ann", run=5)
    assert (ids_of(grant), grant.attempt) == (ids[1:], 1)
    lanes.run("park", "a")
    assert lanes.run("resume", "a") is True
    assert shape(lanes.grants("bob", run=5)) == {"a": ids[1:]}


def test_a_skipped_last_message_ends_the_key(lanes: Lanes) -> None:
    lanes.add("a")
    lanes.grants("ann")
    lanes.run("park", "a")

    assert lanes.run("resume", "a", skip=True) is True
    assert lanes.ticket("a") is None
    assert lanes.letters()[0]["hr:error"] == "skipped"
    assert (lanes.pending(), lanes("XLEN", lanes.stream)) == ([], 0)


# Settings and rebuilding


def test_the_same_settings_again_change_nothing(lanes: Lanes) -> None:
    lanes.add("a")
    [grant] = lanes.grants("ann")
    lanes.run("config")
    lanes.configure(poison="skip", max_attempts=4, keyless="dead", lease_ms=5000)

    assert lanes.finish(grant) == [True]
    assert lanes.register("ann").lease_ms == 5000
    found = lanes.run("info").settings
    assert (found.poison, found.max_attempts, found.keyless, found.lease_ms) == ("skip", 4, "dead", 5000)


def test_other_key_fields_put_all_messages_into_new_lanes(lanes: Lanes) -> None:
    ids = [lanes.add("a", other="xyx"[number]) for number in range(3)]
    [grant] = lanes.grants("ann", run=2)
    lanes.configure(keyfields=("other",))

    assert lanes.finish(grant) == [False]
    assert shape(lanes.grants("bob", run=5)) == {"x": [ids[0], ids[2]], "y": [ids[1]]}


def test_messages_that_were_pending_before_are_taken_over_in_order(make_lanes: MakeLanes) -> None:
    lanes = make_lanes(configure=False)
    lanes("XGROUP", "CREATE", lanes.stream, GROUP, "0", "MKSTREAM")
    lanes.client.stream(lanes.stream).add_many([{"k": str(number % 7)} for number in range(2300)])
    ids = [entry.id for entry in lanes.client.stream(lanes.stream).range()]
    for start in range(0, 2300, 500):
        lanes("XREADGROUP", "GROUP", GROUP, f"c{start}", "COUNT", 500, "STREAMS", lanes.stream, ">")
    lanes("XDEL", lanes.stream, ids[7])
    lanes.configure()

    info = lanes.run("info")
    assert (info.keys, info.ready, info.is_rebuilding) == (7, 7, False)
    assert [row[1:] for row in lanes.pending()] == [("lanes", 1)] * 2299
    grants = lanes.grants("ann", run=140)
    assert shape(grants)["1"] == ids[1::7][:140]
    assert shape(grants)["0"] == [one for one in ids[::7] if one != ids[7]][:140]


def test_a_rebuild_fences_holders_and_lets_parked_keys_go_on(lanes: Lanes) -> None:
    ids = [lanes.add(key) for key in "abab"]
    [a, b] = lanes.grants("ann")
    lanes.run("park", "b", "x")
    lanes.run("wait", 1)
    lanes.run("rebuild")
    lanes.end_rebuild()

    assert lanes.finish(a, b) == [False, False]
    assert shape(lanes.grants("bob", run=5)) == {"a": ids[::2], "b": ids[1::2]}


def test_the_maps_may_have_names_of_ones_own(make_lanes: MakeLanes) -> None:
    lanes = make_lanes(configure=False)
    tag = f"{{{lanes.stream}}}"
    lanes("XGROUP", "CREATE", lanes.stream, GROUP, "0", "MKSTREAM")
    lanes.configure(tickets=f"tickets{tag}", consumers=f"consumers{tag}")
    lanes.add("a")
    [grant] = lanes.grants("ann")

    assert lanes("HKEYS", f"tickets{tag}") == [b"a"]
    assert lanes("HKEYS", f"consumers{tag}") == [b"ann"]
    assert [key for key, _ in lanes.run("tickets").tickets] == ["a"]
    lanes.configure(tickets=None, consumers=None)
    assert lanes("EXISTS", f"tickets{tag}") == 0
    assert lanes.finish(grant) == [False]
    assert len(lanes.run("tickets").tickets) == 1
    for name in (lanes.stream, lanes.order.dead, lanes.order.consumers):
        broken = replace(lanes.order, settings=replace(lanes.settings, tickets=name))
        lanes.order, order = broken, lanes.order
        with pytest.raises(CommandError):
            lanes.run("config")
        lanes.order = order


# Looking


def test_settings_keys_and_consumers_can_be_seen(make_lanes: MakeLanes) -> None:
    lanes = make_lanes(
        keyfields=("k", "é"), poison="skip", max_attempts=3, keyless="dead", lease_ms=1234, reader="boss"
    )
    ids = [lanes.add(key) for key in "aab"]
    lanes.register("ann", 4, "http://ann/api/health")
    [a, b] = lanes.grants("ann")
    lanes.settle(Fail("b", b.fence, ids[2], LONG_MS, "slow"))
    lanes.run("wait", 1)

    info = lanes.run("info")
    settings = replace(lanes.settings, layout=info.settings.layout)
    assert info.settings == settings
    assert (info.keys, info.ready, info.timed, info.registered, info.strays) == (2, 0, 2, 1, 0)
    assert (info.last_fence, info.is_rebuilding) == (b.fence, False)
    key = lanes.run("info_key", "a")
    assert (key.ticket.state, key.ticket.fence, key.ticket.consumer, key.ticket.given) == ("held", a.fence, "ann", 1)
    assert (key.length, key.ids) == (1 if len(key.ids) == 1 else 2, key.ids)
    assert key.ids[0] == ids[0]
    assert lanes.run("info_key", "nobody") is None
    tickets = dict(lanes.run("tickets").tickets)
    assert tickets == {"a": key.ticket, "b": lanes.ticket("b")}
    [ann] = lanes.run("consumers")
    assert ann == Registered("ann", lanes.session("ann"), ann.heartbeat_ms, 4, "http://ann/api/health")
    assert ann.heartbeat_ms > 1_600_000_000_000


def test_settings_are_found_by_stream_and_group(lanes: Lanes) -> None:
    found = lanes.client.run(find(lanes.stream, GROUP))
    assert found == replace(lanes.settings, layout=found.layout)
    assert isinstance(found, Settings)
    assert lanes.client.run(find(lanes.stream, "nobody")) is None


def find(stream: str, group: str):  # type: ignore[no-untyped-def]
    from headrace.client.flows import Facts
    from headrace.client.lane_views import find_settings

    return find_settings(Facts(), stream, group)

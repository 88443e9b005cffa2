"""Order per key on every deployment: keys that somebody deleted by hand come back by themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.client.lane_steps import Fail, Taken
from headrace.client.lane_views import find_settings
from support.ordered import GROUP, SHORT_MS, Lanes, ids_of, shape
from support.servers import wait_until

pytestmark = pytest.mark.any_socket


def give_all_back(lanes: Lanes, consumer: str) -> None:
    lanes.run("leave", consumer, lanes.sessions.pop(consumer).number)


def delete(lanes: Lanes, part: str) -> None:
    assert lanes("DEL", f"hr:{{{lanes.stream}}}:{GROUP}:{part}") == 1


def test_keys_are_given_out_after_the_list_of_ready_ones_was_deleted(lanes: Lanes) -> None:
    ids = [lanes.add(key) for key in "aab"]
    lanes.grants("ann", run=2)
    give_all_back(lanes, "ann")
    delete(lanes, "ready")
    ids.append(lanes.add("c"))

    assert lanes.take("bob").wait_ms == 0  # It found the new key, and that others stand still.
    assert shape(lanes.grants("bob", run=2)) in ({"a": ids[:2], "b": [ids[2]]}, {"b": [ids[2]], "a": ids[:2]})
    assert lanes.run("info").ready == 0


def test_leases_end_after_the_set_of_times_was_deleted(lanes: Lanes) -> None:
    first = lanes.add("a")
    [grant] = lanes.grants("ann", lease_ms=SHORT_MS)
    delete(lanes, "until")

    [again] = lanes.wait_for_grants("bob")
    assert (ids_of(again), again.attempt) == ([first], 2)
    assert lanes.finish(grant) == [False]
    assert lanes.finish(again) == [True]


def test_a_lease_that_goes_on_is_kept_when_the_set_of_times_is_deleted(lanes: Lanes) -> None:
    lanes.add("a")
    [grant] = lanes.grants("ann")
    until_ms = lanes.ticket("a").until_ms
    delete(lanes, "until")

    assert lanes.take("bob") == Taken([], 0)
    assert lanes.run("info").timed == 1
    assert lanes.ticket("a").until_ms == until_ms
    assert lanes.finish(grant) == [True]
    assert lanes.left() == [f"hr:{{{lanes.stream}}}:{GROUP}:consumers".encode()]


def test_a_failed_message_is_tried_again_after_the_set_of_times_was_deleted(lanes: Lanes) -> None:
    first = lanes.add("a")
    [grant] = lanes.grants("ann")
    assert lanes.settle(Fail("a", grant.fence, first, SHORT_MS, "no")) == [True]
    delete(lanes, "until")

    [again] = lanes.wait_for_grants("bob")
    assert (ids_of(again), again.attempt, again.last_error) == ([first], 2, "no")


def test_a_key_between_parked_ones_is_found_again(lanes: Lanes) -> None:
    """Parked keys have no place in a queue either."""
    ids = {key: lanes.add(key) for key in (str(number) for number in range(30))}
    lanes.grants("ann", keys=30)
    give_all_back(lanes, "ann")
    for key in ids:
        if key != "17":
            assert lanes.run("park", key, "") is True
    assert lanes("LRANGE", lanes.order.keys[2], 0, -1) == [b"17"]
    delete(lanes, "ready")

    assert shape(lanes.wait_for_grants("bob")) == {"17": [ids["17"]]}
    assert lanes.grants("bob") == []
    assert lanes.run("info").ready == 0


def test_more_keys_than_one_look_are_found_again(lanes: Lanes) -> None:
    keys = {str(number) for number in range(2500)}
    for key in keys:
        lanes.add(key)
    for _ in range(3):
        lanes.grants("ann", keys=1000)
    give_all_back(lanes, "ann")
    delete(lanes, "ready")

    found: set[str] = set()

    def take() -> bool:
        found.update(grant.key for grant in lanes.grants("bob", keys=1000))
        return found == keys

    wait_until(take, "all keys")


@pytest.mark.parametrize(
    "nonsense", ["", "x", "1 2 3", "0 999999999999999999999999999", "99999999999999999999 x", "- -"]
)
def test_nonsense_about_the_last_look_does_no_harm(lanes: Lanes, nonsense: str) -> None:
    first = lanes.add("a")
    lanes.grants("ann")
    give_all_back(lanes, "ann")
    delete(lanes, "ready")
    lanes("HSET", lanes.order.keys[5], "looked", nonsense)

    assert lanes.take("bob").wait_ms == 0
    assert shape(lanes.grants("bob")) == {"a": [first]}


@pytest.mark.parametrize(
    ("field", "nonsense"),
    [("poison", "x"), ("maxattempts", "x"), ("keyless", ""), ("lease", "-1"), ("layout", "x"), ("tickets", None)],
)
def test_settings_that_make_no_sense_are_the_usual_ones(lanes: Lanes, field: str, nonsense: str | None) -> None:
    place, before = lanes.order.keys[5], lanes.client.run(find_settings(None, lanes.stream, GROUP))
    if nonsense is None:
        lanes("HDEL", place, field)
    else:
        lanes("HSET", place, field, nonsense)

    after = replace(before, layout="list") if field == "layout" else before
    assert lanes.client.run(find_settings(None, lanes.stream, GROUP)) == after


@pytest.mark.parametrize("nonsense", ["", "x", "999999999999:k", ":", "0:"])
def test_names_of_fields_that_make_no_sense_are_none(lanes: Lanes, nonsense: str) -> None:
    lanes("HSET", lanes.order.keys[5], "keyfields", nonsense)

    assert lanes.client.run(find_settings(None, lanes.stream, GROUP)) is None

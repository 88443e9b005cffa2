"""Who gets which key: rows 142, 172, 234, 241 and 250."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from support.naive_master import GROUP
from support.ordered_group import SHORT_MS, OrderedGroup, numbers
from support.ordering_scene import Scene

pytestmark = pytest.mark.any_socket


def lines_of(scene: Scene, ticket: str) -> list[int]:
    return [int(line.split()[0]) for line in scene.done(ticket)]


# Row 172: order in each of the three ways to share a stream.


def test_one_consumer_keeps_the_order_of_a_stream(scene: Scene) -> None:
    ids = scene.add("7", *range(50))
    group = scene.client.stream(scene.stream).group(GROUP)

    assert [entry.id for part in range(5) for entry in group.read("ann", count=10)] == ids


def test_several_streams_with_a_consumer_each_keep_the_order_of_each(scene: Scene) -> None:
    names = [f"{scene.stream}:{number}" for number in range(3)]
    for name in names:
        scene.client.stream(name).group(GROUP).create(start="beginning")
    for number in range(30):
        scene.client.stream(names[number % 3]).add({"n": str(number)})

    for place, name in enumerate(names):
        read = scene.client.stream(name).group(GROUP).read("ann", count=100)
        assert [int(entry.fields["n"]) for entry in read] == list(range(place, 30, 3))


def test_several_consumers_of_one_stream_share_it_and_lose_its_order_but_not_with_lanes(scene: Scene) -> None:
    scene.add("7", *range(10))
    group = scene.client.stream(scene.stream).group(GROUP)
    ann, bob = group.read("ann", count=5), group.read("bob", count=5)
    handled = [int(entry.fields["n"]) for pair in zip(bob, ann, strict=True) for entry in pair]  # bob is quicker.
    assert handled != sorted(handled)

    lanes = scene.lanes()  # The same entries, pending with ann and bob: they are put into their lane.
    lanes.drain("carol", "dave", "erin")
    assert lines_of(scene, "7") == list(range(10))


# Row 142: what a consumer leaves behind is with live ones when its lease has ended.


def test_keys_of_a_dead_consumer_are_with_live_ones_in_order(scene: Scene) -> None:
    lanes = scene.lanes()
    for number in range(3):
        for ticket in range(20):
            scene.add(str(ticket), number)
    assert len(lanes.take("ann", keys=20, run=2, lease_ms=SHORT_MS)) == 20  # And dies.

    taken = [lanes.take_when_free("bob", keys=10, run=5)]
    taken += [lanes.take_when_free("carol", keys=20 - len(taken[0]), run=5)]

    grants = [grant for part in taken for grant in part]
    assert sorted(int(grant.key) for grant in grants) == list(range(20))
    assert all(numbers([grant]) == ["0", "1", "2"] and grant.attempt == 2 for grant in grants)
    assert set(scene.owners().values()) == {"bob", "carol"}


# Row 241: keys are spread evenly over consumers of the same pace.


def test_equal_consumers_have_equal_shares(scene: Scene) -> None:
    lanes = scene.lanes()
    consumers = ["ann", "bob", "carol", "dave"]
    for ticket in range(200):
        scene.add(str(ticket), 1)
    shares: Counter[str] = Counter()
    while sum(shares.values()) < 200:
        for name in random.Random(1).sample(consumers, 4):
            for grant in lanes.take(name):
                shares[name] += 1
                assert lanes.done(grant)

    assert all(0.8 * 50 <= shares[name] <= 1.2 * 50 for name in consumers)


# Row 234: all there is beside the stream can be lost.


def test_lanes_are_rebuilt_from_the_stream_and_what_is_pending(scene: Scene) -> None:
    lanes = scene.lanes()
    for number in range(5):
        for ticket in ("7", "8", "9"):
            scene.add(ticket, number)
    [done, late, held] = lanes.take("ann", keys=3, run=2)
    assert lanes.done(done)
    scene.client.command("DEL", lanes.order.tickets, lanes.order.consumers)

    lanes.step("rebuild")
    lanes.sessions.clear()
    assert not lanes.done(late) and not lanes.done(held)  # Whoever held a key does not any more.
    lanes.drain("ann", "bob", run=2)

    for ticket in ("7", "8", "9"):
        assert lines_of(scene, ticket) == list(range(5))
    assert (scene.owners(), lanes.tickets()) == ({}, 0)


# Row 250: 2 consumers, then 8, then 2, while messages come.


def test_consumers_come_and_go_while_messages_come(scene: Scene) -> None:
    lanes = scene.lanes()
    crews = [["c1", "c2"], [f"c{number}" for number in range(1, 9)], ["c1", "c2"]]
    numbered: Counter[str] = Counter()
    chance = random.Random(2)
    for crew in crews:
        for _ in range(8):
            for _ in range(25):
                ticket = str(chance.randrange(20))
                scene.add(ticket, numbered[ticket])
                numbered[ticket] += 1
            work_in_turns(lanes, crew, chance)
        for name in sorted(set(lanes.sessions) - {"c1", "c2"}):
            lanes.step("leave", name, lanes.sessions.pop(name).number)
    lanes.drain("c1", "c2")

    assert {ticket: lines_of(scene, ticket) for ticket in numbered} == {
        ticket: list(range(count)) for ticket, count in numbered.items()
    }
    assert (scene.owners(), lanes.tickets()) == ({}, 0)


def work_in_turns(lanes: OrderedGroup, crew: list[str], chance: random.Random) -> None:
    """Each takes a few keys, at the same time as the others, and finishes some of what it has."""
    taken = [(name, grant) for name in crew for grant in lanes.take(name, keys=3, run=3)]
    chance.shuffle(taken)
    for name, grant in taken:
        if chance.random() < 0.2:
            assert lanes.back(grant)
        else:
            assert lanes.done(grant, by=name)

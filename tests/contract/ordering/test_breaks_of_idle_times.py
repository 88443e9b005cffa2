"""Breaks 3-6: the naive pattern takes the idle time and the count of deliveries for what they are not."""

from __future__ import annotations

import pytest

from support.naive_master import GROUP, Health, pairs_of
from support.ordered_group import SHORT_MS, numbers, wait_for
from support.ordering_scene import Scene, join

pytestmark = pytest.mark.any_socket

EVERYBODY = Health()


# Break 3: XAUTOCLAIM filters by idle time: an older message that was touched lately is left out.


def test_naive_recovery_takes_the_younger_message_first(scene: Scene) -> None:
    master = scene.master()
    [ann] = join(master, "ann")
    older, younger = scene.add("7", 1, 2)
    master.read()  # And dies. Then somebody looks at the older one.
    scene.set_idle(younger)

    found = scene.master().recover_idle(30_000, EVERYBODY)

    assert [message.number for message in found] == ["2"]
    assert [message.number for message in ann.poll()] == ["2"]
    assert scene.owners()[older] == "master"


def test_lanes_the_older_message_goes_first_whatever_its_idle_time(scene: Scene) -> None:
    lanes = scene.lanes()
    _, younger = scene.add("7", 1, 2)
    scene.master().read()
    scene.set_idle(younger)

    assert numbers(lanes.take("ann", run=10)) == ["1", "2"]


# Break 4: XAUTOCLAIM also takes from those who are slow and healthy.


def test_naive_recovery_gives_the_message_of_a_slow_consumer_to_another(scene: Scene) -> None:
    master = scene.master()
    ann, bob = join(master, "ann", "bob")
    [entry_id] = scene.add("7", 1)
    [message] = master.read()
    master.claim(message.id, "ann")  # The note in the map is lost; that is what recovery of idle messages is for.
    [at_work] = ann.poll()
    scene.set_idle(entry_id)

    scene.master(choose=max).recover_idle(30_000, EVERYBODY)
    [again] = bob.poll()
    bob.finish(again)
    ann.finish(at_work)

    assert scene.done("7") == ["1 bob", "1 ann"]


def test_lanes_a_slow_consumer_that_extends_its_lease_keeps_the_key(scene: Scene) -> None:
    lanes = scene.lanes()
    [entry_id] = scene.add("7", 1)
    [grant] = lanes.take("ann")
    scene.set_idle(entry_id)

    assert lanes.extend("ann", grant) == [True]
    assert lanes.take("bob") == []
    assert lanes.done(grant, by="ann")

    assert scene.done("7") == ["1 ann"]


# Break 5: reading one's own messages again and again is what the pattern calls waiting.


def test_naive_a_consumer_polls_without_blocking_and_every_poll_counts_as_a_delivery(scene: Scene) -> None:
    master = scene.master()
    [ann] = join(master, "ann")
    reply = ann.raw_poll(block_ms=600_000)
    assert pairs_of(reply) == [(scene.stream.encode(), [])]  # Not nil after 10 minutes: BLOCK is ignored.

    [entry_id] = scene.add("7", 1)
    master.run()
    ann.poll()
    assert scene.deliveries(entry_id) == 3  # Before its first run.

    for _ in range(5):
        ann.poll()
    assert scene.deliveries(entry_id) == 8


def test_lanes_the_count_of_deliveries_is_the_attempt(scene: Scene) -> None:
    lanes = scene.lanes()
    assert lanes.take("ann") == []
    [entry_id] = scene.add("7", 1)
    [grant] = lanes.take("ann")
    for _ in range(5):
        assert lanes.extend("ann", grant) == [True]
        assert lanes.take("ann") == []
    assert (grant.attempt, scene.deliveries(entry_id)) == (1, 1)

    assert lanes.fail(grant)

    [grant] = lanes.take("bob")
    assert (grant.attempt, grant.last_error, scene.deliveries(entry_id)) == (2, "ValueError: no", 2)


# Break 6: what follows from break 5.


def test_naive_a_healthy_message_is_delivered_too_often_before_it_ran_once(scene: Scene) -> None:
    most_deliveries = 5
    master = scene.master()
    [ann] = join(master, "ann")
    _, second = scene.add("7", 1, 2)
    master.run()

    for _ in range(most_deliveries):
        ann.poll()  # Its loop goes on while it handles the first message of the key.

    assert scene.deliveries(second) > most_deliveries  # A dead letter, by the usual rule.
    assert scene.done("7") == []


def test_naive_recovery_never_finds_a_stuck_consumer_that_polls(scene: Scene) -> None:
    master = scene.master()
    [ann] = join(master, "ann")
    [entry_id] = scene.add("7", 1)
    master.run()
    scene.set_idle(entry_id)

    ann.poll()  # Its loop runs; its handler is stuck.

    assert scene.master().recover_idle(30_000, EVERYBODY) == []


def test_lanes_a_stuck_consumer_that_asks_for_more_loses_the_key(scene: Scene) -> None:
    lanes = scene.lanes(max_attempts=5)
    scene.add("7", 1)
    [stuck] = lanes.take("ann", lease_ms=SHORT_MS)

    wait_for(lambda: lanes.ticket("7").consumer != "ann" or lanes.take("bob") != [], "bob to have the key")

    assert (lanes.ticket("7").consumer, lanes.ticket("7").attempts) == ("bob", 2)
    assert not lanes.done(stuck, by="ann")
    assert scene.client.command("XPENDING", scene.stream, GROUP)[0] == 1

"""Breaks 14, 15 and 17-19: poison, runs, herds, deleted messages, and who gets the work in the naive pattern."""

from __future__ import annotations

import pytest

from support.naive_master import GROUP, Health
from support.ordered_group import OrderedGroup, numbers
from support.ordering_scene import Scene, join

pytestmark = pytest.mark.any_socket


# Break 14: a message that always fails.


@pytest.mark.parametrize("skips", [False, True])
def test_naive_a_poison_message_holds_its_key_for_ever_or_is_overtaken(scene: Scene, skips: bool) -> None:
    master = scene.master()
    [ann] = join(master, "ann")
    scene.add("7", 1, 2)
    master.run()

    for _ in range(20):
        for message in ann.poll():
            if message.number != "1":  # 1 always fails.
                ann.finish(message)
            elif not skips:
                break

    assert scene.done("7") == (["2 ann"] if skips else [])
    assert len(scene.owners()) == (1 if skips else 2)  # And nothing says that something is wrong.


def fail_until_it_is_enough(lanes: OrderedGroup, attempts: int) -> None:
    for attempt in range(1, attempts + 1):
        [grant] = lanes.take("ann")
        assert (numbers([grant]), grant.attempt) == (["1"], attempt)
        assert lanes.fail(grant)


def test_lanes_a_poison_message_parks_its_key_and_others_go_on(scene: Scene) -> None:
    lanes = scene.lanes(max_attempts=3)
    scene.add("7", 1, 2)
    fail_until_it_is_enough(lanes, 3)

    scene.add("8", 1)
    assert [(grant.key, numbers([grant])) for grant in lanes.take("bob", keys=10)] == [("8", ["1"])]
    ticket = lanes.ticket("7")
    assert (ticket.state, ticket.attempts, ticket.error) == ("parked", 3, "ValueError: no")  # For everybody to see.

    assert lanes.step("resume", "7", skip=True)
    assert numbers(lanes.take("bob", keys=10)) == ["2"]


def test_lanes_a_poison_message_is_skipped_where_that_is_wanted(scene: Scene) -> None:
    lanes = scene.lanes(max_attempts=3, poison="skip")
    scene.add("7", 1, 2)
    fail_until_it_is_enough(lanes, 3)

    assert numbers(lanes.take("ann")) == ["2"]
    [(_, words)] = scene.client.command("XRANGE", lanes.order.dead, "-", "+")
    letter = dict(zip(words[::2], words[1::2], strict=True))
    assert (letter[b"n"], letter[b"hr:attempts"]) == (b"1", b"3")


# Break 15: a consumer is given several messages of a key in one reply.


def test_naive_messages_of_one_key_finish_out_of_order_in_a_pool(scene: Scene) -> None:
    master = scene.master()
    [ann] = join(master, "ann")
    scene.add("7", 1, 2)
    master.run()

    one, two = ann.poll()  # Both to a pool of threads; the second is quicker.
    ann.finish(two)
    ann.finish(one)

    assert scene.done("7") == ["2 ann", "1 ann"]


def test_lanes_the_second_is_not_accepted_before_the_first(scene: Scene) -> None:
    lanes = scene.lanes()
    one, two = scene.add("7", 1, 2)
    [grant] = lanes.take("ann", run=2)

    assert not lanes.done(grant, [two], by="ann")
    assert lanes.done(grant, [one], by="ann")
    assert lanes.done(grant, [two], by="ann")

    assert scene.done("7") == ["1 ann", "2 ann"]


# Break 17: everything a dead consumer had moves at once.


def test_naive_all_keys_of_a_dead_consumer_fall_on_another_at_once(scene: Scene) -> None:
    master = scene.master()
    _, bob = join(master, "ann", "bob")
    for ticket in range(50):
        scene.add(str(ticket), 1)
    master.run()

    master.recover_offline(Health(silent={"ann"}))

    assert len(bob.poll()) == 50  # bob has room for one.


def test_lanes_keys_of_one_who_leaves_wait_until_somebody_has_room(scene: Scene) -> None:
    lanes = scene.lanes()
    for ticket in range(50):
        scene.add(str(ticket), 1)
    assert len(lanes.take("ann", keys=50)) == 50
    assert lanes.step("leave", "ann", lanes.sessions["ann"].number) == 50

    assert len(lanes.take("bob", keys=1)) == 1

    assert lanes.step("info").ready == 49
    assert len(lanes.take("carol", keys=9)) == 9


# Break 18: a message is deleted while it is pending.


def test_naive_a_deleted_message_stays_in_the_map_for_ever(scene: Scene) -> None:
    master = scene.master()
    ann, bob = join(master, "ann", "bob")
    [entry_id] = scene.add("7", 1)
    master.run()
    scene.client.command("XDEL", scene.stream, entry_id)
    assert [(message.id, message.ticket) for message in ann.poll()] == [(entry_id, "")]  # Nothing to work on.

    master.recover_offline(Health(silent={"ann"}))

    assert (scene.owners(), bob.poll()) == ({}, [])  # XCLAIM dropped it without a word.
    assert master.find(master.tickets, "7") == {"consumer_name": "bob", "message_ids": [entry_id]}


def test_lanes_a_deleted_message_is_passed_over(scene: Scene) -> None:
    lanes = scene.lanes()
    one, _, three = scene.add("7", 1, 2, 3)
    [first] = lanes.take("ann")
    scene.client.command("XDEL", scene.stream, one, three)
    assert lanes.done(first, by="ann")  # It had it already.

    lanes.drain("ann", "bob")

    assert [line.split()[0] for line in scene.done("7")] == ["1", "2"]
    assert (scene.owners(), lanes.tickets()) == ({}, 0)
    assert scene.client.command("XPENDING", scene.stream, GROUP)[0] == 0


# Break 19: who gets a key is decided when its message comes, not when somebody has room.


def test_naive_a_new_consumer_stays_idle_while_others_have_a_backlog(scene: Scene) -> None:
    master = scene.master()
    ann, bob = join(master, "ann", "bob")
    for ticket in range(20):
        scene.add(str(ticket), 1)
    turns = iter(["ann", "bob"] * 10)
    scene.master(choose=lambda _: next(turns)).run()

    [carol] = join(master, "carol")
    scene.master().run()

    assert (len(ann.poll()), len(bob.poll()), len(carol.poll())) == (10, 10, 0)


def test_lanes_a_new_consumer_has_work_at_once(scene: Scene) -> None:
    lanes = scene.lanes()
    for ticket in range(20):
        scene.add(str(ticket), 1)
    assert len(lanes.take("ann", run=100)) == len(lanes.take("bob", run=100)) == 1

    assert len(lanes.take("carol", keys=18)) == 18

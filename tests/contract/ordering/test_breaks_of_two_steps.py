"""Breaks 1, 2, 9-12 and 16: the naive pattern does in several steps what must happen at once."""

from __future__ import annotations

import pytest

from support.naive_master import Health, NaiveMaster
from support.ordered_group import SHORT_MS, numbers
from support.ordering_scene import Scene, join

pytestmark = pytest.mark.any_socket


# Break 1: the master dies after reading a message, before it delegates it.


def test_naive_a_later_message_overtakes_one_that_was_read_and_not_delegated(scene: Scene) -> None:
    [ann] = join(scene.master(), "ann")
    [first] = scene.add("7", 1)
    scene.master().read()  # And dies.

    scene.add("7", 2)
    scene.master().run()

    assert [message.number for message in ann.poll()] == ["2"]
    assert scene.owners()[first] == "master"


def test_lanes_a_message_that_was_read_and_not_given_out_comes_first(scene: Scene) -> None:
    lanes = scene.lanes()
    [first] = scene.add("7", 1)
    assert lanes.step("wait", 0)  # Reads as `master` does, and dies.
    assert scene.owners() == {first: "master"}

    scene.add("7", 2)

    assert numbers(lanes.take("ann", run=10)) == ["1", "2"]


# Break 2: the master dies after the XCLAIM, before it notes whom it gave the message.


def test_naive_two_consumers_work_on_a_key_whose_holder_was_not_noted(scene: Scene) -> None:
    ann, bob = join(scene.master(), "ann", "bob")
    scene.add("7", 1)
    master = scene.master()
    [message] = master.read()
    master.claim(message.id, "ann")  # And dies.

    scene.add("7", 2)
    scene.master(choose=max).run()

    assert [message.number for message in ann.poll()] == ["1"]
    assert [message.number for message in bob.poll()] == ["2"]


def test_lanes_a_holder_is_known_in_the_same_step(scene: Scene) -> None:
    lanes = scene.lanes()
    [first] = scene.add("7", 1)
    [grant] = lanes.take("ann")

    scene.add("7", 2)

    assert lanes.take("bob") == []
    assert (lanes.ticket("7").consumer, lanes.ticket("7").fence) == ("ann", grant.fence)
    assert scene.owners()[first] == "ann"


# Break 9: the messages of a dead consumer move one by one; a new one of the key comes in between.


def test_naive_a_message_that_comes_while_its_key_moves_is_left_behind(scene: Scene) -> None:
    master = scene.master()
    _, bob = join(master, "ann", "bob")
    scene.add("7", 1, 2)
    master.run()
    moving = master.recovering_offline(Health(silent={"ann"}))
    next(moving)

    [third] = scene.add("7", 3)
    master.run()  # The map names ann still.
    list(moving)
    scene.add("7", 4)
    master.run()

    assert [message.number for message in bob.poll()] == ["1", "2", "4"]
    assert scene.owners()[third] == "ann"


def test_lanes_a_key_moves_with_all_its_messages_at_once(scene: Scene) -> None:
    lanes = scene.lanes()
    scene.add("7", 1, 2)
    assert numbers(lanes.take("ann", run=2, lease_ms=SHORT_MS)) == ["1", "2"]

    scene.add("7", 3)
    moved = lanes.take_when_free("bob", run=10)
    scene.add("7", 4)

    assert numbers(moved) == ["1", "2", "3"]
    assert lanes.done(moved[0])
    assert numbers(lanes.take("bob", run=10)) == ["4"]


# Break 10: XACK is done, and the call to the master that follows is lost.


def test_naive_a_lost_acknowledge_call_binds_the_key_to_its_consumer_for_ever(scene: Scene) -> None:
    master = scene.master()
    ann, bob = join(master, "ann", "bob")
    for ticket in range(10):
        scene.add(str(ticket), 1)
    master.run()
    for message in ann.poll():
        ann.act(message)
        ann.ack(message)  # And no call to the master.

    assert scene.owners() == {}
    assert scene.client.command("HLEN", master.tickets) == 10
    scene.add("7", 2)
    scene.master(choose=max).run()
    assert bob.poll() == [] and len(ann.poll()) == 1  # bob was chosen for whatever is not bound.


def test_lanes_an_ack_by_hand_is_noticed(scene: Scene) -> None:
    lanes = scene.lanes()
    for ticket in range(10):
        scene.add(str(ticket), 1)
    grants = lanes.take("ann", keys=10)
    for grant in grants:
        scene.client.command("XACK", scene.stream, lanes.order.group, grant.entries[0].id)

    assert lanes.extend("ann", *grants) == [False] * 10
    assert lanes.tickets() == 0
    scene.add("7", 2)
    [grant] = lanes.take("bob")
    assert (numbers([grant]), grant.attempt) == (["2"], 1)


# Break 11: the call to the master comes first, and XACK is lost.


def test_naive_a_lost_xack_brings_a_message_back_behind_younger_ones(scene: Scene) -> None:
    master = scene.master()
    ann, bob = join(master, "ann", "bob")
    [first] = scene.add("7", 1)
    master.run()
    [message] = ann.poll()
    ann.act(message)
    master.acknowledge("ann", message)  # And dies before XACK.

    scene.add("7", 2)
    scene.master(choose=max).run()
    bob.finish(*bob.poll())
    scene.set_idle(first)
    scene.master(choose=max).recover_idle(30_000, Health(silent={"ann"}))
    bob.finish(*bob.poll())

    assert scene.done("7") == ["1 ann", "2 bob", "1 bob"]


def test_lanes_done_and_acknowledged_are_one(scene: Scene) -> None:
    lanes = scene.lanes()
    scene.add("7", 1)
    [grant] = lanes.take("ann", lease_ms=SHORT_MS)  # And dies before or after it is done; never in between.
    scene.add("7", 2)
    [grant] = lanes.take_when_free("bob")
    assert lanes.done(grant, by="bob")
    assert scene.owners().keys() & {grant.entries[0].id} == set()

    lanes.drain("bob")

    assert scene.done("7") == ["1 bob", "2 bob"]
    assert (scene.owners(), lanes.tickets()) == ({}, 0)


# Break 12: two masters, as in every rolling deployment.


def test_naive_two_masters_give_one_key_to_two_consumers(scene: Scene) -> None:
    one, two = scene.master(choose=min), scene.master(choose=max)
    ann, bob = join(one, "ann", "bob")
    scene.add("7", 1, 2)
    [first], [second] = one.read(count=1), two.read(count=1)
    chosen = [(one, first, one.consumer_for(first)), (two, second, two.consumer_for(second))]  # Both look first.
    for master, message, consumer in chosen:
        master.claim(message.id, consumer)
        master.note(message, consumer)

    assert [message.number for message in ann.poll()] == ["1"]
    assert [message.number for message in bob.poll()] == ["2"]


def test_lanes_any_number_of_readers_changes_nothing(scene: Scene) -> None:
    lanes = scene.lanes()
    scene.add("7", 1, 2, 3)
    assert [lanes.step("wait", 0) for _ in range(3)] == [True] * 3  # Three masters, one message each.

    [grant] = lanes.take("ann")
    assert lanes.take("bob") == []

    assert lanes.done(grant, by="ann")
    lanes.drain("ann", "bob")
    assert [line.split()[0] for line in scene.done("7")] == ["1", "2", "3"]


# Break 16: all messages of a key are in one JSON value.


def test_naive_a_hot_key_costs_the_square_of_its_backlog(scene: Scene) -> None:
    join(scene.master(), "ann")

    def cost(ticket: str, messages: int) -> int:
        master = scene.master()
        scene.add(ticket, *range(messages))
        master.run()
        return master.written_bytes

    assert cost("8", 100) > 3 * cost("7", 50)


def test_naive_two_notes_at_once_lose_one(scene: Scene) -> None:
    class SlowMaster(NaiveMaster):
        """Another master writes between its read and its write."""

        def write(self, table: str, name: str, value: dict[str, object]) -> None:
            if table == self.tickets:
                other.note(second, "ann")
            super().write(table, name, value)

    other = scene.master()
    join(other, "ann")
    scene.add("7", 1, 2)
    first, second = other.read()

    SlowMaster(scene.client, scene.stream).note(first, "ann")

    assert other.find(other.tickets, "7") == {"consumer_name": "ann", "message_ids": [first.id]}


def test_lanes_the_ticket_of_a_hot_key_stays_small(scene: Scene) -> None:
    lanes = scene.lanes()
    ids = scene.add("7", 1)
    lanes.take("ann")
    alone = scene.client.command("HGET", lanes.order.tickets, "7")

    ids += scene.add("7", *range(2, 101))
    lanes.take("bob")  # Reads them into their lane.

    assert scene.client.command("HGET", lanes.order.tickets, "7") == alone
    assert lanes.step("info_key", "7").ids == ids

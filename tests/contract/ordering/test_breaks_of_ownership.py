"""Breaks 7, 8, 13 and 20: in the naive pattern nobody can say who holds a key, and nothing stops one that held it."""

from __future__ import annotations

import pytest

from support.naive_master import Health
from support.ordered_group import SHORT_MS, numbers, wait_for
from support.ordering_scene import Scene, join

pytestmark = pytest.mark.any_socket


# Break 7: a consumer is paused (SIGSTOP, a long collection of garbage, the network) and goes on afterwards.


def test_naive_a_paused_consumer_and_its_successor_both_act(scene: Scene) -> None:
    master = scene.master()
    ann, bob = join(master, "ann", "bob")
    scene.add("7", 1)
    master.run()
    [at_work] = ann.poll()  # And is paused.

    master.recover_offline(Health(silent={"ann"}))
    bob.finish(*bob.poll())
    ann.finish(at_work)  # It knows of nothing.

    assert scene.done("7") == ["1 bob", "1 ann"]


def test_lanes_what_a_paused_consumer_does_late_is_refused(scene: Scene) -> None:
    lanes = scene.lanes()
    scene.add("7", 1)
    [late] = lanes.take("ann", lease_ms=SHORT_MS)

    [grant] = lanes.take_when_free("bob")
    assert grant.fence > late.fence
    assert not lanes.done(late, by="ann")  # While bob is at work,
    assert lanes.done(grant, by="bob")
    assert not lanes.done(late, by="ann")  # and after.

    assert scene.done("7") == ["1 bob"]


# Break 8: XACK asks nobody who the owner is.


def test_naive_the_old_owner_acknowledges_what_the_new_one_has_not_done(scene: Scene) -> None:
    master = scene.master()
    ann, bob = join(master, "ann", "bob")
    scene.add("7", 1)
    master.run()
    [at_work] = ann.poll()
    master.recover_offline(Health(silent={"ann"}))
    assert len(bob.poll()) == 1

    assert ann.ack(at_work) == 1

    assert (scene.owners(), bob.poll()) == ({}, [])  # If bob dies now, nobody will ever know.


def test_lanes_only_the_holder_settles(scene: Scene) -> None:
    lanes = scene.lanes()
    [entry_id] = scene.add("7", 1)
    [late] = lanes.take("ann", lease_ms=SHORT_MS)
    [grant] = lanes.take_when_free("bob")

    assert [lanes.done(late), lanes.fail(late), lanes.back(late)] == [False] * 3
    assert lanes.extend("ann", late) == [False]

    assert scene.owners() == {entry_id: "bob"}
    assert lanes.extend("bob", grant) == [True]


# Break 13: whether a health URL answers says little about the work.


def test_naive_a_health_call_that_fails_takes_the_key_from_one_who_works(scene: Scene) -> None:
    master = scene.master()
    ann, bob = join(master, "ann", "bob")
    scene.add("7", 1)
    master.run()
    [at_work] = ann.poll()

    master.recover_offline(Health(silent={"ann"}))  # Only the way between the master and ann is broken.

    assert [message.number for message in bob.poll()] == [at_work.number]  # Both work on it.


def test_naive_a_health_call_that_answers_keeps_the_key_with_one_who_is_stuck(scene: Scene) -> None:
    master = scene.master()
    ann, bob = join(master, "ann", "bob")
    [entry_id] = scene.add("7", 1)
    master.run()
    ann.poll()  # Its worker is stuck; its web server is well.

    for _ in range(3):
        scene.set_idle(entry_id)
        master.recover_offline(Health())
        master.recover_idle(30_000, Health())

    assert scene.owners() == {entry_id: "ann"}
    assert bob.poll() == []


def test_lanes_the_lease_alone_decides(scene: Scene) -> None:
    lanes = scene.lanes()
    lanes.sessions["ann"] = lanes.step("register", "ann", health="http://127.0.0.1:1/api/health")  # Nobody is there.
    scene.add("7", 1)
    [grant] = lanes.take("ann")
    assert lanes.take("bob") == []
    assert lanes.extend("ann", grant, lease_ms=SHORT_MS) == [True]

    [moved] = lanes.take_when_free("bob")  # It extends no more: stuck, dead or cut off.

    assert (numbers([moved]), moved.attempt) == (["1"], 2)


# Break 20: the server comes back without its last second.


def test_naive_a_counter_gives_the_same_fence_twice_after_a_restart_that_lost_its_tail(scene: Scene) -> None:
    fence_key = f"{{{scene.stream}}}:fence"
    scene.client.command("SET", fence_key, 6)
    kept = Kept(scene, [fence_key])
    for_ann = scene.client.command("INCR", fence_key)

    kept.restore()

    assert scene.client.command("INCR", fence_key) == for_ann  # bob's: nothing can tell them apart.


def test_lanes_a_fence_grows_even_when_the_server_lost_its_tail(scene: Scene) -> None:
    lanes = scene.lanes()
    lanes.join("ann")
    lanes.join("bob")
    scene.add("7", 1)
    kept = Kept(scene, [*lanes.order.keys, f"{lanes.order.keys[-1][:-1]}:7"])
    [late] = lanes.take("ann")

    kept.restore()
    [grant] = lanes.take("bob")

    assert grant.fence > late.fence
    assert not lanes.done(late, by="ann")
    assert lanes.done(grant, by="bob")
    assert scene.done("7") == ["1 bob"]


class Kept:
    """Keys as they are now; restore() is what a restart from this moment leaves of them."""

    def __init__(self, scene: Scene, keys: list[str]) -> None:
        self.command = scene.client.command
        self.dumps = {key: self.command("DUMP", key) for key in keys}

    def restore(self) -> None:
        ended_ms = self.now_ms()
        wait_for(lambda: self.now_ms() > ended_ms, "the next millisecond")  # No restart is quicker.
        for key, dump in self.dumps.items():
            self.command("DEL", key)
            if dump is not None:
                self.command("RESTORE", key, 0, dump)

    def now_ms(self) -> int:
        seconds, micros = self.command("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

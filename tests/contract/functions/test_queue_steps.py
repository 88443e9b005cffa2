"""Reliable queues on real servers: queue_*.lua against a simple model, at their limits, and through restarts."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from typing import Any

import pytest

from headrace import CommandError
from support.deployments import KEEPS_EVERYTHING, Process
from support.servers import Kind, Server
from support.steps import Steps
from support.wire import ErrorReply, Wire

STEPS = 1500
MOST = 1000
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"


class Model:
    """A queue as two lists. Elements are IDs; an ID is a body too."""

    def __init__(self) -> None:
        self.undelivered: list[bytes] = []
        self.delivered: list[bytes] = []  # The oldest delivery first.
        self.returned: list[bytes] = []  # At the head of the undelivered ones.
        self.deliveries: dict[bytes, int] = {}
        self.nacks = 0
        self.redeliveries = 0

    @property
    def waiting(self) -> list[bytes]:
        return sorted(self.returned, key=order) + self.undelivered

    def pop(self, count: int) -> list[bytes]:
        taken = self.waiting[:count]
        self.returned = [one for one in self.returned if one not in taken]
        self.undelivered = [one for one in self.undelivered if one not in taken]
        self.deliver(taken)
        return taken

    def deliver(self, elements: list[bytes]) -> None:
        for element in elements:
            self.deliveries[element] = self.deliveries.get(element, 0) + 1
            self.redeliveries += self.deliveries[element] > 1
        self.delivered += elements

    def take(self, ids: list[bytes]) -> list[bytes]:
        """Of these the delivered ones, in this order and each once; they are in no list now."""
        found = [one for one in dict.fromkeys(ids) if one in self.delivered]
        self.delivered = [one for one in self.delivered if one not in found]
        return found

    def recover(self, count: int) -> list[bytes]:
        due, self.delivered = self.delivered[:count], self.delivered[count:]
        self.deliver(due)
        return due


def order(entry_id: bytes) -> tuple[int, ...]:
    return tuple(int(part) for part in entry_id.split(b"-"))


def slice_of(elements: list[bytes], start: int, count: int) -> list[bytes]:
    start = len(elements) + start if start < 0 else start
    return elements[start : start + count] if 0 <= start < len(elements) else []


def play(steps: Steps, chance: random.Random, model: Model, known: list[bytes]) -> None:
    """One random step on both, compared."""
    some = chance.sample(known, min(len(known), chance.randrange(1, 6))) if known else [b"1-1"]
    count = chance.randrange(1, 7)
    match chance.choices(
        ("push", "pop", "ack", "nack", "extend", "recover", "inspect", "pending"), (4, 5, 3, 2, 2, 3, 2, 3)
    )[0]:
        case "push":
            ids = steps("queue_push", ["q"], *(b"%d" % number for number in range(count)))
            known += ids
            model.undelivered += ids
        case "pop":
            assert [row[1] for row in steps("queue_pop", ["q"], "COUNT", count)] == model.pop(count)
        case "ack":
            assert steps("queue_ack", ["q"], *some) == model.take(some)
        case "nack":
            returned = model.take(some)
            model.returned += returned
            model.nacks += len(returned)
            assert steps("queue_nack", ["q"], *some) == returned
        case "extend":
            extended = model.take(some)
            model.delivered += extended
            assert steps("queue_extend", ["q"], *some) == extended
        case "recover":
            assert [row[0] for row in steps("queue_recover", ["q"], count, 0)] == model.recover(count)
        case "inspect":
            start = chance.randrange(-8, 8)
            seen = steps("queue_inspect", ["q"], start, count)
            assert [row[0] for row in seen] == slice_of(model.waiting, start, count)
        case "pending":
            start = chance.randrange(-8, 8)
            seen = [(row[0], row[4]) for row in steps("queue_inspect", ["q"], "PENDING", start, count)]
            wanted = slice_of(model.delivered, start, count)
            assert seen == [(element, model.deliveries[element]) for element in wanted]


def test_a_queue_does_what_two_lists_would_do(wire: Wire, steps: Steps) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)  # noqa: T201 - shown when it fails.
    chance = random.Random(seed)
    model, known = Model(), list(steps("queue_push", ["q"], "first"))
    model.undelivered += known
    for _ in range(STEPS):
        play(steps, chance, model, known)

    said = steps("queue_info", ["q"], "STATS")
    facts = dict(zip(said[::2], said[1::2], strict=True))
    assert facts[b"undelivered"] == len(model.waiting)
    assert facts[b"delivered"] == len(model.delivered)
    assert (facts[b"nacks"], facts[b"redeliveries"]) == (model.nacks, model.redeliveries)
    assert wire("XLEN q") == len(model.waiting) + len(model.delivered)


# Limits and oddities


def test_one_call_takes_1000_elements_and_no_more(steps: Steps) -> None:
    ids = steps("queue_push", ["q"], *range(MOST))
    refused = [
        steps("queue_push", ["q"], *range(MOST + 1)),
        *(steps(f"queue_{name}", ["q"], *ids, "1-1") for name in ("ack", "nack", "extend")),
    ]

    assert {reply.text for reply in refused} == {"ERR at most 1000 elements in one call on this server"}
    steps("queue_push", ["q"], "one more")
    assert len(steps("queue_inspect", ["q"], 0, 5_000)) == MOST
    assert len(steps("queue_pop", ["q"], "COUNT", 5_000)) == MOST
    steps("queue_pop", ["q"])
    assert len(steps("queue_recover", ["q"], 5_000, 0)) == MOST
    assert len(steps("queue_inspect", ["q"], "PENDING", 0, 5_000)) == MOST


def test_more_piles_than_there_may_be_lose_no_element(steps: Steps) -> None:
    """Extended in reverse, every element wants a pile of its own."""
    ids = steps("queue_push", ["q"], *range(MOST))
    steps("queue_pop", ["q"], "COUNT", MOST)

    assert steps("queue_extend", ["q"], *reversed(ids)) == ids[::-1]

    seen = [row[0] for row in steps("queue_inspect", ["q"], "PENDING", 0, MOST)]
    assert seen[:500] == ids[:-501:-1]
    assert sorted(seen) == sorted(ids)
    assert {row[0] for row in steps("queue_recover", ["q"], MOST, 0)} == set(ids)
    assert sorted(steps("queue_ack", ["q"], *ids)) == sorted(ids)


def test_memory_follows_what_is_not_acknowledged(wire: Wire, steps: Steps) -> None:
    """Row 209."""
    steps("queue_ack", ["q"], *(steps("queue_push", ["q"], "first") and [row[1] for row in steps("queue_pop", ["q"])]))
    before = wire("MEMORY USAGE q SAMPLES 0")
    for _ in range(20):
        steps("queue_push", ["q"], *["x" * 500] * MOST)
    full = wire("MEMORY USAGE q SAMPLES 0")
    while popped := steps("queue_pop", ["q"], "COUNT", MOST):
        steps("queue_ack", ["q"], *(row[1] for row in popped))

    assert full > 20 * MOST * 500
    assert wire("MEMORY USAGE q SAMPLES 0") < before + 10_000


@pytest.mark.long
def test_a_place_too_deep_is_refused_but_not_from_the_other_end(wire: Wire, steps: Steps) -> None:
    steps("queue_push", ["q"], "first")
    wire.pipeline([("XADD", "q", "*", "body", number) for number in range(100_500)])

    assert steps("queue_inspect", ["q"], 100_100, 1)[0][1] == b"100099"
    assert steps("queue_inspect", ["q"], -1, 1)[0][1] == b"100499"
    assert steps("queue_inspect", ["q"], 50_000, 2)[0][1] == b"49999"
    while steps("queue_pop", ["q"], "COUNT", MOST):
        pass
    deep = steps("queue_inspect", ["q"], "PENDING", 100_100, 1)
    assert deep == ErrorReply("ERR RQ.INSPECT looks at most 100000 elements deep on this server")


def test_an_entry_added_by_another_program_is_an_element(wire: Wire, steps: Steps) -> None:
    steps("queue_push", ["q"], "ours")
    wire("XADD q * name theirs more x")

    assert [row[2] for row in steps("queue_pop", ["q"], "COUNT", 2)] == [b"ours", b"theirs"]


def test_an_element_that_another_program_deleted_is_passed_over_and_forgotten(wire: Wire, steps: Steps) -> None:
    ids = steps("queue_push", ["q"], "a", "b", "c", "d")
    steps("queue_pop", ["q"], "COUNT", 4)
    wire("XDEL", "q", ids[0], ids[2])
    assert [row[1] for row in steps("queue_inspect", ["q"], "PENDING", 0, 10)] == [b"b", b"d"]

    assert [row[1] for row in steps("queue_recover", ["q"], 1, 0)] == [b"b"]
    assert [row[1] for row in steps("queue_recover", ["q"], 10, 0)] == [b"d", b"b"]
    assert steps("queue_info", ["q"]) == [b"undelivered", 0, b"delivered", 2]


def test_an_ordinary_stream_is_no_queue(wire: Wire, steps: Steps) -> None:
    wire("XADD s * a b")
    wire("XGROUP CREATE s billing 0")

    for step, *words in (
        ("push", "x"), ("pushx", "ELEMENTS", 1, "x"), ("pop",), ("wait",), ("ack", "1-1"), ("nack", "1-1"),
        ("extend", "1-1"), ("recover", 1, 0), ("inspect", 0, 1), ("info",), ("pause", "IN"),
    ):  # fmt: skip
        assert steps(f"queue_{step}", ["s"], *words) == ErrorReply(WRONG_TYPE), step
    assert wire("XLEN s") == 1


def test_a_server_without_memory_still_gives_and_forgets(server: Server, connect: Callable[..., Any]) -> None:
    queue = connect().queue("q")
    queue.push("a", "b")
    queue.pop()
    try:
        server.control("CONFIG", "SET", "maxmemory", 1)

        [job] = queue.pop()
        assert job.nack() and queue.info().undelivered == 1
        assert [job.ack() for job in queue.recover(idle=0)] == [True]
        with pytest.raises(CommandError, match="OOM"):
            queue.push("c")
    finally:
        server.control("CONFIG", "SET", "maxmemory", 0)


def test_what_the_steps_did_is_the_same_after_a_restart_from_the_log(kind: Kind, way: str) -> None:
    """Row 210. So it is on a replica, which gets the same commands."""
    with Process(kind, *KEEPS_EVERYTHING) as process:
        with Wire(process.port) as wire:
            steps = Steps(wire, way)
            chance, model, known = random.Random(5), Model(), list(steps("queue_push", ["q"], "first"))
            model.undelivered += known
            for _ in range(300):
                play(steps, chance, model, known)
            before = state_of(steps)

        process.restart(signal.SIGKILL)

        with Wire(process.port) as wire:
            steps = Steps(wire, way)
            assert state_of(steps) == before
            for _ in range(300):
                play(steps, chance, model, known)


def state_of(steps: Steps) -> Any:
    pending = [row[:3] + row[4:] for row in steps("queue_inspect", ["q"], "PENDING", 0, MOST)]
    return steps("queue_info", ["q"], "STATS"), steps("queue_inspect", ["q"], 0, MOST), pending

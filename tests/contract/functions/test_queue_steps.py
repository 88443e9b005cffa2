"""Reliable queues on real servers: queue_*.lua against a simple model, at their limits, and through restarts."""

from __future__ import annotations

import random

from support.steps import Steps
from support.wire import Wire

STEPS = 1500
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

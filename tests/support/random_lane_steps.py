"""Random steps of order per key on the stream `s`, whose entries are 1-0, 1-1 and so on, and what disturbs them.

Fences and sessions are numbers that only the server knows: `fence:a` stands for that of the key `a`, `session:ann` for
that of a consumer, `head:a` for the first ID of a lane. A LaneSession puts in what they are at that moment.
"""

from __future__ import annotations

from random import Random
from typing import Any

from .memory import MemoryBroker
from .random_commands import Command
from .random_sessions import RandomSession

KEYS = [b"a", b"a", b"b", b"c"]
ENTRIES = [
    b"XADD s 1-* k a", b"XADD s 1-* k b", b"XADD s 1-* k a", b"XADD s 1-* other 1", b'XADD s 1-* data {"k":"c"}',
    b"XADD s 1-* k c data x", b"XREADGROUP GROUP g master COUNT 2 STREAMS s >", b"XACK s g 1-0 1-2 1-4",
]  # fmt: skip
TROUBLE = [
    b"XREADGROUP GROUP g zoe STREAMS s >", b"XGROUP CREATE s h 0", b"XREADGROUP GROUP h eve STREAMS s >",
    b"XDEL s 1-2 1-3", b"XGROUP SETID s g 1-1", b"HSET hr:{s}:g:tickets a nonsense", b"DEL hr:{s}:g:tickets",
    b"LPUSH hr:{s}:g:ready a zz", b"DEL hr:{s}:g:lane:b", b"SET hr:{s}:g:lane:b text", b"XNACK s g FAIL IDS 2 1-0 1-1",
    b"LANE.INFO s g", b"LANE.INFO s g KEY a", b"PEXPIRE hr:{s}:g:lane:a 2000", b"LANE.REBUILD s g", b"DEL s",
    b"XGROUP CREATE s g 0 MKSTREAM", b"XGROUP CREATE s g 0 MKSTREAM",
]  # fmt: skip
CONFIGS = [
    b"KEYFIELDS 1 k MAXATTEMPTS 2", b"KEYFIELDS 1 k MAXATTEMPTS 1 POISON SKIP", b"KEYFIELDS 2 k other KEYLESS DEAD",
    b"KEYFIELDS 1 k MAPS tickets consumers",
]  # fmt: skip
RIDERS = [b"EFFECT 2 INCR n", b"ADD t FIELDS 2 f v", b"EFFECT 3 SADD m x ADD t FIELDS 2 f v", b""]


def lane_command_of(number: int) -> Command:
    """A command by its number."""
    random = Random(number)
    way = random.randrange(10)
    if way < 4:
        return random.choice(TROUBLE if random.randrange(6) == 0 else ENTRIES).split()
    return lane_step(random) if way < 9 else rare_step(random)


def lane_step(random: Random) -> Command:
    place = [b"s", b"g"]
    consumer, key = random.choice([b"ann", b"ann", b"bob"]), random.choice(KEYS)
    who = [*place, consumer, b"session:" + consumer]
    lease = [b"LEASE", random.choice([b"2000", b"9000"])]
    take = [b"LANE.TAKE", *who, *lease, b"KEYS", random.choice([b"1", b"3"]), b"RUN", random.choice([b"1", b"2", b"9"])]
    return random.choice(
        [
            take, take, take, take,
            *[[b"LANE.SETTLE", *place, *settle_words(random)] for _ in range(5)],
            [b"LANE.EXTEND", *who, *lease, b"1", key, b"fence:" + key],
        ]
    )  # fmt: skip


def rare_step(random: Random) -> Command:
    place, consumer, key = [b"s", b"g"], random.choice([b"ann", b"bob"]), random.choice(KEYS)
    who = [*place, consumer, b"session:" + consumer]
    return random.choice(
        [
            [b"LANE.REGISTER", *place, consumer], [b"LANE.REGISTER", *place, consumer], [b"LANE.LEAVE", *who],
            [b"LANE.EXTEND", *who, b"LEASE", b"2000", b"ONLY", b"1", key, b"fence:" + key],
            [b"LANE.PARK", *place, key], [b"LANE.RESUME", *place, key], [b"LANE.RESUME", *place, key, b"SKIP"],
            [b"LANE.CONFIG", *place, *random.choice(CONFIGS).split()],
        ]
    )  # fmt: skip


def settle_words(random: Random) -> Command:
    words: Command = [b"KEEP"] if random.randrange(6) == 0 else []
    for key in dict.fromkeys(random.choices(KEYS, k=random.choice([1, 1, 2]))):
        held, head = [key, b"fence:" + key], b"head:" + key
        words += random.choice(
            [
                [b"DONE", *held, b"1", head, *random.choice(RIDERS).split()],
                [b"DONE", *held, b"1", head, *random.choice(RIDERS).split()],
                [b"FAIL", *held, head, random.choice([b"0", b"1000"]), b"it failed"],
                [b"BURY", *held, head, b"error", b"trace"],
                [b"PARK", *held, b"stop"],
                [b"BACK", *held],
            ]
        )
    return words


class LaneSession(RandomSession):
    """A session in which `s` has the group g with an order by k, and ann and bob are registered."""

    def __init__(self, broker: MemoryBroker | None = None) -> None:
        super().__init__(broker)
        for line in ("XGROUP CREATE s g 0 MKSTREAM", "LANE.CONFIG s g KEYFIELDS 1 k", "LANE.REGISTER s g ann"):
            self.broker(line)
        self.broker("LANE.REGISTER s g bob")

    def send(self, words: Command) -> Any:
        return super().send([self.put_in(word) for word in words])

    def put_in(self, word: bytes) -> bytes:
        kind, _, name = word.partition(b":")
        values = self.broker.state.databases[0].values
        order: Any = values.get(b"hr:{s}:g:order", {})
        if kind == b"session":
            consumers: Any = values.get(order.get(b"consumers", b""), {})
            return bytes(consumers.get(name, b"1").split(b" ")[0])
        if kind == b"fence":
            tickets: Any = values.get(order.get(b"tickets", b""), {})
            return bytes((tickets.get(name, b"") + b" 1 1 1").split(b" ")[2])
        if kind == b"head":
            lane: Any = values.get(b"hr:{s}:g:lane:" + name)
            return bytes(lane[0]) if lane and not isinstance(lane, bytes) else b"1-0"
        return word

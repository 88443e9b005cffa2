"""Random steps of workers on the stream `s`, whose entries are 1-0, 1-1 and so on, and what makes them matter."""

from __future__ import annotations

from random import Random

from .random_commands import Command

CONSUMERS = [b"ann", b"ann", b"bob"]
EFFECTS = [
    b"INCR a", b"HINCRBY h f 2", b"HSET h f 1", b"HDEL h f", b"SADD m x y", b"SREM m x", b"ZADD z 1.5 x", b"RPUSH l x",
    b"DEL a", b"PEXPIRE l 3000", b"SET a 5", b"ZINCRBY z 2 x",
]  # fmt: skip
OTHERS = [
    b"XADD s 1-* f v", b"XADD s 1-* f v", b"XADD s 1-* f v", b"XGROUP CREATE s g 0 MKSTREAM",
    b"XREADGROUP GROUP g ann COUNT 3 STREAMS s >", b"XREADGROUP GROUP g ann STREAMS s >",
    b"XREADGROUP GROUP g bob COUNT 1 STREAMS s >", b"XGROUP CREATE s h 0", b"XREADGROUP GROUP h eve STREAMS s >",
    b"HR.ADD u DELAY 2000 FIELDS 2 f later", b"HR.ADD u ID 1 WINDOW 9000 MAX 2 DELAY 2000 FIELDS 2 f later",
    b"XGROUP CREATE u g 0 MKSTREAM", b"HR.DUE u g ann COUNT 2", b"COPY u v REPLACE", b"HR.TRIM s MAXLEN 3",
    b"HR.SETTLE u g ann KEEP ACK 1 1700000002500-0",
]  # fmt: skip


def worker_command_of(number: int) -> Command:
    """A command by its number."""
    random = Random(number)
    return random.choice(OTHERS).split() if random.randrange(2) else worker_step(random)


def entry_ids(random: Random) -> Command:
    return [b"1-%d" % random.randrange(12) for _ in range(random.choice([1, 1, 2, 3]))]


def worker_step(random: Random) -> Command:
    place, consumer, ids = [b"s", b"g"], random.choice(CONSUMERS), entry_ids(random)
    return random.choice(
        [
            [b"HR.DUE", *place, consumer, b"COUNT", random.choice([b"1", b"9"])],
            [b"HR.START", *place, consumer, *random.choice([[], [b"RECORDED"]]), *ids],
            [b"HR.EXTEND", *place, consumer, *ids],
            [b"HR.RELEASE", *place, consumer, *ids],
            [b"HR.SWEEP", *place, b"IDLE", random.choice([b"0", b"2000"])],
            [b"XCLAIM", *place, consumer, b"0", *ids],
            [b"XDEL", b"s", ids[0]],
            *[[b"HR.SETTLE", *place, consumer, *clauses(random)] for _ in range(4)],
        ]
    )


def clauses(random: Random) -> Command:
    words: Command = [b"KEEP"] if random.randrange(6) == 0 else []
    for _ in range(random.choice([1, 1, 2])):
        ids = entry_ids(random)
        way = random.randrange(5)
        if way == 0:
            words += [b"RETRY", ids[0], random.choice([b"0", b"2000"]), b"1", b"error"]
        elif way == 1:
            words += [b"BURY", ids[0], b"error", b"trace", b"3"]
        else:
            words += [b"ACK", b"%d" % len(ids), *ids]
            if random.randrange(2):
                effect = random.choice(EFFECTS).split()
                words += [b"EFFECT", b"%d" % len(effect), *effect]
            if random.randrange(2):
                words += [b"ADD", b"t", b"FIELDS", b"2", b"f", b"next"]
    return words

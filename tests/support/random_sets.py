"""Random commands on sets and sorted sets, made to collide: few keys, members and scores, every option, some nonsense.

What is chosen at random by the server (SPOP, SRANDMEMBER, ZRANDMEMBER) is sent only where the choice can be made in one
way. Ranges by member have keys of their own, `lex` and `lex2`, whose scores are all 0: elsewhere they mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from .random_commands import Command, Version, spoil, without_map
from .wire import ErrorReply

SETS = [b"s", b"s", b"t", b"u"]
SORTED = [b"z", b"z", b"y", b"x"]
LEX = [b"lex", b"lex", b"lex2"]
MEMBERS = [b"a", b"b", b"c", b"d", b"e", b"1", b"2", b"30", b"", b"\r\n"]
SCORES = [b"0", b"1", b"1", b"2", b"2.5", b"-3", b"1e3", b"-0", b"inf", b"-inf", b"+inf", b"0.1", b"0.2"]
SCORES += [b"1e20", b"3e-9"]
BAD_SCORES = [b"nan", b"one", b"", b" 1", b"1e400", b"1e-400", b"0x10", b"5.", b".5", b"1_0", b"infinity"]
BAD_SCORES += [b"1e", b"--1"]
ENDS = [b"-inf", b"+inf", b"inf", b"(0", b"(1", b"0", b"1", b"2.5", b"(2.5", b"-3", b"(1000", b"(inf"]
LEX_ENDS = [b"-", b"+", b"[a", b"(a", b"[c", b"(c", b"[", b"(", b"[zz", b"(1"]
CHANCE = (b"SPOP", b"SRANDMEMBER", b"ZRANDMEMBER")
PLACES = [b"0", b"1", b"2", b"-1", b"-2", b"5", b"-100", b"100"]


class SetAlphabet:
    """The commands of one Redis version. `nonsense`: how many of 100 are spoiled on purpose."""

    def __init__(self, version: Version, *, nonsense: int = 8) -> None:
        self.version = version
        self.nonsense = nonsense
        makers: list[tuple[int, Callable[[Random], Command]]] = [
            (10, self.sadd),
            (4, self.srem),
            (6, self.of_set),
            (6, self.set_algebra),
            (16, self.zadd),
            (4, self.zincrby),
            (4, self.zrem),
            (6, self.of_sorted_set),
            (8, self.zrange),
            (6, self.old_range),
            (4, self.zrangestore),
            (5, self.remove_range),
            (6, self.pop),
            (10, self.sorted_set_algebra),
            (3, self.lex_add),
            (6, self.lex_range),
            (2, self.other),
        ]
        self.makers = [maker for weight, maker in makers for _ in range(weight)]

    def command(self, random: Random) -> Command:
        words = random.choice(self.makers)(random)
        if random.randrange(100) < self.nonsense and words[0] not in CHANCE:
            words = spoil(random, words)
        if random.randrange(20) == 0:
            words = [word.lower() if word.isalpha() and len(word) > 3 else word for word in words]
        return words

    # Parts

    def key(self, random: Random, keys: list[bytes]) -> bytes:
        return random.choice([b"z", b"s", b"n"]) if random.randrange(20) == 0 else random.choice(keys)

    def members(self, random: Random) -> Command:
        return [random.choice(MEMBERS) for _ in range(random.choice([1, 1, 2, 3]))]

    def score(self, random: Random) -> bytes:
        if self.nonsense and random.randrange(30) == 0:
            return random.choice(BAD_SCORES)
        return random.choice(SCORES)

    def limit(self, random: Random) -> Command:
        return [b"LIMIT", random.choice([b"0", b"1", b"2", b"-1"]), random.choice([b"0", b"1", b"2", b"-1", b"10"])]

    # Sets

    def sadd(self, random: Random) -> Command:
        return [b"SADD", self.key(random, SETS), *self.members(random)]

    def srem(self, random: Random) -> Command:
        return [b"SREM", self.key(random, SETS), *self.members(random)]

    def of_set(self, random: Random) -> Command:
        key = self.key(random, SETS)
        return random.choice(
            [
                [b"SMEMBERS", key],
                [b"SCARD", key],
                [b"SISMEMBER", key, random.choice(MEMBERS)],
                [b"SMISMEMBER", key, *self.members(random)],
                [b"SMOVE", key, self.key(random, SETS), random.choice(MEMBERS)],
                [b"SPOP", key, random.choice([b"0", b"100", b"-1", b"x"])],
                [b"SRANDMEMBER", key, random.choice([b"0", b"100", b"x"])],
                [b"SSCAN", key, b"0"],
                [b"TYPE", key],
            ]
        )

    def set_algebra(self, random: Random) -> Command:
        name = random.choice([b"SUNION", b"SINTER", b"SDIFF"])
        keys = [self.key(random, SETS) for _ in range(random.randint(1, 3))]
        way = random.randrange(3)
        if way == 0:
            return [name, *keys]
        if way == 1:
            return [name + b"STORE", self.key(random, SETS), *keys]
        words = [b"SINTERCARD", random.choice([b"%d" % len(keys)] * 5 + [b"0", b"9"]), *keys]
        return words + [b"LIMIT", random.choice([b"0", b"1", b"-1"])] if random.randrange(2) else words

    # Sorted sets

    def zadd(self, random: Random) -> Command:
        words = [b"ZADD", self.key(random, SORTED)]
        for option in (b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"):
            if random.randrange(8) == 0:
                words.append(option)
        for _ in range(random.choice([1, 1, 2, 3]) if b"INCR" not in words else 1):
            words += [self.score(random), random.choice(MEMBERS)]
        return words

    def zincrby(self, random: Random) -> Command:
        return [b"ZINCRBY", self.key(random, SORTED), self.score(random), random.choice(MEMBERS)]

    def zrem(self, random: Random) -> Command:
        return [b"ZREM", self.key(random, SORTED), *self.members(random)]

    def of_sorted_set(self, random: Random) -> Command:
        key = self.key(random, SORTED)
        member = random.choice(MEMBERS)
        score = [b"WITHSCORE"] if self.version >= (7, 2) and random.randrange(3) == 0 else []
        return random.choice(
            [
                [b"ZSCORE", key, member],
                [b"ZMSCORE", key, *self.members(random)],
                [b"ZCARD", key],
                [b"ZRANK", key, member, *score],
                [b"ZREVRANK", key, member, *score],
                [b"ZCOUNT", key, random.choice(ENDS), random.choice(ENDS)],
                [b"ZSCAN", key, b"0"],
                [b"ZRANDMEMBER", key, b"100"],
                [b"ZRANDMEMBER", key, random.choice([b"0", b"x"])],
                [b"TYPE", key],
                [b"OBJECT", b"ENCODING", key],
                [b"DEL", key],
            ]
        )

    def range_words(self, random: Random) -> Command:
        """Both ends and the options of ZRANGE."""
        options: list[Command] = []
        ends = PLACES
        if random.randrange(2):
            ends = ENDS
            options.append([b"BYSCORE"])
        if random.randrange(3) == 0:
            options.append([b"REV"])
        if random.randrange(3) == 0:
            options.append(self.limit(random))
        random.shuffle(options)
        words = [random.choice(ends), random.choice(ends)]
        for option in options:
            words += option
        return words

    def zrange(self, random: Random) -> Command:
        words = [b"ZRANGE", self.key(random, SORTED), *self.range_words(random)]
        return [*words, b"WITHSCORES"] if random.randrange(2) else words

    def zrangestore(self, random: Random) -> Command:
        return [b"ZRANGESTORE", self.key(random, SORTED), self.key(random, SORTED), *self.range_words(random)]

    def old_range(self, random: Random) -> Command:
        key = self.key(random, SORTED)
        scores = [b"WITHSCORES"] if random.randrange(2) else []
        if random.randrange(3) == 0:
            return [b"ZREVRANGE", key, random.choice(PLACES), random.choice(PLACES), *scores]
        name = random.choice([b"ZRANGEBYSCORE", b"ZREVRANGEBYSCORE"])
        limit = self.limit(random) if random.randrange(2) else []
        return [name, key, random.choice(ENDS), random.choice(ENDS), *limit, *scores]

    def remove_range(self, random: Random) -> Command:
        key = self.key(random, SORTED)
        if random.randrange(2):
            return [b"ZREMRANGEBYRANK", key, random.choice(PLACES), random.choice(PLACES)]
        return [b"ZREMRANGEBYSCORE", key, random.choice(ENDS), random.choice(ENDS)]

    def pop(self, random: Random) -> Command:
        end = random.choice([b"MIN", b"MAX"])
        count = random.choice([b"0", b"1", b"2", b"5", b"-1"])
        keys = [self.key(random, SORTED) for _ in range(random.randint(1, 3))]
        options = [b"COUNT", count] if random.randrange(2) else []
        return random.choice(
            [
                [b"ZPOP" + end, keys[0]],
                [b"ZPOP" + end, keys[0], count],
                [b"ZMPOP", b"%d" % len(keys), *keys, end, *options],
                [b"ZMPOP", random.choice([b"0", b"9", b"x"]), *keys, end, *options],
            ]
        )

    def sorted_set_algebra(self, random: Random) -> Command:
        name = random.choice([b"ZUNION", b"ZINTER", b"ZDIFF"])
        keys = [self.key(random, SORTED + SETS[:2]) for _ in range(random.randint(1, 3))]
        words = [random.choice([b"%d" % len(keys)] * 9 + [b"0", b"9", b"x"]), *keys]
        if random.randrange(8) == 0:
            words = [b"ZINTERCARD", *words]
            return words + [b"LIMIT", random.choice([b"0", b"1", b"2", b"-1"])] if random.randrange(2) else words
        if name != b"ZDIFF" and random.randrange(3) == 0:
            words += [b"WEIGHTS", *[random.choice([b"1", b"2", b"-1", b"0", b"0.5", b"inf"]) for _ in keys]]
        if name != b"ZDIFF" and random.randrange(3) == 0:
            words += [b"AGGREGATE", random.choice([b"SUM", b"MIN", b"MAX"])]
        if random.randrange(2):
            return [name + b"STORE", self.key(random, SORTED), *words]
        return [name, *words, b"WITHSCORES"] if random.randrange(2) else [name, *words]

    # Members of one score

    def lex_add(self, random: Random) -> Command:
        words = [b"ZADD", random.choice(LEX)]
        for member in self.members(random):
            words += [b"0", member]
        return words

    def lex_range(self, random: Random) -> Command:
        key = random.choice(LEX)
        ends = [random.choice(LEX_ENDS), random.choice(LEX_ENDS)]
        limit = self.limit(random) if random.randrange(3) == 0 else []
        return random.choice(
            [
                [b"ZRANGEBYLEX", key, *ends, *limit],
                [b"ZREVRANGEBYLEX", key, *ends, *limit],
                [b"ZLEXCOUNT", key, *ends],
                [b"ZRANGE", key, *ends, b"BYLEX", *limit],
                [b"ZRANGE", key, *ends, b"BYLEX", b"REV", *limit],
                [b"ZRANGESTORE", random.choice(LEX), key, *ends, b"BYLEX", *limit],
                [b"ZREMRANGEBYLEX", key, *ends],
            ]
        )

    def other(self, random: Random) -> Command:
        return random.choice(
            [
                [b"SET", b"n", b"text"],
                [b"COPY", b"z", b"y", b"REPLACE"],
                [b"RENAME", b"y", b"x"],
                [b"EXISTS", b"s", b"z", b"t", b"y"],
                [b"DEL", b"s"],
            ]
        )


UNORDERED = (b"SMEMBERS", b"SUNION", b"SINTER", b"SDIFF", *CHANCE)


def normalise_sets(command: Command, reply: Any) -> Any:
    """The reply with the members of sets in one order."""
    if isinstance(reply, ErrorReply):
        return reply
    name = command[0].upper()
    if isinstance(reply, list) and name in UNORDERED:
        return sorted(reply)
    if isinstance(reply, list) and name == b"SSCAN":
        return [reply[0], sorted(reply[1])]
    return without_map(reply)

"""Random list commands, made to collide: few keys and elements, every option, some nonsense, other types too."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .random_commands import NEWEST, Command, Version, spoil

KEYS = [b"l", b"l", b"l", b"m", b"m", b"k"]
ELEMENTS = [b"a", b"a", b"b", b"c", b"1", b"2", b"10", b"-3.5", b"\r\n*1\r\n"]
SIDES = [b"LEFT", b"RIGHT"]


class ListAlphabet:
    """The list commands of one Redis version. `nonsense`: how many of 100 are spoiled on purpose."""

    def __init__(self, version: Version, *, nonsense: int = 8) -> None:
        self.version = version
        self.nonsense = nonsense
        self.elements = [*ELEMENTS, b""] if version >= NEWEST else ELEMENTS  # Older ones do not sort it as a number.
        makers: list[tuple[int, Callable[[Random], Command]]] = [
            (14, self.push),
            (8, self.pop),
            (4, self.read),
            (3, self.lpos),
            (4, self.lset),
            (4, self.linsert),
            (4, self.lrem),
            (3, self.ltrim),
            (6, self.move),
            (4, self.pop_several),
            (4, self.blocking),
            (4, self.sort),
            (3, self.other_key),
        ]
        self.makers = [maker for weight, maker in makers for _ in range(weight)]

    def command(self, random: Random) -> Command:
        words = random.choice(self.makers)(random)
        if random.randrange(100) < self.nonsense:
            words = spoil(random, words)
        if random.randrange(20) == 0:
            words = [word.lower() if word.isalpha() and len(word) > 3 else word for word in words]
        return words

    # Parts

    def some(self, random: Random) -> Command:
        return random.choices(self.elements, k=random.choice([1, 1, 2, 3, 5]))

    def place(self, random: Random) -> bytes:
        return b"%d" % random.choice([0, 0, 1, 2, 3, 5, 100, -1, -1, -2, -3, -5, -100])

    def count(self, random: Random) -> bytes:
        return b"%d" % random.choice([0, 1, 1, 2, 3, 10])

    # Commands

    def push(self, random: Random) -> Command:
        name = random.choice([b"LPUSH", b"RPUSH", b"RPUSH", b"LPUSHX", b"RPUSHX"])
        return [name, random.choice(KEYS), *self.some(random)]

    def pop(self, random: Random) -> Command:
        words = [random.choice([b"LPOP", b"RPOP"]), random.choice(KEYS)]
        return words if random.randrange(2) else [*words, self.count(random)]

    def read(self, random: Random) -> Command:
        key = random.choice(KEYS)
        return random.choice(
            [
                [b"LRANGE", key, self.place(random), self.place(random)],
                [b"LRANGE", key, b"0", b"-1"],
                [b"LINDEX", key, self.place(random)],
                [b"LLEN", key],
            ]
        )

    def lpos(self, random: Random) -> Command:
        options: list[Command] = []
        if random.randrange(2):
            options.append([b"RANK", random.choice([b"1", b"2", b"-1", b"-2", b"0"])])
        if random.randrange(2):
            options.append([b"COUNT", self.count(random)])
        if random.randrange(3) == 0:
            options.append([b"MAXLEN", self.count(random)])
        random.shuffle(options)
        words = [b"LPOS", random.choice(KEYS), random.choice(self.elements)]
        return words + [word for option in options for word in option]

    def lset(self, random: Random) -> Command:
        return [b"LSET", random.choice(KEYS), self.place(random), random.choice(self.elements)]

    def linsert(self, random: Random) -> Command:
        where = random.choice([b"BEFORE", b"AFTER"])
        return [b"LINSERT", random.choice(KEYS), where, random.choice(self.elements), random.choice(self.elements)]

    def lrem(self, random: Random) -> Command:
        count = random.choice([b"0", b"1", b"-1", b"2", b"-2", b"9"])
        return [b"LREM", random.choice(KEYS), count, random.choice(self.elements)]

    def ltrim(self, random: Random) -> Command:
        return [b"LTRIM", random.choice(KEYS), self.place(random), self.place(random)]

    def move(self, random: Random) -> Command:
        source, target = random.choice(KEYS), random.choice(KEYS)
        if random.randrange(3) == 0:
            return [b"RPOPLPUSH", source, target]
        return [b"LMOVE", source, target, random.choice(SIDES), random.choice(SIDES)]

    def pop_several(self, random: Random) -> Command:
        keys = random.choices(KEYS, k=random.choice([1, 2, 3]))
        words = [b"LMPOP", b"%d" % len(keys), *keys, random.choice(SIDES)]
        return [*words, b"COUNT", random.choice([b"1", b"2", b"10"])] if random.randrange(2) else words

    def blocking(self, random: Random) -> Command:
        """For transactions, where they never wait."""
        way = random.randrange(3)
        if way == 0:
            keys = random.choices(KEYS, k=random.choice([1, 2, 3]))
            return [random.choice([b"BLPOP", b"BRPOP"]), *keys, random.choice([b"0", b"1.5", b"-1", b"x"])]
        if way == 1:
            return [b"BLMPOP", b"1", *self.pop_several(random)[1:]]
        words = self.move(random)
        return [b"B" + words[0], *words[1:], b"0"]

    def sort(self, random: Random) -> Command:
        options: list[Command] = []
        if random.randrange(3):
            options.append([b"ALPHA"])
        if random.randrange(2):
            options.append([random.choice([b"ASC", b"DESC"])])
        if random.randrange(3) == 0:
            options.append([b"LIMIT", self.place(random), self.place(random)])
        if random.randrange(3) == 0:
            options.append([b"STORE", random.choice(KEYS)])
        if random.randrange(6) == 0:
            options.append([b"BY", b"nosort"])
        random.shuffle(options)
        name = b"SORT" if random.randrange(4) else b"SORT_RO"
        return [name, random.choice([b"l", b"m", b"k"])] + [word for option in options for word in option]

    def other_key(self, random: Random) -> Command:
        return random.choice(
            [
                [b"DEL", b"l"],
                [b"DEL", b"k"],
                [b"SET", b"k", b"text"],
                [b"XADD", b"k", b"1-1", b"f", b"v"],
                [b"RENAME", b"l", b"m"],
                [b"COPY", b"l", b"m", b"REPLACE"],
                [b"TYPE", b"k"],
                [b"EXISTS", b"l", b"m", b"k"],
                [b"PEXPIRE", b"l", b"100000"],
                [b"PERSIST", b"l"],
            ]
        )


def may_wait(words: Command) -> bool:
    """Whether the command waits where it finds nothing."""
    return words[0].upper() in (b"BLPOP", b"BRPOP", b"BLMPOP", b"BLMOVE", b"BRPOPLPUSH")

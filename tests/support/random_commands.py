"""Random stream commands, made to collide: few keys, groups, consumers and IDs, every option, and some nonsense.

`Alphabet(version).command(random)` gives one command as a list of words for servers that know what this Redis version
brought. Some words are symbols, replaced when the session is played (`Symbols`): `<next>` is an ID above all given so
far, `<far>` one in the far future, `<now-45000>` a time. Everything else is fixed, so two servers given the same
commands must give the same replies, but for the times in them (`normalise`). Idempotence has a key of its own, `u`,
with IDs in the far future, because a timer drops the records of older entries.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

from .wire import ErrorReply, Map

Command = list[bytes]
Version = tuple[int, ...]

KEYS = [b"s", b"s", b"s", b"t"]
GROUPS = [b"g", b"g", b"g", b"h"]
CONSUMERS = [b"ann", b"bob", b"cat"]
FIELDS = [[b"f", b"v"], [b"f", b"w", b"e", b""], [b"", b"\r\n*2\r\n"], [b"e", b"", b"f", b"w"]]
IDLE_TIMES = [b"0", b"0", b"30000", b"50000", b"70000", b"1000000000"]
JUNK = [b"", b"-", b"+", b"$", b">", b"*", b"(1", b"abc", b"1-", b"-1", b"1-1-1", b"0", b"0-0", b"07", b" 1", b"1.5"]
JUNK += [b"18446744073709551615", b"18446744073709551616", b"9223372036854775807", b"9223372036854775808", b"MAXLEN"]
JUNK += [b"18446744073709551615-18446744073709551615", b"1-18446744073709551615", b"COUNT", b"~", b"=", b"STREAMS"]

NEWEST: Version = (8, 6)
FAR_MS = 9_999_999_990_000
IDLE_STEP_MS = 10_000  # Idle times are multiples of this; a session takes less.


class Alphabet:
    """The commands of one Redis version. `nonsense`: how many of 100 are spoiled on purpose."""

    def __init__(self, version: Version, *, nonsense: int = 8) -> None:
        self.version = version
        self.nonsense = nonsense
        makers: list[tuple[int, Callable[[Random], Command]]] = [
            (14, self.xadd),
            (3, self.xtrim),
            (5, self.xdel),
            (4, self.xrange),
            (2, self.xread),
            (2, self.xlen),
            (2, self.xsetid),
            (6, self.xgroup_create),
            (3, self.xgroup_setid),
            (2, self.xgroup_other),
            (14, self.xreadgroup),
            (6, self.xack),
            (6, self.xclaim),
            (4, self.xautoclaim),
            (6, self.xpending),
            (6, self.xinfo),
            (1, self.other_key),
        ]
        if self.has(8, 2):
            makers += [(3, self.xdelex), (3, self.xackdel)]
        if self.has(8, 6):
            makers += [(2, self.xcfgset), (2, self.xidmprecord), (2, self.far_entry)]
        self.makers = [maker for weight, maker in makers for _ in range(weight)]

    def has(self, *version: int) -> bool:
        return self.version >= version

    def command(self, random: Random) -> Command:
        words = random.choice(self.makers)(random)
        if random.randrange(100) < self.nonsense:
            words = spoil(random, words)
        if random.randrange(20) == 0:
            words = [word.lower() if word.isalpha() and len(word) > 3 else word for word in words]
        return words

    # Parts

    def key(self, random: Random) -> bytes:
        return random.choice(KEYS)

    def place(self, random: Random) -> Command:
        """A key and a group."""
        return [random.choice(KEYS), random.choice(GROUPS)]

    def number(self, random: Random) -> bytes:
        return b"%d" % random.choice([0, 1, 1, 2, 2, 3, 4, 7, 20])

    def entry_id(self, random: Random) -> bytes:
        """An ID that may well be there."""
        if random.randrange(12) == 0:
            return b"%d" % random.randint(0, 20)
        return b"%d-%d" % (random.randint(1, 20), random.choice([0, 0, 0, 1]))

    def entry_ids(self, random: Random) -> Command:
        return [self.entry_id(random) for _ in range(random.choice([1, 1, 2, 3, 6]))]

    def policy(self, random: Random) -> Command:
        if not self.has(8, 2) or random.randrange(2):
            return []
        return [random.choice([b"KEEPREF", b"DELREF", b"ACKED"])]

    def trim(self, random: Random) -> Command:
        sign = random.choice([[], [b"="], [b"~"], [b"~"]])
        if random.randrange(2):
            words = [b"MAXLEN", *sign, self.number(random)]
        else:
            words = [b"MINID", *sign, self.entry_id(random)]
        if sign == [b"~"] and random.randrange(2):
            words += [b"LIMIT", random.choice([b"0", b"1", b"2", b"3", b"4", b"6", b"7", b"10"])]
        return words

    def group_start(self, random: Random) -> bytes:
        return random.choice([b"0", b"0", b"$", b"-", b"+", self.entry_id(random), self.entry_id(random)])

    def range_ends(self, random: Random) -> Command:
        low = random.choice([b"-", b"-", self.entry_id(random), b"(" + self.entry_id(random)])
        high = random.choice([b"+", b"+", self.entry_id(random), b"(" + self.entry_id(random)])
        return [low, high]

    # Streams

    def xadd(self, random: Random) -> Command:
        words = [b"XADD", self.key(random)]
        entry_id = random.choice(
            [b"<next>"] * 8 + [b"<next-ms>", self.entry_id(random), b"%d-*" % random.randint(1, 20)]
        )
        options: list[Command] = []
        if random.randrange(3) == 0:
            options.append(self.trim(random))
        if random.randrange(10) == 0:
            options.append([b"NOMKSTREAM"])
        if self.has(8, 2) and random.randrange(4) == 0:
            options.append(self.policy(random))
        if self.has(8, 6) and random.randrange(6) == 0:
            words[1] = b"u"
            options.append(self.idempotence(random))
            entry_id = b"*" if random.randrange(10) else b"<far>"
        random.shuffle(options)
        for option in options:
            words += option
        return words + [entry_id] + random.choice(FIELDS)

    def idempotence(self, random: Random) -> Command:
        producer = random.choice([b"p", b"q"])
        if random.randrange(2):
            return [b"IDMPAUTO", producer]
        return [b"IDMP", producer, random.choice([b"m1", b"m2", b"m3"])]

    def xtrim(self, random: Random) -> Command:
        parts = [self.trim(random), self.policy(random)]
        random.shuffle(parts)
        return [b"XTRIM", self.key(random), *parts[0], *parts[1]]

    def xdel(self, random: Random) -> Command:
        return [b"XDEL", self.key(random), *self.entry_ids(random)]

    def xdelex(self, random: Random) -> Command:
        ids = self.entry_ids(random)
        parts = [[b"IDS", b"%d" % len(ids), *ids], self.policy(random)]
        random.shuffle(parts)
        return [b"XDELEX", self.key(random), *parts[0], *parts[1]]

    def xrange(self, random: Random) -> Command:
        low, high = self.range_ends(random)
        count = [b"COUNT", self.number(random)] if random.randrange(2) else []
        if random.randrange(2):
            return [b"XRANGE", self.key(random), low, high, *count]
        return [b"XREVRANGE", self.key(random), high, low, *count]

    def xread(self, random: Random) -> Command:
        count = [b"COUNT", self.number(random)] if random.randrange(2) else []
        ids = [b"0", b"$", self.entry_id(random)] + ([b"+"] if self.has(7, 4) else [])
        if random.randrange(2):
            return [b"XREAD", *count, b"STREAMS", b"s", random.choice(ids)]
        return [b"XREAD", *count, b"STREAMS", b"s", b"t", random.choice(ids), random.choice(ids)]

    def xlen(self, random: Random) -> Command:
        return [b"XLEN", self.key(random)]

    def xsetid(self, random: Random) -> Command:
        words = [b"XSETID", self.key(random), random.choice([b"<next>", self.entry_id(random), b"21-5"])]
        parts: list[Command] = [[], []]
        if random.randrange(2):
            parts[0] = [b"ENTRIESADDED", self.number(random)]
        if random.randrange(2):
            parts[1] = [b"MAXDELETEDID", random.choice([self.entry_id(random), b"0-0"])]
        random.shuffle(parts)
        return words + parts[0] + parts[1]

    def xcfgset(self, random: Random) -> Command:
        words = [b"XCFGSET", b"u"]
        if random.randrange(2):
            words += [b"IDMP-DURATION", random.choice([b"1000", b"86400", b"0", b"86401"])]
        if random.randrange(2):
            words += [b"IDMP-MAXSIZE", random.choice([b"1", b"2", b"100", b"0", b"10001"])]
        return words

    def xidmprecord(self, random: Random) -> Command:
        producer, message = random.choice([b"p", b"q"]), random.choice([b"m1", b"m2", b"m3"])
        return [b"XIDMPRECORD", b"u", producer, message, b"%d-0" % (FAR_MS + random.randint(1, 4))]

    def far_entry(self, random: Random) -> Command:
        return random.choice(
            [
                [b"XADD", b"u", b"<far>", *random.choice(FIELDS)],
                [b"XADD", b"u", b"<far>", *random.choice(FIELDS)],
                [b"XDEL", b"u", b"%d-0" % (FAR_MS + random.randint(1, 4))],
                [b"XINFO", b"STREAM", b"u"],
                [b"XRANGE", b"u", b"-", b"+"],
                [b"COPY", b"u", b"t", b"REPLACE"],
            ]
        )

    # Groups

    def entries_read(self, random: Random) -> Command:
        return [b"ENTRIESREAD", random.choice([b"-1", b"0", b"1", b"2", b"5", b"20", b"-2"])]

    def xgroup_create(self, random: Random) -> Command:
        words = [b"XGROUP", b"CREATE", *self.place(random), self.group_start(random)]
        if random.randrange(4) == 0:
            words += [b"MKSTREAM"]
        if random.randrange(4) == 0:
            words += self.entries_read(random)
        return words

    def xgroup_setid(self, random: Random) -> Command:
        words = [b"XGROUP", b"SETID", *self.place(random), self.group_start(random)]
        return words + self.entries_read(random) if random.randrange(3) == 0 else words

    def xgroup_other(self, random: Random) -> Command:
        place = self.place(random)
        consumer = random.choice(CONSUMERS)
        return random.choice(
            [
                [b"XGROUP", b"DESTROY", *place],
                [b"XGROUP", b"CREATECONSUMER", *place, consumer],
                [b"XGROUP", b"DELCONSUMER", *place, consumer],
                [b"XGROUP", b"DELCONSUMER", *place, consumer],
            ]
        )

    def xreadgroup(self, random: Random) -> Command:
        options: list[Command] = [[b"GROUP", random.choice(GROUPS), random.choice(CONSUMERS)]]
        if random.randrange(2):
            options.append([b"COUNT", self.number(random)])
        if random.randrange(8) == 0:
            options.append([b"NOACK"])
        if self.has(8, 4) and random.randrange(4) == 0:
            options.append([b"CLAIM", random.choice(IDLE_TIMES)])
        random.shuffle(options)
        words = [b"XREADGROUP"]
        for option in options:
            words += option
        ids = [b">"] * 6 + [b"0", self.entry_id(random)]
        if random.randrange(4):
            return [*words, b"STREAMS", b"s", random.choice(ids)]
        return [*words, b"STREAMS", b"s", b"t", random.choice(ids), random.choice(ids)]

    def xack(self, random: Random) -> Command:
        return [b"XACK", *self.place(random), *self.entry_ids(random)]

    def xackdel(self, random: Random) -> Command:
        ids = self.entry_ids(random)
        parts = [[b"IDS", b"%d" % len(ids), *ids], self.policy(random)]
        random.shuffle(parts)
        return [b"XACKDEL", *self.place(random), *parts[0], *parts[1]]

    def xclaim(self, random: Random) -> Command:
        words = [b"XCLAIM", *self.place(random), random.choice(CONSUMERS), random.choice(IDLE_TIMES)]
        words += self.entry_ids(random)
        for option in (
            [b"IDLE", random.choice(IDLE_TIMES)],
            [b"TIME", random.choice([b"<now-45000>", b"<now-65000>", b"<now--45000>"])],
            [b"RETRYCOUNT", self.number(random)],
            [b"FORCE"],
            [b"JUSTID"],
            [b"LASTID", self.entry_id(random)],
        ):
            if random.randrange(5) == 0:
                words += option
        return words

    def xautoclaim(self, random: Random) -> Command:
        start = random.choice([b"0", b"-", self.entry_id(random), b"(" + self.entry_id(random)])
        words = [b"XAUTOCLAIM", *self.place(random), random.choice(CONSUMERS), random.choice(IDLE_TIMES), start]
        if random.randrange(2):
            words += [b"COUNT", self.number(random)]
        if random.randrange(3) == 0:
            words += [b"JUSTID"]
        return words

    def xpending(self, random: Random) -> Command:
        words = [b"XPENDING", *self.place(random)]
        if random.randrange(3) == 0:
            return words
        if random.randrange(3) == 0:
            words += [b"IDLE", random.choice(IDLE_TIMES)]
        words += [*self.range_ends(random), self.number(random)]
        return words + [random.choice(CONSUMERS)] if random.randrange(3) == 0 else words

    def xinfo(self, random: Random) -> Command:
        key, group = self.place(random)
        return random.choice(
            [
                [b"XINFO", b"STREAM", key],
                [b"XINFO", b"STREAM", key, b"FULL"],
                [b"XINFO", b"STREAM", key, b"FULL", b"COUNT", self.number(random)],
                [b"XINFO", b"GROUPS", key],
                [b"XINFO", b"GROUPS", key],
                [b"XINFO", b"CONSUMERS", key, group],
            ]
        )

    # Keys

    def other_key(self, random: Random) -> Command:
        return random.choice(
            [
                [b"DEL", b"s"],
                [b"DEL", b"t"],
                [b"SET", b"t", b"text"],
                [b"LPUSH", b"t", b"a"],
                [b"RENAME", b"s", b"t"],
                [b"COPY", b"s", b"t", b"REPLACE"],
                [b"TYPE", b"t"],
                [b"EXISTS", b"s", b"t"],
            ]
        )


def spoil(random: Random, words: Command) -> Command:
    """Leave out, double, swap or replace one word; never the first."""
    if len(words) < 2:
        return words
    at = random.randrange(1, len(words))
    way = random.randrange(4)
    if way == 0:
        return words[:at] + words[at + 1 :]
    if way == 1:
        return words[:at] + [words[at]] + words[at:]
    if way == 2:
        other = random.randrange(1, len(words))
        changed = list(words)
        changed[at], changed[other] = changed[other], changed[at]
        return changed
    return words[:at] + [random.choice(JUNK)] + words[at + 1 :]


class Symbols:
    """Replaces the symbolic words of one session."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.top = 0
        self.far = 0

    def resolve(self, words: Command) -> Command:
        return [self.resolve_word(word) if word[:1] == b"<" else word for word in words]

    def resolve_word(self, word: bytes) -> bytes:
        if word == b"<next>":
            self.top += 1
            return b"%d-0" % self.top
        if word == b"<far>":
            self.far += 1
            return b"%d-0" % (FAR_MS + self.far)
        if word == b"<next-ms>":
            self.top += 1
            return b"%d-*" % self.top
        if word.startswith(b"<now-"):
            return b"%d" % (self.now_ms - int(word[5:-1]))
        return word


# Comparing replies

RECENT_ID = re.compile(rb"1[5-9]\d{11}-\d+")


def normalise(command: Command, reply: Any, now_ms: int, version: Version = NEWEST) -> Any:
    """The reply with its times made coarse, and without what this version does not tell, or counts differently."""
    name = command[0].upper()
    if isinstance(reply, ErrorReply):
        return reply
    if name == b"XPENDING" and isinstance(reply, list) and reply and isinstance(reply[0], list):
        return [[normalise_entries(row[0]), row[1], coarse(row[2]), row[3]] for row in reply]
    if name == b"XINFO":
        return normalise_info(without_map(reply), now_ms, LEFT_OUT if version >= NEWEST else LEFT_OUT_OF_OLDER)
    return normalise_entries(without_map(reply))


def without_map(value: Any) -> Any:
    """RESP3 maps as flat lists, nulls as one."""
    if isinstance(value, Map):
        return [without_map(item) for pair in value.items() for item in pair]
    if isinstance(value, list):
        return [without_map(item) for item in value]
    return value


def coarse(time_ms: Any) -> Any:
    """A duration, without what passed during the session. Negative ones are signs, not durations."""
    if not isinstance(time_ms, int) or time_ms < 0:
        return time_ms
    return (time_ms + IDLE_STEP_MS // 2) // IDLE_STEP_MS * IDLE_STEP_MS


def normalise_entries(value: Any) -> Any:
    if isinstance(value, bytes):
        return b"<recent>" if RECENT_ID.fullmatch(value) else value
    if not isinstance(value, list):
        return value
    if len(value) == 4 and isinstance(value[0], bytes) and isinstance(value[1], list) and isinstance(value[2], int):
        return [normalise_entries(value[0]), value[1], coarse(value[2]), value[3]]  # An entry of XREADGROUP CLAIM.
    return [normalise_entries(item) for item in value]


DURATIONS = (b"idle", b"inactive")
TIMES = (b"seen-time", b"active-time")
LEFT_OUT = {b"radix-tree-keys", b"radix-tree-nodes"}
IDEMPOTENCE = {b"idmp-duration", b"idmp-maxsize", b"pids-tracked", b"iids-tracked", b"iids-added", b"iids-duplicates"}
LEFT_OUT_OF_OLDER = LEFT_OUT | IDEMPOTENCE | {b"lag", b"entries-read"}


def normalise_info(value: Any, now_ms: int, left_out: set[bytes]) -> Any:
    """XINFO: flat pairs, lists of such, and lists of pending entries with their times."""
    if isinstance(value, bytes):
        return b"<recent>" if RECENT_ID.fullmatch(value) else value
    if not isinstance(value, list):
        return value
    kept: list[Any] = []
    index = 0
    while index < len(value):
        item = value[index]
        following = value[index + 1] if index + 1 < len(value) else None
        if isinstance(item, bytes) and item in left_out and not isinstance(following, list):
            index += 2
        elif item in DURATIONS and isinstance(following, int):
            kept += [item, coarse(following)]
            index += 2
        elif item in TIMES and isinstance(following, int):
            kept += [item, coarse(now_ms - following) if following >= 0 else following]
            index += 2
        elif item == b"pending" and isinstance(following, list):
            rows = [[coarse(now_ms - part) if is_time(part) else part for part in row] for row in following]
            kept += [item, normalise_entries(rows)]
            index += 2
        else:
            kept.append(normalise_info(item, now_ms, left_out))
            index += 1
    return kept


def is_time(part: Any) -> bool:
    return isinstance(part, int) and part > 10**12

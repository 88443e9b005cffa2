"""Random commands on strings, hashes and keys, made to collide: few keys of changing types, every option, nonsense.

`ValueAlphabet(version).command(random)` gives one command as a list of words for servers of this Redis version. Times
are far away and fixed, so two servers give the same replies; where Redis leaves the order open, and for what has passed
of a long time, see `normalise_value`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from .random_commands import NEWEST, Command, Version, spoil
from .wire import ErrorReply

KEYS = [b"a", b"a", b"b", b"b", b"c", b"h", b"h"]
TEXTS = [b"", b"1", b"10", b"-3", b"1.5", b"3.0e3", b"text", b" 1", b"\0x", b"9223372036854775807"]
FIELDS = [b"f", b"g", b"h", b""]
NUMBERS = [b"0", b"1", b"-1", b"2", b"-5", b"9223372036854775807", b"-9223372036854775808", b"x", b""]
FLOATS = [b"0.1", b"1", b"-1.25", b"1e3", b"3.00", b"0.00000000000000001", b"1e-20", b"12345678901234567890"]
FLOATS += [b"inf", b"-inf", b"nan", b"x", b""]
PLACES = [b"0", b"1", b"2", b"-1", b"-2", b"-100", b"100"]
FAR_S = b"99999999999"
FAR_MS = b"99999999999000"
PAST = b"1000"
EXPIRIES: list[Command] = [[b"EX", b"100000"], [b"PX", b"100000000"], [b"EXAT", FAR_S], [b"PXAT", FAR_MS]]
PRESENCE: list[Command] = [[], [], [b"NX"], [b"XX"], [b"NX", b"XX"]]
CONDITIONS: list[Command] = [*PRESENCE, [b"GT"], [b"LT"], [b"XX", b"GT"], [b"GT", b"LT"]]
COPY_OPTIONS: list[Command] = [[], [b"REPLACE"], [b"DB", b"1"], [b"DB", b"99"], [b"REPLACE", b"DB", b"1"]]
UNORDERED = (b"KEYS", b"HGETALL", b"HKEYS", b"HVALS", b"HSCAN", b"SCAN", b"HRANDFIELD")


def key(random: Random) -> bytes:
    return random.choice(KEYS)


class ValueAlphabet:
    """The commands of one Redis version. `nonsense`: how many of 100 are spoiled on purpose."""

    def __init__(self, version: Version, *, nonsense: int = 8) -> None:
        self.is_newest = version >= NEWEST
        self.nonsense = nonsense
        self.makers: list[Callable[[Random], Command]] = [self.set_, string, string, number, hash_, hash_, expire]
        self.makers += [key_of_any_type]
        if self.is_newest:
            self.makers += [of_redis_8]

    def command(self, random: Random) -> Command:
        words = random.choice(self.makers)(random)
        return spoil(random, words) if random.randrange(100) < self.nonsense else words

    def set_(self, random: Random) -> Command:
        options = [random.choice([[], [], [b"KEEPTTL"], [b"EX", b"0"], *EXPIRIES])]
        if random.randrange(3) == 0:
            options.append([b"GET"])
        if random.randrange(2) == 0:
            text = random.choice(TEXTS)
            compared = [[b"IFEQ", text], [b"IFNE", text]] if self.is_newest else []
            options.append(random.choice([[b"NX"], [b"XX"], *compared]))
        random.shuffle(options)
        return [b"SET", key(random), random.choice(TEXTS), *[word for option in options for word in option]]


def string(random: Random) -> Command:
    name, text = key(random), random.choice(TEXTS)
    return random.choice(
        [
            [b"GET", name],
            [b"GETSET", name, text],
            [b"GETDEL", name],
            [b"GETEX", name, *random.choice([[], [b"PERSIST"], [b"EXAT", PAST], *EXPIRIES])],
            [b"SETNX", name, text],
            [b"SETEX", name, random.choice([b"100000", b"0", b"x"]), text],
            [b"PSETEX", name, random.choice([b"100000000", b"-1"]), text],
            [b"MSET", name, text, key(random), random.choice(TEXTS)],
            [b"MSETNX", name, text, key(random), random.choice(TEXTS)],
            [b"MGET", name, key(random), b"missing"],
            [b"APPEND", name, text],
            [b"STRLEN", name],
            [b"GETRANGE", name, random.choice(PLACES), random.choice(PLACES)],
            [b"SUBSTR", name, random.choice(PLACES), random.choice(PLACES)],
            [b"SETRANGE", name, random.choice([b"0", b"1", b"3", b"-1", b"600000000"]), text],
        ]
    )


def number(random: Random) -> Command:
    name, amount = key(random), random.choice(NUMBERS)
    return random.choice(
        [
            [b"INCR", name],
            [b"DECR", name],
            [b"INCRBY", name, amount],
            [b"DECRBY", name, amount],
            [b"INCRBYFLOAT", name, random.choice(FLOATS)],
            [b"HINCRBY", name, random.choice(FIELDS), amount],
            [b"HINCRBYFLOAT", name, random.choice(FIELDS), random.choice(FLOATS)],
        ]
    )


def hash_(random: Random) -> Command:
    name, field, text = key(random), random.choice(FIELDS), random.choice(TEXTS)
    other = random.choice(FIELDS)
    return random.choice(
        [
            [b"HSET", name, field, text],
            [b"HSET", name, field, text, other, random.choice(TEXTS)],
            [b"HMSET", name, field, text],
            [b"HSETNX", name, field, text],
            [b"HGET", name, field],
            [b"HMGET", name, field, other],
            [b"HGETALL", name],
            [b"HKEYS", name],
            [b"HVALS", name],
            [b"HLEN", name],
            [b"HEXISTS", name, field],
            [b"HSTRLEN", name, field],
            [b"HDEL", name, field, other],
            [b"HRANDFIELD", name, b"100"],
            [b"HRANDFIELD", name, b"0", b"WITHVALUES"],
            [b"HSCAN", name, b"0", *random.choice([[], [b"MATCH", b"[f-g]"]])],
        ]
    )


def of_redis_8(random: Random) -> Command:
    name, field, text = key(random), random.choice(FIELDS), random.choice(TEXTS)
    return random.choice(
        [
            [b"DELEX", name, *random.choice([[], [b"IFEQ", text], [b"IFNE", text]])],
            [b"HGETDEL", name, b"FIELDS", b"2", field, random.choice(FIELDS)],
            [b"HGETDEL", name, b"FIELDS", b"1", field],
            [b"HSCAN", name, b"0", b"NOVALUES"],
        ]
    )


def expire(random: Random) -> Command:
    """Only points in time are compared by GT and LT: which of two durations ends later depends on when they began."""
    name = key(random)
    presence, condition = random.choice(PRESENCE), random.choice(CONDITIONS)
    return random.choice(
        [
            [b"EXPIRE", name, random.choice([b"100000", b"200000", b"-1", b"9223372036854775807"]), *presence],
            [b"PEXPIRE", name, random.choice([b"100000000", b"0"]), *presence],
            [b"EXPIREAT", name, random.choice([FAR_S, PAST]), *condition],
            [b"PEXPIREAT", name, random.choice([FAR_MS, b"99999999999999", PAST]), *condition],
            [b"PERSIST", name],
            [b"TTL", name],
            [b"EXPIRETIME", name],
        ]
    )


def key_of_any_type(random: Random) -> Command:
    name, other = key(random), key(random)
    return random.choice(
        [
            [b"DEL", name, other],
            [b"UNLINK", name],
            [b"EXISTS", name, other],
            [b"TOUCH", name],
            [b"TYPE", name],
            [b"KEYS", random.choice([b"*", b"[ab]", b"[^a]", b"?", b"\\a"])],
            [b"DBSIZE"],
            [b"RENAME", name, other],
            [b"RENAMENX", name, other],
            [
                b"COPY",
                name,
                other,
                *random.choice([[], [b"REPLACE"], [b"DB", b"1"], [b"DB", b"99"], [b"REPLACE", b"DB", b"1"]]),
            ],
            [b"MOVE", name, random.choice([b"0", b"1", b"x"])],
            [b"SELECT", random.choice([b"0", b"0", b"1"])],
            [b"SWAPDB", b"0", b"1"],
            [b"SCAN", b"0", b"COUNT", b"100", *random.choice([[], [b"TYPE", b"hash"], [b"MATCH", b"a*"]])],
            [b"OBJECT", b"ENCODING", name],
            [b"OBJECT", b"REFCOUNT", b"missing"],
            [b"WAIT", b"0", random.choice([b"0", b"-1", b"x"])],
            [b"FLUSHDB"],
        ]
    )


def normalise_value(command: Command, reply: Any) -> Any:
    """The reply, flat already, without what servers may do differently."""
    name = command[0].upper()
    if isinstance(reply, ErrorReply):
        return reply
    if name == b"TTL" and isinstance(reply, int) and reply > 0:
        return "far" if reply > 1_000_000 else (reply + 50) // 100
    if name == b"EXPIRETIME" and isinstance(reply, int) and 0 < reply < int(FAR_S):
        return "some day"
    if name == b"OBJECT" and reply in (b"int", b"raw"):
        return b"embstr"  # Redis remembers how a string came to be; ours is named by what it holds.
    if name not in UNORDERED or not isinstance(reply, list):
        return reply
    names = reply[1] if name in (b"SCAN", b"HSCAN") else reply
    has_pairs = name == b"HGETALL" or (name == b"HSCAN" and b"NOVALUES" not in command)
    return sorted(zip(names[::2], names[1::2], strict=True)) if has_pairs else sorted(names)

"""Effects: write commands that happen together with an acknowledgement (EFFECT in HR.SETTLE).

Only commands on one key whose success can be told beforehand: the key's type, and the numbers. So that this holds for
several effects on one key too, they are of one type, and DEL stands alone. `check` looks ahead over all effects of a
step; after it none of them can fail. functions/worker_effects.lua has the same rules.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.hr_steps import Step
from headrace.commands.numbers import NOT_A_FLOAT, NOT_AN_INTEGER, parse_double, parse_integer
from headrace.commands.spec import TABLE
from headrace.engine.keyspace import WRONG_TYPE, type_name
from headrace.errors import CommandError

ANY: Final = ""  # Of a command that takes keys of every type.
MOST_WORDS: Final = 1000  # Of one effect.
LARGEST: Final = 2**53 - 1  # Numbers that are added to, and what is added: Lua counts in doubles, exact up to here.
BAD_COUNT: Final = f"ERR EFFECT must be followed by the number of its words, 2 to {MOST_WORDS}, and by as many words"
OVERFLOW: Final = "ERR increment or decrement would overflow"
ONE_TYPE: Final = "ERR the effects on one key must be of one type, and DEL stands alone"
OWN_KEY: Final = "ERR an effect must not name a key that the step itself uses"


class Rule:
    """What an effect may look like: the type of its key and how many words it has; behind them more pairs or words."""

    __slots__ = ("kind", "least", "repeats")

    def __init__(self, kind: str, least: int, repeats: int = 0) -> None:
        self.kind = kind
        self.least = least
        self.repeats = repeats  # How many words may follow, any number of times; 0: none.


RULES: Final[dict[bytes, Rule]] = {
    b"SET": Rule("string", 3),
    b"SETNX": Rule("string", 3),
    b"INCR": Rule("string", 2),
    b"DECR": Rule("string", 2),
    b"INCRBY": Rule("string", 3),
    b"DECRBY": Rule("string", 3),
    b"HSET": Rule("hash", 4, 2),
    b"HSETNX": Rule("hash", 4),
    b"HDEL": Rule("hash", 3, 1),
    b"HINCRBY": Rule("hash", 4),
    b"SADD": Rule("set", 3, 1),
    b"SREM": Rule("set", 3, 1),
    b"ZADD": Rule("zset", 4, 2),
    b"ZINCRBY": Rule("zset", 4),
    b"ZREM": Rule("zset", 3, 1),
    b"LPUSH": Rule("list", 3, 1),
    b"RPUSH": Rule("list", 3, 1),
    b"DEL": Rule(ANY, 2),
    b"PERSIST": Rule(ANY, 2),
    b"PEXPIRE": Rule(ANY, 3),
}


def parse_effect(argv: list[bytes], index: int) -> list[bytes]:
    """The effect whose number of words stands at the index, its name in capitals."""
    left = len(argv) - index - 1
    count = parse_integer(argv[index], BAD_COUNT)
    if not 2 <= count <= min(left, MOST_WORDS):
        raise CommandError(BAD_COUNT)
    words = argv[index + 1 : index + 1 + count]
    words[0] = words[0].upper()
    shown = words[0][:64].decode("utf-8", "replace")
    rule = RULES.get(words[0])
    if rule is None:
        known = ", ".join([name.decode() for name in sorted(RULES)])
        raise CommandError(f"ERR EFFECT cannot be {shown}; possible are {known}")
    more = count - rule.least
    if more < 0 or (more % rule.repeats if rule.repeats else more):
        raise CommandError(f"ERR wrong number of words for EFFECT {shown}")
    return words


class Foresight:
    """What the keys of a step will hold, as far as its effects must know."""

    __slots__ = ("ctx", "kinds", "strings", "fields")

    def __init__(self, ctx: Call) -> None:
        self.ctx = ctx
        self.kinds: dict[bytes, str] = {}  # Type by key; "DEL" for one that goes.
        self.strings: dict[bytes, bytes] = {}
        self.fields: dict[bytes, dict[bytes, bytes | None]] = {}

    def check(self, effect: list[bytes]) -> None:
        """Raises when the effect could not happen behind those before it."""
        name = effect[0]
        key = effect[1]
        kind = "DEL" if name == b"DEL" else RULES[name].kind
        value = self.ctx.find(key)
        if kind not in (ANY, "DEL") and value is not None and type_name(value) != kind:
            raise CommandError(WRONG_TYPE)
        before = self.kinds.get(key)
        if before is not None and ("DEL" in (kind, before) or (kind != before and ANY not in (kind, before))):
            raise CommandError(ONE_TYPE)
        self.kinds[key] = kind or before or ANY
        if kind == "string":
            self.check_string(name, key, value, effect)
        elif kind == "hash":
            self.check_hash(name, key, value, effect)
        elif kind == "zset" and name != b"ZREM":
            for index in range(2, len(effect), 2):
                check_score(effect[index])
        elif name == b"PEXPIRE":
            within(parse_integer(effect[2]), 1)

    def check_string(self, name: bytes, key: bytes, value: bytes | None, effect: list[bytes]) -> None:
        now = self.strings.get(key, value)
        if name == b"SET" or (name == b"SETNX" and now is None):
            self.strings[key] = effect[2]
        elif name != b"SETNX":
            amount = parse_integer(effect[2]) if len(effect) == 3 else 1
            sign = -1 if name.startswith(b"DECR") else 1
            self.strings[key] = b"%d" % add(now, sign * amount, NOT_AN_INTEGER)

    def check_hash(self, name: bytes, key: bytes, value: dict[bytes, bytes] | None, effect: list[bytes]) -> None:
        known = self.fields.setdefault(key, {})
        if name == b"HDEL":
            for field in effect[2:]:
                known[field] = None
            return
        field = effect[2]
        now = known[field] if field in known else value.get(field) if value is not None else None
        if name == b"HSET":
            for index in range(2, len(effect), 2):
                known[effect[index]] = effect[index + 1]
        elif name == b"HSETNX":
            known[field] = effect[3] if now is None else now
        else:
            known[field] = b"%d" % add(now, parse_integer(effect[3]), "ERR hash value is not an integer")


def add(before: bytes | None, amount: int, not_a_number: str) -> int:
    number = parse_integer(before, not_a_number) if before is not None else 0
    return within(within(number, -LARGEST) + within(amount, -LARGEST), -LARGEST)


def within(number: int, least: int) -> int:
    if not least <= number <= LARGEST:
        raise CommandError(OVERFLOW)
    return number


def check_score(text: bytes) -> None:
    """A plain decimal number; those that are too large for it are refused, those that are too small by parse_double."""
    if text.strip(b"0123456789+-.eE"):
        raise CommandError(NOT_A_FLOAT)
    if abs(parse_double(text)) > LARGEST:
        raise CommandError("ERR a score is too large for an effect")


def do(step: Step, effect: list[bytes]) -> None:
    """Run an effect that was checked."""
    handler = TABLE[effect[0]].handler
    assert handler is not None
    outcome = handler(step.ctx, effect)
    step.note(effect[1], outcome.record)
    if outcome.wake is not None:
        step.ctx.wake(step.ctx.db.number, outcome.wake)

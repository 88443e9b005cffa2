"""When keys expire: setting, asking and lifting it. A time that has passed already deletes the key at once."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import GENERIC
from headrace.commands.numbers import MAX_INTEGER, MIN_INTEGER, parse_integer
from headrace.commands.outcome import CHANGED, ZERO, Outcome
from headrace.commands.spec import Argument, added, command, integer, key, oneof, optional, unix_time, word
from headrace.errors import CommandError
from headrace.journal.record import EXPIRE, REMOVE, encode_record
from headrace.wire.encoder import encode_integer

NO_KEY: Final = -2  # What TTL and its relatives answer for a key that is missing,
NO_EXPIRY: Final = -1  # and for one that never expires.


def condition() -> Argument:
    return optional(
        added("7.0.0", oneof("condition", word("NX"), word("XX"), word("GT"), word("LT")))
    )  # fmt: skip


@command(
    "EXPIRE", key("RW update"), integer("seconds"), condition(),
    group="generic", flags="write fast", since="1.0.0", complexity="O(1)",
    summary="Let a key expire after some seconds.",
)  # fmt: skip
def expire(ctx: Call, argv: list[bytes]) -> Outcome:
    return set_expiry(ctx, argv, "expire", 1000, ctx.now_ms)


@command(
    "PEXPIRE", key("RW update"), integer("milliseconds"), condition(),
    group="generic", flags="write fast", since="2.6.0", complexity="O(1)",
    summary="Let a key expire after some milliseconds.",
)  # fmt: skip
def pexpire(ctx: Call, argv: list[bytes]) -> Outcome:
    return set_expiry(ctx, argv, "pexpire", 1, ctx.now_ms)


@command(
    "EXPIREAT", key("RW update"), unix_time("unix-time-seconds"), condition(),
    group="generic", flags="write fast", since="1.2.0", complexity="O(1)",
    summary="Let a key expire at a time in seconds since 1970.",
)  # fmt: skip
def expireat(ctx: Call, argv: list[bytes]) -> Outcome:
    return set_expiry(ctx, argv, "expireat", 1000, 0)


@command(
    "PEXPIREAT", key("RW update"), unix_time("unix-time-milliseconds"), condition(),
    group="generic", flags="write fast", since="2.6.0", complexity="O(1)",
    summary="Let a key expire at a time in milliseconds since 1970.",
)  # fmt: skip
def pexpireat(ctx: Call, argv: list[bytes]) -> Outcome:
    return set_expiry(ctx, argv, "pexpireat", 1, 0)


def set_expiry(ctx: Call, argv: list[bytes], command_name: str, unit_ms: int, base_ms: int) -> Outcome:
    conditions = parse_conditions(argv)
    when_ms = parse_integer(argv[2]) * unit_ms
    if when_ms > MAX_INTEGER - base_ms or when_ms < MIN_INTEGER:
        raise CommandError(f"ERR invalid expire time in '{command_name}' command")
    when_ms += base_ms
    name = argv[1]
    if ctx.find(name) is None or not is_allowed(conditions, ctx.db.expires_ms.get(name, 0), when_ms):
        return ZERO
    if when_ms <= ctx.now_ms:
        ctx.db.delete(name)
        ctx.notify(GENERIC, b"del", name)
        record = encode_record(REMOVE, ctx.db.number, name) if ctx.journaling else CHANGED
    else:
        ctx.db.expires_ms[name] = when_ms
        ctx.notify(GENERIC, b"expire", name)
        record = encode_record(EXPIRE, ctx.db.number, name, b"%d" % when_ms) if ctx.journaling else CHANGED
    return Outcome(encode_integer(1), record, name)


def parse_conditions(argv: list[bytes]) -> set[bytes]:
    conditions: set[bytes] = set()
    for option in argv[3:]:
        if option.upper() not in (b"NX", b"XX", b"GT", b"LT"):
            raise CommandError("ERR Unsupported option " + option.decode("utf-8", "surrogateescape"))
        conditions.add(option.upper())
    if b"NX" in conditions and len(conditions) > 1:
        raise CommandError("ERR NX and XX, GT or LT options at the same time are not compatible")
    if b"GT" in conditions and b"LT" in conditions:
        raise CommandError("ERR GT and LT options at the same time are not compatible")
    return conditions


def is_allowed(conditions: set[bytes], current_ms: int, when_ms: int) -> bool:
    """Whether the conditions let the new time take the place of the current one. 0: there is none, so it is never."""
    if b"NX" in conditions and current_ms:
        return False
    if b"XX" in conditions and not current_ms:
        return False
    if b"GT" in conditions and (not current_ms or when_ms <= current_ms):
        return False
    return not (b"LT" in conditions and current_ms and when_ms >= current_ms)


@command(
    "PERSIST", key("RW update"),
    group="generic", flags="write fast", since="2.2.0", complexity="O(1)", summary="Let a key never expire.",
)  # fmt: skip
def persist(ctx: Call, argv: list[bytes]) -> Outcome:
    name = argv[1]
    if ctx.find(name) is None or name not in ctx.db.expires_ms:
        return ZERO
    del ctx.db.expires_ms[name]
    ctx.notify(GENERIC, b"persist", name)
    record = encode_record(EXPIRE, ctx.db.number, name, b"0") if ctx.journaling else CHANGED
    return Outcome(encode_integer(1), record)


def find_expiry(ctx: Call, name: bytes) -> int:
    """When the key expires, or NO_KEY, or NO_EXPIRY."""
    if ctx.find(name) is None:
        return NO_KEY
    return ctx.db.expires_ms.get(name, NO_EXPIRY)


@command(
    "TTL", key("RO access"),
    group="generic", flags="readonly fast", since="1.0.0", complexity="O(1)", tips="nondeterministic_output",
    summary="Seconds until a key expires. -1: never. -2: no such key.",
)  # fmt: skip
def ttl(ctx: Call, argv: list[bytes]) -> Outcome:
    when_ms = find_expiry(ctx, argv[1])
    return Outcome(encode_integer((when_ms - ctx.now_ms + 500) // 1000 if when_ms >= 0 else when_ms))


@command(
    "PTTL", key("RO access"),
    group="generic", flags="readonly fast", since="2.6.0", complexity="O(1)", tips="nondeterministic_output",
    summary="Milliseconds until a key expires. -1: never. -2: no such key.",
)  # fmt: skip
def pttl(ctx: Call, argv: list[bytes]) -> Outcome:
    when_ms = find_expiry(ctx, argv[1])
    return Outcome(encode_integer(when_ms - ctx.now_ms if when_ms >= 0 else when_ms))


@command(
    "EXPIRETIME", key("RO access"),
    group="generic", flags="readonly fast", since="7.0.0", complexity="O(1)",
    summary="When a key expires, in seconds since 1970. -1: never. -2: no such key.",
)  # fmt: skip
def expiretime(ctx: Call, argv: list[bytes]) -> Outcome:
    when_ms = find_expiry(ctx, argv[1])
    return Outcome(encode_integer((when_ms + 500) // 1000 if when_ms >= 0 else when_ms))


@command(
    "PEXPIRETIME", key("RO access"),
    group="generic", flags="readonly fast", since="7.0.0", complexity="O(1)",
    summary="When a key expires, in milliseconds since 1970. -1: never. -2: no such key.",
)  # fmt: skip
def pexpiretime(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_integer(find_expiry(ctx, argv[1])))

"""Sets, as far as stream users meet them: SADD, SREM, SMEMBERS, SISMEMBER, SCARD. A set that becomes empty is gone."""

from headrace.commands.call import Call
from headrace.commands.notifications import GENERIC, SET
from headrace.commands.outcome import CHANGED, ZERO, Outcome
from headrace.commands.spec import command, key, many, text
from headrace.engine.keyspace import WRONG_TYPE
from headrace.errors import CommandError
from headrace.journal.record import SET_ADD, SET_REMOVE, encode_record
from headrace.wire.encoder import encode, encode_integer
from headrace.wire.values import Unordered


def find_set(ctx: Call, name: bytes) -> set[bytes] | None:
    value = ctx.find(name)
    if value is None or isinstance(value, set):
        return value
    raise CommandError(WRONG_TYPE)


@command(
    "SADD", key("RW insert"), many(text("member")),
    group="set", flags="write denyoom fast", since="1.0.0", complexity="O(1) for each member",
    summary="Put members into a set, which is created when missing.",
)  # fmt: skip
def sadd(ctx: Call, argv: list[bytes]) -> Outcome:
    name = argv[1]
    members = find_set(ctx, name)
    fresh = list(dict.fromkeys([member for member in argv[2:] if members is None or member not in members]))
    if not fresh:
        return ZERO
    if members is None:
        members = set()
        ctx.db.put(name, members)
    members.update(fresh)
    ctx.notify(SET, b"sadd", name)
    ctx.state.changes += len(fresh) - 1
    record = encode_record(SET_ADD, ctx.db.number, name, *fresh) if ctx.journaling else CHANGED
    return Outcome(encode_integer(len(fresh)), record, name)


@command(
    "SREM", key("RW delete"), many(text("member")),
    group="set", flags="write fast", since="1.0.0", complexity="O(1) for each member",
    summary="Take members out of a set.",
)  # fmt: skip
def srem(ctx: Call, argv: list[bytes]) -> Outcome:
    name = argv[1]
    members = find_set(ctx, name)
    if members is None:
        return ZERO
    gone = list(dict.fromkeys([member for member in argv[2:] if member in members]))
    if not gone:
        return ZERO
    members.difference_update(gone)
    ctx.notify(SET, b"srem", name)
    if not members:
        ctx.db.delete(name)
        ctx.notify(GENERIC, b"del", name)
    ctx.state.changes += len(gone) - 1
    record = encode_record(SET_REMOVE, ctx.db.number, name, *gone) if ctx.journaling else CHANGED
    return Outcome(encode_integer(len(gone)), record, name)


@command(
    "SMEMBERS", key("RO access"),
    group="set", flags="readonly", since="1.0.0", complexity="O(N) with N members",
    summary="All members of a set.", tips="nondeterministic_output_order",
)  # fmt: skip
def smembers(ctx: Call, argv: list[bytes]) -> Outcome:
    members = find_set(ctx, argv[1])
    return Outcome(encode(Unordered(sorted(members) if members is not None else []), resp3=ctx.resp3))


@command(
    "SISMEMBER", key("RO"), text("member"),
    group="set", flags="readonly fast", since="1.0.0", complexity="O(1)", summary="Whether a set has a member.",
)  # fmt: skip
def sismember(ctx: Call, argv: list[bytes]) -> Outcome:
    members = find_set(ctx, argv[1])
    return Outcome(encode_integer(int(members is not None and argv[2] in members)))


@command(
    "SCARD", key("RO"),
    group="set", flags="readonly fast", since="1.0.0", complexity="O(1)", summary="How many members a set has.",
)  # fmt: skip
def scard(ctx: Call, argv: list[bytes]) -> Outcome:
    members = find_set(ctx, argv[1])
    return Outcome(encode_integer(len(members) if members is not None else 0))

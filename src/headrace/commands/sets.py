"""Sets: members in no order. Adding, removing, asking for members, and members at random.

Unions and the like are in `set_algebra.py`. A set is a plain Python set and is gone when its last member is. What was
chosen at random is written to the journal as the members chosen.
"""

from itertools import islice
from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import GENERIC, SET
from headrace.commands.numbers import parse_integer, parse_positive
from headrace.commands.outcome import CHANGED, EMPTY_ARRAY, ZERO, Outcome
from headrace.commands.refusals import OUT_OF_RANGE, SYNTAX
from headrace.commands.spec import added, command, integer, key, many, optional, text
from headrace.engine.keyspace import WRONG_TYPE
from headrace.errors import CommandError
from headrace.journal.record import SET_ADD, SET_REMOVE, encode_record
from headrace.wire.encoder import encode, encode_array, encode_bulk, encode_integer, encode_null
from headrace.wire.values import Unordered

MOST_REPEATED: Final = 1_000_000  # Random members of one reply, when one may come up again and again.
FAIR_MEMBERS: Final = (
    1024  # SPOP draws from up to so many; of larger sets it takes what comes first in their hash table.
)


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
    record = add_members(ctx, name, members, fresh)
    return Outcome(encode_integer(len(fresh)), record, name)


def add_members(ctx: Call, name: bytes, members: set[bytes] | None, fresh: list[bytes]) -> bytes:
    """Members that were not there before. The record."""
    if members is None:
        members = set()
        ctx.db.put(name, members)
    members.update(fresh)
    ctx.state.changes += len(fresh) - 1
    ctx.notify(SET, b"sadd", name)
    return encode_record(SET_ADD, ctx.db.number, name, *fresh) if ctx.journaling else CHANGED


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
    return Outcome(encode_integer(len(gone)), note_removed(ctx, name, members, gone, b"srem"), name)


def note_removed(ctx: Call, name: bytes, members: set[bytes], gone: list[bytes], event: bytes) -> bytes:
    """Members are gone from the set: tell those who asked, and drop the key with the last one. The record."""
    ctx.state.changes += len(gone) - 1
    ctx.notify(SET, event, name)
    if not members:
        ctx.db.delete(name)
        ctx.notify(GENERIC, b"del", name)
    return encode_record(SET_REMOVE, ctx.db.number, name, *gone) if ctx.journaling else CHANGED


@command(
    "SMOVE", key("RW access delete", "source"), key("RW insert", "destination"), text("member"),
    group="set", flags="write fast", since="1.0.0", complexity="O(1)",
    summary="Move a member from one set to another.",
)  # fmt: skip
def smove(ctx: Call, argv: list[bytes]) -> Outcome:
    name, target_name, member = argv[1], argv[2], argv[3]
    members = find_set(ctx, name)
    if members is None:
        return ZERO  # Whatever the other key holds, as in Redis.
    target = find_set(ctx, target_name)
    if member not in members:
        return ZERO
    if name == target_name:
        return Outcome(encode_integer(1))
    members.discard(member)
    ctx.touch(name)
    record = note_removed(ctx, name, members, [member], b"srem")
    if target is None or member not in target:
        ctx.touch(target_name)
        record += add_members(ctx, target_name, target, [member])
        ctx.state.changes += 1
    return Outcome(encode_integer(1), record, target_name)


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
    "SMISMEMBER", key("RO access"), many(text("member")),
    group="set", flags="readonly fast", since="6.2.0", complexity="O(1) for each member",
    summary="Whether a set has each of several members.",
)  # fmt: skip
def smismember(ctx: Call, argv: list[bytes]) -> Outcome:
    members = find_set(ctx, argv[1])
    return Outcome(encode_array([encode_integer(int(members is not None and name in members)) for name in argv[2:]]))


@command(
    "SCARD", key("RO"),
    group="set", flags="readonly fast", since="1.0.0", complexity="O(1)", summary="How many members a set has.",
)  # fmt: skip
def scard(ctx: Call, argv: list[bytes]) -> Outcome:
    members = find_set(ctx, argv[1])
    return Outcome(encode_integer(len(members) if members is not None else 0))


# At random


@command(
    "SPOP", key("RW access delete"), optional(added("3.2.0", integer("count"))),
    group="set", flags="write fast", since="1.0.0", complexity="O(1) for each member taken, and O(1024) at most",
    summary="Take members, chosen at random, out of a set.", tips="nondeterministic_output",
)  # fmt: skip
def spop(ctx: Call, argv: list[bytes]) -> Outcome:
    """Of a set with more than 1024 members those are taken that come first in its hash table."""
    if len(argv) > 3:
        raise CommandError(SYNTAX)
    name = argv[1]
    count = parse_positive(argv[2]) if len(argv) == 3 else 1
    members = find_set(ctx, name)
    if members is None or count == 0:
        return Outcome(encode_null(resp3=ctx.resp3) if len(argv) == 2 else encode(Unordered([]), resp3=ctx.resp3))
    if len(members) <= FAIR_MEMBERS:
        taken = draw(ctx, members, count)
        members.difference_update(taken)
    else:
        taken = [members.pop() for _ in range(min(count, len(members)))]
    reply = encode_bulk(taken[0]) if len(argv) == 2 else encode(Unordered(taken), resp3=ctx.resp3)
    return Outcome(reply, note_removed(ctx, name, members, taken, b"spop"), name)


@command(
    "SRANDMEMBER", key("RO access"), optional(added("2.6.0", integer("count"))),
    group="set", flags="readonly", since="1.0.0", complexity="O(N)",
    summary="Members of a set, chosen at random.", tips="nondeterministic_output",
)  # fmt: skip
def srandmember(ctx: Call, argv: list[bytes]) -> Outcome:
    """With a negative count the same member may come several times, and at most 1,000,000 are given."""
    if len(argv) > 3:
        raise CommandError(SYNTAX)
    count = parse_integer(argv[2]) if len(argv) == 3 else 1
    if count < -MOST_REPEATED:
        raise CommandError(OUT_OF_RANGE)
    members = find_set(ctx, argv[1])
    if len(argv) == 2:
        if members is None:
            return Outcome(encode_null(resp3=ctx.resp3))
        return Outcome(encode_bulk(next(islice(members, ctx.state.chance.below(len(members)), None))))
    if members is None or count == 0:
        return EMPTY_ARRAY
    return Outcome(encode_array([encode_bulk(member) for member in draw(ctx, members, count)]))


def draw(ctx: Call, members: set[bytes], count: int) -> list[bytes]:
    """As many members as asked for, all different; a negative count may draw one again."""
    names = list(members)
    if count >= len(names):
        return names
    chance = ctx.state.chance
    if count > 0:
        return [names[place] for place in chance.sample(len(names), count)]
    return [names[chance.below(len(names))] for _ in range(-count)]

"""Taking members from either end of a sorted set, with and without waiting, and members at random.

A client that waits for several sorted sets is served by the first one in its own order that has something; clients that
wait for one are served in the order they came.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.numbers import MAX_INTEGER, parse_integer, parse_positive, parse_timeout_s, parse_within
from headrace.commands.outcome import EMPTY_ARRAY, NOTHING, Outcome
from headrace.commands.refusals import OUT_OF_RANGE, SYNTAX
from headrace.commands.sorted_sets import encode_pair, encode_pairs, find_sorted_set, note_removed
from headrace.commands.spec import block, command, double, integer, key, many, oneof, optional, word
from headrace.engine.sorted_set import Pair, SortedSet
from headrace.engine.waiters import NO_TIME, Waiter
from headrace.errors import CommandError
from headrace.wire.encoder import encode_array, encode_bulk, encode_double, encode_null, encode_null_array

MOST_REPEATED: Final = 1_000_000  # Random members of one reply, when one may come up again and again.


def take(ctx: Call, name: bytes, members: SortedSet, count: int, *, highest: bool) -> tuple[list[Pair], bytes]:
    """Remove up to `count` members, one at least, from one end. In the order they were taken, and the record."""
    size = len(members.scores)
    taken = members.remove_ranks(max(0, size - count), size) if highest else members.remove_ranks(0, count)
    if highest:
        taken.reverse()
    event = b"zpopmax" if highest else b"zpopmin"
    return taken, note_removed(ctx, name, members, [member for _, member in taken], event)


# At once


@command(
    "ZPOPMIN", key("RW access delete"), optional(integer("count")),
    group="sorted-set", flags="write fast", since="5.0.0", complexity="O(log(N)) for each member taken",
    summary="Take the members with the lowest scores out of a sorted set.",
)  # fmt: skip
def zpopmin(ctx: Call, argv: list[bytes]) -> Outcome:
    return pop(ctx, argv, highest=False)


@command(
    "ZPOPMAX", key("RW access delete"), optional(integer("count")),
    group="sorted-set", flags="write fast", since="5.0.0", complexity="O(log(N)) for each member taken",
    summary="Take the members with the highest scores out of a sorted set.",
)  # fmt: skip
def zpopmax(ctx: Call, argv: list[bytes]) -> Outcome:
    return pop(ctx, argv, highest=True)


def pop(ctx: Call, argv: list[bytes], *, highest: bool) -> Outcome:
    if len(argv) > 3:
        raise CommandError(SYNTAX)
    count = parse_positive(argv[2]) if len(argv) == 3 else 1
    members = find_sorted_set(ctx, argv[1])
    if members is None or count == 0:
        return EMPTY_ARRAY
    taken, record = take(ctx, argv[1], members, count, highest=highest)
    reply = encode_pairs(ctx, taken, with_scores=True) if len(argv) == 3 else encode_pair(ctx, taken[0])
    return Outcome(reply, record, argv[1])


@command(
    "ZMPOP", integer("numkeys"), many(key("RW access delete", counted=True)), oneof("where", word("MIN"), word("MAX")),
    optional(integer("count", "COUNT")),
    group="sorted-set", flags="write", since="7.0.0", complexity="O(K) for K keys, and O(log(N)) for each member taken",
    summary="Take members from one end of the first sorted set that has any.",
)  # fmt: skip
def zmpop(ctx: Call, argv: list[bytes]) -> Outcome:
    names, highest, count = parse_multi_pop(argv, 1)
    outcome = pop_first(ctx, names, count, highest=highest, is_nested=True)
    return Outcome(encode_null_array(resp3=ctx.resp3)) if outcome is None else outcome


def parse_multi_pop(argv: list[bytes], index: int) -> tuple[list[bytes], bool, int]:
    """From the number of keys on: the keys, whether to take from the highest, and how many."""
    too_few = "ERR numkeys should be greater than 0"
    number = parse_within(argv[index], 1, MAX_INTEGER, too_few, too_few)
    where_at = index + number + 1
    if where_at >= len(argv) or argv[where_at].upper() not in (b"MIN", b"MAX"):
        raise CommandError(SYNTAX)
    count = 0
    place = where_at + 1
    while place < len(argv):
        if argv[place].upper() != b"COUNT" or count or place + 1 == len(argv):
            raise CommandError(SYNTAX)
        none = "ERR count should be greater than 0"
        count = parse_within(argv[place + 1], 1, MAX_INTEGER, none, none)
        place += 2
    return argv[index + 1 : where_at], argv[where_at].upper() == b"MAX", count or 1


def pop_first(ctx: Call, names: list[bytes], count: int, *, highest: bool, is_nested: bool) -> Outcome | None:
    """Take from the first key that has something. None when none has. One of another type before it is refused."""
    for name in names:
        members = find_sorted_set(ctx, name)
        if members is not None:
            taken, record = take(ctx, name, members, count, highest=highest)
            ctx.touch(name)
            parts = [encode_bulk(name)]
            if is_nested:
                parts.append(encode_array([encode_pair(ctx, pair) for pair in taken]))
            else:
                score, member = taken[0]
                parts += [encode_bulk(member), encode_double(score, resp3=ctx.resp3)]
            return Outcome(encode_array(parts), record)
    return None


# Waiting


@command(
    "BZPOPMIN", many(key("RW access delete")), double("timeout"),
    group="sorted-set", flags="write fast blocking", since="5.0.0", complexity="O(log(N))",
    summary="Take the member with the lowest score from the first sorted set that has one, or wait for it.",
)  # fmt: skip
def bzpopmin(ctx: Call, argv: list[bytes]) -> Outcome:
    """The timeout is in seconds; 0 waits for ever."""
    return blocking_pop(ctx, argv, argv[-1], argv[1:-1], 1, highest=False, is_nested=False)


@command(
    "BZPOPMAX", many(key("RW access delete")), double("timeout"),
    group="sorted-set", flags="write fast blocking", since="5.0.0", complexity="O(log(N))",
    summary="Take the member with the highest score from the first sorted set that has one, or wait for it.",
)  # fmt: skip
def bzpopmax(ctx: Call, argv: list[bytes]) -> Outcome:
    """The timeout is in seconds; 0 waits for ever."""
    return blocking_pop(ctx, argv, argv[-1], argv[1:-1], 1, highest=True, is_nested=False)


@command(
    "BZMPOP", double("timeout"), integer("numkeys"), many(key("RW access delete", counted=True)),
    oneof("where", word("MIN"), word("MAX")), optional(integer("count", "COUNT")),
    group="sorted-set", flags="write blocking", since="7.0.0",
    complexity="O(K) for K keys, and O(log(N)) for each member taken",
    summary="Take members from one end of the first sorted set that has any, or wait for it.",
)  # fmt: skip
def bzmpop(ctx: Call, argv: list[bytes]) -> Outcome:
    """The timeout is in seconds; 0 waits for ever."""
    names, highest, count = parse_multi_pop(argv, 2)
    return blocking_pop(ctx, argv, argv[1], names, count, highest=highest, is_nested=True)


def blocking_pop(
    ctx: Call, argv: list[bytes], timeout: bytes, names: list[bytes], count: int, *, highest: bool, is_nested: bool
) -> Outcome:
    timeout_ms = parse_timeout_s(timeout, ctx.now_ms)
    outcome = pop_first(ctx, names, count, highest=highest, is_nested=is_nested)
    if outcome is not None:
        return outcome
    if not ctx.may_block:
        return Outcome(encode_null_array(resp3=ctx.resp3))
    deadline_ms = ctx.now_ms + timeout_ms if timeout_ms else NO_TIME
    ctx.blocked_on = Waiter(ctx.id, ctx.db.number, names, argv, deadline_ms, NO_TIME, "zset")
    return NOTHING


# At random


@command(
    "ZRANDMEMBER", key("RO access"), optional(block("options", integer("count"), optional(word("WITHSCORES")))),
    group="sorted-set", flags="readonly", since="6.2.0", complexity="O(log(N)) for each member returned",
    summary="Members of a sorted set, chosen at random.", tips="nondeterministic_output",
)  # fmt: skip
def zrandmember(ctx: Call, argv: list[bytes]) -> Outcome:
    """With a negative count the same member may come several times, and at most 1,000,000 are given."""
    if len(argv) == 2:
        members = find_sorted_set(ctx, argv[1])
        if members is None:
            return Outcome(encode_null(resp3=ctx.resp3))
        return Outcome(encode_bulk(pair_at(members, ctx.state.chance.below(len(members.scores)))[1]))
    count = parse_integer(argv[2])
    with_scores = len(argv) > 3
    if with_scores and (len(argv) > 4 or argv[3].upper() != b"WITHSCORES"):
        raise CommandError(SYNTAX)
    if count < -MOST_REPEATED:
        raise CommandError(OUT_OF_RANGE)
    members = find_sorted_set(ctx, argv[1])
    if members is None or count == 0:
        return EMPTY_ARRAY
    return Outcome(encode_pairs(ctx, choose(ctx, members, count), with_scores=with_scores))


def choose(ctx: Call, members: SortedSet, count: int) -> list[Pair]:
    size = len(members.scores)
    if count >= size:
        return members.pairs(0, size)
    chance = ctx.state.chance
    ranks = chance.sample(size, count) if count > 0 else [chance.below(size) for _ in range(-count)]
    return [pair_at(members, rank) for rank in ranks]


def pair_at(members: SortedSet, rank: int) -> Pair:
    return members.pairs(rank, rank + 1)[0]

"""Sorted sets: members with scores. Adding, removing, and asking for one member.

Ranges are in `sorted_set_ranges.py`, popping and random members in `sorted_set_pops.py`, unions and the like in
`sorted_set_algebra.py`. A sorted set that becomes empty is gone. The journal gets members with the scores they have
afterwards, never increments.
"""

from math import isnan
from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import GENERIC, SORTED_SET
from headrace.commands.numbers import parse_double
from headrace.commands.outcome import CHANGED, ZERO, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import added, block, command, double, integer, key, many, oneof, optional, text, word
from headrace.engine.keyspace import WRONG_TYPE
from headrace.engine.sorted_set import Pair, SortedSet
from headrace.errors import CommandError
from headrace.journal.record import SCORE_REMOVE, SCORE_SET, encode_record
from headrace.wire.encoder import (
    encode_array,
    encode_bulk,
    encode_double,
    encode_integer,
    encode_null,
    encode_null_array,
)

NOT_A_NUMBER: Final = "ERR resulting score is not a number (NaN)"


def find_sorted_set(ctx: Call, name: bytes) -> SortedSet | None:
    value = ctx.find(name)
    if value is None or isinstance(value, SortedSet):
        return value
    raise CommandError(WRONG_TYPE)


# Adding


class AddOptions:
    """What stands between the key of ZADD and the first score."""

    __slots__ = ("only_new", "only_known", "only_greater", "only_less", "counts_changes", "increments", "scores_at")

    def __init__(self) -> None:
        self.only_new = False
        self.only_known = False
        self.only_greater = False
        self.only_less = False
        self.counts_changes = False
        self.increments = False
        self.scores_at = 2

    def takes(self, before: float | None, score: float) -> bool:
        """Whether a member with the score `before`, None when it is new, may get this one."""
        if before is None:
            return not self.only_known
        if self.only_new:
            return False
        return not (self.only_greater and score <= before) and not (self.only_less and score >= before)


@command(
    "ZADD", key("RW update"), optional(added("3.0.2", oneof("condition", word("NX"), word("XX")))),
    optional(added("6.2.0", oneof("comparison", word("GT"), word("LT")))),
    optional(added("3.0.2", word("CH", "change"))), optional(added("3.0.2", word("INCR", "increment"))),
    many(block("data", double("score"), text("member"))),
    group="sorted-set", flags="write denyoom fast", since="1.2.0", complexity="O(log(N)) for each member",
    summary="Give members of a sorted set their scores; the set and the members are created when missing.",
)  # fmt: skip
def zadd(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply counts the members that are new; with CH those that changed too; with INCR it is the new score.

    NX takes only new members and XX only known ones; GT and LT change a score only upwards or downwards.
    """
    options = parse_add_options(argv)
    return add_scores(ctx, argv[1], options, argv[options.scores_at :])


@command(
    "ZINCRBY", key("RW access update"), integer("increment"), text("member"),
    group="sorted-set", flags="write denyoom fast", since="1.2.0", complexity="O(log(N))",
    summary="Add to the score of a member of a sorted set; a missing one counts as 0.",
)  # fmt: skip
def zincrby(ctx: Call, argv: list[bytes]) -> Outcome:
    options = AddOptions()
    options.increments = True
    return add_scores(ctx, argv[1], options, argv[2:])


def parse_add_options(argv: list[bytes]) -> AddOptions:
    options = AddOptions()
    index = 2
    while index < len(argv):
        option = argv[index].upper()
        if option == b"NX":
            options.only_new = True
        elif option == b"XX":
            options.only_known = True
        elif option == b"GT":
            options.only_greater = True
        elif option == b"LT":
            options.only_less = True
        elif option == b"CH":
            options.counts_changes = True
        elif option == b"INCR":
            options.increments = True
        else:
            break
        index += 1
    options.scores_at = index
    words = len(argv) - index
    if words % 2 or not words:
        raise CommandError(SYNTAX)
    if options.only_new and options.only_known:
        raise CommandError("ERR XX and NX options at the same time are not compatible")
    if options.only_new + options.only_greater + options.only_less > 1:
        raise CommandError("ERR GT, LT, and/or NX options at the same time are not compatible")
    if options.increments and words > 2:
        raise CommandError("ERR INCR option supports a single increment-element pair")
    return options


def add_scores(ctx: Call, name: bytes, options: AddOptions, words: list[bytes]) -> Outcome:
    """Scores and members follow one another in `words`."""
    scores = [parse_double(words[index]) for index in range(0, len(words), 2)]
    members = find_sorted_set(ctx, name)
    if options.increments:
        return increment(ctx, name, members, options, words[1], scores[0])
    if members is None and options.only_known:
        return ZERO
    target = get_or_create(ctx, name, members)
    known = target.scores
    fresh = 0
    written: list[bytes] = []
    for index, score in enumerate(scores):
        member = words[2 * index + 1]
        before = known.get(member)
        if options.takes(before, score) and before != score:
            target.put(member, score)
            fresh += before is None
            written += (member, repr(score).encode())
    if not written:
        return ZERO
    ctx.notify(SORTED_SET, b"zadd", name)
    reply = encode_integer(len(written) // 2 if options.counts_changes else fresh)
    return Outcome(reply, set_record(ctx, name, written), name)


def increment(
    ctx: Call, name: bytes, members: SortedSet | None, options: AddOptions, member: bytes, amount: float
) -> Outcome:
    before = None if members is None else members.scores.get(member)
    score = amount if before is None else before + amount
    if isnan(score):
        raise CommandError(NOT_A_NUMBER)
    if not options.takes(before, score):
        return Outcome(encode_null(resp3=ctx.resp3))
    reply = encode_double(score, resp3=ctx.resp3)
    if before == score:
        return Outcome(reply)
    get_or_create(ctx, name, members).put(member, score)
    ctx.notify(SORTED_SET, b"zincr", name)
    return Outcome(reply, set_record(ctx, name, [member, repr(score).encode()]), name)


def get_or_create(ctx: Call, name: bytes, members: SortedSet | None) -> SortedSet:
    if members is None:
        members = SortedSet()
        ctx.db.put(name, members)
    return members


def set_record(ctx: Call, name: bytes, words: list[bytes]) -> bytes:
    """The record of members and their scores, which follow one another."""
    ctx.state.changes += len(words) // 2 - 1
    return encode_record(SCORE_SET, ctx.db.number, name, *words) if ctx.journaling else CHANGED


# Removing


@command(
    "ZREM", key("RW delete"), many(text("member")),
    group="sorted-set", flags="write fast", since="1.2.0", complexity="O(log(N)) for each member",
    summary="Take members out of a sorted set.",
)  # fmt: skip
def zrem(ctx: Call, argv: list[bytes]) -> Outcome:
    name = argv[1]
    members = find_sorted_set(ctx, name)
    if members is None:
        return ZERO
    gone = [member for member in argv[2:] if members.remove(member)]
    if not gone:
        return ZERO
    return Outcome(encode_integer(len(gone)), note_removed(ctx, name, members, gone, b"zrem"), name)


def note_removed(ctx: Call, name: bytes, members: SortedSet, gone: list[bytes], event: bytes) -> bytes:
    """Members are gone from the set: tell those who asked, and drop the key with the last one. The record."""
    ctx.state.changes += len(gone) - 1
    ctx.notify(SORTED_SET, event, name)
    if not members.scores:
        ctx.db.delete(name)
        ctx.notify(GENERIC, b"del", name)
    return encode_record(SCORE_REMOVE, ctx.db.number, name, *gone) if ctx.journaling else CHANGED


# One member


@command(
    "ZSCORE", key("RO access"), text("member"),
    group="sorted-set", flags="readonly fast", since="1.2.0", complexity="O(1)",
    summary="The score of a member of a sorted set.",
)  # fmt: skip
def zscore(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_score(ctx, find_sorted_set(ctx, argv[1]), argv[2]))


@command(
    "ZMSCORE", key("RO access"), many(text("member")),
    group="sorted-set", flags="readonly fast", since="6.2.0", complexity="O(1) for each member",
    summary="The scores of several members of a sorted set.",
)  # fmt: skip
def zmscore(ctx: Call, argv: list[bytes]) -> Outcome:
    members = find_sorted_set(ctx, argv[1])
    return Outcome(encode_array([encode_score(ctx, members, member) for member in argv[2:]]))


def encode_score(ctx: Call, members: SortedSet | None, member: bytes) -> bytes:
    score = None if members is None else members.scores.get(member)
    return encode_null(resp3=ctx.resp3) if score is None else encode_double(score, resp3=ctx.resp3)


@command(
    "ZCARD", key("RO"),
    group="sorted-set", flags="readonly fast", since="1.2.0", complexity="O(1)",
    summary="How many members a sorted set has.",
)  # fmt: skip
def zcard(ctx: Call, argv: list[bytes]) -> Outcome:
    members = find_sorted_set(ctx, argv[1])
    return ZERO if members is None else Outcome(encode_integer(len(members.scores)))


@command(
    "ZRANK", key("RO access"), text("member"), optional(added("7.2.0", word("WITHSCORE"))),
    group="sorted-set", flags="readonly fast", since="2.0.0", complexity="O(log(N)), or O(N) / 500 after a change",
    summary="The place of a member in a sorted set, counted from the lowest score, which is 0.",
)  # fmt: skip
def zrank(ctx: Call, argv: list[bytes]) -> Outcome:
    return rank(ctx, argv, reverse=False)


@command(
    "ZREVRANK", key("RO access"), text("member"), optional(added("7.2.0", word("WITHSCORE"))),
    group="sorted-set", flags="readonly fast", since="2.0.0", complexity="O(log(N)), or O(N) / 500 after a change",
    summary="The place of a member in a sorted set, counted from the highest score, which is 0.",
)  # fmt: skip
def zrevrank(ctx: Call, argv: list[bytes]) -> Outcome:
    return rank(ctx, argv, reverse=True)


def rank(ctx: Call, argv: list[bytes], *, reverse: bool) -> Outcome:
    if len(argv) > 4:
        raise CommandError(f"ERR wrong number of arguments for '{argv[0].decode().lower()}' command")
    with_score = len(argv) == 4
    if with_score and argv[3].upper() != b"WITHSCORE":
        raise CommandError(SYNTAX)
    members = find_sorted_set(ctx, argv[1])
    score = None if members is None else members.scores.get(argv[2])
    if members is None or score is None:
        return Outcome(encode_null_array(resp3=ctx.resp3) if with_score else encode_null(resp3=ctx.resp3))
    place = members.rank(argv[2])
    reply = encode_integer(len(members.scores) - 1 - place if reverse else place)
    return Outcome(encode_array([reply, encode_double(score, resp3=ctx.resp3)]) if with_score else reply)


# Replies


def encode_pairs(ctx: Call, pairs: list[Pair], *, with_scores: bool) -> bytes:
    """Members, or members and scores: flat in RESP2, each pair an array of its own in RESP3."""
    if not with_scores:
        return encode_array([encode_bulk(member) for _, member in pairs])
    if ctx.resp3:
        return encode_array([encode_pair(ctx, pair) for pair in pairs])
    parts: list[bytes] = []
    for score, member in pairs:
        parts.append(encode_bulk(member))
        parts.append(encode_double(score, resp3=False))
    return encode_array(parts)


def encode_pair(ctx: Call, pair: Pair) -> bytes:
    return b"*2\r\n" + encode_bulk(pair[1]) + encode_double(pair[0], resp3=ctx.resp3)

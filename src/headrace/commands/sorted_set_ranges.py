"""Ranges of a sorted set: by rank, by score, by member. Reading, counting, removing and storing them.

However a range is asked for, it becomes two ranks (`Range.ranks`); everything else is the same for all. A range by
member has a meaning only where all scores are the same.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.numbers import parse_integer, parse_range_end
from headrace.commands.outcome import EMPTY_ARRAY, ZERO, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.sorted_sets import encode_pairs, find_sorted_set, note_removed
from headrace.commands.spec import added, block, command, double, integer, key, oneof, optional, text, word
from headrace.commands.storing import store_result
from headrace.engine.sorted_set import Pair, SortedSet
from headrace.errors import CommandError
from headrace.wire.encoder import encode_integer

AUTO: Final = 0  # Of an old command that says neither: the options may.
BY_RANK: Final = 1
BY_SCORE: Final = 2
BY_MEMBER: Final = 3
UNLIMITED: Final = -1

BAD_SCORE: Final = "ERR min or max is not a float"
BAD_MEMBER: Final = "ERR min or max not valid string range item"


class Range:
    """From where to where, with both ends read: of any kind."""

    __slots__ = ("kind", "start", "stop", "low", "high", "leaves_low", "leaves_high", "first", "last")

    def __init__(self, kind: int, low: bytes, high: bytes) -> None:
        self.kind = kind
        self.start = 0  # By rank: both ends are inside; negative ones count from the other end.
        self.stop = 0
        self.low = 0.0  # By score.
        self.high = 0.0
        self.first = low  # By member: with the sign before it.
        self.last = high
        self.leaves_low = low[:1] == b"("
        self.leaves_high = high[:1] == b"("
        if kind == BY_RANK:
            self.start = parse_integer(low)
            self.stop = parse_integer(high)
        elif kind == BY_SCORE:
            self.low = parse_range_end(low, BAD_SCORE)
            self.high = parse_range_end(high, BAD_SCORE)
        elif not (is_member_end(low) and is_member_end(high)):
            raise CommandError(BAD_MEMBER)

    def ranks(self, members: SortedSet, *, reverse: bool = False) -> tuple[int, int]:
        """The first rank inside and the first behind it, counted from the lowest score whichever way one reads."""
        size = len(members.scores)
        if self.kind == BY_RANK:
            start = max(0, self.start + size if self.start < 0 else self.start)
            stop = min(size, (self.stop + size if self.stop < 0 else self.stop) + 1)
            return (size - stop, size - start) if reverse else (start, stop)
        if self.kind == BY_SCORE:
            low = members.rank_of_score(self.low, after=self.leaves_low)
            return low, members.rank_of_score(self.high, after=not self.leaves_high)
        low = rank_of_end(members, self.first, after=self.leaves_low)
        return low, rank_of_end(members, self.last, after=not self.leaves_high)


def is_member_end(end: bytes) -> bool:
    return end in (b"-", b"+") or end[:1] in (b"(", b"[")


def rank_of_end(members: SortedSet, end: bytes, *, after: bool) -> int:
    if end == b"-":
        return 0
    if end == b"+":
        return len(members.scores)
    return members.rank_of_member(end[1:], after=after)


class RangeOptions:
    __slots__ = ("kind", "reverse", "with_scores", "offset", "limit")

    def __init__(self, kind: int, *, reverse: bool) -> None:
        self.kind = kind
        self.reverse = reverse
        self.with_scores = False
        self.offset = 0
        self.limit = UNLIMITED

    def select(self, members: SortedSet | None, wanted: Range) -> list[Pair]:
        """What the range takes, in the order it is to be shown."""
        if members is None:
            return []
        start, stop = wanted.ranks(members, reverse=self.reverse)
        if self.kind != BY_RANK:
            if self.offset < 0:
                return []
            limit = len(members.scores) if self.limit < 0 else self.limit
            if self.reverse:
                stop -= self.offset
                start = max(start, stop - limit)
            else:
                start += self.offset
                stop = min(stop, start + limit)
        if start >= stop:
            return []
        pairs = members.pairs(start, stop)
        if self.reverse:
            pairs.reverse()
        return pairs


def parse_options(argv: list[bytes], index: int, kind: int, *, reverse: bool, stores: bool = False) -> RangeOptions:
    """What stands behind both ends. Of AUTO commands also which kind of range it is, and which way it goes."""
    options = RangeOptions(kind, reverse=reverse)
    may_choose = kind == AUTO
    while index < len(argv):
        option = argv[index].upper()
        if option == b"WITHSCORES" and not stores:
            options.with_scores = True
        elif option == b"LIMIT" and index + 2 < len(argv):
            options.offset = parse_integer(argv[index + 1])
            options.limit = parse_integer(argv[index + 2])
            index += 2
        elif option == b"REV" and may_choose and not options.reverse:
            options.reverse = True
        elif option in (b"BYSCORE", b"BYLEX") and options.kind == AUTO:
            options.kind = BY_SCORE if option == b"BYSCORE" else BY_MEMBER
        else:
            raise CommandError(SYNTAX)
        index += 1
    options.kind = options.kind or BY_RANK
    if options.limit != UNLIMITED and options.kind == BY_RANK:
        raise CommandError(f"{SYNTAX}, LIMIT is only supported in combination with either BYSCORE or BYLEX")
    if options.with_scores and options.kind == BY_MEMBER:
        raise CommandError(f"{SYNTAX}, WITHSCORES not supported in combination with BYLEX")
    return options


def parse_range(options: RangeOptions, first: bytes, second: bytes) -> Range:
    """Whoever reads from the highest score names the upper end first; ranks count from there anyway."""
    swaps = options.reverse and options.kind != BY_RANK
    return Range(options.kind, second, first) if swaps else Range(options.kind, first, second)


# Reading


def read_range(ctx: Call, argv: list[bytes], kind: int, *, reverse: bool) -> Outcome:
    options = parse_options(argv, 4, kind, reverse=reverse)
    wanted = parse_range(options, argv[2], argv[3])
    members = find_sorted_set(ctx, argv[1])
    if members is None:
        return EMPTY_ARRAY
    return Outcome(encode_pairs(ctx, options.select(members, wanted), with_scores=options.with_scores))


@command(
    "ZRANGE", key("RO access"), text("start"), text("stop"),
    optional(added("6.2.0", oneof("sortby", word("BYSCORE"), word("BYLEX")))), optional(added("6.2.0", word("REV"))),
    optional(added("6.2.0", block("limit", integer("offset"), integer("count"), token="LIMIT"))),
    optional(word("WITHSCORES")),
    group="sorted-set", flags="readonly", since="1.2.0", complexity="O(log(N)+M) with M members returned",
    summary="Members of a sorted set from one place, score or member to another.",
)  # fmt: skip
def zrange(ctx: Call, argv: list[bytes]) -> Outcome:
    """Without BYSCORE and BYLEX both ends are places, counted from 0; negative ones count from the other end.

    A score is written as it is or, to leave it out of the range, behind `(`; a member behind `[` or `(`. With REV the
    upper end comes first.
    """
    return read_range(ctx, argv, AUTO, reverse=False)


@command(
    "ZREVRANGE", key("RO access"), integer("start"), integer("stop"), optional(word("WITHSCORES")),
    group="sorted-set", flags="readonly", since="1.2.0", complexity="O(log(N)+M) with M members returned",
    summary="Members of a sorted set from one place to another, counted from the highest score.",
)  # fmt: skip
def zrevrange(ctx: Call, argv: list[bytes]) -> Outcome:
    return read_range(ctx, argv, BY_RANK, reverse=True)


@command(
    "ZRANGEBYSCORE", key("RO access"), double("min"), double("max"), optional(added("2.0.0", word("WITHSCORES"))),
    optional(block("limit", integer("offset"), integer("count"), token="LIMIT")),
    group="sorted-set", flags="readonly", since="1.0.5", complexity="O(log(N)+M) with M members returned",
    summary="Members of a sorted set with scores from one to another.",
)  # fmt: skip
def zrangebyscore(ctx: Call, argv: list[bytes]) -> Outcome:
    return read_range(ctx, argv, BY_SCORE, reverse=False)


@command(
    "ZREVRANGEBYSCORE", key("RO access"), double("max"), double("min"), optional(word("WITHSCORES")),
    optional(block("limit", integer("offset"), integer("count"), token="LIMIT")),
    group="sorted-set", flags="readonly", since="2.2.0", complexity="O(log(N)+M) with M members returned",
    summary="Members of a sorted set with scores from one to another, the highest first.",
)  # fmt: skip
def zrevrangebyscore(ctx: Call, argv: list[bytes]) -> Outcome:
    return read_range(ctx, argv, BY_SCORE, reverse=True)


@command(
    "ZRANGEBYLEX", key("RO access"), text("min"), text("max"),
    optional(block("limit", integer("offset"), integer("count"), token="LIMIT")),
    group="sorted-set", flags="readonly", since="2.8.9", complexity="O(log(N)+M) with M members returned",
    summary="Members of a sorted set from one to another in the order of their bytes.",
)  # fmt: skip
def zrangebylex(ctx: Call, argv: list[bytes]) -> Outcome:
    """All members must have the same score."""
    return read_range(ctx, argv, BY_MEMBER, reverse=False)


@command(
    "ZREVRANGEBYLEX", key("RO access"), text("max"), text("min"),
    optional(block("limit", integer("offset"), integer("count"), token="LIMIT")),
    group="sorted-set", flags="readonly", since="2.8.9", complexity="O(log(N)+M) with M members returned",
    summary="Members of a sorted set from one to another in the order of their bytes, the last first.",
)  # fmt: skip
def zrevrangebylex(ctx: Call, argv: list[bytes]) -> Outcome:
    return read_range(ctx, argv, BY_MEMBER, reverse=True)


@command(
    "ZRANGESTORE", key("OW update", "dst"), key("RO access", "src"), text("min"), text("max"),
    optional(oneof("sortby", word("BYSCORE"), word("BYLEX"))), optional(word("REV")),
    optional(block("limit", integer("offset"), integer("count"), token="LIMIT")),
    group="sorted-set", flags="write denyoom", since="6.2.0", complexity="O(log(N)+M) with M members stored",
    summary="Store a range of a sorted set under another key.",
)  # fmt: skip
def zrangestore(ctx: Call, argv: list[bytes]) -> Outcome:
    """An empty range deletes what the key held."""
    options = parse_options(argv, 5, AUTO, reverse=False, stores=True)
    wanted = parse_range(options, argv[3], argv[4])
    found = options.select(find_sorted_set(ctx, argv[2]), wanted)
    return store_result(ctx, argv[1], SortedSet({member: score for score, member in found}), b"zrangestore")


# Counting and removing


def count_range(ctx: Call, argv: list[bytes], kind: int) -> Outcome:
    wanted = Range(kind, argv[2], argv[3])
    members = find_sorted_set(ctx, argv[1])
    if members is None:
        return ZERO
    start, stop = wanted.ranks(members)
    return Outcome(encode_integer(max(0, stop - start)))


@command(
    "ZCOUNT", key("RO access"), double("min"), double("max"),
    group="sorted-set", flags="readonly fast", since="2.0.0", complexity="O(log(N))",
    summary="How many members of a sorted set have scores from one to another.",
)  # fmt: skip
def zcount(ctx: Call, argv: list[bytes]) -> Outcome:
    return count_range(ctx, argv, BY_SCORE)


@command(
    "ZLEXCOUNT", key("RO access"), text("min"), text("max"),
    group="sorted-set", flags="readonly fast", since="2.8.9", complexity="O(log(N))",
    summary="How many members a sorted set has from one to another in the order of their bytes.",
)  # fmt: skip
def zlexcount(ctx: Call, argv: list[bytes]) -> Outcome:
    return count_range(ctx, argv, BY_MEMBER)


def remove_range(ctx: Call, argv: list[bytes], kind: int, event: bytes) -> Outcome:
    wanted = Range(kind, argv[2], argv[3])
    name = argv[1]
    members = find_sorted_set(ctx, name)
    if members is None:
        return ZERO
    start, stop = wanted.ranks(members)
    gone = [member for _, member in members.remove_ranks(start, stop)]
    if not gone:
        return ZERO
    return Outcome(encode_integer(len(gone)), note_removed(ctx, name, members, gone, event), name)


@command(
    "ZREMRANGEBYRANK", key("RW delete"), integer("start"), integer("stop"),
    group="sorted-set", flags="write", since="2.0.0", complexity="O(log(N)+M) with M members removed",
    summary="Take members from one place to another out of a sorted set.",
)  # fmt: skip
def zremrangebyrank(ctx: Call, argv: list[bytes]) -> Outcome:
    return remove_range(ctx, argv, BY_RANK, b"zremrangebyrank")


@command(
    "ZREMRANGEBYSCORE", key("RW delete"), double("min"), double("max"),
    group="sorted-set", flags="write", since="1.2.0", complexity="O(log(N)+M) with M members removed",
    summary="Take members with scores from one to another out of a sorted set.",
)  # fmt: skip
def zremrangebyscore(ctx: Call, argv: list[bytes]) -> Outcome:
    return remove_range(ctx, argv, BY_SCORE, b"zremrangebyscore")


@command(
    "ZREMRANGEBYLEX", key("RW delete"), text("min"), text("max"),
    group="sorted-set", flags="write", since="2.8.9", complexity="O(log(N)+M) with M members removed",
    summary="Take members from one to another in the order of their bytes out of a sorted set.",
)  # fmt: skip
def zremrangebylex(ctx: Call, argv: list[bytes]) -> Outcome:
    return remove_range(ctx, argv, BY_MEMBER, b"zremrangebylex")

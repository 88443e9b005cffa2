"""Unions, intersections and differences of sorted sets. A plain set counts as one whose scores are all 1.

Each command comes in a form that answers and one that stores. The inputs are put together from the smallest to the
largest, as Redis does: the order in which scores are added shows in their last digits.
"""

from math import isnan
from typing import Final

from headrace.commands.call import Call
from headrace.commands.numbers import MAX_INTEGER, parse_double, parse_integer, parse_within
from headrace.commands.outcome import Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.sorted_sets import encode_pairs
from headrace.commands.spec import command, integer, key, many, oneof, optional, word
from headrace.commands.storing import store_result
from headrace.engine.keyspace import WRONG_TYPE
from headrace.engine.sorted_set import SortedSet
from headrace.errors import CommandError
from headrace.wire.encoder import encode_integer

UNION: Final = 0
INTERSECTION: Final = 1
DIFFERENCE: Final = 2

SUM: Final = b"SUM"
MIN: Final = b"MIN"
MAX: Final = b"MAX"


class Input:
    """One of the sets: its scores, and what they are multiplied by."""

    __slots__ = ("scores", "weight")

    def __init__(self, scores: dict[bytes, float]) -> None:
        self.scores = scores
        self.weight = 1.0

    def weighted(self, score: float) -> float:
        product = self.weight * score
        return 0.0 if isnan(product) else product  # inf times 0.


class Request:
    """What a command of this family asks for."""

    __slots__ = ("inputs", "aggregate", "with_scores", "limit")

    def __init__(self, inputs: list[Input]) -> None:
        self.inputs = inputs
        self.aggregate = SUM
        self.with_scores = False
        self.limit = 0  # Of ZINTERCARD; 0: none.

    def combine(self, one: float, other: float) -> float:
        if self.aggregate == MIN:
            return min(one, other)
        if self.aggregate == MAX:
            return max(one, other)
        total = one + other
        return 0.0 if isnan(total) else total  # inf and -inf.


def find_scores(ctx: Call, name: bytes) -> dict[bytes, float]:
    value = ctx.find(name)
    if value is None:
        return {}
    if isinstance(value, SortedSet):
        return value.scores
    if isinstance(value, set):
        return dict.fromkeys(value, 1.0)
    raise CommandError(WRONG_TYPE)


def parse_request(ctx: Call, argv: list[bytes], index: int, operation: int, *, stores: bool) -> Request:
    """From the number of keys on. The keys are looked at before the options, as in Redis."""
    number = parse_integer(argv[index])
    if number < 1:
        raise CommandError(f"ERR at least 1 input key is needed for '{argv[0].decode().lower()}' command")
    if number > len(argv) - index - 1:
        raise CommandError(SYNTAX)
    following = index + 1 + number
    request = Request([Input(find_scores(ctx, name)) for name in argv[index + 1 : following]])
    index = following
    while index < len(argv):
        option = argv[index].upper()
        left = len(argv) - index - 1
        if option == b"WEIGHTS" and operation != DIFFERENCE and left >= number:
            for place, one in enumerate(request.inputs):
                one.weight = parse_double(argv[index + 1 + place], "ERR weight value is not a float")
            index += number
        elif option == b"AGGREGATE" and operation != DIFFERENCE and left >= 1:
            request.aggregate = argv[index + 1].upper()
            if request.aggregate not in (SUM, MIN, MAX):
                raise CommandError(SYNTAX)
            index += 1
        elif option == b"WITHSCORES" and not stores:
            request.with_scores = True
        else:
            raise CommandError(SYNTAX)
        index += 1
    return request


# The three operations


def evaluate(request: Request, operation: int) -> dict[bytes, float]:
    if operation == DIFFERENCE:
        return subtract(request.inputs)
    request.inputs.sort(key=size_of)
    return unite(request) if operation == UNION else intersect(request)


def size_of(one: Input) -> int:
    return len(one.scores)


def unite(request: Request) -> dict[bytes, float]:
    found: dict[bytes, float] = {}
    for one in request.inputs:
        for member, score in one.scores.items():
            value = one.weighted(score)
            before = found.get(member)
            found[member] = value if before is None else request.combine(before, value)
    return found


def intersect(request: Request) -> dict[bytes, float]:
    smallest = request.inputs[0]
    found: dict[bytes, float] = {}
    for member, score in smallest.scores.items():
        total = smallest.weighted(score)
        for other in request.inputs[1:]:
            value = other.scores.get(member)
            if value is None:
                break
            # Quirk of Redis, kept: inf times 0 is 0 of the smallest set only; of another one it makes the sum 0.
            total = request.combine(total, other.weight * value)
        else:
            found[member] = total
    return found


def subtract(inputs: list[Input]) -> dict[bytes, float]:
    others = [one.scores for one in inputs[1:]]
    return {
        member: score for member, score in inputs[0].scores.items() if not any([member in scores for scores in others])
    }


# Answering


def answer(ctx: Call, argv: list[bytes], operation: int) -> Outcome:
    request = parse_request(ctx, argv, 1, operation, stores=False)
    pairs = sorted([(score, member) for member, score in evaluate(request, operation).items()])
    return Outcome(encode_pairs(ctx, pairs, with_scores=request.with_scores))


@command(
    "ZUNION", integer("numkeys"), many(key("RO access", counted=True)), optional(many(integer("weight", "WEIGHTS"))),
    optional(oneof("aggregate", word("SUM"), word("MIN"), word("MAX"), token="AGGREGATE")),
    optional(word("WITHSCORES")),
    group="sorted-set", flags="readonly", since="6.2.0",
    complexity="O(N)+O(M*log(M)) with N members of all sets together and M in the result",
    summary="The members of any of several sorted sets.",
)  # fmt: skip
def zunion(ctx: Call, argv: list[bytes]) -> Outcome:
    """Each set's scores are multiplied by its weight; what a member has in several sets is added up, or AGGREGATE."""
    return answer(ctx, argv, UNION)


@command(
    "ZINTER", integer("numkeys"), many(key("RO access", counted=True)), optional(many(integer("weight", "WEIGHTS"))),
    optional(oneof("aggregate", word("SUM"), word("MIN"), word("MAX"), token="AGGREGATE")),
    optional(word("WITHSCORES")),
    group="sorted-set", flags="readonly", since="6.2.0",
    complexity="O(N*K)+O(M*log(M)) with N members in the smallest of K sets and M in the result",
    summary="The members that several sorted sets have in common.",
)  # fmt: skip
def zinter(ctx: Call, argv: list[bytes]) -> Outcome:
    return answer(ctx, argv, INTERSECTION)


@command(
    "ZDIFF", integer("numkeys"), many(key("RO access", counted=True)), optional(word("WITHSCORES")),
    group="sorted-set", flags="readonly", since="6.2.0",
    complexity="O(N*K)+O(M*log(M)) with N members in the first of K sets and M in the result",
    summary="The members of the first of several sorted sets that no other has.",
)  # fmt: skip
def zdiff(ctx: Call, argv: list[bytes]) -> Outcome:
    return answer(ctx, argv, DIFFERENCE)


@command(
    "ZINTERCARD", integer("numkeys"), many(key("RO access", counted=True)), optional(integer("limit", "LIMIT")),
    group="sorted-set", flags="readonly", since="7.0.0", complexity="O(N*K) with N members in the smallest of K sets",
    summary="How many members several sorted sets have in common.",
)  # fmt: skip
def zintercard(ctx: Call, argv: list[bytes]) -> Outcome:
    """Counting ends at LIMIT; 0 is none."""
    number = parse_integer(argv[1])
    options_at = 2 + max(0, min(number, len(argv)))
    request = parse_request(ctx, argv[:options_at], 1, INTERSECTION, stores=True)
    limit = parse_limit(argv, options_at)
    request.inputs.sort(key=size_of)
    others = [one.scores for one in request.inputs[1:]]
    found = 0
    for member in request.inputs[0].scores:
        if all([member in scores for scores in others]):
            found += 1
            if found == limit:
                break
    return Outcome(encode_integer(found))


def parse_limit(argv: list[bytes], index: int) -> int:
    """LIMIT of ZINTERCARD and SINTERCARD, the only option there; 0 for none."""
    limit = 0
    while index < len(argv):
        if argv[index].upper() != b"LIMIT" or index + 1 == len(argv):
            raise CommandError(SYNTAX)
        negative = "ERR LIMIT can't be negative"
        limit = parse_within(argv[index + 1], 0, MAX_INTEGER, negative, negative)
        index += 2
    return limit


# Storing


def store(ctx: Call, argv: list[bytes], operation: int, event: bytes) -> Outcome:
    request = parse_request(ctx, argv, 2, operation, stores=True)
    return store_result(ctx, argv[1], SortedSet(evaluate(request, operation)), event)


@command(
    "ZUNIONSTORE", key("OW update", "destination"), integer("numkeys"), many(key("RO access", counted=True)),
    optional(many(integer("weight", "WEIGHTS"))),
    optional(oneof("aggregate", word("SUM"), word("MIN"), word("MAX"), token="AGGREGATE")),
    group="sorted-set", flags="write denyoom", since="2.0.0",
    complexity="O(N)+O(M*log(M)) with N members of all sets together and M in the result",
    summary="Store the members of any of several sorted sets under a key.",
)  # fmt: skip
def zunionstore(ctx: Call, argv: list[bytes]) -> Outcome:
    return store(ctx, argv, UNION, b"zunionstore")


@command(
    "ZINTERSTORE", key("OW update", "destination"), integer("numkeys"), many(key("RO access", counted=True)),
    optional(many(integer("weight", "WEIGHTS"))),
    optional(oneof("aggregate", word("SUM"), word("MIN"), word("MAX"), token="AGGREGATE")),
    group="sorted-set", flags="write denyoom", since="2.0.0",
    complexity="O(N*K)+O(M*log(M)) with N members in the smallest of K sets and M in the result",
    summary="Store the members that several sorted sets have in common under a key.",
)  # fmt: skip
def zinterstore(ctx: Call, argv: list[bytes]) -> Outcome:
    return store(ctx, argv, INTERSECTION, b"zinterstore")


@command(
    "ZDIFFSTORE", key("OW update", "destination"), integer("numkeys"), many(key("RO access", counted=True)),
    group="sorted-set", flags="write denyoom", since="6.2.0",
    complexity="O(N*K)+O(M*log(M)) with N members in the first of K sets and M in the result",
    summary="Store the members of the first of several sorted sets that no other has under a key.",
)  # fmt: skip
def zdiffstore(ctx: Call, argv: list[bytes]) -> Outcome:
    return store(ctx, argv, DIFFERENCE, b"zdiffstore")

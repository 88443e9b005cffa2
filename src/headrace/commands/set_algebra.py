"""Unions, intersections and differences of sets. Each command comes in a form that answers and one that stores."""

from headrace.commands.call import Call
from headrace.commands.numbers import MAX_INTEGER, parse_within
from headrace.commands.outcome import Outcome
from headrace.commands.sets import find_set
from headrace.commands.sorted_set_algebra import parse_limit
from headrace.commands.spec import command, integer, key, many, optional
from headrace.commands.storing import store_result
from headrace.errors import CommandError
from headrace.wire.encoder import encode, encode_integer
from headrace.wire.values import Unordered


def find_sets(ctx: Call, names: list[bytes]) -> list[set[bytes]]:
    """The sets of these keys, a missing one as an empty set. Not to be changed."""
    found: list[set[bytes]] = []
    for name in names:
        members = find_set(ctx, name)
        found.append(members if members is not None else set())
    return found


def unite(sets: list[set[bytes]]) -> set[bytes]:
    return set().union(*sets)


def intersect(sets: list[set[bytes]]) -> set[bytes]:
    smallest = min(sets, key=len)
    return smallest.intersection(*[other for other in sets if other is not smallest])


def subtract(sets: list[set[bytes]]) -> set[bytes]:
    return sets[0].difference(*sets[1:])


def answer(ctx: Call, members: set[bytes]) -> Outcome:
    return Outcome(encode(Unordered(sorted(members)), resp3=ctx.resp3))


@command(
    "SUNION", many(key("RO access")),
    group="set", flags="readonly", since="1.0.0", complexity="O(N) with N members of all sets together",
    summary="The members of any of several sets.", tips="nondeterministic_output_order",
)  # fmt: skip
def sunion(ctx: Call, argv: list[bytes]) -> Outcome:
    return answer(ctx, unite(find_sets(ctx, argv[1:])))


@command(
    "SINTER", many(key("RO access")),
    group="set", flags="readonly", since="1.0.0", complexity="O(N*K) with N members in the smallest of K sets",
    summary="The members that several sets have in common.", tips="nondeterministic_output_order",
)  # fmt: skip
def sinter(ctx: Call, argv: list[bytes]) -> Outcome:
    return answer(ctx, intersect(find_sets(ctx, argv[1:])))


@command(
    "SDIFF", many(key("RO access")),
    group="set", flags="readonly", since="1.0.0", complexity="O(N) with N members of all sets together",
    summary="The members of the first of several sets that no other has.", tips="nondeterministic_output_order",
)  # fmt: skip
def sdiff(ctx: Call, argv: list[bytes]) -> Outcome:
    return answer(ctx, subtract(find_sets(ctx, argv[1:])))


@command(
    "SUNIONSTORE", key("OW update", "destination"), many(key("RO access")),
    group="set", flags="write denyoom", since="1.0.0", complexity="O(N) with N members of all sets together",
    summary="Store the members of any of several sets under a key.",
)  # fmt: skip
def sunionstore(ctx: Call, argv: list[bytes]) -> Outcome:
    return store_result(ctx, argv[1], unite(find_sets(ctx, argv[2:])), b"sunionstore")


@command(
    "SINTERSTORE", key("OW update", "destination"), many(key("RO access")),
    group="set", flags="write denyoom", since="1.0.0", complexity="O(N*K) with N members in the smallest of K sets",
    summary="Store the members that several sets have in common under a key.",
)  # fmt: skip
def sinterstore(ctx: Call, argv: list[bytes]) -> Outcome:
    return store_result(ctx, argv[1], intersect(find_sets(ctx, argv[2:])), b"sinterstore")


@command(
    "SDIFFSTORE", key("OW update", "destination"), many(key("RO access")),
    group="set", flags="write denyoom", since="1.0.0", complexity="O(N) with N members of all sets together",
    summary="Store the members of the first of several sets that no other has under a key.",
)  # fmt: skip
def sdiffstore(ctx: Call, argv: list[bytes]) -> Outcome:
    return store_result(ctx, argv[1], subtract(find_sets(ctx, argv[2:])), b"sdiffstore")


@command(
    "SINTERCARD", integer("numkeys"), many(key("RO access", counted=True)), optional(integer("limit", "LIMIT")),
    group="set", flags="readonly", since="7.0.0", complexity="O(N*K) with N members in the smallest of K sets",
    summary="How many members several sets have in common.",
)  # fmt: skip
def sintercard(ctx: Call, argv: list[bytes]) -> Outcome:
    """Counting ends at LIMIT; 0 is none."""
    too_few = "ERR numkeys should be greater than 0"
    number = parse_within(argv[1], 1, MAX_INTEGER, too_few, too_few)
    if number > len(argv) - 2:
        raise CommandError("ERR Number of keys can't be greater than number of args")
    limit = parse_limit(argv, 2 + number)
    count = len(intersect(find_sets(ctx, argv[2 : 2 + number])))
    return Outcome(encode_integer(min(count, limit) if limit else count))

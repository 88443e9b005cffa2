"""Taking elements from the first of several lists that has some, at once or as soon as one has.

A client that waits for several lists is served by the first one in its own order that has something. Clients that wait
for one list are served in the order they came, each before the next command of anybody runs.
"""

from collections import deque

from headrace.commands.call import Call
from headrace.commands.list_moves import side
from headrace.commands.lists import encode_elements, encode_pop, find_list, parse_side, take
from headrace.commands.numbers import MAX_INTEGER, parse_timeout_s, parse_within
from headrace.commands.outcome import NOTHING, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import command, double, integer, key, many, optional
from headrace.engine.lists import LEFT, RIGHT
from headrace.engine.waiters import NO_TIME, Waiter
from headrace.errors import CommandError
from headrace.wire.encoder import encode_array, encode_bulk, encode_null_array


@command(
    "BLPOP", many(key("RW access delete")), double("timeout"),
    group="list", flags="write blocking", since="2.0.0", complexity="O(N) with N keys",
    summary="Take an element from the left end of the first list that has one, or wait for it.",
)  # fmt: skip
def blpop(ctx: Call, argv: list[bytes]) -> Outcome:
    """The timeout is in seconds; 0 waits for ever."""
    return pop_one_or_wait(ctx, argv, LEFT)


@command(
    "BRPOP", many(key("RW access delete")), double("timeout"),
    group="list", flags="write blocking", since="2.0.0", complexity="O(N) with N keys",
    summary="Take an element from the right end of the first list that has one, or wait for it.",
)  # fmt: skip
def brpop(ctx: Call, argv: list[bytes]) -> Outcome:
    """The timeout is in seconds; 0 waits for ever."""
    return pop_one_or_wait(ctx, argv, RIGHT)


@command(
    "LMPOP", integer("numkeys"), many(key("RW access delete", counted=True)), side("where"),
    optional(integer("count", "COUNT")),
    group="list", flags="write", since="7.0.0", complexity="O(N+M) with N keys and M elements taken",
    summary="Take elements from one end of the first list that has some.",
)  # fmt: skip
def lmpop(ctx: Call, argv: list[bytes]) -> Outcome:
    """Answers the list's key and the elements, or null. COUNT is 1 unless given."""
    names, from_side, count = parse_multiple(argv, 1)
    name, elements = find_first(ctx, names)
    if elements is None:
        return Outcome(encode_null_array(resp3=ctx.resp3))
    return pop_several(ctx, name, elements, count, from_side)


@command(
    "BLMPOP", double("timeout"), integer("numkeys"), many(key("RW access delete", counted=True)), side("where"),
    optional(integer("count", "COUNT")),
    group="list", flags="write blocking", since="7.0.0", complexity="O(N+M) with N keys and M elements taken",
    summary="Take elements from one end of the first list that has some, or wait for them.",
)  # fmt: skip
def blmpop(ctx: Call, argv: list[bytes]) -> Outcome:
    """As LMPOP. The timeout is in seconds; 0 waits for ever."""
    names, from_side, count = parse_multiple(argv, 2)
    timeout_ms = parse_timeout_s(argv[1], ctx.now_ms)
    name, elements = find_first(ctx, names)
    if elements is None:
        return wait(ctx, argv, names, timeout_ms)
    return pop_several(ctx, name, elements, count, from_side)


def parse_multiple(argv: list[bytes], count_at: int) -> tuple[list[bytes], bytes, int]:
    """The keys, the end and the count of LMPOP and BLMPOP, from where the number of keys stands."""
    too_few = "ERR numkeys should be greater than 0"
    numkeys = parse_within(argv[count_at], 1, MAX_INTEGER, too_few, too_few)
    side_at = count_at + 1 + numkeys
    if side_at >= len(argv):
        raise CommandError(SYNTAX)
    from_side = parse_side(argv[side_at])
    count = 1
    if len(argv) > side_at + 1:
        if argv[side_at + 1].upper() != b"COUNT" or len(argv) == side_at + 2:
            raise CommandError(SYNTAX)
        none = "ERR count should be greater than 0"
        count = parse_within(argv[side_at + 2], 1, MAX_INTEGER, none, none)
        if len(argv) > side_at + 3:
            raise CommandError(SYNTAX)
    return argv[count_at + 1 : side_at], from_side, count


def find_first(ctx: Call, names: list[bytes]) -> "tuple[bytes, deque[bytes] | None]":
    """The first of the keys that holds a list. One of another type before it is refused."""
    for name in names:
        elements = find_list(ctx, name)
        if elements is not None:
            return name, elements
    return b"", None


def pop_several(ctx: Call, name: bytes, elements: "deque[bytes]", count: int, from_side: bytes) -> Outcome:
    taken = take(ctx, name, elements, count, from_side)
    ctx.touch(name)
    reply = encode_array([encode_bulk(name), encode_elements(taken)])
    return Outcome(reply, encode_pop(ctx, name, from_side, len(taken)))


def pop_one_or_wait(ctx: Call, argv: list[bytes], from_side: bytes) -> Outcome:
    timeout_ms = parse_timeout_s(argv[-1], ctx.now_ms)
    name, elements = find_first(ctx, argv[1:-1])
    if elements is None:
        return wait(ctx, argv, argv[1:-1], timeout_ms)
    taken = take(ctx, name, elements, 1, from_side)
    ctx.touch(name)
    return Outcome(encode_elements([name, taken[0]]), encode_pop(ctx, name, from_side, 1))


def wait(ctx: Call, argv: list[bytes], names: list[bytes], timeout_ms: int) -> Outcome:
    if not ctx.may_block:
        return Outcome(encode_null_array(resp3=ctx.resp3))
    deadline_ms = ctx.now_ms + timeout_ms if timeout_ms else NO_TIME
    ctx.blocked_on = Waiter(ctx.id, ctx.db.number, names, argv, deadline_ms, NO_TIME, "list")
    return NOTHING

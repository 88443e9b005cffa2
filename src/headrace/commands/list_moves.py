"""Moving an element from one list to another in one step, at once or as soon as there is one.

Both lists may be the same: the element then goes round. A destination of another type is refused, and the element stays
where it was; whoever waits next gets its turn.
"""

from headrace.commands.call import Call
from headrace.commands.lists import encode_pop, find_list, new_list, note_taken, parse_side
from headrace.commands.notifications import LIST
from headrace.commands.numbers import parse_timeout_s
from headrace.commands.outcome import CHANGED, NOTHING, Outcome
from headrace.commands.spec import Argument, command, double, key, oneof, word
from headrace.engine.lists import LEFT, RIGHT, move_element
from headrace.engine.waiters import NO_TIME, Waiter
from headrace.journal.record import LIST_TURN, PUSH, encode_record
from headrace.wire.encoder import encode_bulk, encode_null


def side(name: str) -> Argument:
    return oneof(name, word("LEFT"), word("RIGHT"))


@command(
    "LMOVE", key("RW access delete", "source"), key("RW insert", "destination"), side("wherefrom"), side("whereto"),
    group="list", flags="write denyoom", since="6.2.0", complexity="O(1)",
    summary="Move an element from an end of one list to an end of another.",
)  # fmt: skip
def lmove(ctx: Call, argv: list[bytes]) -> Outcome:
    """Answers the element, or null when the source is missing."""
    from_side = parse_side(argv[3])
    return move(ctx, argv[1], argv[2], from_side, parse_side(argv[4]))


@command(
    "RPOPLPUSH", key("RW access delete", "source"), key("RW insert", "destination"),
    group="list", flags="write denyoom", since="1.2.0", complexity="O(1)",
    summary="Move the last element of one list to the left end of another; the older form of LMOVE.",
)  # fmt: skip
def rpoplpush(ctx: Call, argv: list[bytes]) -> Outcome:
    return move(ctx, argv[1], argv[2], RIGHT, LEFT)


@command(
    "BLMOVE", key("RW access delete", "source"), key("RW insert", "destination"), side("wherefrom"), side("whereto"),
    double("timeout"),
    group="list", flags="write denyoom blocking", since="6.2.0", complexity="O(1)",
    summary="Move an element from one list to another, or wait for it.",
)  # fmt: skip
def blmove(ctx: Call, argv: list[bytes]) -> Outcome:
    """The timeout is in seconds; 0 waits for ever."""
    from_side = parse_side(argv[3])
    return move_or_wait(ctx, argv, from_side, parse_side(argv[4]))


@command(
    "BRPOPLPUSH", key("RW access delete", "source"), key("RW insert", "destination"), double("timeout"),
    group="list", flags="write denyoom blocking", since="2.2.0", complexity="O(1)",
    summary="Move the last element of one list to the left end of another, or wait for it; the older form of BLMOVE.",
)  # fmt: skip
def brpoplpush(ctx: Call, argv: list[bytes]) -> Outcome:
    """The timeout is in seconds; 0 waits for ever."""
    return move_or_wait(ctx, argv, RIGHT, LEFT)


def move(ctx: Call, source: bytes, target: bytes, from_side: bytes, to_side: bytes) -> Outcome:
    elements = find_list(ctx, source)
    if elements is None:
        return Outcome(encode_null(resp3=ctx.resp3))
    others = find_list(ctx, target)
    if others is None:
        others = new_list(ctx, target)
    element = move_element(elements, others, from_side, to_side)
    ctx.notify(LIST, b"lpush" if to_side == LEFT else b"rpush", target)
    note_taken(ctx, source, elements, from_side)
    return Outcome(encode_bulk(element), encode_move(ctx, source, target, from_side, to_side, element), target)


def encode_move(ctx: Call, source: bytes, target: bytes, from_side: bytes, to_side: bytes, element: bytes) -> bytes:
    """A record for each of the two lists, as a record is about one key; a list that turns never goes."""
    if not ctx.journaling:
        return CHANGED
    number = ctx.db.number
    if source == target:
        return encode_record(LIST_TURN, number, source, from_side, to_side)
    return encode_pop(ctx, source, from_side, 1) + encode_record(PUSH, number, target, to_side, element)


def move_or_wait(ctx: Call, argv: list[bytes], from_side: bytes, to_side: bytes) -> Outcome:
    timeout_ms = parse_timeout_s(argv[-1], ctx.now_ms)
    if find_list(ctx, argv[1]) is not None or not ctx.may_block:
        return move(ctx, argv[1], argv[2], from_side, to_side)
    deadline_ms = ctx.now_ms + timeout_ms if timeout_ms else NO_TIME
    ctx.blocked_on = Waiter(ctx.id, ctx.db.number, [argv[1]], argv, deadline_ms, NO_TIME, "list")
    return NOTHING

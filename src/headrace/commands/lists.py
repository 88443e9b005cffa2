"""Lists, as far as stream users meet them: pushing, popping, reading, and waiting for an element.

A list is a deque of bytes and is gone when its last element is. A client that waits for several lists is served by the
first one in its own order that has something; clients that wait for one list are served in the order they came.
"""

from collections import deque
from itertools import islice

from headrace.commands.call import Call
from headrace.commands.numbers import parse_integer, parse_positive, parse_timeout_s
from headrace.commands.outcome import CHANGED, NOTHING, ZERO, Outcome
from headrace.commands.spec import added, command, double, integer, key, many, optional, text
from headrace.engine.keyspace import WRONG_TYPE
from headrace.engine.waiters import NO_TIME, Waiter
from headrace.errors import CommandError
from headrace.journal.record import POP, PUSH, encode_record
from headrace.wire.encoder import (
    EMPTY_ARRAY,
    encode_array,
    encode_bulk,
    encode_integer,
    encode_null,
    encode_null_array,
)

LEFT = b"left"
RIGHT = b"right"


def find_list(ctx: Call, name: bytes) -> "deque[bytes] | None":
    value = ctx.find(name)
    if value is None or isinstance(value, deque):
        return value
    raise CommandError(WRONG_TYPE)


@command(
    "LPUSH", key("RW insert"), many(text("element")),
    group="list", flags="write denyoom fast", since="1.0.0", complexity="O(1) for each element",
    summary="Put elements at the left end of a list, which is created when missing.",
)  # fmt: skip
def lpush(ctx: Call, argv: list[bytes]) -> Outcome:
    return push(ctx, argv, LEFT)


@command(
    "RPUSH", key("RW insert"), many(text("element")),
    group="list", flags="write denyoom fast", since="1.0.0", complexity="O(1) for each element",
    summary="Put elements at the right end of a list, which is created when missing.",
)  # fmt: skip
def rpush(ctx: Call, argv: list[bytes]) -> Outcome:
    return push(ctx, argv, RIGHT)


def push(ctx: Call, argv: list[bytes], side: bytes) -> Outcome:
    name = argv[1]
    elements = find_list(ctx, name)
    if elements is None:
        elements = deque()
        ctx.db.put(name, elements)
    if side == LEFT:
        elements.extendleft(argv[2:])
    else:
        elements.extend(argv[2:])
    ctx.state.changes += len(argv) - 3
    record = encode_record(PUSH, ctx.db.number, name, side, *argv[2:]) if ctx.journaling else CHANGED
    return Outcome(encode_integer(len(elements)), record, name)


@command(
    "LPOP", key("RW access delete"), optional(added("6.2.0", integer("count"))),
    group="list", flags="write fast", since="1.0.0", complexity="O(N) with N elements taken",
    summary="Take elements from the left end of a list.",
)  # fmt: skip
def lpop(ctx: Call, argv: list[bytes]) -> Outcome:
    return pop(ctx, argv, LEFT)


@command(
    "RPOP", key("RW access delete"), optional(added("6.2.0", integer("count"))),
    group="list", flags="write fast", since="1.0.0", complexity="O(N) with N elements taken",
    summary="Take elements from the right end of a list.",
)  # fmt: skip
def rpop(ctx: Call, argv: list[bytes]) -> Outcome:
    return pop(ctx, argv, RIGHT)


def pop(ctx: Call, argv: list[bytes], side: bytes) -> Outcome:
    if len(argv) > 3:
        raise CommandError(f"ERR wrong number of arguments for '{argv[0].decode().lower()}' command")
    count = parse_positive(argv[2]) if len(argv) == 3 else -1
    elements = find_list(ctx, argv[1])
    if elements is None:
        return Outcome(encode_null(resp3=ctx.resp3) if count < 0 else encode_null_array(resp3=ctx.resp3))
    if count == 0:
        return Outcome(EMPTY_ARRAY)
    taken = take(ctx, argv[1], elements, 1 if count < 0 else count, side)
    record = encode_pop(ctx, argv[1], side, len(taken))
    if count < 0:
        return Outcome(encode_bulk(taken[0]), record, argv[1])
    return Outcome(encode_array([encode_bulk(element) for element in taken]), record, argv[1])


def take(ctx: Call, name: bytes, elements: "deque[bytes]", count: int, side: bytes) -> list[bytes]:
    """Remove up to `count` elements from one side, and the key with the last of them."""
    taken: list[bytes] = []
    while elements and len(taken) < count:
        taken.append(elements.popleft() if side == LEFT else elements.pop())
    if not elements:
        ctx.db.delete(name)
    return taken


def encode_pop(ctx: Call, name: bytes, side: bytes, count: int) -> bytes:
    return encode_record(POP, ctx.db.number, name, side, b"%d" % count) if ctx.journaling else CHANGED


@command(
    "LLEN", key("RO"),
    group="list", flags="readonly fast", since="1.0.0", complexity="O(1)", summary="How many elements a list has.",
)  # fmt: skip
def llen(ctx: Call, argv: list[bytes]) -> Outcome:
    elements = find_list(ctx, argv[1])
    return ZERO if elements is None else Outcome(encode_integer(len(elements)))


@command(
    "LRANGE", key("RO access"), integer("start"), integer("stop"),
    group="list", flags="readonly", since="1.0.0", complexity="O(S+N) with S elements before the range, N inside it",
    summary="Elements from one place to another; negative places count from the right end.",
)  # fmt: skip
def lrange(ctx: Call, argv: list[bytes]) -> Outcome:
    start = parse_integer(argv[2])
    stop = parse_integer(argv[3])
    elements = find_list(ctx, argv[1])
    size = 0 if elements is None else len(elements)
    start = max(0, start + size if start < 0 else start)
    stop = min(size - 1, stop + size if stop < 0 else stop)
    if elements is None or start > stop:
        return Outcome(EMPTY_ARRAY)
    return Outcome(encode_array([encode_bulk(element) for element in islice(elements, start, stop + 1)]))


@command(
    "BLPOP", many(key("RW access delete")), double("timeout"),
    group="list", flags="write blocking", since="2.0.0", complexity="O(N) with N keys",
    summary="Take an element from the left end of the first list that has one, or wait for it.",
)  # fmt: skip
def blpop(ctx: Call, argv: list[bytes]) -> Outcome:
    """The timeout is in seconds; 0 waits for ever."""
    return blocking_pop(ctx, argv, LEFT)


@command(
    "BRPOP", many(key("RW access delete")), double("timeout"),
    group="list", flags="write blocking", since="2.0.0", complexity="O(N) with N keys",
    summary="Take an element from the right end of the first list that has one, or wait for it.",
)  # fmt: skip
def brpop(ctx: Call, argv: list[bytes]) -> Outcome:
    """The timeout is in seconds; 0 waits for ever."""
    return blocking_pop(ctx, argv, RIGHT)


def blocking_pop(ctx: Call, argv: list[bytes], side: bytes) -> Outcome:
    timeout_ms = parse_timeout_s(argv[-1], ctx.now_ms)
    names = argv[1:-1]
    for name in names:
        # Quirk of Redis, kept: a key of another type is refused at once, but ignored while waiting.
        value = ctx.find(name) if ctx.is_retrying else find_list(ctx, name)
        if isinstance(value, deque):
            element = take(ctx, name, value, 1, side)[0]
            reply = encode_array([encode_bulk(name), encode_bulk(element)])
            return Outcome(reply, encode_pop(ctx, name, side, 1), name)
    if not ctx.may_block:
        return Outcome(encode_null_array(resp3=ctx.resp3))
    deadline_ms = ctx.now_ms + timeout_ms if timeout_ms else NO_TIME
    ctx.blocked_on = Waiter(ctx.id, ctx.db.number, names, argv, deadline_ms, NO_TIME)
    return NOTHING

"""Lists: pushing, popping, and what the other list commands share.

A list is a deque of bytes (engine/lists.py) and is gone when its last element is. An element is given to one client
only, and is no longer kept once it is given: at most once.
"""

from collections import deque

from headrace.commands.call import Call
from headrace.commands.notifications import GENERIC, LIST
from headrace.commands.numbers import parse_positive
from headrace.commands.outcome import CHANGED, ZERO, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import added, command, integer, key, many, optional, text
from headrace.engine.keyspace import WRONG_TYPE
from headrace.engine.lists import LEFT, RIGHT, put_elements, take_elements
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

# What the list commands share


def find_list(ctx: Call, name: bytes) -> "deque[bytes] | None":
    value = ctx.find(name)
    if value is None or isinstance(value, deque):
        return value
    raise CommandError(WRONG_TYPE)


def new_list(ctx: Call, name: bytes) -> "deque[bytes]":
    elements: deque[bytes] = deque()
    ctx.db.put(name, elements)
    return elements


def parse_side(word: bytes) -> bytes:
    side = word.lower()
    if side != LEFT and side != RIGHT:
        raise CommandError(SYNTAX)
    return side


def take(ctx: Call, name: bytes, elements: "deque[bytes]", count: int, side: bytes) -> list[bytes]:
    """Remove up to `count` elements from one end, and the key with the last of them."""
    taken = take_elements(elements, side, count)
    note_taken(ctx, name, elements, side)
    ctx.state.changes += len(taken) - 1
    return taken


def note_taken(ctx: Call, name: bytes, elements: "deque[bytes]", side: bytes) -> None:
    """Elements were taken from one end: tell it, and remove the list if they were the last ones."""
    ctx.notify(LIST, b"lpop" if side == LEFT else b"rpop", name)
    if not elements:
        drop_list(ctx, name)


def drop_list(ctx: Call, name: bytes) -> None:
    """The last element went: so does the key."""
    ctx.db.delete(name)
    ctx.notify(GENERIC, b"del", name)


def encode_pop(ctx: Call, name: bytes, side: bytes, count: int) -> bytes:
    return encode_record(POP, ctx.db.number, name, side, b"%d" % count) if ctx.journaling else CHANGED


def encode_elements(elements: list[bytes]) -> bytes:
    return encode_array([encode_bulk(element) for element in elements])


# Pushing


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


@command(
    "LPUSHX", key("RW insert"), many(text("element")),
    group="list", flags="write denyoom fast", since="2.2.0", complexity="O(1) for each element",
    summary="Put elements at the left end of a list, if it exists.",
)  # fmt: skip
def lpushx(ctx: Call, argv: list[bytes]) -> Outcome:
    return push_if_exists(ctx, argv, LEFT)


@command(
    "RPUSHX", key("RW insert"), many(text("element")),
    group="list", flags="write denyoom fast", since="2.2.0", complexity="O(1) for each element",
    summary="Put elements at the right end of a list, if it exists.",
)  # fmt: skip
def rpushx(ctx: Call, argv: list[bytes]) -> Outcome:
    return push_if_exists(ctx, argv, RIGHT)


def push_if_exists(ctx: Call, argv: list[bytes], side: bytes) -> Outcome:
    return ZERO if find_list(ctx, argv[1]) is None else push(ctx, argv, side)


def push(ctx: Call, argv: list[bytes], side: bytes) -> Outcome:
    name = argv[1]
    elements = find_list(ctx, name)
    if elements is None:
        elements = new_list(ctx, name)
    if len(argv) > 3:
        put_elements(elements, side, argv[2:])
        ctx.state.changes += len(argv) - 3
    elif side == LEFT:  # One element on its own road: 230 ns less in plain Python (bench/lists.py).
        elements.appendleft(argv[2])
    else:
        elements.append(argv[2])
    ctx.notify(LIST, b"lpush" if side == LEFT else b"rpush", name)
    record = encode_record(PUSH, ctx.db.number, name, side, *argv[2:]) if ctx.journaling else CHANGED
    return Outcome(encode_integer(len(elements)), record, name)


# Popping


@command(
    "LPOP", key("RW access delete"), optional(added("6.2.0", integer("count"))),
    group="list", flags="write fast", since="1.0.0", complexity="O(N) with N elements taken",
    summary="Take elements from the left end of a list.",
)  # fmt: skip
def lpop(ctx: Call, argv: list[bytes]) -> Outcome:
    """With a count the reply is an array, however many there are."""
    return pop(ctx, argv, LEFT)


@command(
    "RPOP", key("RW access delete"), optional(added("6.2.0", integer("count"))),
    group="list", flags="write fast", since="1.0.0", complexity="O(N) with N elements taken",
    summary="Take elements from the right end of a list.",
)  # fmt: skip
def rpop(ctx: Call, argv: list[bytes]) -> Outcome:
    """With a count the reply is an array, however many there are."""
    return pop(ctx, argv, RIGHT)


def pop(ctx: Call, argv: list[bytes], side: bytes) -> Outcome:
    if len(argv) > 3:
        raise CommandError(f"ERR wrong number of arguments for '{argv[0].decode().lower()}' command")
    count = parse_positive(argv[2]) if len(argv) == 3 else -1
    name = argv[1]
    elements = find_list(ctx, name)
    if elements is None:
        return Outcome(encode_null(resp3=ctx.resp3) if count < 0 else encode_null_array(resp3=ctx.resp3))
    if count == 0:
        return Outcome(EMPTY_ARRAY)
    taken = take(ctx, name, elements, 1 if count < 0 else count, side)
    record = encode_pop(ctx, name, side, len(taken))
    return Outcome(encode_bulk(taken[0]) if count < 0 else encode_elements(taken), record)


@command(
    "LLEN", key("RO"),
    group="list", flags="readonly fast", since="1.0.0", complexity="O(1)", summary="How many elements a list has.",
)  # fmt: skip
def llen(ctx: Call, argv: list[bytes]) -> Outcome:
    elements = find_list(ctx, argv[1])
    return ZERO if elements is None else Outcome(encode_integer(len(elements)))

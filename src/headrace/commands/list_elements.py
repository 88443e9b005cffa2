"""Elements inside a list: reading them by place, finding them, changing, inserting and removing them.

Places are counted from 0 at the left; negative ones from the right, where -1 is the last element.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.lists import drop_list, encode_elements, encode_pop, find_list
from headrace.commands.notifications import LIST
from headrace.commands.numbers import MAX_INTEGER, parse_integer, parse_positive, parse_within
from headrace.commands.outcome import CHANGED, OK, ZERO, Outcome
from headrace.commands.refusals import NO_SUCH_KEY, SYNTAX
from headrace.commands.spec import command, integer, key, oneof, optional, text, word
from headrace.engine.lists import (
    LEFT,
    RIGHT,
    find_bounds,
    find_places,
    insert_element,
    remove_elements,
    slice_elements,
    take_elements,
)
from headrace.errors import CommandError
from headrace.journal.record import LIST_INSERT, LIST_REMOVE, LIST_SET, encode_record
from headrace.wire.encoder import EMPTY_ARRAY, encode_array, encode_bulk, encode_integer, encode_null

OUT_OF_RANGE: Final = f"ERR value is out of range, value must between {-MAX_INTEGER} and {MAX_INTEGER}"
RANK_ZERO: Final = (
    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
    "or use negative to start from the end of the list"
)


# Reading


@command(
    "LRANGE", key("RO access"), integer("start"), integer("stop"),
    group="list", flags="readonly", since="1.0.0",
    complexity="O(S+N) with S elements between the nearer end and the range, N inside it",
    summary="Elements from one place to another; negative places count from the right end.",
)  # fmt: skip
def lrange(ctx: Call, argv: list[bytes]) -> Outcome:
    start = parse_integer(argv[2])
    stop = parse_integer(argv[3])
    elements = find_list(ctx, argv[1])
    if elements is None:
        return Outcome(EMPTY_ARRAY)
    start, stop = find_bounds(len(elements), start, stop)
    if start > stop:
        return Outcome(EMPTY_ARRAY)
    return Outcome(encode_elements(slice_elements(elements, start, stop)))


@command(
    "LINDEX", key("RO access"), integer("index"),
    group="list", flags="readonly", since="1.0.0", complexity="O(N) with N elements between the nearer end and it",
    summary="The element at a place.",
)  # fmt: skip
def lindex(ctx: Call, argv: list[bytes]) -> Outcome:
    elements = find_list(ctx, argv[1])
    if elements is None:
        return Outcome(encode_null(resp3=ctx.resp3))
    index = parse_integer(argv[2])
    size = len(elements)
    return Outcome(encode_bulk(elements[index]) if -size <= index < size else encode_null(resp3=ctx.resp3))


@command(
    "LPOS", key("RO access"), text("element"),
    optional(integer("rank", "RANK")), optional(integer("num-matches", "COUNT")), optional(integer("len", "MAXLEN")),
    group="list", flags="readonly", since="6.0.6", complexity="O(N) with N elements looked at",
    summary="Where an element stands in a list.",
)  # fmt: skip
def lpos(ctx: Call, argv: list[bytes]) -> Outcome:
    """RANK 2 passes over the first match; -1 looks from the right. With COUNT the reply is an array, 0 means all."""
    rank, count, longest = parse_lpos(argv)
    elements = find_list(ctx, argv[1])
    if elements is None:
        return Outcome(encode_null(resp3=ctx.resp3) if count < 0 else EMPTY_ARRAY)
    places = find_places(elements, argv[2], rank, 1 if count < 0 else count, longest)
    if count >= 0:
        return Outcome(encode_array([encode_integer(place) for place in places]))
    return Outcome(encode_integer(places[0]) if places else encode_null(resp3=ctx.resp3))


def parse_lpos(argv: list[bytes]) -> tuple[int, int, int]:
    """Rank, count (-1: not given) and how many elements to look at (0: all)."""
    rank, count, longest = 1, -1, 0
    for index in range(3, len(argv), 2):
        option = argv[index].upper()
        if index + 1 == len(argv):
            raise CommandError(SYNTAX)
        number = argv[index + 1]
        if option == b"RANK":
            rank = parse_within(number, -MAX_INTEGER, MAX_INTEGER, OUT_OF_RANGE)
            if rank == 0:
                raise CommandError(RANK_ZERO)
        elif option == b"COUNT":
            count = parse_positive(number, "ERR COUNT can't be negative")
        elif option == b"MAXLEN":
            longest = parse_positive(number, "ERR MAXLEN can't be negative")
        else:
            raise CommandError(SYNTAX)
    return rank, count, longest


# Changing


@command(
    "LSET", key("RW update"), integer("index"), text("element"),
    group="list", flags="write denyoom", since="1.0.0", complexity="O(N) with N elements between the nearer end and it",
    summary="Replace the element at a place.",
)  # fmt: skip
def lset(ctx: Call, argv: list[bytes]) -> Outcome:
    name = argv[1]
    elements = find_list(ctx, name)
    if elements is None:
        raise CommandError(NO_SUCH_KEY)
    index = parse_integer(argv[2])
    size = len(elements)
    if not -size <= index < size:
        raise CommandError("ERR index out of range")
    elements[index] = argv[3]
    ctx.notify(LIST, b"lset", name)
    return Outcome(OK.reply, encode_record(LIST_SET, ctx.db.number, *argv[1:]) if ctx.journaling else CHANGED)


@command(
    "LINSERT", key("RW insert"), oneof("where", word("BEFORE"), word("AFTER")), text("pivot"), text("element"),
    group="list", flags="write denyoom", since="2.2.0", complexity="O(N) with N elements",
    summary="Insert an element beside the first one that equals the pivot.",
)  # fmt: skip
def linsert(ctx: Call, argv: list[bytes]) -> Outcome:
    """Answers the new length, 0 when there is no list, -1 when it has no such pivot."""
    where = argv[2].upper()
    if where not in (b"BEFORE", b"AFTER"):
        raise CommandError(SYNTAX)
    name = argv[1]
    elements = find_list(ctx, name)
    if elements is None:
        return ZERO
    place = insert_element(elements, argv[3], argv[4], is_after=where == b"AFTER")
    if place < 0:
        return Outcome(encode_integer(-1))
    ctx.notify(LIST, b"linsert", name)
    record = encode_record(LIST_INSERT, ctx.db.number, name, b"%d" % place, argv[4]) if ctx.journaling else CHANGED
    return Outcome(encode_integer(len(elements)), record)


@command(
    "LREM", key("RW delete"), integer("count"), text("element"),
    group="list", flags="write", since="1.0.0", complexity="O(N) with N elements",
    summary="Remove equal elements: a count of them from the left, if negative from the right, with 0 all.",
)  # fmt: skip
def lrem(ctx: Call, argv: list[bytes]) -> Outcome:
    name = argv[1]
    count = parse_within(argv[2], -MAX_INTEGER, MAX_INTEGER, OUT_OF_RANGE)
    elements = find_list(ctx, name)
    if elements is None:
        return ZERO
    removed = remove_elements(elements, argv[3], count)
    if not removed:
        return ZERO
    ctx.notify(LIST, b"lrem", name)
    if not elements:
        drop_list(ctx, name)
    ctx.state.changes += removed - 1
    return Outcome(
        encode_integer(removed), encode_record(LIST_REMOVE, ctx.db.number, *argv[1:]) if ctx.journaling else CHANGED
    )


@command(
    "LTRIM", key("RW delete"), integer("start"), integer("stop"),
    group="list", flags="write", since="1.0.0", complexity="O(N) with N elements removed",
    summary="Keep only the elements from one place to another.",
)  # fmt: skip
def ltrim(ctx: Call, argv: list[bytes]) -> Outcome:
    """A range without elements removes the list."""
    name = argv[1]
    start = parse_integer(argv[2])
    stop = parse_integer(argv[3])
    elements = find_list(ctx, name)
    if elements is None:
        return OK
    size = len(elements)
    start, stop = find_bounds(size, start, stop)
    from_left = start if start <= stop else size
    from_right = size - 1 - stop if start <= stop else 0
    take_elements(elements, LEFT, from_left)
    take_elements(elements, RIGHT, from_right)
    ctx.touch(name)  # Quirk of Redis, kept: transactions and events take an LTRIM for a change in any case.
    ctx.notify(LIST, b"ltrim", name)
    if not elements:
        drop_list(ctx, name)
    if from_left + from_right == 0:
        return OK
    ctx.state.changes += from_left + from_right - 1
    records = [encode_pop(ctx, name, LEFT, from_left)] if from_left else []
    if from_right:
        records.append(encode_pop(ctx, name, RIGHT, from_right))
    return Outcome(OK.reply, b"".join(records))

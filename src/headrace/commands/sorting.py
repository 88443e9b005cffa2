"""SORT and SORT_RO: the elements of a list, a set or a sorted set in order.

Equal numbers are ordered by their bytes, so a reply is the same each time. The options that look into other keys, BY
with a pattern and GET, are left out; BY with a word that has no `*` means, as in Redis, that nothing is sorted.
"""

import math
from collections import deque
from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import GENERIC, LIST, MISSED
from headrace.commands.numbers import parse_integer
from headrace.commands.outcome import CHANGED, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import block, command, integer, key, oneof, optional, pattern, shown, word
from headrace.engine.dump import dump_value
from headrace.engine.keyspace import WRONG_TYPE, Stored
from headrace.engine.sorted_set import SortedSet
from headrace.errors import CommandError
from headrace.journal.record import PUT, REMOVE, encode_record
from headrace.wire.encoder import encode_array, encode_bulk, encode_integer

LEFT_OUT: Final = "ERR BY with a pattern and GET are left out of SORT here: read the other keys by their names"
NO_NUMBER: Final = "ERR One or more scores can't be converted into double"
COMPLEXITY: Final = "O(N*log(N)) with N elements"


class SortOptions:
    __slots__ = ("is_descending", "is_alphabetic", "is_unsorted", "offset", "count", "target")

    def __init__(self) -> None:
        self.is_descending = False
        self.is_alphabetic = False
        self.is_unsorted = False
        self.offset = 0
        self.count = -1  # Negative: all.
        self.target: bytes | None = None  # STORE


@command(
    "SORT", key("RO access"), optional(shown("pattern", pattern("by-pattern", "BY"))),
    optional(block("limit", integer("offset"), integer("count"), token="LIMIT")),
    optional(oneof("order", word("ASC"), word("DESC"))), optional(word("ALPHA", "sorting")),
    optional(key("OW update", "destination", "STORE")),
    group="generic", flags="write denyoom", categories="set sortedset list dangerous", since="1.0.0",
    complexity=COMPLEXITY, summary="The elements of a list, a set or a sorted set in order, or a new list of them.",
)  # fmt: skip
def sort(ctx: Call, argv: list[bytes]) -> Outcome:
    """Elements are compared as numbers, with ALPHA byte by byte. STORE writes them to a list and answers its length.

    BY takes a word without `*`, which leaves the elements in their own order. Patterns and GET are refused.
    """
    options = parse_sort(argv, may_store=True)
    found = sorted_elements(ctx, argv[1], options)
    if ctx.find(argv[1]) is None:
        ctx.notify(MISSED, b"keymiss", argv[1])  # It reads, though it counts as a write.
    if options.target is None:
        return Outcome(encode_array([encode_bulk(element) for element in found]))
    return store(ctx, options.target, found)


@command(
    "SORT_RO", key("RO access"), optional(shown("pattern", pattern("by-pattern", "BY"))),
    optional(block("limit", integer("offset"), integer("count"), token="LIMIT")),
    optional(oneof("order", word("ASC"), word("DESC"))), optional(word("ALPHA", "sorting")),
    group="generic", flags="readonly", categories="set sortedset list dangerous", since="7.0.0",
    complexity=COMPLEXITY, summary="The elements of a list, a set or a sorted set in order.",
)  # fmt: skip
def sort_ro(ctx: Call, argv: list[bytes]) -> Outcome:
    """SORT without STORE, for those who may only read."""
    found = sorted_elements(ctx, argv[1], parse_sort(argv, may_store=False))
    return Outcome(encode_array([encode_bulk(element) for element in found]))


def parse_sort(argv: list[bytes], *, may_store: bool) -> SortOptions:
    """Options may come in any order and again; the last one counts."""
    options = SortOptions()
    index = 2
    while index < len(argv):
        option = argv[index].upper()
        more = len(argv) - 1 - index
        if option in (b"ASC", b"DESC"):
            options.is_descending = option == b"DESC"
        elif option == b"ALPHA":
            options.is_alphabetic = True
        elif option == b"LIMIT" and more >= 2:
            options.offset = parse_integer(argv[index + 1])
            options.count = parse_integer(argv[index + 2])
            index += 2
        elif option == b"STORE" and more and may_store:
            options.target = argv[index + 1]
            index += 1
        elif option == b"BY" and more and b"*" not in argv[index + 1]:
            options.is_unsorted = True
            index += 1
        elif option in (b"BY", b"GET") and more:
            raise CommandError(LEFT_OUT)
        else:
            raise CommandError(SYNTAX)
        index += 1
    return options


def sorted_elements(ctx: Call, name: bytes, options: SortOptions) -> list[bytes]:
    value = ctx.find(name)
    if value is None:
        return []
    elements = elements_of(value)
    if options.is_unsorted and isinstance(value, set) and options.target is not None:
        elements.sort()  # A set has no order of its own; what is kept must have one.
    elif options.is_unsorted:
        if options.is_descending and not isinstance(value, set):
            elements.reverse()
    elif options.is_alphabetic:
        elements.sort(reverse=options.is_descending)
    else:
        ordered = sorted([(number_of(element), element) for element in elements], reverse=options.is_descending)
        elements = [element for _, element in ordered]
    start = max(options.offset, 0)
    return elements[start:] if options.count < 0 else elements[start : start + options.count]


def elements_of(value: Stored) -> list[bytes]:
    """What SORT works on, in the value's own order. Lists, sets and sorted sets only."""
    if isinstance(value, (deque, set)):
        return list(value)
    if isinstance(value, SortedSet):
        return [member for _, member in value.pairs(0, len(value))]
    raise CommandError(WRONG_TYPE)


def number_of(element: bytes) -> float:
    if not element:
        return 0.0  # Quirk of Redis, kept.
    try:
        number = float(element)
    except ValueError:
        raise CommandError(NO_NUMBER) from None
    if math.isnan(number) or b"_" in element or element != element.strip():
        raise CommandError(NO_NUMBER)
    return number


def store(ctx: Call, target: bytes, elements: list[bytes]) -> Outcome:
    """Put the elements into a list in place of whatever the key held. Without elements the key goes."""
    is_new = ctx.find(target) is None
    if not elements:
        if is_new:
            return Outcome(encode_integer(0))
        ctx.db.delete(target)
        ctx.touch(target)
        ctx.notify(GENERIC, b"del", target)
        record = encode_record(REMOVE, ctx.db.number, target) if ctx.journaling else CHANGED
        return Outcome(encode_integer(0), record, target)
    stored = deque(elements)
    ctx.db.put(target, stored)
    ctx.touch(target)
    ctx.notify(LIST, b"sortstore", target)
    ctx.state.changes += len(elements) - 1
    record = encode_record(PUT, ctx.db.number, target, dump_value(stored), b"0") if ctx.journaling else CHANGED
    return Outcome(encode_integer(len(elements)), record, target)

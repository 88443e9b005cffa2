"""Going through many names in pages: SCAN over keys, HSCAN, SSCAN and ZSCAN over what a hash or a set holds.

What exists from the first page to the last is returned at least once; what comes or goes meanwhile may be returned or
not. COUNT says how much a call looks at, before MATCH and TYPE leave something out. A small hash or set comes as one
page whatever COUNT says, as in Redis.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.hashes import find_hash
from headrace.commands.numbers import parse_integer
from headrace.commands.outcome import Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.sets import find_set
from headrace.commands.sorted_sets import find_sorted_set
from headrace.commands.spec import added, command, integer, key, optional, pattern, text, word
from headrace.engine.encodings import encoding_name
from headrace.engine.glob import Glob
from headrace.engine.keyspace import type_name
from headrace.errors import CommandError
from headrace.wire.encoder import encode_array, encode_bulk, encode_double

DEFAULT_COUNT: Final = 10
MAX_CURSOR: Final = 2**64 - 1
LONGEST_CURSOR: Final = 20


class ScanOptions:
    """What stands behind the cursor."""

    __slots__ = ("glob", "count", "type", "has_values")

    def __init__(self) -> None:
        self.glob: Glob | None = None
        self.count = DEFAULT_COUNT
        self.type = b""  # Empty: any.
        self.has_values = True

    def takes(self, name: bytes) -> bool:
        return self.glob is None or self.glob.matches(name)


@command(
    "SCAN", integer("cursor"), optional(pattern("pattern", "MATCH")), optional(integer("count", "COUNT")),
    optional(added("6.0.0", text("type", "TYPE"))),
    group="generic", flags="readonly", since="2.8.0",
    complexity="O(COUNT); once in a larger walk O(N) with N keys, quickly",
    summary="Go through the keys in pages.",
    tips="nondeterministic_output request_policy:special response_policy:special",
)  # fmt: skip
def scan(ctx: Call, argv: list[bytes]) -> Outcome:
    """Begin with cursor 0, go on with the cursor of each reply, and end when that is 0.

    Every key that exists all the time is returned at least once, however many clients scan at the same time.
    """
    cursor = parse_cursor(argv[1])
    options = parse_scan(argv, 2, of_keys=True, of_hash=False)
    following, names = ctx.db.orders.page(None, ctx.db.values, cursor, options.count)
    found: list[bytes] = []
    for name in names:
        if options.takes(name):
            value = ctx.find(name)
            if value is not None and (not options.type or type_name(value).lower().encode() == options.type):
                found.append(encode_bulk(name))
    return scan_reply(following, found)


@command(
    "HSCAN", key("RO access"), integer("cursor"), optional(pattern("pattern", "MATCH")),
    optional(integer("count", "COUNT")), optional(added("7.4.0", word("NOVALUES"))),
    group="hash", flags="readonly", since="2.8.0",
    complexity="O(COUNT); once in a larger walk O(N) with N fields, quickly",
    summary="Go through the fields of a hash in pages.", tips="nondeterministic_output",
)  # fmt: skip
def hscan(ctx: Call, argv: list[bytes]) -> Outcome:
    cursor = parse_cursor(argv[2])
    fields = find_hash(ctx, argv[1])
    if fields is None:
        return scan_reply(0, [])
    options = parse_scan(argv, 3, of_keys=False, of_hash=True)
    following = 0
    names = list(fields)
    if encoding_name(fields) == "hashtable":
        following, names = ctx.db.orders.page(argv[1], fields, cursor, options.count)
    found: list[bytes] = []
    for name in names:
        value = fields.get(name)
        if value is not None and options.takes(name):
            found.append(encode_bulk(name))
            if options.has_values:
                found.append(encode_bulk(value))
    return scan_reply(following, found)


@command(
    "SSCAN", key("RO access"), integer("cursor"), optional(pattern("pattern", "MATCH")),
    optional(integer("count", "COUNT")),
    group="set", flags="readonly", since="2.8.0",
    complexity="O(COUNT); the first call of a larger walk O(N) with N members, quickly",
    summary="Go through the members of a set in pages.", tips="nondeterministic_output",
)  # fmt: skip
def sscan(ctx: Call, argv: list[bytes]) -> Outcome:
    """A walk over a large set begins with empty pages, one for every 10,000 members: they are put in order first."""
    cursor = parse_cursor(argv[2])
    members = find_set(ctx, argv[1])
    if members is None:
        return scan_reply(0, [])
    options = parse_scan(argv, 3, of_keys=False, of_hash=False)
    following = 0
    names: list[bytes]
    if encoding_name(members) == "hashtable":
        following, names = ctx.db.orders.page(argv[1], members, cursor, options.count)
    else:
        names = sorted(members)
    return scan_reply(following, [encode_bulk(name) for name in names if name in members and options.takes(name)])


@command(
    "ZSCAN", key("RO access"), integer("cursor"), optional(pattern("pattern", "MATCH")),
    optional(integer("count", "COUNT")),
    group="sorted-set", flags="readonly", since="2.8.0",
    complexity="O(COUNT); once in a larger walk O(N) with N members, quickly",
    summary="Go through the members of a sorted set and their scores in pages.", tips="nondeterministic_output",
)  # fmt: skip
def zscan(ctx: Call, argv: list[bytes]) -> Outcome:
    cursor = parse_cursor(argv[2])
    members = find_sorted_set(ctx, argv[1])
    if members is None:
        return scan_reply(0, [])
    options = parse_scan(argv, 3, of_keys=False, of_hash=False)
    following = 0
    if encoding_name(members) == "skiplist":
        following, names = ctx.db.orders.page(argv[1], members.scores, cursor, options.count)
    else:
        names = [member for _, member in members.pairs(0, len(members))]
    found: list[bytes] = []
    for name in names:
        score = members.scores.get(name)
        if score is not None and options.takes(name):
            found.append(encode_bulk(name))
            found.append(encode_double(score, resp3=False))
    return scan_reply(following, found)


def parse_cursor(argument: bytes) -> int:
    if len(argument) > LONGEST_CURSOR or not argument.isdigit() or int(argument) > MAX_CURSOR:
        raise CommandError("ERR invalid cursor")
    return int(argument)


def parse_scan(argv: list[bytes], index: int, *, of_keys: bool, of_hash: bool) -> ScanOptions:
    options = ScanOptions()
    while index < len(argv):
        option = argv[index].upper()
        has_value = index + 1 < len(argv)
        if option == b"COUNT" and has_value:
            options.count = parse_integer(argv[index + 1])
            if options.count < 1:
                raise CommandError(SYNTAX)
        elif option == b"MATCH" and has_value:
            options.glob = Glob(argv[index + 1])
        elif option == b"TYPE" and of_keys and has_value:
            options.type = argv[index + 1].lower()
        elif option == b"NOVALUES":
            if not of_hash:
                raise CommandError("ERR NOVALUES option can only be used in HSCAN")
            options.has_values = False
            index -= 1
        else:
            raise CommandError(SYNTAX)
        index += 2
    return options


def scan_reply(cursor: int, found: list[bytes]) -> Outcome:
    return Outcome(b"*2\r\n" + encode_bulk(b"%d" % cursor) + encode_array(found))

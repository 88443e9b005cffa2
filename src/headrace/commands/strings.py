"""Strings: SET, GET and their relatives. A string is plain bytes.

The journal gets whole values: a string is short and rarely written beside streams.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import GENERIC, MISSED, STRING
from headrace.commands.numbers import MAX_INTEGER, MIN_INTEGER, NOT_AN_INTEGER, parse_integer
from headrace.commands.outcome import CHANGED, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import added, block, command, integer, key, many, oneof, optional, text, unix_time, word
from headrace.engine.dump import dump_value
from headrace.engine.keyspace import WRONG_TYPE, Stored
from headrace.errors import CommandError
from headrace.journal.record import PUT, REMOVE, encode_record
from headrace.wire.encoder import OK, encode_array, encode_bulk, encode_integer, encode_null

MAX_STRING_BYTES: Final = 512 * 1024 * 1024  # Redis's proto-max-bulk-len: what could not be sent is not built either.


class SetOptions:
    """The words behind SET key value."""

    __slots__ = ("presence", "comparison", "expected", "gives_old", "keeps_expiry", "expires_ms")

    def __init__(self) -> None:
        self.presence = b""  # NX, XX or none.
        self.comparison = b""  # IFEQ, IFNE or none,
        self.expected = b""  # and with what.
        self.gives_old = False
        self.keeps_expiry = False
        self.expires_ms = 0  # 0: never.


@command(
    "SET",
    key("RW access update variable_flags"),
    text("value"),
    optional(
        added(
            "2.6.12",
            oneof(
                "condition",
                word("NX"),
                word("XX"),
                added("8.4.0", text("ifeq-value", "IFEQ")),
                added("8.4.0", text("ifne-value", "IFNE")),
            ),
        )
    ),
    optional(added("6.2.0", word("GET"))),
    optional(
        oneof(
            "expiration",
            added("2.6.12", integer("seconds", "EX")),
            added("2.6.12", integer("milliseconds", "PX")),
            added("6.2.0", unix_time("unix-time-seconds", "EXAT")),
            added("6.2.0", unix_time("unix-time-milliseconds", "PXAT")),
            added("6.0.0", word("KEEPTTL")),
        )
    ),
    group="string", flags="write denyoom", since="1.0.0", complexity="O(1)",
    summary="Store a string, in place of whatever the key held.",
)  # fmt: skip
def set_(ctx: Call, argv: list[bytes]) -> Outcome:
    """Redis compares digests too (IFDEQ, IFDNE); here only the values themselves are compared."""
    name = argv[1]
    options = parse_set_options(ctx, argv)
    old = ctx.find(name)
    if options.gives_old and old is not None and not isinstance(old, bytes):
        raise CommandError(WRONG_TYPE)
    old_reply = encode_optional(ctx, old) if options.gives_old else b""
    if options.gives_old and old is None:
        ctx.notify(MISSED, b"keymiss", name)
    if not is_met(options, old):
        return Outcome(old_reply or encode_null(resp3=ctx.resp3))
    expires_ms = ctx.db.expires_ms.get(name, 0) if options.keeps_expiry else options.expires_ms
    outcome = put(ctx, name, argv[2], expires_ms, old_reply or OK)
    if options.expires_ms:
        ctx.notify(GENERIC, b"expire", name)
    return outcome


def is_met(options: SetOptions, old: Stored | None) -> bool:
    """Whether the conditions let the value be stored. A missing key is not equal to anything."""
    if old is None:
        return options.presence != b"XX" and options.comparison != b"IFEQ"
    if options.presence == b"NX":
        return False
    if not options.comparison:
        return True
    if not isinstance(old, bytes):
        raise CommandError(WRONG_TYPE)
    return (old == options.expected) == (options.comparison == b"IFEQ")


def put(ctx: Call, name: bytes, value: bytes, expires_ms: int, reply: bytes) -> Outcome:
    """Store a string in place of whatever the key held."""
    ctx.db.put(name, value, expires_ms)
    ctx.notify(STRING, b"set", name)
    return Outcome(reply, put_record(ctx, name, value, expires_ms) if ctx.journaling else CHANGED, name)


def change(ctx: Call, name: bytes, value: bytes, reply: bytes, event: bytes) -> Outcome:
    """Store what a string has become, or create it. When it expires stays as it was."""
    expires_ms = ctx.db.expires_ms.get(name, 0)
    ctx.db.change(name, value, expires_ms)
    ctx.notify(STRING, event, name)
    return Outcome(reply, put_record(ctx, name, value, expires_ms) if ctx.journaling else CHANGED, name)


def put_record(ctx: Call, name: bytes, value: bytes, expires_ms: int) -> bytes:
    return encode_record(PUT, ctx.db.number, name, dump_value(value), b"%d" % expires_ms)


def parse_set_options(ctx: Call, argv: list[bytes]) -> SetOptions:
    options = SetOptions()
    unit = b""
    amount = b""
    index = 3
    while index < len(argv):
        option = argv[index].upper()
        if option in (b"NX", b"XX") and options.presence in (b"", option):
            options.presence = option  # Also behind IFEQ and IFNE, but not before them: as in Redis.
        elif (
            option in (b"IFEQ", b"IFNE")
            and not options.presence
            and options.comparison in (b"", option)
            and index + 1 < len(argv)
        ):
            options.comparison = option
            index += 1
            options.expected = argv[index]
        elif option == b"GET":
            options.gives_old = True
        elif option == b"KEEPTTL" and not unit:
            options.keeps_expiry = True
        elif (
            option in (b"EX", b"PX", b"EXAT", b"PXAT")
            and unit in (b"", option)
            and not options.keeps_expiry
            and index + 1 < len(argv)
        ):
            unit = option
            index += 1
            amount = argv[index]
        else:
            raise CommandError(SYNTAX)
        index += 1
    if unit:
        options.expires_ms = parse_expiry(ctx, unit, amount, "set")
    return options


def parse_expiry(ctx: Call, unit: bytes, amount: bytes, command_name: str) -> int:
    """The time at which a new value expires."""
    number = parse_integer(amount)
    invalid = f"ERR invalid expire time in '{command_name}' command"
    if number <= 0 or (unit in (b"EX", b"EXAT") and number > MAX_INTEGER // 1000):
        raise CommandError(invalid)
    if unit in (b"EX", b"EXAT"):
        number *= 1000
    if unit in (b"EX", b"PX"):
        if number > MAX_INTEGER - ctx.now_ms:
            raise CommandError(invalid)
        number += ctx.now_ms
    return number


@command(
    "SETNX", key("OW insert"), text("value"),
    group="string", flags="write denyoom fast", since="1.0.0", complexity="O(1)",
    summary="Store a string unless the key exists.",
)  # fmt: skip
def setnx(ctx: Call, argv: list[bytes]) -> Outcome:
    if ctx.find(argv[1]) is not None:
        return Outcome(encode_integer(0))
    return put(ctx, argv[1], argv[2], 0, encode_integer(1))


@command(
    "SETEX", key("OW update"), integer("seconds"), text("value"),
    group="string", flags="write denyoom", since="2.0.0", complexity="O(1)",
    summary="Store a string that expires after some seconds.",
)  # fmt: skip
def setex(ctx: Call, argv: list[bytes]) -> Outcome:
    return put_expiring(ctx, argv, parse_expiry(ctx, b"EX", argv[2], "setex"))


def put_expiring(ctx: Call, argv: list[bytes], expires_ms: int) -> Outcome:
    outcome = put(ctx, argv[1], argv[3], expires_ms, OK)
    ctx.notify(GENERIC, b"expire", argv[1])
    return outcome


@command(
    "PSETEX", key("OW update"), integer("milliseconds"), text("value"),
    group="string", flags="write denyoom", since="2.6.0", complexity="O(1)",
    summary="Store a string that expires after some milliseconds.",
)  # fmt: skip
def psetex(ctx: Call, argv: list[bytes]) -> Outcome:
    return put_expiring(ctx, argv, parse_expiry(ctx, b"PX", argv[2], "psetex"))


@command(
    "GET", key("RO access"),
    group="string", flags="readonly fast", since="1.0.0", complexity="O(1)", summary="Read a string.",
)  # fmt: skip
def get(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_optional(ctx, find_string(ctx, argv[1])))


def find_string(ctx: Call, name: bytes) -> bytes | None:
    value = ctx.find(name)
    if value is None or isinstance(value, bytes):
        return value
    raise CommandError(WRONG_TYPE)


def encode_optional(ctx: Call, value: bytes | None) -> bytes:
    return encode_null(resp3=ctx.resp3) if value is None else encode_bulk(value)


@command(
    "GETDEL", key("RW access delete"),
    group="string", flags="write fast", since="6.2.0", complexity="O(1)", summary="Read a string and delete its key.",
)  # fmt: skip
def getdel(ctx: Call, argv: list[bytes]) -> Outcome:
    value = find_string(ctx, argv[1])
    if value is None:
        ctx.notify(MISSED, b"keymiss", argv[1])
        return Outcome(encode_null(resp3=ctx.resp3))
    ctx.db.delete(argv[1])
    ctx.notify(GENERIC, b"del", argv[1])
    record = encode_record(REMOVE, ctx.db.number, argv[1]) if ctx.journaling else CHANGED
    return Outcome(encode_bulk(value), record, argv[1])


@command(
    "MGET", many(key("RO access")),
    group="string", flags="readonly fast", since="1.0.0", complexity="O(N) with N keys",
    summary="Read several strings; what is missing or no string is null.", tips="request_policy:multi_shard",
)  # fmt: skip
def mget(ctx: Call, argv: list[bytes]) -> Outcome:
    found: list[bytes] = []
    for name in argv[1:]:
        value = ctx.find(name)
        found.append(encode_bulk(value) if isinstance(value, bytes) else encode_null(resp3=ctx.resp3))
    return Outcome(encode_array(found))


@command(
    "MSET", many(block("data", key("OW update"), text("value"))),
    group="string", flags="write denyoom", since="1.0.1", complexity="O(N) with N keys",
    summary="Store several strings at once.", tips="request_policy:multi_shard response_policy:all_succeeded",
)  # fmt: skip
def mset(ctx: Call, argv: list[bytes]) -> Outcome:
    if len(argv) % 2 == 0:
        raise CommandError("ERR wrong number of arguments for 'mset' command")
    return put_many(ctx, argv, OK)


def put_many(ctx: Call, argv: list[bytes], reply: bytes) -> Outcome:
    """Store the strings of MSET key value [key value ...]."""
    records: list[bytes] = []
    for index in range(1, len(argv), 2):
        ctx.db.put(argv[index], argv[index + 1])
        ctx.notify(STRING, b"set", argv[index])
        ctx.wake(ctx.db.number, argv[index])
        if ctx.journaling:
            records.append(put_record(ctx, argv[index], argv[index + 1], 0))
    ctx.state.changes += len(argv) // 2 - 1
    return Outcome(reply, b"".join(records))


@command(
    "STRLEN", key("RO"),
    group="string", flags="readonly fast", since="2.2.0", complexity="O(1)", summary="The length of a string.",
)  # fmt: skip
def strlen(ctx: Call, argv: list[bytes]) -> Outcome:
    value = find_string(ctx, argv[1])
    return Outcome(encode_integer(0 if value is None else len(value)))


@command(
    "APPEND", key("RW insert"), text("value"),
    group="string", flags="write denyoom fast", since="2.0.0", complexity="O(N) with N bytes in the string",
    summary="Lengthen a string, or create it.",
)  # fmt: skip
def append(ctx: Call, argv: list[bytes]) -> Outcome:
    value = find_string(ctx, argv[1]) or b""
    check_length(len(value) + len(argv[2]))
    value += argv[2]
    return change(ctx, argv[1], value, encode_integer(len(value)), b"append")


def check_length(size: int) -> None:
    if size > MAX_STRING_BYTES:
        raise CommandError("ERR string exceeds maximum allowed size (proto-max-bulk-len)")


def add_to_number(ctx: Call, name: bytes, amount: int) -> Outcome:
    value = find_string(ctx, name)
    number = 0 if value is None else parse_integer(value)
    total = number + amount
    if total > MAX_INTEGER or total < MIN_INTEGER:
        raise CommandError("ERR increment or decrement would overflow")
    return change(ctx, name, b"%d" % total, encode_integer(total), b"incrby")


@command(
    "INCR", key("RW access update"),
    group="string", flags="write denyoom fast", since="1.0.0", complexity="O(1)", summary="Add one to a number.",
)  # fmt: skip
def incr(ctx: Call, argv: list[bytes]) -> Outcome:
    return add_to_number(ctx, argv[1], 1)


@command(
    "DECR", key("RW access update"),
    group="string", flags="write denyoom fast", since="1.0.0", complexity="O(1)", summary="Take one from a number.",
)  # fmt: skip
def decr(ctx: Call, argv: list[bytes]) -> Outcome:
    return add_to_number(ctx, argv[1], -1)


@command(
    "INCRBY", key("RW access update"), integer("increment"),
    group="string", flags="write denyoom fast", since="1.0.0", complexity="O(1)", summary="Add to a number.",
)  # fmt: skip
def incrby(ctx: Call, argv: list[bytes]) -> Outcome:
    return add_to_number(ctx, argv[1], parse_integer(argv[2]))


@command(
    "DECRBY", key("RW access update"), integer("decrement"),
    group="string", flags="write denyoom fast", since="1.0.0", complexity="O(1)", summary="Take from a number.",
)  # fmt: skip
def decrby(ctx: Call, argv: list[bytes]) -> Outcome:
    amount = parse_integer(argv[2], NOT_AN_INTEGER)
    if amount == MIN_INTEGER:
        raise CommandError("ERR decrement would overflow")
    return add_to_number(ctx, argv[1], -amount)

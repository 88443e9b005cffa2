"""Strings read and changed in one step: GETSET, GETEX, DELEX, MSETNX. SET itself, with its options, is in strings.py.

`SET lock token NX PX 30000` and `DELEX lock IFEQ token` are a lock that only its owner gives back; `SET lock token IFEQ
token PX 30000` keeps it longer. No script is needed for that.
"""

from headrace.commands.call import Call
from headrace.commands.keys import delete_keys
from headrace.commands.notifications import GENERIC, MISSED
from headrace.commands.outcome import CHANGED, ZERO, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import block, command, integer, key, many, oneof, optional, text, unix_time, word
from headrace.commands.strings import encode_optional, find_string, parse_expiry, put, put_many
from headrace.errors import CommandError
from headrace.journal.record import EXPIRE, REMOVE, encode_record
from headrace.wire.encoder import encode_bulk, encode_integer, encode_null


@command(
    "GETSET", key("RW access update"), text("value"),
    group="string", flags="write denyoom fast", since="1.0.0", complexity="O(1)",
    summary="Store a string and give the one that was there.",
)  # fmt: skip
def getset(ctx: Call, argv: list[bytes]) -> Outcome:
    old = find_string(ctx, argv[1])
    if old is None:
        ctx.notify(MISSED, b"keymiss", argv[1])
    return put(ctx, argv[1], argv[2], 0, encode_optional(ctx, old))


@command(
    "GETEX", key("RW access update"),
    optional(
        oneof(
            "expiration",
            integer("seconds", "EX"),
            integer("milliseconds", "PX"),
            unix_time("unix-time-seconds", "EXAT"),
            unix_time("unix-time-milliseconds", "PXAT"),
            word("PERSIST"),
        )
    ),
    group="string", flags="write fast", since="6.2.0", complexity="O(1)",
    summary="Read a string and set when it expires.",
)  # fmt: skip
def getex(ctx: Call, argv: list[bytes]) -> Outcome:
    """A time that has passed already deletes the key; the value is given once more."""
    name = argv[1]
    unit, amount = parse_getex_options(argv)
    value = find_string(ctx, name)
    if value is None:
        ctx.notify(MISSED, b"keymiss", name)
        return Outcome(encode_null(resp3=ctx.resp3))
    reply = encode_bulk(value)
    if not unit or (unit == b"PERSIST" and name not in ctx.db.expires_ms):
        return Outcome(reply)
    if unit == b"PERSIST":
        del ctx.db.expires_ms[name]
        ctx.notify(GENERIC, b"persist", name)
        return Outcome(reply, encode_record(EXPIRE, ctx.db.number, name, b"0") if ctx.journaling else CHANGED)
    when_ms = parse_expiry(ctx, unit, amount, "getex")
    if when_ms <= ctx.now_ms:
        ctx.db.delete(name)
        ctx.notify(GENERIC, b"del", name)
        record = encode_record(REMOVE, ctx.db.number, name) if ctx.journaling else CHANGED
        return Outcome(reply, record, name)
    ctx.db.expires_ms[name] = when_ms
    ctx.notify(GENERIC, b"expire", name)
    return Outcome(reply, encode_record(EXPIRE, ctx.db.number, name, b"%d" % when_ms) if ctx.journaling else CHANGED)


def parse_getex_options(argv: list[bytes]) -> tuple[bytes, bytes]:
    """Which option was given, and its number. Both empty when none was."""
    unit = b""
    amount = b""
    index = 2
    while index < len(argv):
        option = argv[index].upper()
        if option == b"PERSIST" and unit in (b"", option):
            unit = option
        elif option in (b"EX", b"PX", b"EXAT", b"PXAT") and unit in (b"", option) and index + 1 < len(argv):
            unit = option
            index += 1
            amount = argv[index]
        else:
            raise CommandError(SYNTAX)
        index += 1
    return unit, amount


@command(
    "DELEX", key("RW delete variable_flags"),
    optional(oneof("condition", text("ifeq-value", "IFEQ"), text("ifne-value", "IFNE"))),
    group="string", flags="write fast", since="8.4.0", complexity="O(1)",
    summary="Delete a key if its string is, or is not, the one given.",
)  # fmt: skip
def delex(ctx: Call, argv: list[bytes]) -> Outcome:
    """Redis compares digests too (IFDEQ, IFDNE); here only the values themselves are compared."""
    if len(argv) == 2:
        return delete_keys(ctx, argv)
    if len(argv) != 4:
        raise CommandError("ERR wrong number of arguments for 'delex' command")
    value = ctx.find(argv[1])
    if value is None:
        ctx.notify(MISSED, b"keymiss", argv[1])
        return ZERO
    if not isinstance(value, bytes):
        raise CommandError("ERR Key should be of string type if conditions are specified")
    condition = argv[2].upper()
    if condition not in (b"IFEQ", b"IFNE"):
        raise CommandError("ERR Invalid condition. Use IFEQ or IFNE")
    if (value == argv[3]) != (condition == b"IFEQ"):
        return ZERO
    return delete_keys(ctx, argv[:2])


@command(
    "MSETNX", many(block("data", key("OW insert"), text("value"))),
    group="string", flags="write denyoom", since="1.0.1", complexity="O(N) with N keys",
    summary="Store several strings at once, unless one of the keys exists.",
)  # fmt: skip
def msetnx(ctx: Call, argv: list[bytes]) -> Outcome:
    if len(argv) % 2 == 0:
        raise CommandError("ERR wrong number of arguments for 'msetnx' command")
    for index in range(1, len(argv), 2):
        if ctx.find(argv[index]) is not None:
            return ZERO
    return put_many(ctx, argv, encode_integer(1))

"""Hashes: fields and their values. A hash is a plain dict, fields in the order they were first set.

A hash that becomes empty is gone. The journal gets the fields that changed, never the whole hash.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import GENERIC, HASH
from headrace.commands.numbers import MAX_INTEGER, MIN_INTEGER, parse_integer
from headrace.commands.outcome import CHANGED, EMPTY_ARRAY, ZERO, Outcome
from headrace.commands.spec import block, command, integer, key, many, text
from headrace.engine.keyspace import WRONG_TYPE
from headrace.errors import CommandError
from headrace.journal.record import HASH_REMOVE, HASH_SET, encode_record
from headrace.wire.encoder import OK, encode_array, encode_bulk, encode_integer, encode_map_header, encode_null

NOT_A_NUMBER: Final = "ERR hash value is not an integer"


def find_hash(ctx: Call, name: bytes) -> dict[bytes, bytes] | None:
    value = ctx.find(name)
    if value is None or isinstance(value, dict):
        return value
    raise CommandError(WRONG_TYPE)


# Writing


@command(
    "HSET", key("RW update"), many(block("data", text("field"), text("value"))),
    group="hash", flags="write denyoom fast", since="2.0.0", complexity="O(1) for each field",
    summary="Set fields of a hash, which is created when missing.",
)  # fmt: skip
def hset(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply counts the fields that are new."""
    if len(argv) % 2 == 1:
        raise CommandError("ERR wrong number of arguments for 'hset' command")
    fields = find_hash(ctx, argv[1])
    before = 0 if fields is None else len(fields)
    fields = set_fields(ctx, argv[1], fields, argv[2:])
    ctx.notify(HASH, b"hset", argv[1])
    return Outcome(encode_integer(len(fields) - before), set_record(ctx, argv[1], argv[2:]), argv[1])


@command(
    "HMSET", key("RW update"), many(block("data", text("field"), text("value"))),
    group="hash", flags="write denyoom fast", since="2.0.0", complexity="O(1) for each field",
    summary="Set fields of a hash; HSET with another reply.",
)  # fmt: skip
def hmset(ctx: Call, argv: list[bytes]) -> Outcome:
    if len(argv) % 2 == 1:
        raise CommandError("ERR wrong number of arguments for 'hmset' command")
    set_fields(ctx, argv[1], find_hash(ctx, argv[1]), argv[2:])
    ctx.notify(HASH, b"hset", argv[1])
    return Outcome(OK, set_record(ctx, argv[1], argv[2:]), argv[1])


@command(
    "HSETNX", key("RW insert"), text("field"), text("value"),
    group="hash", flags="write denyoom fast", since="2.0.0", complexity="O(1)",
    summary="Set a field of a hash unless it exists.",
)  # fmt: skip
def hsetnx(ctx: Call, argv: list[bytes]) -> Outcome:
    fields = find_hash(ctx, argv[1])
    if fields is not None and argv[2] in fields:
        return ZERO
    set_fields(ctx, argv[1], fields, argv[2:])
    ctx.notify(HASH, b"hset", argv[1])
    return Outcome(encode_integer(1), set_record(ctx, argv[1], argv[2:]), argv[1])


@command(
    "HINCRBY", key("RW access update"), text("field"), integer("increment"),
    group="hash", flags="write denyoom fast", since="2.0.0", complexity="O(1)",
    summary="Add to the number in a field of a hash; a missing one counts as 0.",
)  # fmt: skip
def hincrby(ctx: Call, argv: list[bytes]) -> Outcome:
    amount = parse_integer(argv[3])
    fields = find_hash(ctx, argv[1])
    value = None if fields is None else fields.get(argv[2])
    total = amount if value is None else parse_integer(value, NOT_A_NUMBER) + amount
    if total > MAX_INTEGER or total < MIN_INTEGER:
        raise CommandError("ERR increment or decrement would overflow")
    words = [argv[2], b"%d" % total]
    set_fields(ctx, argv[1], fields, words)
    ctx.notify(HASH, b"hincrby", argv[1])
    return Outcome(encode_integer(total), set_record(ctx, argv[1], words), argv[1])


def set_fields(ctx: Call, name: bytes, fields: dict[bytes, bytes] | None, words: list[bytes]) -> dict[bytes, bytes]:
    """Set fields and values that follow one another; the hash comes back, made when there was none."""
    if fields is None:
        fields = {}
        ctx.db.put(name, fields)
    for index in range(0, len(words), 2):
        fields[words[index]] = words[index + 1]
    ctx.state.changes += len(words) // 2 - 1
    return fields


def set_record(ctx: Call, name: bytes, words: list[bytes]) -> bytes:
    return encode_record(HASH_SET, ctx.db.number, name, *words) if ctx.journaling else CHANGED


@command(
    "HDEL", key("RW delete"), many(text("field")),
    group="hash", flags="write fast", since="2.0.0", complexity="O(1) for each field",
    summary="Take fields out of a hash.",
)  # fmt: skip
def hdel(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply counts those that were there."""
    name = argv[1]
    fields = find_hash(ctx, name)
    if fields is None:
        return ZERO
    gone = list(dict.fromkeys([field for field in argv[2:] if field in fields]))
    if not gone:
        return ZERO
    return Outcome(encode_integer(len(gone)), remove_fields(ctx, name, fields, gone), name)


def remove_fields(ctx: Call, name: bytes, fields: dict[bytes, bytes], gone: list[bytes]) -> bytes:
    """Take out fields that are there, and the hash with the last of them. The record comes back."""
    for field in gone:
        del fields[field]
    ctx.notify(HASH, b"hdel", name)
    if not fields:
        ctx.db.delete(name)
        ctx.notify(GENERIC, b"del", name)
    ctx.state.changes += len(gone) - 1
    return encode_record(HASH_REMOVE, ctx.db.number, name, *gone) if ctx.journaling else CHANGED


# Reading


@command(
    "HGET", key("RO access"), text("field"),
    group="hash", flags="readonly fast", since="2.0.0", complexity="O(1)", summary="The value of a field of a hash.",
)  # fmt: skip
def hget(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_field(ctx, find_hash(ctx, argv[1]), argv[2]))


@command(
    "HMGET", key("RO access"), many(text("field")),
    group="hash", flags="readonly fast", since="2.0.0", complexity="O(1) for each field",
    summary="The values of several fields of a hash.",
)  # fmt: skip
def hmget(ctx: Call, argv: list[bytes]) -> Outcome:
    fields = find_hash(ctx, argv[1])
    return Outcome(encode_array([encode_field(ctx, fields, field) for field in argv[2:]]))


def encode_field(ctx: Call, fields: dict[bytes, bytes] | None, field: bytes) -> bytes:
    value = None if fields is None else fields.get(field)
    return encode_null(resp3=ctx.resp3) if value is None else encode_bulk(value)


@command(
    "HGETALL", key("RO access"),
    group="hash", flags="readonly", since="2.0.0", complexity="O(N) with N fields",
    summary="All fields of a hash and their values.", tips="nondeterministic_output_order",
)  # fmt: skip
def hgetall(ctx: Call, argv: list[bytes]) -> Outcome:
    fields = find_hash(ctx, argv[1])
    if fields is None:
        return Outcome(encode_map_header(0, resp3=ctx.resp3))
    return Outcome(encode_map_header(len(fields), resp3=ctx.resp3) + b"".join(encode_pairs(fields)))


def encode_pairs(fields: dict[bytes, bytes]) -> list[bytes]:
    parts: list[bytes] = []
    for field, value in fields.items():
        parts.append(encode_bulk(field))
        parts.append(encode_bulk(value))
    return parts


@command(
    "HKEYS", key("RO access"),
    group="hash", flags="readonly", since="2.0.0", complexity="O(N) with N fields",
    summary="All fields of a hash.", tips="nondeterministic_output_order",
)  # fmt: skip
def hkeys(ctx: Call, argv: list[bytes]) -> Outcome:
    fields = find_hash(ctx, argv[1])
    return EMPTY_ARRAY if fields is None else Outcome(encode_array([encode_bulk(field) for field in fields]))


@command(
    "HVALS", key("RO access"),
    group="hash", flags="readonly", since="2.0.0", complexity="O(N) with N fields",
    summary="The values of all fields of a hash.", tips="nondeterministic_output_order",
)  # fmt: skip
def hvals(ctx: Call, argv: list[bytes]) -> Outcome:
    fields = find_hash(ctx, argv[1])
    return EMPTY_ARRAY if fields is None else Outcome(encode_array([encode_bulk(value) for value in fields.values()]))


@command(
    "HLEN", key("RO"),
    group="hash", flags="readonly fast", since="2.0.0", complexity="O(1)", summary="How many fields a hash has.",
)  # fmt: skip
def hlen(ctx: Call, argv: list[bytes]) -> Outcome:
    fields = find_hash(ctx, argv[1])
    return ZERO if fields is None else Outcome(encode_integer(len(fields)))


@command(
    "HEXISTS", key("RO"), text("field"),
    group="hash", flags="readonly fast", since="2.0.0", complexity="O(1)", summary="Whether a hash has a field.",
)  # fmt: skip
def hexists(ctx: Call, argv: list[bytes]) -> Outcome:
    fields = find_hash(ctx, argv[1])
    return Outcome(encode_integer(int(fields is not None and argv[2] in fields)))


@command(
    "HSTRLEN", key("RO"), text("field"),
    group="hash", flags="readonly fast", since="3.2.0", complexity="O(1)",
    summary="The length of a field's value; 0 when there is none.",
)  # fmt: skip
def hstrlen(ctx: Call, argv: list[bytes]) -> Outcome:
    fields = find_hash(ctx, argv[1])
    return ZERO if fields is None else Outcome(encode_integer(len(fields.get(argv[2], b""))))

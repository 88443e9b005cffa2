"""Commands on keys of any type: existence, names, moving and copying, payloads, and what is known about a value.

Expiry has its own module, `expiry.py`. A key that is deleted, replaced or created under the feet of waiting clients
wakes them: they look again and decide themselves.
"""

from itertools import islice
from typing import Final

from headrace.commands.call import Call
from headrace.commands.help import help_reply
from headrace.commands.notifications import GENERIC, MISSED
from headrace.commands.numbers import MAX_INTEGER, NOT_AN_INTEGER, parse_within
from headrace.commands.outcome import CHANGED, OK, ZERO, Outcome
from headrace.commands.refusals import NO_SUCH_KEY, SYNTAX
from headrace.commands.spec import (
    added,
    command,
    container,
    integer,
    key,
    many,
    optional,
    pattern,
    text,
    word,
)
from headrace.engine.dump import dump_value, is_intact, load_value
from headrace.engine.encodings import encoding_name
from headrace.engine.glob import Glob
from headrace.engine.keyspace import OVERWRITTEN, TYPE_CHANGED, Keyspace, Stored, type_name
from headrace.errors import CommandError
from headrace.journal.record import MOVE, PUT, REMOVE, RENAME, encode_record
from headrace.wire.encoder import encode, encode_array, encode_bulk, encode_integer, encode_null
from headrace.wire.values import Status

SAME_OBJECT: Final = "ERR source and destination objects are the same"
RANDOM_TRIES: Final = 16  # Of RANDOMKEY: each takes as long as there are keys, so it must not go on for ever.
MAX_INT: Final = 2**31 - 1  # Database numbers are read as 32-bit integers.


def wake(ctx: Call, database: Keyspace, name: bytes) -> None:
    """A key outside the command's own place has changed: tell transactions and those who wait."""
    ctx.state.touch(database.number, name)
    if ctx.state.waiters.by_key:
        ctx.wake(database.number, name)


def get_database(ctx: Call, number_text: bytes, error: str = NOT_AN_INTEGER) -> Keyspace:
    number = parse_within(number_text, -MAX_INT - 1, MAX_INT, error, error)
    if not 0 <= number < len(ctx.state.databases):
        raise CommandError("ERR DB index is out of range")
    return ctx.state.databases[number]


# Existence and names


@command(
    "DEL", many(key("RM delete")),
    group="generic", flags="write", since="1.0.0", complexity="O(N) with N keys, and what their values hold",
    summary="Delete keys.", tips="request_policy:multi_shard response_policy:agg_sum",
)  # fmt: skip
def del_(ctx: Call, argv: list[bytes]) -> Outcome:
    return delete_keys(ctx, argv)


@command(
    "UNLINK", many(key("RM delete")),
    group="generic", flags="write fast", since="4.0.0", complexity="O(N) with N keys, and what their values hold",
    summary="Delete keys; the same as DEL.", tips="request_policy:multi_shard response_policy:agg_sum",
)  # fmt: skip
def unlink(ctx: Call, argv: list[bytes]) -> Outcome:
    return delete_keys(ctx, argv)


def delete_keys(ctx: Call, argv: list[bytes]) -> Outcome:
    records: list[bytes] = []
    deleted = 0
    for index in range(1, len(argv)):
        name = argv[index]
        if ctx.find(name) is None:
            continue
        ctx.db.delete(name)
        ctx.notify(GENERIC, b"del", name)
        deleted += 1
        wake(ctx, ctx.db, name)
        if ctx.journaling:
            records.append(encode_record(REMOVE, ctx.db.number, name))
    if not deleted:
        return ZERO
    ctx.state.changes += deleted - 1
    return Outcome(encode_integer(deleted), b"".join(records))


def count_existing(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_integer(sum([ctx.find(name) is not None for name in argv[1:]])))


@command(
    "EXISTS", many(key("RO")),
    group="generic", flags="readonly fast", since="1.0.0", complexity="O(N) with N keys",
    summary="How many of the keys exist; a key named twice counts twice.",
    tips="request_policy:multi_shard response_policy:agg_sum",
)  # fmt: skip
def exists(ctx: Call, argv: list[bytes]) -> Outcome:
    return count_existing(ctx, argv)


@command(
    "TOUCH", many(key("RO")),
    group="generic", flags="readonly fast", since="3.2.1", complexity="O(N) with N keys",
    summary="How many of the keys exist. Access times are not kept, so nothing else happens.",
    tips="request_policy:multi_shard response_policy:agg_sum",
)  # fmt: skip
def touch(ctx: Call, argv: list[bytes]) -> Outcome:
    return count_existing(ctx, argv)


@command(
    "TYPE", key("RO"),
    group="generic", flags="readonly fast", since="1.0.0", complexity="O(1)", summary="The type of a key's value.",
)  # fmt: skip
def type_(ctx: Call, argv: list[bytes]) -> Outcome:
    value = ctx.find(argv[1])
    return Outcome(encode(Status("none" if value is None else type_name(value)), resp3=ctx.resp3))


@command(
    "KEYS", pattern("pattern"),
    group="generic", flags="readonly", categories="dangerous", since="1.0.0", complexity="O(N) with N keys",
    summary="All keys whose names match a pattern.", tips="request_policy:all_shards nondeterministic_output_order",
)  # fmt: skip
def keys(ctx: Call, argv: list[bytes]) -> Outcome:
    glob = Glob(argv[1])
    expires_ms = ctx.db.expires_ms
    found = [
        encode_bulk(name)
        for name in ctx.db.values
        if glob.matches(name) and expires_ms.get(name, ctx.now_ms + 1) > ctx.now_ms
    ]
    return Outcome(encode_array(found))


@command(
    "RANDOMKEY",
    group="generic", flags="readonly", since="1.0.0", complexity="O(N) with N keys, quickly",
    summary="Some key, chosen at random.",
    tips="request_policy:all_shards response_policy:special nondeterministic_output",
)  # fmt: skip
def randomkey(ctx: Call, argv: list[bytes]) -> Outcome:
    values = ctx.db.values
    for _ in range(RANDOM_TRIES):
        if values:
            name = next(islice(values, ctx.state.chance.below(len(values)), None))
            if ctx.find(name) is not None:
                return Outcome(encode_bulk(name))
    # Nearly all have expired: look at every one, once.
    alive = [name for name in list(values) if ctx.find(name) is not None]
    if not alive:
        return Outcome(encode_null(resp3=ctx.resp3))
    return Outcome(encode_bulk(alive[ctx.state.chance.below(len(alive))]))


# Moving and copying


@command(
    "RENAME", key("RW access delete"), key("OW update", "newkey"),
    group="generic", flags="write", since="1.0.0", complexity="O(1)",
    summary="Give a key another name, in place of whatever had that name.",
)  # fmt: skip
def rename(ctx: Call, argv: list[bytes]) -> Outcome:
    if get_value(ctx, argv[1]) is not None and argv[1] == argv[2]:
        return OK
    return Outcome(OK.reply, move_name(ctx, argv[1], argv[2]), argv[1])


@command(
    "RENAMENX", key("RW access delete"), key("OW insert", "newkey"),
    group="generic", flags="write fast", since="1.0.0", complexity="O(1)",
    summary="Give a key another name, unless that name exists.",
)  # fmt: skip
def renamenx(ctx: Call, argv: list[bytes]) -> Outcome:
    get_value(ctx, argv[1])
    if ctx.find(argv[2]) is not None:
        return ZERO
    return Outcome(encode_integer(1), move_name(ctx, argv[1], argv[2]), argv[1])


def get_value(ctx: Call, name: bytes) -> Stored:
    value = ctx.find(name)
    if value is None:
        raise CommandError(NO_SUCH_KEY)
    return value


def move_name(ctx: Call, name: bytes, new_name: bytes) -> bytes:
    """Both names are known to differ and the first to exist. The record comes back."""
    old = ctx.find(new_name)  # An expired value there goes first.
    expires_ms = ctx.db.expires_ms.get(name, 0)
    value = ctx.db.values[name]
    ctx.db.delete(name)
    ctx.db.replace(new_name, value, expires_ms)
    ctx.notify(GENERIC, b"rename_from", name)
    ctx.notify(GENERIC, b"rename_to", new_name)
    tell_replaced(ctx.db, new_name, old)
    wake(ctx, ctx.db, new_name)
    return encode_record(RENAME, ctx.db.number, name, new_name) if ctx.journaling else CHANGED


def tell_replaced(database: Keyspace, name: bytes, old: Stored | None) -> None:
    """A key got another value as a whole; told behind what the command itself tells."""
    if old is not None:
        database.tell(OVERWRITTEN, b"overwritten", name)
        if type_name(old) != type_name(database.values[name]):
            database.tell(TYPE_CHANGED, b"type_changed", name)


@command(
    "COPY", key("RO access", "source"), key("OW update", "destination"),
    optional(integer("destination-db", "DB")), optional(word("REPLACE")),
    group="generic", flags="write denyoom", since="6.2.0", complexity="O(N) with N what the value holds",
    summary="Copy a value to another key, here or in another database.",
)  # fmt: skip
def copy(ctx: Call, argv: list[bytes]) -> Outcome:
    target = ctx.db
    replaces = False
    index = 3
    while index < len(argv):
        option = argv[index].upper()
        if option == b"REPLACE":
            replaces = True
        elif option == b"DB" and index + 1 < len(argv):
            index += 1
            target = get_database(ctx, argv[index])
        else:
            raise CommandError(SYNTAX)
        index += 1
    if target is ctx.db and argv[1] == argv[2]:
        raise CommandError(SAME_OBJECT)
    value = ctx.find(argv[1])
    if value is None:
        ctx.notify(MISSED, b"keymiss", argv[1])
        return ZERO
    old = target.find(argv[2], ctx.now_ms)
    if old is not None and not replaces:
        return ZERO
    payload = dump_value(value)
    expires_ms = ctx.db.expires_ms.get(argv[1], 0)
    target.replace(argv[2], load_value(payload, ctx.state.settings.limits), expires_ms)
    target.tell(GENERIC, b"copy_to", argv[2])
    tell_replaced(target, argv[2], old)
    wake(ctx, target, argv[2])
    record = CHANGED
    if ctx.journaling:
        record = encode_record(PUT, target.number, argv[2], payload, b"%d" % expires_ms)
    return Outcome(encode_integer(1), record)


@command(
    "MOVE", key("RW access update"), integer("db"),
    group="generic", flags="write fast", since="1.0.0", complexity="O(1)",
    summary="Move a key to another database, unless it exists there.",
)  # fmt: skip
def move(ctx: Call, argv: list[bytes]) -> Outcome:
    target = get_database(ctx, argv[2])
    if target is ctx.db:
        raise CommandError(SAME_OBJECT)
    name = argv[1]
    value = ctx.find(name)
    if value is None or target.find(name, ctx.now_ms) is not None:
        return ZERO
    expires_ms = ctx.db.expires_ms.get(name, 0)
    ctx.db.delete(name)
    target.put(name, value, expires_ms)
    ctx.notify(GENERIC, b"move_from", name)
    target.tell(GENERIC, b"move_to", name)
    wake(ctx, target, name)
    record = encode_record(MOVE, ctx.db.number, name, b"%d" % target.number) if ctx.journaling else CHANGED
    return Outcome(encode_integer(1), record, name)


# Payloads


@command(
    "DUMP", key("RO access"),
    group="generic", flags="readonly", since="2.6.0", complexity="O(N) with N what the value holds",
    summary="A key's value as bytes for RESTORE.", tips="nondeterministic_output",
)  # fmt: skip
def dump(ctx: Call, argv: list[bytes]) -> Outcome:
    """The payload is headrace's own (engine/dump.py), with a checksum; Redis cannot read it, nor we Redis's."""
    value = ctx.find(argv[1])
    return Outcome(encode_null(resp3=ctx.resp3) if value is None else encode_bulk(dump_value(value)))


@command(
    "RESTORE", key("OW update"), integer("ttl"), text("serialized-value"),
    optional(added("3.0.0", word("REPLACE"))), optional(added("5.0.0", word("ABSTTL"))),
    optional(added("5.0.0", integer("seconds", "IDLETIME"))), optional(added("5.0.0", integer("frequency", "FREQ"))),
    group="generic", flags="write denyoom", categories="dangerous", since="2.6.0",
    complexity="O(N) with N what the value holds", summary="Create a key from the bytes that DUMP gave.",
)  # fmt: skip
def restore(ctx: Call, argv: list[bytes]) -> Outcome:
    """IDLETIME and FREQ are checked and forgotten: access times are not kept."""
    name = argv[1]
    replaces, is_absolute = parse_restore_options(argv)
    old = ctx.find(name)
    if old is not None and not replaces:
        raise CommandError("BUSYKEY Target key name already exists.")
    ttl = parse_within(argv[2], 0, MAX_INTEGER, "ERR Invalid TTL value, must be >= 0")
    if not is_intact(argv[3]):
        raise CommandError("ERR DUMP payload version or checksum are wrong")
    try:
        value = load_value(argv[3], ctx.state.settings.limits)
    except ValueError:
        raise CommandError("ERR Bad data format") from None
    expires_ms = ttl if is_absolute or ttl == 0 else ttl + ctx.now_ms
    if 0 < expires_ms <= ctx.now_ms:
        ctx.state.expired_keys += 1
        if old is None:
            return OK
        ctx.db.delete(name)
        ctx.notify(GENERIC, b"del", name)
        return Outcome(OK.reply, encode_record(REMOVE, ctx.db.number, name) if ctx.journaling else CHANGED, name)
    ctx.db.replace(name, value, expires_ms)
    ctx.notify(GENERIC, b"restore", name)
    tell_replaced(ctx.db, name, old)
    record = encode_record(PUT, ctx.db.number, name, argv[3], b"%d" % expires_ms) if ctx.journaling else CHANGED
    return Outcome(OK.reply, record, name)


def parse_restore_options(argv: list[bytes]) -> tuple[bool, bool]:
    """Whether to replace, and whether the TTL is a point in time."""
    replaces = False
    is_absolute = False
    weight = b""
    index = 4
    while index < len(argv):
        option = argv[index].upper()
        if option == b"REPLACE":
            replaces = True
        elif option == b"ABSTTL":
            is_absolute = True
        elif option in (b"IDLETIME", b"FREQ") and weight in (b"", option) and index + 1 < len(argv):
            weight = option
            index += 1
            if option == b"IDLETIME":
                parse_within(argv[index], 0, MAX_INTEGER, "ERR Invalid IDLETIME value, must be >= 0")
            else:
                parse_within(argv[index], 0, 255, "ERR Invalid FREQ value, must be >= 0 and <= 255")
        else:
            raise CommandError(SYNTAX)
        index += 1
    return replaces, is_absolute


# What is known about a value

container(
    "OBJECT", group="generic", since="2.2.3", summary="What is known about a key's value besides the value itself."
)


@command(
    "OBJECT ENCODING", key("RO"),
    group="generic", flags="readonly", since="2.2.3", complexity="O(1)",
    summary="How Redis would hold the value.", tips="nondeterministic_output",
)  # fmt: skip
def object_encoding(ctx: Call, argv: list[bytes]) -> Outcome:
    """Clients and tests compare this name with Redis's, so it follows Redis's rules and not our own layout."""
    value = ctx.find(argv[2])
    return Outcome(encode(None if value is None else encoding_name(value), resp3=ctx.resp3))


@command(
    "OBJECT REFCOUNT", key("RO"),
    group="generic", flags="readonly", since="2.2.3", complexity="O(1)",
    summary="1 for every key: values are not shared.", tips="nondeterministic_output",
)  # fmt: skip
def object_refcount(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode(None if ctx.find(argv[2]) is None else 1, resp3=ctx.resp3))


@command(
    "OBJECT IDLETIME", key("RO"),
    group="generic", flags="readonly", since="2.2.3", complexity="O(1)",
    summary="0 for every key: access times are not kept.", tips="nondeterministic_output",
)  # fmt: skip
def object_idletime(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode(None if ctx.find(argv[2]) is None else 0, resp3=ctx.resp3))


@command(
    "OBJECT FREQ", key("RO"),
    group="generic", flags="readonly", since="4.0.0", complexity="O(1)",
    summary="Refused: access frequencies are not kept.", tips="nondeterministic_output",
)  # fmt: skip
def object_freq(ctx: Call, argv: list[bytes]) -> Outcome:
    if ctx.find(argv[2]) is None:
        return Outcome(encode_null(resp3=ctx.resp3))
    raise CommandError(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching "
        "between policies at runtime LRU and LFU data will take some time to adjust."
    )


@command(
    "OBJECT HELP",
    group="generic", flags="loading stale", since="6.2.0", complexity="O(1)", summary="The subcommands of OBJECT.",
)  # fmt: skip
def object_help(ctx: Call, argv: list[bytes]) -> Outcome:
    return help_reply(
        "OBJECT",
        [
            "ENCODING <key>", "    How Redis would hold the value of <key>.",
            "FREQ <key>", "    Refused: access frequencies are not kept.",
            "IDLETIME <key>", "    Always 0: access times are not kept.",
            "REFCOUNT <key>", "    Always 1: values are not shared.",
        ],
    )  # fmt: skip

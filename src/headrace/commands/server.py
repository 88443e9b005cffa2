"""The server as a whole: its settings, databases, time and memory. INFO and COMMAND have their own modules."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.help import help_reply
from headrace.commands.info import reset_statistics
from headrace.commands.keys import get_database
from headrace.commands.numbers import parse_integer, parse_within
from headrace.commands.outcome import CHANGED, OK, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import (
    Argument,
    added,
    block,
    command,
    container,
    integer,
    key,
    many,
    oneof,
    optional,
    text,
    word,
)
from headrace.engine.encodings import estimate_bytes
from headrace.engine.keyspace import Keyspace
from headrace.errors import CommandError
from headrace.journal.record import CLEAR, SWAP, encode_record
from headrace.wire.encoder import encode, encode_integer

MAX_INT: Final = 2**31 - 1

# Settings

container("CONFIG", group="server", since="2.0.0", summary="Read and change settings.")


@command(
    "CONFIG GET", many(text("parameter")),
    group="server", flags="admin noscript loading stale", since="2.0.0", complexity="O(N) with N settings",
    summary="Settings whose names match one of the patterns.",
)  # fmt: skip
def config_get(ctx: Call, argv: list[bytes]) -> Outcome:
    settings = ctx.state.settings
    settings.assign("port", str(ctx.state.port))
    return Outcome(encode(settings.find(argv[2:]), resp3=ctx.resp3))


@command(
    "CONFIG SET", many(block("data", text("parameter"), text("value"))),
    group="server", flags="admin noscript loading stale", since="2.0.0", complexity="O(N) with N settings given",
    summary="Change settings: all that are named, or none.",
    tips="request_policy:all_nodes response_policy:all_succeeded",
)  # fmt: skip
def config_set(ctx: Call, argv: list[bytes]) -> Outcome:
    if len(argv) % 2:
        raise CommandError(SYNTAX)
    ctx.state.settings.set_many(argv[2:])
    ctx.state.apply_settings()
    return OK


@command(
    "CONFIG RESETSTAT",
    group="server", flags="admin noscript loading stale", since="2.0.0", complexity="O(1)",
    summary="Set the counters of INFO back to zero.", tips="request_policy:all_nodes response_policy:all_succeeded",
)  # fmt: skip
def config_resetstat(ctx: Call, argv: list[bytes]) -> Outcome:
    reset_statistics(ctx.state)
    return OK


@command(
    "CONFIG REWRITE",
    group="server", flags="admin noscript loading stale", since="2.8.0", complexity="O(1)",
    summary="Refused: there is no settings file to write.",
    tips="request_policy:all_nodes response_policy:all_succeeded",
)  # fmt: skip
def config_rewrite(ctx: Call, argv: list[bytes]) -> Outcome:
    raise CommandError("ERR The server is running without a config file")


@command(
    "CONFIG HELP",
    group="server", flags="loading stale", since="5.0.0", complexity="O(1)", summary="The subcommands of CONFIG.",
)  # fmt: skip
def config_help(ctx: Call, argv: list[bytes]) -> Outcome:
    return help_reply(
        "CONFIG",
        [
            "GET <pattern>", "    Settings whose names match the pattern.",
            "SET <directive> <value>", "    Change settings: all that are named, or none.",
            "RESETSTAT", "    Set the counters of INFO back to zero.",
            "REWRITE", "    Refused: there is no settings file to write.",
        ],
    )  # fmt: skip


# Databases


@command(
    "DBSIZE",
    group="server", flags="readonly fast", categories="keyspace", since="1.0.0", complexity="O(1)",
    summary="How many keys the database has.", tips="request_policy:all_shards response_policy:agg_sum",
)  # fmt: skip
def dbsize(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_integer(len(ctx.db.values)))


def flush_type() -> Argument:
    return optional(
        oneof("flush-type", added("4.0.0", word("ASYNC")), added("6.2.0", word("SYNC")))
    )  # fmt: skip


@command(
    "FLUSHDB", flush_type(),
    group="server", flags="write", categories="keyspace dangerous", since="1.0.0", complexity="O(N) with N keys",
    summary="Delete every key of the database.", tips="request_policy:all_shards response_policy:all_succeeded",
)  # fmt: skip
def flushdb(ctx: Call, argv: list[bytes]) -> Outcome:
    check_flush_type(argv)
    removed = clear(ctx, ctx.db)
    ctx.state.changes += max(0, removed - 1)
    return Outcome(OK.reply, encode_record(CLEAR, ctx.db.number) if ctx.journaling else CHANGED)


@command(
    "FLUSHALL", flush_type(),
    group="server", flags="write", categories="keyspace dangerous", since="1.0.0", complexity="O(N) with N keys",
    summary="Delete every key of every database.", tips="request_policy:all_shards response_policy:all_succeeded",
)  # fmt: skip
def flushall(ctx: Call, argv: list[bytes]) -> Outcome:
    check_flush_type(argv)
    records: list[bytes] = []
    for database in ctx.state.databases:
        if database.values and ctx.journaling:
            records.append(encode_record(CLEAR, database.number))
        ctx.state.changes += clear(ctx, database)
    return Outcome(OK.reply, b"".join(records))


def check_flush_type(argv: list[bytes]) -> None:
    """ASYNC and SYNC are the same here: memory is freed at once."""
    if len(argv) > 2 or (len(argv) == 2 and argv[1].upper() not in (b"ASYNC", b"SYNC")):
        raise CommandError(SYNTAX)


def clear(ctx: Call, database: Keyspace) -> int:
    """Empty a database; how many keys it had. Only keys that were there count as changed for WATCH."""
    touch_existing(ctx, database, database)
    removed = len(database.values)
    database.clear()
    ctx.state.memory_asked_ms = 0  # Whoever was out of memory is so no longer.
    ctx.state.wake_database(database.number)
    return removed


def touch_existing(ctx: Call, database: Keyspace, other: Keyspace) -> None:
    """Tell transactions about the database's watched keys that exist in it or in the other."""
    for number, name in list(ctx.state.watched):
        if number == database.number and (is_alive(database, name, ctx.now_ms) or is_alive(other, name, ctx.now_ms)):
            ctx.state.touch(number, name)


def is_alive(database: Keyspace, name: bytes, now_ms: int) -> bool:
    return name in database.values and database.expires_ms.get(name, now_ms + 1) > now_ms


def drop_watched(ctx: Call, first: Keyspace, second: Keyspace) -> None:
    """Remove watched names whose time has come from both: who gets such a key in exchange has got nothing."""
    for number, name in list(ctx.state.watched):
        if number in (first.number, second.number):
            first.find(name, ctx.now_ms)
            second.find(name, ctx.now_ms)


@command(
    "SWAPDB", integer("index1"), integer("index2"),
    group="server", flags="write fast", categories="keyspace dangerous", since="4.0.0",
    complexity="O(N) with N clients that wait for or watch keys", summary="Exchange two databases.",
)  # fmt: skip
def swapdb(ctx: Call, argv: list[bytes]) -> Outcome:
    first_error = "ERR invalid first DB index"
    second_error = "ERR invalid second DB index"
    parse_within(argv[1], -MAX_INT - 1, MAX_INT, first_error, first_error)
    parse_within(argv[2], -MAX_INT - 1, MAX_INT, second_error, second_error)
    first = get_database(ctx, argv[1])
    second = get_database(ctx, argv[2])
    if first is not second:
        drop_watched(ctx, first, second)
        touch_existing(ctx, first, second)
        touch_existing(ctx, second, first)
        first.values, second.values = second.values, first.values
        first.expires_ms, second.expires_ms = second.expires_ms, first.expires_ms
        ctx.state.wake_database(first.number)
        ctx.state.wake_database(second.number)
    return Outcome(OK.reply, encode_record(SWAP, first.number, b"%d" % second.number) if ctx.journaling else CHANGED)


# Time and memory


@command(
    "TIME",
    group="server", flags="loading stale fast", since="2.6.0", complexity="O(1)", tips="nondeterministic_output",
    summary="The server's time: seconds since 1970, and microseconds.",
)  # fmt: skip
def time_(ctx: Call, argv: list[bytes]) -> Outcome:
    """The clock is read once for everything received together, in milliseconds."""
    return Outcome(encode([str(ctx.now_ms // 1000), str(ctx.now_ms % 1000 * 1000)], resp3=ctx.resp3))


container("MEMORY", group="server", since="4.0.0", summary="How much memory values take.")


@command(
    "MEMORY USAGE", key("RO"), optional(integer("count", "SAMPLES")),
    group="server", flags="readonly", since="4.0.0", complexity="O(N) with N elements looked at",
    summary="About how many bytes a key and its value take.",
)  # fmt: skip
def memory_usage(ctx: Call, argv: list[bytes]) -> Outcome:
    samples = 5
    index = 3
    while index < len(argv):
        if argv[index].upper() != b"SAMPLES" or index + 1 == len(argv):
            raise CommandError(SYNTAX)
        samples = parse_integer(argv[index + 1])
        if samples < 0:
            raise CommandError(SYNTAX)
        index += 2
    value = ctx.find(argv[2])
    used = None if value is None else estimate_bytes(value, samples) + len(argv[2]) + 140
    return Outcome(encode(used, resp3=ctx.resp3))


@command(
    "MEMORY HELP",
    group="server", flags="loading stale", since="4.0.0", complexity="O(1)", summary="The subcommands of MEMORY.",
)  # fmt: skip
def memory_help(ctx: Call, argv: list[bytes]) -> Outcome:
    return help_reply("MEMORY", ["USAGE <key> [SAMPLES <count>]", "    About how many bytes <key> and its value take."])

"""Stream commands that know no group: adding and reading."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import STREAM
from headrace.commands.numbers import parse_integer
from headrace.commands.outcome import CHANGED, EMPTY_ARRAY, ZERO, Outcome
from headrace.commands.read_options import ReadOptions, parse_read, wait
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import added, block, command, integer, key, many, oneof, optional, text, word
from headrace.commands.trimming import Trim, trim
from headrace.engine.idempotence import Idempotence, digest_fields
from headrace.engine.ids import (
    INVALID_ID,
    LONGEST_TEXT,
    MAX_ID,
    MAX_PART,
    name_of,
    parse_part,
    parse_range_end,
    parse_range_start,
    parse_strict_id,
)
from headrace.engine.keyspace import WRONG_TYPE
from headrace.engine.stream import DIGITS, READY_DIGITS, Stream
from headrace.errors import CommandError
from headrace.journal.record import (
    IDEMPOTENCE,
    SEEN_BEFORE,
    encode_append,
    encode_record,
)
from headrace.wire.encoder import (
    BULK_HEADERS,
    encode_array_header,
    encode_bulk,
    encode_entry,
    encode_integer,
    encode_map_header,
    encode_null,
    encode_null_array,
)

XADD_ARITY: Final = "ERR wrong number of arguments for 'xadd' command"
EXHAUSTED: Final = "ERR The stream has exhausted the last possible ID, unable to add more items"


# XADD


class AddOptions:
    """What stands between the key and the fields of an XADD."""

    __slots__ = ("trim", "makes_stream", "entry_id", "is_partial", "is_auto", "producer", "message", "fields_at")

    def __init__(self) -> None:
        self.trim = Trim()
        self.makes_stream = True
        self.entry_id = 0
        self.is_partial = False  # ms-*: the sequence is ours to choose.
        self.is_auto = False
        self.producer = b""  # Empty: no idempotence asked for.
        self.message = b""  # Empty with a producer: made from the fields.
        self.fields_at = 0


@command(
    "XADD",
    key("RW UPDATE"),
    optional(added("6.2.0", word("NOMKSTREAM"))),
    optional(oneof("condition", word("KEEPREF"), word("DELREF"), word("ACKED"))),
    optional(
        oneof(
            "idmp",
            block("idmpauto-with-pid", word("IDMPAUTO", "idmpauto-token"), text("pid")),
            block("idmp-with-pid-iid", word("IDMP", "idmp-token"), text("pid"), text("iid")),
        )
    ),
    optional(
        block(
            "trim",
            oneof("strategy", word("MAXLEN"), added("6.2.0", word("MINID"))),
            optional(oneof("operator", word("=", "equal"), word("~", "approximately"))),
            text("threshold"),
            optional(added("6.2.0", integer("count", token="LIMIT"))),
        )
    ),
    oneof("id-selector", word("*", "auto-id"), text("id")),
    many(block("data", text("field"), text("value"))),
    group="stream",
    flags="write denyoom fast",
    since="5.0.0",
    complexity="O(1) when adding; O(N) with trimming, N being the entries that go.",
    summary="Add an entry to a stream. Creates the stream if it is missing.",
    tips="nondeterministic_output",
)
def xadd(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply is the new entry's ID. IDs only ever grow, also after deletions."""
    if argv[2] != b"*" or len(argv) & 1 == 0:
        return add_with_options(ctx, argv, parse_add(ctx, argv))
    # The common form, with its small steps written out: calls cost 300 ns here in plain Python (bench/broker.py).
    key = argv[1]
    db = ctx.db
    stream = db.values.get(key) if not db.expires_ms else ctx.find(key)
    if not isinstance(stream, Stream):
        if stream is not None:
            raise CommandError(WRONG_TYPE)
        stream = ctx.new_stream(key)
    ms = ctx.now_ms
    seq = 0
    if ms <= stream.last_ms:
        ms = stream.last_ms
        seq = stream.last_seq + 1
        if seq > MAX_PART:
            ms, seq = stream.next_id(ms)
            if ms == 0:
                raise CommandError(EXHAUSTED)
    if ms == stream.prefix_ms and seq < READY_DIGITS:
        name = stream.prefix + DIGITS[seq]
    else:
        name = stream.name_next(ms, seq)
    reply = b"%b%b\r\n" % (BULK_HEADERS[len(name)], name)
    entry = encode_entry(reply, argv, 3)
    stream.append(ms, seq, name, entry)
    if db.event_kinds:
        ctx.notify(STREAM, b"xadd", key)
    return Outcome(reply, encode_append(db.number, key, entry) if ctx.journaling else CHANGED, key)


def append(ctx: Call, name: bytes, stream: Stream, ms: int, seq: int, argv: list[bytes], fields_at: int) -> Outcome:
    """Encode the entry once: it is the stored entry, part of every later reply, and the journal record."""
    entry_name = stream.name_next(ms, seq)
    reply = encode_bulk(entry_name)
    entry = encode_entry(reply, argv, fields_at)
    stream.append(ms, seq, entry_name, entry)
    ctx.notify(STREAM, b"xadd", name)
    return Outcome(reply, encode_append(ctx.db.number, name, entry) if ctx.journaling else CHANGED, name)


def parse_add(ctx: Call, argv: list[bytes]) -> AddOptions:
    options = AddOptions()
    trim_options = options.trim
    index = 2
    while index < len(argv):
        argument = argv[index]
        if argument == b"*":
            options.is_auto = True
            break
        option = argument.upper()
        following = trim_options.take(argv, index, option)
        if following < 0:
            following = take_add_option(options, argv, index, option)
        if following < 0:
            parse_entry_id(options, argument)
            if options.producer:
                raise CommandError("ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs")
            break
        index = following
    options.fields_at = index + 1
    trim_options.finish(ctx, must_trim=False)
    words = len(argv) - options.fields_at
    if words < 2 or words % 2 == 1:
        raise CommandError(XADD_ARITY)
    if not options.is_auto and not options.is_partial and options.entry_id == 0:
        raise CommandError("ERR The ID specified in XADD must be greater than 0-0")
    return options


def take_add_option(options: AddOptions, argv: list[bytes], index: int, option: bytes) -> int:
    """Read an option that only XADD has; the index behind it, or -1 when it must be the ID."""
    more = len(argv) - 1 - index
    if option == b"NOMKSTREAM":
        options.makes_stream = False
        return index + 1
    if (option == b"IDMP" and more >= 2) or (option == b"IDMPAUTO" and more >= 1):
        is_auto = option == b"IDMPAUTO"
        if options.producer:
            raise CommandError("ERR syntax error, IDMP/IDMPAUTO specified multiple times")
        if not argv[index + 1]:
            raise CommandError(f"ERR syntax error, {option.decode()} requires a non-empty producer ID")
        options.producer = argv[index + 1]
        if is_auto:
            return index + 2
        if not argv[index + 2]:
            raise CommandError("ERR syntax error, IDMP requires a non-empty idempotent ID")
        options.message = argv[index + 2]
        return index + 3
    return -1


def parse_entry_id(options: AddOptions, argument: bytes) -> None:
    if argument.endswith(b"-*"):
        ms = parse_part(argument[:-2]) if len(argument) <= LONGEST_TEXT else -1
        if ms < 0:
            raise CommandError(INVALID_ID)
        options.entry_id = ms << 64
        options.is_partial = True
    else:
        options.entry_id = parse_strict_id(argument)


def add_with_options(ctx: Call, argv: list[bytes], options: AddOptions) -> Outcome:
    name = argv[1]
    stream = ctx.find_stream(name)
    if stream is None and not options.makes_stream:
        return Outcome(encode_null(resp3=ctx.resp3))
    if options.producer:
        if not options.message:
            options.message = digest_fields(argv, options.fields_at)
        seen = find_seen(ctx, stream, options)
        if seen:
            return Outcome(encode_bulk(name_of(seen)))
    if stream is None:
        ms, seq = choose_id(Stream(ctx.state.settings.limits), ctx.now_ms, options)
        stream = ctx.new_stream(name)
    else:
        ms, seq = choose_id(stream, ctx.now_ms, options)
    outcome = append(ctx, name, stream, ms, seq, argv, options.fields_at)
    if options.producer:
        note_seen(ctx, name, stream, options, ms << 64 | seq, outcome)
    if options.trim.is_given:
        _, record = trim(ctx, name, stream, options.trim)
        if record:
            assert outcome.record is not None
            outcome.record += record
    return outcome


def choose_id(stream: Stream, now_ms: int, options: AddOptions) -> tuple[int, int]:
    if stream.last_ms == MAX_PART and stream.last_seq == MAX_PART:
        raise CommandError(EXHAUSTED)
    if options.is_auto:
        return stream.next_id(now_ms)
    entry_id = options.entry_id
    if options.is_partial and stream.last_ms == entry_id >> 64:
        entry_id = stream.last_id + 1
        if entry_id >> 64 != stream.last_ms:
            entry_id = 0  # The sequence of this millisecond is used up.
    if entry_id <= stream.last_id:
        raise CommandError("ERR The ID specified in XADD is equal or smaller than the target stream top item")
    return entry_id >> 64, entry_id & MAX_PART


def find_seen(ctx: Call, stream: Stream | None, options: AddOptions) -> int:
    """The ID of the entry this message became before, or 0."""
    if stream is None or stream.idempotence is None:
        return 0
    seen = stream.idempotence.find(options.producer, options.message, ctx.now_ms)
    if seen:
        stream.idempotence.duplicates += 1
    return seen


def note_seen(ctx: Call, name: bytes, stream: Stream, options: AddOptions, entry_id: int, outcome: Outcome) -> None:
    idempotence = get_idempotence(ctx, stream)
    idempotence.record(options.producer, options.message, entry_id)
    if ctx.journaling and outcome.record is not None:
        parts = (name, options.producer, options.message, name_of(entry_id))
        limits = (name, b"%d" % idempotence.duration_s, b"%d" % idempotence.max_size)
        number = ctx.db.number
        outcome.record += encode_record(IDEMPOTENCE, number, *limits) + encode_record(SEEN_BEFORE, number, *parts)


def get_idempotence(ctx: Call, stream: Stream) -> Idempotence:
    """The stream's records, made with the server's defaults when first needed."""
    idempotence = stream.idempotence
    if idempotence is None:
        settings = ctx.state.settings
        idempotence = Idempotence(settings.idmp_duration_s, settings.idmp_max_size)
        stream.idempotence = idempotence
    return idempotence


# Reading


@command(
    "XLEN", key("RO"),
    group="stream", flags="readonly fast", since="5.0.0", complexity="O(1)",
    summary="How many entries a stream holds.",
)  # fmt: skip
def xlen(ctx: Call, argv: list[bytes]) -> Outcome:
    stream = ctx.find_stream(argv[1])
    return ZERO if stream is None else Outcome(encode_integer(stream.length))


@command(
    "XRANGE", key("RO ACCESS"), text("start"), text("end"), optional(integer("count", token="COUNT")),
    group="stream", flags="readonly", since="5.0.0",
    complexity="O(log(N)+M), N being the entries of the stream and M those returned.",
    summary="The entries between two IDs, both included, oldest first.",
)  # fmt: skip
def xrange(ctx: Call, argv: list[bytes]) -> Outcome:
    """COUNT 0 and below answer null, as Redis does; an empty range answers an empty array."""
    return range_reply(ctx, argv, parse_range_start(argv[2]), parse_range_end(argv[3]), is_backwards=False)


@command(
    "XREVRANGE", key("RO ACCESS"), text("end"), text("start"), optional(integer("count", token="COUNT")),
    group="stream", flags="readonly", since="5.0.0",
    complexity="O(log(N)+M), N being the entries of the stream and M those returned.",
    summary="The entries between two IDs, both included, newest first.",
)  # fmt: skip
def xrevrange(ctx: Call, argv: list[bytes]) -> Outcome:
    return range_reply(ctx, argv, parse_range_start(argv[3]), parse_range_end(argv[2]), is_backwards=True)


def range_reply(ctx: Call, argv: list[bytes], start: int, end: int, *, is_backwards: bool) -> Outcome:
    count = -1
    index = 4
    while index < len(argv):
        if argv[index].upper() != b"COUNT" or index + 1 >= len(argv):
            raise CommandError(SYNTAX)
        count = max(0, parse_integer(argv[index + 1]))
        index += 2
    stream = ctx.find_stream(argv[1])
    if stream is None:
        return EMPTY_ARRAY
    if count == 0:
        return Outcome(encode_null_array(resp3=ctx.resp3))
    read = stream.read_range_backwards if is_backwards else stream.read_range
    found, pieces = read(start, end, max(0, count))
    return Outcome(encode_array_header(found) + b"".join(pieces))


@command(
    "XREAD",
    optional(integer("count", token="COUNT")),
    optional(integer("milliseconds", token="BLOCK")),
    block("streams", many(key("RO ACCESS", keyword="STREAMS")), many(text("id")), token="STREAMS"),
    group="stream", flags="readonly blocking movablekeys", since="5.0.0",
    complexity="O(M) for each stream, M being the entries returned.",
    summary="Entries behind the given IDs, of several streams; waits for some with BLOCK.",
)  # fmt: skip
def xread(ctx: Call, argv: list[bytes]) -> Outcome:
    """`$` stands for the last ID at the time of the call, `+` for the last entry.

    A waiting XREAD ignores keys that vanish or change their type meanwhile: it may still be served by the others.
    """
    options = parse_read(argv, "xread")
    after = resolve_ids(ctx, options)
    parts: list[bytes] = []
    for index in range(len(options.keys)):
        stream = find_waited_stream(ctx, options.keys[index])
        if stream is None or after[index] >= stream.last_id:
            continue
        found, pieces = stream.read_range(after[index] + 1, MAX_ID, options.count)
        if found:
            if not ctx.resp3:
                parts.append(b"*2\r\n")
            parts += [encode_bulk(options.keys[index]), encode_array_header(found)]
            parts += pieces
            options.found += 1
    if options.found:
        header = encode_map_header(options.found, resp3=True) if ctx.resp3 else encode_array_header(options.found)
        return Outcome(header + b"".join(parts))
    if options.block_ms < 0 or not ctx.may_block:
        return Outcome(encode_null_array(resp3=ctx.resp3))
    for index, entry_id in enumerate(after):
        if options.ids[index] == b"$":
            options.ids[index] = name_of(entry_id)
    return wait(ctx, argv, options)


def find_waited_stream(ctx: Call, name: bytes) -> Stream | None:
    """As find_stream, but a waiting client stays waiting when the key has become something else."""
    if ctx.is_retrying:
        value = ctx.find(name)
        return value if isinstance(value, Stream) else None
    return ctx.find_stream(name)


def resolve_ids(ctx: Call, options: ReadOptions) -> list[int]:
    """The ID behind which to read, for each stream."""
    after: list[int] = []
    for name, argument in zip(options.keys, options.ids, strict=True):
        stream = find_waited_stream(ctx, name)
        if argument == b"$":
            after.append(0 if stream is None else stream.last_id)
        elif argument == b"+":
            last = 0 if stream is None else stream.last_entry_id()
            after.append(last - 1 if last else (0 if stream is None else stream.last_id))
        elif argument == b">":
            raise CommandError(
                "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
            )
        else:
            after.append(parse_strict_id(argument))
    return after

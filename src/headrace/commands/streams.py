"""Stream commands that know no group: adding, reading, trimming, deleting."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.numbers import parse_integer
from headrace.commands.outcome import CHANGED, EMPTY_ARRAY, OK, ZERO, Outcome
from headrace.commands.read_options import ReadOptions, parse_read, wait
from headrace.commands.spec import added, block, command, integer, key, many, oneof, optional, text, word
from headrace.commands.trimming import DELETE_REFERENCES, ONLY_ACKED, POLICIES, SYNTAX, Trim, trim
from headrace.engine.idempotence import Idempotence, digest_fields
from headrace.engine.ids import (
    INVALID_ID,
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
    DELETE,
    FORGET,
    IDEMPOTENCE,
    SEEN_BEFORE,
    SET_ID,
    encode_append,
    encode_record,
)
from headrace.wire.encoder import (
    BULK_HEADERS,
    encode_array,
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
NO_SUCH_KEY: Final = "ERR no such key"
MAX_IDMP_DURATION_S: Final = 86400
MAX_IDMP_SIZE: Final = 10000


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
    return Outcome(reply, encode_append(db.number, key, entry) if ctx.journaling else CHANGED, key)


def append(ctx: Call, name: bytes, stream: Stream, ms: int, seq: int, argv: list[bytes], fields_at: int) -> Outcome:
    """Encode the entry once: it is the stored entry, part of every later reply, and the journal record."""
    entry_name = stream.name_next(ms, seq)
    reply = encode_bulk(entry_name)
    entry = encode_entry(reply, argv, fields_at)
    stream.append(ms, seq, entry_name, entry)
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
        ms = parse_part(argument[:-2])
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


# Deleting


@command(
    "XDEL", key("RW DELETE"), many(text("id")),
    group="stream", flags="write fast", since="5.0.0", complexity="O(1) for each entry.",
    summary="Delete entries by ID.",
)  # fmt: skip
def xdel(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply counts those that were there. Pending references to them stay."""
    stream = ctx.find_stream(argv[1])
    if stream is None:
        return ZERO
    ids = [parse_strict_id(argument) for argument in argv[2:]]
    deleted = stream.delete(ids)
    if not deleted:
        return ZERO
    return Outcome(encode_integer(len(deleted)), delete_record(ctx, argv[1], deleted, forgets=False))


def delete_record(ctx: Call, name: bytes, deleted: list[int], *, forgets: bool) -> bytes:
    if not ctx.journaling:
        return CHANGED
    names = [name_of(entry_id) for entry_id in deleted]
    record = encode_record(DELETE, ctx.db.number, name, *names)
    return record + encode_record(FORGET, ctx.db.number, name, *names) if forgets else record


def parse_ids_block(argv: list[bytes], index: int) -> tuple[int, list[bytes]]:
    """`[policy] IDS numids id…`, the policy before or behind: the policy and the IDs, not yet parsed.

    Quirk of Redis, kept: of several IDS the last one counts.
    """
    policy = -1
    ids: list[bytes] | None = None
    while index < len(argv):
        option = argv[index].upper()
        if option in POLICIES and policy < 0:
            policy = POLICIES[option]
            index += 1
        elif option == b"IDS" and index + 1 < len(argv):
            count = parse_integer(argv[index + 1], "ERR Number of IDs must be a positive integer")
            if count <= 0:
                raise CommandError("ERR Number of IDs must be a positive integer")
            if count > len(argv) - index - 2:
                raise CommandError("ERR The `numids` parameter must match the number of arguments")
            ids = argv[index + 2 : index + 2 + count]
            index += 2 + count
        else:
            raise CommandError(SYNTAX)
    if ids is None:
        raise CommandError("ERR IDS option is required")
    return max(0, policy), ids


@command(
    "XDELEX", key("RW DELETE"),
    optional(oneof("condition", word("KEEPREF"), word("DELREF"), word("ACKED"))),
    block("ids", integer("numids"), many(text("id")), token="IDS"),
    group="stream", flags="write fast", since="8.2.0", complexity="O(1) for each entry, times the groups.",
    summary="Delete entries by ID, with a say in what happens to pending references.",
)  # fmt: skip
def xdelex(ctx: Call, argv: list[bytes]) -> Outcome:
    """Per ID: 1 deleted, -1 not there, 2 kept because some group still needs it (ACKED)."""
    stream = ctx.find_stream(argv[1])
    policy, arguments = parse_ids_block(argv, 2)
    if stream is None:
        return Outcome(encode_array([encode_integer(-1)] * len(arguments)))
    ids = [parse_strict_id(argument) for argument in arguments]
    # References go also where the entry itself is gone already.
    forgets = policy == DELETE_REFERENCES and stream.forget([name_of(entry_id) for entry_id in ids])
    results: list[bytes] = []
    deleted: list[int] = []
    for entry_id in ids:
        result = delete_by_policy(stream, entry_id, policy)
        if result == 1:
            deleted.append(entry_id)
        results.append(encode_integer(result))
    record = delete_record(ctx, argv[1], ids if forgets else deleted, forgets=forgets) if deleted or forgets else None
    return Outcome(encode_array(results), record)


def delete_by_policy(stream: Stream, entry_id: int, policy: int) -> int:
    """1 deleted, -1 not there, 2 still needed. Needed is asked first, so an unknown ID ahead of a group answers 2."""
    if policy == ONLY_ACKED and stream.is_wanted(entry_id):
        return 2
    if policy == DELETE_REFERENCES:
        stream.forget([name_of(entry_id)])
    return 1 if stream.delete([entry_id]) else -1


@command(
    "XTRIM", key("RW DELETE"),
    block(
        "trim",
        oneof("strategy", word("MAXLEN"), added("6.2.0", word("MINID"))),
        optional(oneof("operator", word("=", "equal"), word("~", "approximately"))),
        text("threshold"),
        optional(added("6.2.0", integer("count", token="LIMIT"))),
        optional(oneof("condition", word("KEEPREF"), word("DELREF"), word("ACKED"))),
    ),
    group="stream", flags="write", since="5.0.0", complexity="O(N), N being the entries that go.",
    summary="Delete the oldest entries, by length or by ID.",
    tips="nondeterministic_output",
)  # fmt: skip
def xtrim(ctx: Call, argv: list[bytes]) -> Outcome:
    options = Trim()
    index = 2
    while index < len(argv):
        index = options.take(argv, index, argv[index].upper())
        if index < 0:
            raise CommandError(SYNTAX)
    options.finish(ctx, must_trim=True)
    stream = ctx.find_stream(argv[1])
    if stream is None:
        return ZERO
    removed, record = trim(ctx, argv[1], stream, options)
    return Outcome(encode_integer(removed), record) if removed else ZERO


# Settings of one stream


@command(
    "XSETID", key("RW UPDATE"), text("last-id"),
    optional(added("7.0.0", integer("entries-added", token="ENTRIESADDED"))),
    optional(added("7.0.0", text("max-deleted-id", token="MAXDELETEDID"))),
    group="stream", flags="write denyoom fast", since="5.0.0", complexity="O(1)",
    summary="Set a stream's last ID and counters.",
)  # fmt: skip
def xsetid(ctx: Call, argv: list[bytes]) -> Outcome:
    last_id = parse_strict_id(argv[2])
    entries_added = -1
    max_deleted = 0
    has_max_deleted = False
    index = 3
    while index < len(argv):
        option = argv[index].upper()
        if option == b"ENTRIESADDED" and index + 1 < len(argv):
            entries_added = parse_integer(argv[index + 1])
            if entries_added < 0:
                raise CommandError("ERR entries_added must be positive")
        elif option == b"MAXDELETEDID" and index + 1 < len(argv):
            max_deleted = parse_strict_id(argv[index + 1])
            has_max_deleted = True
            if last_id < max_deleted:
                raise CommandError("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
        else:
            raise CommandError(SYNTAX)
        index += 2
    stream = ctx.find_stream(argv[1])
    if stream is None:
        raise CommandError(NO_SUCH_KEY)
    if last_id < stream.max_deleted:
        raise CommandError("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")
    if stream.length:
        if last_id < stream.last_entry_id():
            raise CommandError("ERR The ID specified in XSETID is smaller than the target stream top item")
        if 0 <= entries_added < stream.length:
            raise CommandError("ERR The entries_added specified in XSETID is smaller than the target stream length")
    set_stream_id(stream, last_id, entries_added, max_deleted if has_max_deleted else -1)
    record = CHANGED
    if ctx.journaling:
        parts = (argv[1], name_of(last_id), b"%d" % stream.entries_added, name_of(stream.max_deleted))
        record = encode_record(SET_ID, ctx.db.number, *parts)
    return Outcome(OK.reply, record)


def set_stream_id(stream: Stream, last_id: int, entries_added: int, max_deleted: int) -> None:
    stream.last_ms = last_id >> 64
    stream.last_seq = last_id & MAX_PART
    if entries_added >= 0:
        stream.entries_added = entries_added
    if max_deleted > 0:
        stream.max_deleted = max_deleted


@command(
    "XCFGSET", key("RW UPDATE"),
    optional(block("idmp-duration-block", word("IDMP-DURATION", "idmp-duration-token"), integer("duration"))),
    optional(block("idmp-maxsize-block", word("IDMP-MAXSIZE", "idmp-maxsize-token"), integer("maxsize"))),
    group="stream", flags="write fast", since="8.6.0", complexity="O(1)",
    summary="Set for how long, and for how many messages, a stream recognises repeated ones.",
)  # fmt: skip
def xcfgset(ctx: Call, argv: list[bytes]) -> Outcome:
    """A changed value forgets all messages seen so far."""
    stream = ctx.find_stream(argv[1])
    if stream is None:
        raise CommandError(NO_SUCH_KEY)
    duration_s = 0
    max_size = 0
    index = 2
    while index < len(argv):
        option = argv[index].upper()
        if option not in (b"IDMP-DURATION", b"IDMP-MAXSIZE") or index + 1 >= len(argv):
            raise CommandError(SYNTAX)
        number = parse_integer(argv[index + 1])
        if option == b"IDMP-DURATION":
            if duration_s:
                raise CommandError("ERR IDMP-DURATION specified multiple times")
            if not 1 <= number <= MAX_IDMP_DURATION_S:
                raise CommandError("ERR IDMP-DURATION must be between 1 and 86400 seconds")
            duration_s = number
        else:
            if max_size:
                raise CommandError("ERR IDMP-MAXSIZE specified multiple times")
            if not 1 <= number <= MAX_IDMP_SIZE:
                raise CommandError("ERR IDMP-MAXSIZE must be between 1 and 10000 entries")
            max_size = number
        index += 2
    if not duration_s and not max_size:
        raise CommandError("ERR At least one parameter must be specified")
    idempotence = get_idempotence(ctx, stream)
    idempotence.configure(duration_s or idempotence.duration_s, max_size or idempotence.max_size)
    record = CHANGED
    if ctx.journaling:
        parts = (argv[1], b"%d" % idempotence.duration_s, b"%d" % idempotence.max_size)
        record = encode_record(IDEMPOTENCE, ctx.db.number, *parts)
    return Outcome(OK.reply, record)


@command(
    "XIDMPRECORD", key("RW UPDATE"), text("pid"), text("iid"), text("stream-id"),
    group="stream", flags="write denyoom fast", since="8.6.2", complexity="O(1)",
    summary="Note that an entry is what a producer's message became.",
)  # fmt: skip
def xidmprecord(ctx: Call, argv: list[bytes]) -> Outcome:
    entry_id = parse_strict_id(argv[4])
    if not argv[2]:
        raise CommandError("ERR producer ID must be non-empty")
    if not argv[3]:
        raise CommandError("ERR idempotent ID must be non-empty")
    stream = ctx.find_stream(argv[1])
    if stream is None:
        raise CommandError(NO_SUCH_KEY)
    if stream.find(entry_id) is None:
        raise CommandError("ERR No such message in stream")
    idempotence = get_idempotence(ctx, stream)
    seen = idempotence.producers.get(argv[2], {}).get(argv[3], 0)
    if seen == entry_id:
        return OK
    if seen:
        raise CommandError("ERR IID already exists for this producer with a different stream ID")
    idempotence.record(argv[2], argv[3], entry_id)
    record = CHANGED
    if ctx.journaling:
        record = encode_record(SEEN_BEFORE, ctx.db.number, argv[1], argv[2], argv[3], name_of(entry_id))
    return Outcome(OK.reply, record)

"""Settings of one stream: its last ID (XSETID) and how it recognises repeated messages (XCFGSET, XIDMPRECORD)."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import STREAM
from headrace.commands.numbers import parse_integer
from headrace.commands.outcome import CHANGED, OK, Outcome
from headrace.commands.refusals import NO_SUCH_KEY, SYNTAX
from headrace.commands.spec import added, block, command, integer, key, optional, text, word
from headrace.commands.streams import get_idempotence
from headrace.engine.ids import (
    MAX_PART,
    name_of,
    parse_strict_id,
)
from headrace.engine.stream import Stream
from headrace.errors import CommandError
from headrace.journal.record import (
    IDEMPOTENCE,
    SEEN_BEFORE,
    SET_ID,
    encode_record,
)

MAX_IDMP_DURATION_S: Final = 86400
MAX_IDMP_SIZE: Final = 10000


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
    ctx.notify(STREAM, b"xsetid", argv[1])
    record = CHANGED
    if ctx.journaling:
        parts = (argv[1], name_of(last_id), b"%d" % stream.entries_added, name_of(stream.max_deleted))
        record = encode_record(SET_ID, ctx.db.number, *parts)
    return Outcome(OK.reply, record)


def set_stream_id(stream: Stream, last_id: int, entries_added: int, max_deleted: int) -> None:
    if last_id < stream.last_id:
        for group in stream.groups.values():
            group.look_again()
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

"""The steps of headrace's own client and workers, each in one go on the server: HR.ADD and HR.TRIM.

On a plain Redis or Valkey the client brings the same steps as functions. Everything is checked before anything changes.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import STREAM
from headrace.commands.numbers import MAX_INTEGER, NOT_AN_INTEGER, parse_integer, parse_within
from headrace.commands.outcome import CHANGED, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import block, command, integer, key, many, oneof, optional, text, word
from headrace.commands.streams import EXHAUSTED, append
from headrace.engine.ids import MAX_ID, name_of, parse_strict_id
from headrace.engine.publish_ids import PublishIds
from headrace.engine.stream import Stream
from headrace.errors import CommandError
from headrace.journal.record import PUBLISH_ID, TRIM, encode_record
from headrace.wire.encoder import encode_array, encode_bulk, encode_integer, encode_null

FIELDS: Final = "ERR FIELDS must be followed by an even number, 2 or more, and by exactly so many words"


class AddOptions:
    """What stands between the key and the fields of an HR.ADD."""

    __slots__ = ("publish_id", "window_ms", "limit", "fields_at")

    def __init__(self) -> None:
        self.publish_id: bytes | None = None
        self.window_ms = 0
        self.limit = 0
        self.fields_at = 0


@command(
    "HR.ADD", key("RW update", "stream"),
    optional(block("once", text("id", "ID"), integer("window-ms", "WINDOW"), integer("max", "MAX"))),
    integer("words", "FIELDS"), many(block("data", text("field"), text("value"))),
    group="headrace", flags="write denyoom fast", categories="stream", since="0.1.0", complexity="O(1)",
    summary="Add an entry, once for each publish id.", tips="nondeterministic_output",
)  # fmt: skip
def hr_add(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply is the entry's ID, and 1 when it is new or 0 when it was seen before.

    With ID, an entry added with the same id in the last WINDOW milliseconds answers for this one, even when it is gone
    from the stream, and nothing is added. The stream remembers the newest MAX ids and takes them along when it is
    copied, renamed or moved. Give the same WINDOW and MAX in every call on a stream: smaller ones make it forget.

    FIELDS counts fields and values together.
    """
    options = parse_add(argv)
    name = argv[1]
    stream = ctx.find_stream(name)
    publish_id = options.publish_id
    known = stream.publish_ids if stream is not None else None
    if publish_id is not None and known is not None:
        seen = known.find(publish_id, ctx.now_ms, options.window_ms)
        if seen:
            return Outcome(encode_array([encode_bulk(name_of(seen)), encode_integer(0)]))
    if stream is None:
        stream = ctx.new_stream(name)
    ms, seq = stream.next_id(ctx.now_ms)
    if ms == 0 and seq == 0:
        raise CommandError(EXHAUSTED)
    outcome = append(ctx, name, stream, ms, seq, argv, options.fields_at)
    outcome.reply = encode_array([outcome.reply, encode_integer(1)])
    if publish_id is not None:
        remember(ctx, name, stream, publish_id, ms << 64 | seq, options, outcome)
    return outcome


def parse_add(argv: list[bytes]) -> AddOptions:
    options = AddOptions()
    index = 2
    while index + 1 < len(argv):
        option = argv[index].upper()
        value = argv[index + 1]
        if option == b"FIELDS":
            words = parse_integer(value, FIELDS)
            if words < 2 or words % 2 or words != len(argv) - index - 2:
                raise CommandError(FIELDS)
            options.fields_at = index + 2
            break
        if option == b"ID" and options.publish_id is None:
            if not value:
                raise CommandError("ERR ID must not be empty")
            options.publish_id = value
        elif option == b"WINDOW" and not options.window_ms:
            options.window_ms = parse_within(value, 1, MAX_INTEGER, "ERR WINDOW must be positive")
        elif option == b"MAX" and not options.limit:
            options.limit = parse_within(value, 1, MAX_INTEGER, "ERR MAX must be positive")
        elif option == b"AT":
            raise CommandError("ERR AT is not supported: HR.ADD adds at once")
        else:
            raise CommandError(SYNTAX)
        index += 2
    if not options.fields_at:
        raise CommandError(SYNTAX)
    given = [options.publish_id is not None, options.window_ms > 0, options.limit > 0]
    if any(given) and not all(given):
        raise CommandError("ERR ID, WINDOW and MAX must be given together")
    return options


def remember(
    ctx: Call, name: bytes, stream: Stream, publish_id: bytes, entry_id: int, options: AddOptions, outcome: Outcome
) -> None:
    known = stream.publish_ids
    if known is None:
        known = PublishIds()
        stream.publish_ids = known
    surplus = known.count_surplus(publish_id, ctx.now_ms, options.window_ms, options.limit)
    known.add(publish_id, entry_id, ctx.now_ms, surplus)
    if ctx.journaling and outcome.record is not None:
        outcome.record += encode_record(
            PUBLISH_ID, ctx.db.number, name, publish_id, name_of(entry_id), b"%d" % ctx.now_ms, b"%d" % surplus
        )


@command(
    "HR.TRIM", key("RW delete", "stream"),
    oneof("strategy", text("id", "MINID"), integer("count", "MAXLEN")), optional(word("DRYRUN")),
    group="headrace", flags="write", categories="stream", since="0.1.0",
    complexity="O(N) with N groups, and the entries removed",
    summary="Remove the oldest entries, but none that a group still needs.",
)  # fmt: skip
def hr_trim(ctx: Call, argv: list[bytes]) -> Outcome:
    """MINID asks to remove what is below an ID, MAXLEN to keep the newest entries only. Trimming is exact.

    A group needs everything from its lowest pending entry on, or from the first it has not been given; pending IDs
    whose entries are gone do not count. The reply is how many entries went; the ID reached, below which nothing is
    left; and the group that holds the trim back, or nil when all that was asked for is gone. Of several groups the one
    that needs the oldest entries is named. The ID reached is never above what some group needs, even when there is no
    entry in between.

    With DRYRUN nothing changes, and the reply is what it would be.
    """
    min_id, max_length, is_dry = parse_trim(argv)
    stream = ctx.find_stream(argv[1])
    if stream is None:
        return Outcome(encode_array([encode_integer(0), encode_bulk(b"0-0"), encode_null(resp3=ctx.resp3)]))
    wanted = stream.first_kept(max_length) if max_length >= 0 else min_id
    cut = wanted
    holder = encode_null(resp3=ctx.resp3)
    if stream.groups:
        needed, group = stream.slowest_group()
        if needed < wanted:
            cut = needed
            found, _ = stream.read_range(needed, wanted - 1, 1)
            if found:
                holder = encode_bulk(group)
    removed = stream.count_below(cut) if is_dry else stream.trim_below(cut)
    reply = encode_array([encode_integer(removed), encode_bulk(name_of(min(cut, MAX_ID))), holder])
    if is_dry or not removed:
        return Outcome(reply)
    ctx.notify(STREAM, b"xtrim", argv[1])
    return Outcome(reply, encode_record(TRIM, ctx.db.number, argv[1], name_of(cut)) if ctx.journaling else CHANGED)


def parse_trim(argv: list[bytes]) -> tuple[int, int, bool]:
    """The lowest ID to keep, or how many entries (-1: by ID), and whether to pretend only."""
    is_dry = len(argv) == 5 and argv[4].upper() == b"DRYRUN"
    if len(argv) > 5 or (len(argv) == 5 and not is_dry):
        raise CommandError(SYNTAX)
    strategy = argv[2].upper()
    if strategy == b"MINID":
        return parse_strict_id(argv[3]), -1, is_dry
    if strategy == b"MAXLEN":
        out_of_range = "ERR The MAXLEN argument must be >= 0."
        return 0, parse_within(argv[3], 0, MAX_INTEGER, out_of_range, NOT_AN_INTEGER), is_dry
    raise CommandError(SYNTAX)

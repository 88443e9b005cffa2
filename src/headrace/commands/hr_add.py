"""HR.ADD: add an entry, once for each publish id, now or later.

The steps of headrace's own client and workers are commands that begin with HR. On a plain Redis or Valkey the client
brings the same steps as functions. Everything is checked before anything changes.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.hashes import find_hash
from headrace.commands.hr_due import delay, encode_body
from headrace.commands.hr_keys import bodies_key, delayed_key
from headrace.commands.hr_steps import LAST_MS, Step
from headrace.commands.numbers import MAX_INTEGER, parse_integer, parse_within
from headrace.commands.outcome import Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.sorted_sets import find_sorted_set
from headrace.commands.spec import block, command, integer, key, many, oneof, optional, text, unix_time
from headrace.commands.streams import EXHAUSTED, append
from headrace.engine.ids import name_of
from headrace.engine.publish_ids import DELAYED, UNKNOWN, PublishIds
from headrace.engine.stream import Stream
from headrace.errors import CommandError
from headrace.journal.record import CREATE_STREAM, PUBLISH_ID, encode_record
from headrace.wire.encoder import encode_array, encode_bulk, encode_integer, encode_null

FIELDS: Final = "ERR FIELDS must be followed by an even number, 2 or more, and by exactly so many words"


class AddOptions:
    """What stands between the key and the fields of an HR.ADD."""

    __slots__ = ("publish_id", "window_ms", "limit", "due_ms", "fields_at")

    def __init__(self) -> None:
        self.publish_id: bytes | None = None
        self.window_ms = 0
        self.limit = 0
        self.due_ms = 0  # 0: at once.
        self.fields_at = 0


@command(
    "HR.ADD", key("RW update", "stream"),
    optional(block("once", text("id", "ID"), integer("window-ms", "WINDOW"), integer("max", "MAX"))),
    optional(oneof("time", unix_time("unix-time-ms", "AT"), integer("milliseconds", "DELAY"))),
    integer("words", "FIELDS"), many(block("data", text("field"), text("value"))),
    group="headrace", flags="write denyoom fast", categories="stream", since="0.1.0", complexity="O(1)",
    summary="Add an entry, once for each publish id.", tips="nondeterministic_output",
)  # fmt: skip
def hr_add(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply is the entry's ID, and 1 when it is new or 0 when it was seen before.

    With ID, an entry added with the same id in the last WINDOW milliseconds answers for this one, even when it is gone
    from the stream, and nothing is added. The stream remembers the newest MAX ids and takes them along when it is
    copied, renamed or moved. Give the same WINDOW and MAX in every call on a stream: smaller ones make it forget.

    With AT or DELAY the entry comes into the stream later: HR.DUE brings it there, never before its time. Until then
    nil stands for its ID. A time that has passed is now.

    FIELDS counts fields and values together.
    """
    options = parse_add(ctx, argv)
    name = argv[1]
    stream = ctx.find_stream(name)
    publish_id = options.publish_id
    known = stream.publish_ids if stream is not None else None
    if publish_id is not None and known is not None:
        seen = known.find(publish_id, ctx.now_ms, options.window_ms)
        if seen != UNKNOWN:
            entry = encode_null(resp3=ctx.resp3) if seen == DELAYED else encode_bulk(name_of(seen))
            return Outcome(encode_array([entry, encode_integer(0)]))
    if options.due_ms > ctx.now_ms:
        return add_later(ctx, name, stream, argv, options)
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


def add_later(ctx: Call, name: bytes, stream: Stream | None, argv: list[bytes], options: AddOptions) -> Outcome:
    """The stream is made only to remember a publish id."""
    find_sorted_set(ctx, delayed_key(name))
    find_hash(ctx, bodies_key(name))
    step = Step(ctx)
    publish_id = options.publish_id
    if publish_id is not None and stream is None:
        stream = ctx.new_stream(name)
        step.note(name, encode_record(CREATE_STREAM, ctx.db.number, name))
    delay(step, name, options.due_ms, encode_body(publish_id or b"", argv, options.fields_at))
    outcome = step.outcome(encode_array([encode_null(resp3=ctx.resp3), encode_integer(1)]))
    if publish_id is not None and stream is not None:
        remember(ctx, name, stream, publish_id, DELAYED, options, outcome)
    return outcome


def parse_add(ctx: Call, argv: list[bytes]) -> AddOptions:
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
        elif option == b"AT" and not options.due_ms:
            options.due_ms = parse_within(value, 1, LAST_MS, "ERR AT is not a time in milliseconds")
        elif option == b"DELAY" and not options.due_ms:
            options.due_ms = ctx.now_ms + parse_within(value, 0, LAST_MS, "ERR DELAY is not a number of milliseconds")
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

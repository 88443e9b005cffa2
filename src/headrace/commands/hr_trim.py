"""HR.TRIM: the oldest entries go, but none that a group still needs."""

from headrace.commands.call import Call
from headrace.commands.notifications import STREAM
from headrace.commands.numbers import MAX_INTEGER, NOT_AN_INTEGER, parse_within
from headrace.commands.outcome import CHANGED, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import command, integer, key, oneof, optional, text, word
from headrace.engine.ids import MAX_ID, name_of, parse_strict_id
from headrace.errors import CommandError
from headrace.journal.record import TRIM, encode_record
from headrace.wire.encoder import encode_array, encode_bulk, encode_integer, encode_null


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

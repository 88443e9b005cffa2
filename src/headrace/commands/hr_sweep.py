"""HR.SWEEP: consumers that went away and hold nothing."""

from headrace.commands.call import Call
from headrace.commands.hashes import find_hash
from headrace.commands.hr_keys import GroupKeys
from headrace.commands.hr_steps import Step
from headrace.commands.notifications import STREAM
from headrace.commands.numbers import MAX_INTEGER, parse_within
from headrace.commands.outcome import EMPTY_ARRAY, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.sorted_sets import find_sorted_set
from headrace.commands.spec import command, integer, key, optional, text
from headrace.errors import CommandError
from headrace.journal.record import DELETE_CONSUMER, encode_record
from headrace.wire.encoder import encode_array, encode_bulk


@command(
    "HR.SWEEP", key("RW update", "stream"), text("group"), integer("milliseconds", "IDLE"),
    optional(text("consumer", "CONSUMER")),
    group="headrace", flags="write", categories="stream", since="0.1.0", complexity="O(N) with N consumers",
    summary="Remove consumers that did nothing for so long and have nothing pending.",
)  # fmt: skip
def hr_sweep(ctx: Call, argv: list[bytes]) -> Outcome:
    """The names of those removed, in order. With CONSUMER only that one is looked at.

    When the group has nothing pending at all, records of attempts that were left behind, by a plain XACK for example,
    go as well.
    """
    if len(argv) not in (5, 7) or argv[3].upper() != b"IDLE" or (len(argv) == 7 and argv[5].upper() != b"CONSUMER"):
        raise CommandError(SYNTAX)
    idle_ms = parse_within(argv[4], 0, MAX_INTEGER, "ERR IDLE must not be negative")
    stream = ctx.find_stream(argv[1])
    group = stream.groups.get(argv[2]) if stream is not None else None
    if group is None:
        return EMPTY_ARRAY
    keys = GroupKeys(argv[1], argv[2])
    due = find_sorted_set(ctx, keys.due)
    attempts = find_hash(ctx, keys.attempts)
    step = Step(ctx)
    removed: list[bytes] = []
    for name in [argv[6]] if len(argv) == 7 else sorted(group.consumers):
        consumer = group.consumers.get(name)
        if consumer is None or ctx.now_ms - consumer.seen_ms < idle_ms or consumer.count_pending():
            continue
        group.delete_consumer(name)
        removed.append(name)
        ctx.notify(STREAM, b"xgroup-delconsumer", argv[1])
        step.is_changed = True
        if ctx.journaling:
            step.records.append(encode_record(DELETE_CONSUMER, ctx.db.number, argv[1], argv[2], name))
    if not group.pending:
        step.remove_scores(keys.due, list(due.scores) if due is not None else [])
        step.remove_fields(keys.attempts, list(attempts) if attempts is not None else [])
    return step.outcome(encode_array([encode_bulk(name) for name in removed]))

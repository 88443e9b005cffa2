"""HR.SWEEP: consumers that went away and hold nothing."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.hashes import find_hash
from headrace.commands.hr_endings import acknowledge
from headrace.commands.hr_keys import GroupKeys
from headrace.commands.hr_steps import Step
from headrace.commands.notifications import STREAM
from headrace.commands.numbers import MAX_INTEGER, parse_within
from headrace.commands.outcome import EMPTY_ARRAY, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.sorted_sets import find_sorted_set
from headrace.commands.spec import command, integer, key, optional, text
from headrace.engine.delivery import Consumer
from headrace.engine.group import Group
from headrace.engine.ids import MAX_ID, id_of
from headrace.engine.stream import Stream
from headrace.errors import CommandError
from headrace.journal.record import DELETE_CONSUMER, encode_record
from headrace.wire.encoder import encode_array, encode_bulk

MOST_LOOKED_AT: Final = 100  # Pending entries in one call.


@command(
    "HR.SWEEP", key("RW update", "stream"), text("group"), integer("milliseconds", "IDLE"),
    optional(text("consumer", "CONSUMER")),
    group="headrace", flags="write", categories="stream", since="0.1.0", complexity="O(N) with N consumers",
    summary="Remove consumers that did nothing for so long and have nothing pending.",
)  # fmt: skip
def hr_sweep(ctx: Call, argv: list[bytes]) -> Outcome:
    """The names of those removed, in order. With CONSUMER only that one is looked at.

    What such a consumer has pending and what is gone from the stream is dropped first, with its records, up to a
    hundred entries a call: nobody can claim it, as XREADGROUP with CLAIM passes over deleted entries.

    When the group has nothing pending at all, records of attempts that were left behind, by a plain XACK for example,
    go as well.
    """
    if len(argv) not in (5, 7) or argv[3].upper() != b"IDLE" or (len(argv) == 7 and argv[5].upper() != b"CONSUMER"):
        raise CommandError(SYNTAX)
    idle_ms = parse_within(argv[4], 0, MAX_INTEGER, "ERR IDLE must not be negative")
    stream = ctx.find_stream(argv[1])
    group = stream.groups.get(argv[2]) if stream is not None else None
    if stream is None or group is None:
        return EMPTY_ARRAY
    keys = GroupKeys(argv[1], argv[2])
    due = find_sorted_set(ctx, keys.due)
    attempts = find_hash(ctx, keys.attempts)
    step = Step(ctx)
    removed: list[bytes] = []
    gone: list[bytes] = []
    room = MOST_LOOKED_AT
    for name in [argv[6]] if len(argv) == 7 else sorted(group.consumers):
        consumer = group.consumers.get(name)
        if consumer is None or ctx.now_ms - consumer.seen_ms < idle_ms:
            continue
        if room > 0 and consumer.count_pending():
            room -= drop_gone(step, argv, stream, group, consumer, gone, room)
        if consumer.count_pending():
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
    elif gone:
        step.remove_scores(keys.due, gone)
        step.remove_fields(keys.attempts, gone)
    return step.outcome(encode_array([encode_bulk(name) for name in removed]))


def drop_gone(
    step: Step, argv: list[bytes], stream: Stream, group: Group, consumer: Consumer, gone: list[bytes], most: int
) -> int:
    """What the consumer has pending and is no longer in the stream. How many entries were looked at."""
    names = group.pending_between(0, MAX_ID, most, consumer)
    found = [name for name in names if stream.find(id_of(name)) is None]
    if found:
        acknowledge(step, argv[1], argv[2], stream, group, found, keeps=True)
        gone += found
    return len(names)

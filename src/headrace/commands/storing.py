"""How commands store a whole result under a key: ZUNIONSTORE, SINTERSTORE, ZRANGESTORE and the like."""

from headrace.commands.call import Call
from headrace.commands.notifications import GENERIC, SET, SORTED_SET
from headrace.commands.outcome import CHANGED, ZERO, Outcome
from headrace.engine.dump import dump_value
from headrace.engine.sorted_set import SortedSet
from headrace.journal.record import PUT, REMOVE, encode_record
from headrace.wire.encoder import encode_integer


def store_result(ctx: Call, name: bytes, result: set[bytes] | SortedSet, event: bytes) -> Outcome:
    """Put the result in place of whatever the key held; an empty one deletes the key. The reply is its size."""
    before = ctx.find(name)  # An expired value there goes first.
    if not len(result):
        if before is None:
            return ZERO
        ctx.db.delete(name)
        ctx.touch(name)
        ctx.notify(GENERIC, b"del", name)
        return Outcome(ZERO.reply, encode_record(REMOVE, ctx.db.number, name) if ctx.journaling else CHANGED, name)
    ctx.db.put(name, result)
    ctx.touch(name)
    ctx.notify(SORTED_SET if isinstance(result, SortedSet) else SET, event, name)
    record = CHANGED
    if ctx.journaling:
        record = encode_record(PUT, ctx.db.number, name, dump_value(result), b"0")
    return Outcome(encode_integer(len(result)), record, name)

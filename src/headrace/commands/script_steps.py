"""What the known scripts do, as steps of the broker: locks of redis-py, and bindings of Celery's transport (kombu).

A step checks everything first, so that a refused one has changed nothing.

A **lock** is a string that holds its owner's token. Each step has the lock as its key and the token as its first
argument.

A **binding table** is a set; a queue that may vanish keeps its table alive by a deadline in a sorted set. Whoever
consumes such a queue moves the deadline on, and now and then sweeps the tables whose deadline has passed.
"""

from typing import final

from headrace.commands.call import Call
from headrace.commands.expiry import set_expiry
from headrace.commands.keys import delete_keys
from headrace.commands.numbers import parse_integer, parse_positive
from headrace.commands.outcome import ZERO, Outcome
from headrace.commands.sets import find_set, sadd
from headrace.commands.sorted_sets import find_sorted_set, zadd, zrem
from headrace.commands.strings import find_string
from headrace.engine.keyspace import WRONG_TYPE
from headrace.errors import CommandError
from headrace.wire.encoder import encode_integer, encode_null

# Locks


def release(ctx: Call, keys: list[bytes], arguments: list[bytes]) -> Outcome:
    """Give the lock back. 0 when it is not, or no longer, the owner's."""
    return delete_keys(ctx, [b"DEL", keys[0]]) if is_owner(ctx, keys[0], arguments) else ZERO


def extend(ctx: Call, keys: list[bytes], arguments: list[bytes]) -> Outcome:
    """Keep the lock longer, by some milliseconds; counted from now unless the third argument is 0."""
    name = keys[0]
    duration_ms = parse_integer(arguments[1])
    if not is_owner(ctx, name, arguments) or name not in ctx.db.expires_ms:
        return ZERO
    if arguments[2] == b"0":
        duration_ms += ctx.db.expires_ms[name] - ctx.now_ms
    return set_expiry(ctx, [b"PEXPIRE", name, b"%d" % duration_ms], "pexpire", 1, ctx.now_ms)


def reacquire(ctx: Call, keys: list[bytes], arguments: list[bytes]) -> Outcome:
    """Hold the lock for as long again as at first."""
    if not is_owner(ctx, keys[0], arguments):
        return ZERO
    return set_expiry(ctx, [b"PEXPIRE", keys[0], arguments[1]], "pexpire", 1, ctx.now_ms)


def is_owner(ctx: Call, name: bytes, arguments: list[bytes]) -> bool:
    return find_string(ctx, name) == arguments[0]


# Bindings


def refresh_binding(ctx: Call, keys: list[bytes], arguments: list[bytes]) -> Outcome:
    """Keys: the table, the deadlines. Arguments: what to bind, the table's exchange, how long it is good for in ms."""
    find_set(ctx, keys[0])
    find_sorted_set(ctx, keys[1])
    if keys[0] == keys[1]:
        raise CommandError(WRONG_TYPE)
    deadline_ms = ctx.now_ms + parse_positive(arguments[2])
    effects = Effects(ctx)
    effects.note(sadd(ctx, [b"SADD", keys[0], arguments[0]]))
    effects.note(zadd(ctx, [b"ZADD", keys[1], b"GT", b"%d" % deadline_ms, arguments[1]]))
    return effects.outcome(encode_null(resp3=ctx.resp3))


def sweep_bindings(ctx: Call, keys: list[bytes], arguments: list[bytes]) -> Outcome:
    """Key: the deadlines. Arguments: before an exchange's table, before its permanent bindings, how many to sweep."""
    limit = parse_positive(arguments[2])
    deadlines = find_sorted_set(ctx, keys[0])
    if deadlines is None:
        return ZERO
    overdue = deadlines.pairs(0, min(limit, deadlines.rank_of_score(float(ctx.now_ms), after=True)))
    effects = Effects(ctx)
    for _, exchange in overdue:
        if ctx.find(arguments[1] + exchange) is None:
            effects.note(delete_keys(ctx, [b"DEL", arguments[0] + exchange]))
        effects.note(zrem(ctx, [b"ZREM", keys[0], exchange]))
    return effects.outcome(encode_integer(len(overdue)))


@final
class Effects:
    """What several commands changed, as the effect of one."""

    __slots__ = ("ctx", "records")

    def __init__(self, ctx: Call) -> None:
        self.ctx = ctx
        self.records: list[bytes] = []

    def note(self, outcome: Outcome) -> None:
        if outcome.record is not None:
            self.records.append(outcome.record)
        if outcome.wake is not None:
            self.ctx.wake(self.ctx.db.number, outcome.wake)

    def outcome(self, reply: bytes) -> Outcome:
        if not self.records:
            return Outcome(reply)
        self.ctx.state.changes += len(self.records) - 1
        return Outcome(reply, b"".join(self.records))

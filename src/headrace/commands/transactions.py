"""MULTI, EXEC, DISCARD, WATCH, UNWATCH.

Between MULTI and EXEC the dispatcher queues commands instead of running them. EXEC runs them one after the other with
nothing in between; nothing inside a transaction waits. A watched key that changed before EXEC cancels it.
"""

from headrace.commands.call import Call
from headrace.commands.dispatch import check, count_error, describe_fault, run
from headrace.commands.outcome import OK, Outcome
from headrace.commands.spec import command, key, many
from headrace.errors import CommandError
from headrace.wire.encoder import encode_array, encode_error, encode_null_array


@command(
    "MULTI", group="transactions", flags="noscript loading stale fast allow_busy", since="1.2.0", complexity="O(1)",
    summary="Begin a transaction.",
)  # fmt: skip
def multi(ctx: Call, argv: list[bytes]) -> Outcome:
    if ctx.queue is not None:
        raise CommandError("ERR MULTI calls can not be nested")
    ctx.queue = []
    ctx.queue_bytes = 0
    ctx.queue_failed = False
    ctx.refresh_gate()
    return OK


@command(
    "EXEC", group="transactions", flags="noscript loading stale skip_slowlog", since="1.2.0",
    complexity="As the queued commands.", summary="Run the commands queued since MULTI.",
)  # fmt: skip
def exec_(ctx: Call, argv: list[bytes]) -> Outcome:
    queue = ctx.queue
    if queue is None:
        raise CommandError("ERR EXEC without MULTI")
    has_failed = ctx.queue_failed
    for database, name in ctx.watching:
        ctx.state.databases[database].find(name, ctx.now_ms)  # A key whose time has come since has changed.
    ctx.state.note_expired()
    is_stale = ctx.is_stale
    ctx.discard()
    if has_failed:
        raise CommandError("EXECABORT Transaction discarded because of previous errors.")
    if is_stale:
        return Outcome(encode_null_array(resp3=ctx.resp3))
    ctx.may_block = False
    try:
        return Outcome(encode_array([run_queued(ctx, queued) for queued in queue]))
    finally:
        ctx.may_block = True


def run_queued(ctx: Call, argv: list[bytes]) -> bytes:
    command_ = check(argv)
    command_.calls += 1
    try:
        outcome = run(ctx, command_, argv)
    except CommandError as error:
        count_error(ctx.state, command_, str(error))
        return encode_error(str(error))
    except Exception as error:
        return encode_error(describe_fault(ctx.state, command_, error))
    if outcome.wake is not None:
        ctx.wake(ctx.db.number, outcome.wake)
    return outcome.reply


@command(
    "DISCARD", group="transactions", flags="noscript loading stale fast allow_busy", since="2.0.0", complexity="O(N)",
    summary="Forget the commands queued since MULTI.",
)  # fmt: skip
def discard(ctx: Call, argv: list[bytes]) -> Outcome:
    if ctx.queue is None:
        raise CommandError("ERR DISCARD without MULTI")
    ctx.discard()
    return OK


@command(
    "WATCH", many(key("RO")), group="transactions", flags="noscript loading stale fast allow_busy", since="2.2.0",
    complexity="O(1) for each key.", summary="Let the next EXEC run only if these keys stay as they are.",
)  # fmt: skip
def watch(ctx: Call, argv: list[bytes]) -> Outcome:
    if ctx.queue is not None:
        raise CommandError("ERR WATCH inside MULTI is not allowed")
    for name in argv[1:]:
        ctx.find(name)
    ctx.state.note_expired()  # First: a key whose time has come is missing already and does not change by going.
    for name in argv[1:]:
        ctx.watch(name)
    return OK


@command(
    "UNWATCH", group="transactions", flags="noscript loading stale fast allow_busy", since="2.2.0", complexity="O(1)",
    summary="Forget all watched keys.",
)  # fmt: skip
def unwatch(ctx: Call, argv: list[bytes]) -> Outcome:
    ctx.unwatch()
    return OK

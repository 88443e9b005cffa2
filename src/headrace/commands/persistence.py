"""SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE: a checkpoint of everything, after which the journal begins anew. SHUTDOWN.

Nothing depends on them: every write is in the journal before it is answered. They only make the next start faster. The
checkpoint is written beside the clients' work; SAVE, too, keeps nobody else waiting.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.outcome import NOTHING, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import added, command, optional, word
from headrace.engine.waiters import NO_TIME, Waiter
from headrace.errors import CommandError
from headrace.wire.encoder import encode_integer

NO_FOLDER: Final = "ERR nothing is kept on disk: the broker was started with --memory"
FULL: Final = "ERR there is no room on the disk"


def want_checkpoint(ctx: Call, busy: str) -> None:
    """Ask for a checkpoint, or say why there can be none."""
    keeping = ctx.state.keeping
    if not keeping.is_durable:
        raise CommandError(NO_FOLDER)
    if keeping.is_full:
        raise CommandError(FULL)
    if keeping.is_saving or keeping.is_wanted:
        raise CommandError(busy)
    keeping.is_wanted = True


@command(
    "SAVE",
    group="server", flags="no_async_loading admin noscript no_multi", since="1.0.0",
    complexity="O(N) with N keys, and the entries added to streams since the last time",
    summary="Write a checkpoint, and answer when it is on the disk.",
)  # fmt: skip
def save(ctx: Call, argv: list[bytes]) -> Outcome:
    """Other clients are served meanwhile. With --memory it is refused: there is no folder."""
    want_checkpoint(ctx, "ERR Background save already in progress")
    ctx.state.keeping.savers.append(ctx.id)
    ctx.blocked_on = Waiter(ctx.id, ctx.db.number, [], argv, NO_TIME, NO_TIME)
    return NOTHING


@command(
    "BGSAVE", optional(added("3.2.2", word("SCHEDULE"))),
    group="server", flags="no_async_loading admin noscript", since="1.0.0", complexity="O(1)",
    summary="Begin to write a checkpoint.",
)  # fmt: skip
def bgsave(ctx: Call, argv: list[bytes]) -> Outcome:
    """SCHEDULE makes no difference. With --memory it is refused: there is no folder."""
    if len(argv) > 2 or (len(argv) == 2 and argv[1].upper() != b"SCHEDULE"):
        raise CommandError(SYNTAX)
    want_checkpoint(ctx, "ERR Background save already in progress")
    return Outcome(b"+Background saving started\r\n")


@command(
    "BGREWRITEAOF",
    group="server", flags="no_async_loading admin noscript", since="1.0.0", complexity="O(1)",
    summary="Begin to write a checkpoint; the journal before it goes.",
)  # fmt: skip
def bgrewriteaof(ctx: Call, argv: list[bytes]) -> Outcome:
    want_checkpoint(ctx, "ERR Background append only file rewriting already in progress")
    return Outcome(b"+Background append only file rewriting started\r\n")


@command(
    "LASTSAVE",
    group="server", flags="loading stale fast", categories="admin dangerous", since="1.0.0", complexity="O(1)",
    summary="When the last checkpoint was finished, in seconds since 1970.", tips="nondeterministic_output",
)  # fmt: skip
def lastsave(ctx: Call, argv: list[bytes]) -> Outcome:
    """Before the first one, when the broker was started."""
    return Outcome(encode_integer(ctx.state.keeping.last_save_s))


@command(
    "SHUTDOWN", optional(word("NOSAVE")), optional(word("SAVE")), optional(word("NOW")), optional(word("FORCE")),
    optional(word("ABORT")),
    group="server", flags="admin noscript loading stale no_multi allow_busy", since="1.0.0", complexity="O(1)",
    summary="Refused: a broker is stopped where it runs.",
)  # fmt: skip
def shutdown(ctx: Call, argv: list[bytes]) -> Outcome:
    """One client must not be able to stop what others depend on."""
    raise CommandError("ERR clients cannot stop this broker: end its process with Ctrl-C or SIGTERM")

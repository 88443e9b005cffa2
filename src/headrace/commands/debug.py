"""DEBUG: for tests of the broker itself. Refused unless it was started with --enable-debug-command.

Only what test suites of Redis ask for and what makes sense here. RELOAD and LOADAOF leave a wish in `State.keeping`;
the server sees to it between two turns, with all clients connected.
"""

from collections.abc import Callable
from typing import Final

from headrace.commands.call import Call
from headrace.commands.help import help_reply
from headrace.commands.numbers import parse_float
from headrace.commands.outcome import NOTHING, OK, Outcome
from headrace.commands.output_limits import parse_size
from headrace.commands.persistence import FULL, NO_FOLDER
from headrace.commands.spec import command, many, optional, text
from headrace.engine.waiters import NO_TIME, Waiter
from headrace.errors import CommandError

REFUSAL: Final = "ERR DEBUG command not allowed. Start the broker with --enable-debug-command to allow it."
LONGEST_SLEEP_S: Final = 3600.0
LARGEST_THRESHOLD: Final = 4 * 1024**3  # As in Redis.
SHOWN: Final = 128  # Characters of an unknown word that an error repeats.


@command(
    "DEBUG", text("subcommand"), optional(many(text("argument"))),
    group="server", flags="admin noscript loading stale", since="1.0.0", complexity="As the subcommand.",
    summary="For tests of the broker itself.",
)  # fmt: skip
def debug(ctx: Call, argv: list[bytes]) -> Outcome:
    """Refused unless the broker was started with `--enable-debug-command`.

    `RELOAD` writes a checkpoint, forgets everything in memory, and loads the folder as a start does. `LOADAOF` does the
    same without a new checkpoint: the last one is loaded, and the journal behind it replayed. Clients stay connected.
    Once DEBUG is allowed, journal and checkpoints exist also with --memory: in memory.

    `SLEEP seconds` stops the whole broker for so long. `SET-ACTIVE-EXPIRE 0|1` says whether keys whose time has come
    are removed before somebody asks for them. `QUICKLIST-PACKED-THRESHOLD size` is accepted, without effect: lists have
    one form only.
    """
    if not ctx.state.debugging.is_allowed:
        raise CommandError(REFUSAL)
    handler = HANDLERS.get((argv[1].upper(), len(argv)))
    if handler is None:
        asked = argv[1][:SHOWN].decode("utf-8", "surrogateescape")
        raise CommandError(f"ERR unknown subcommand or wrong number of arguments for '{asked}'. Try DEBUG HELP.")
    return handler(ctx, argv)


def reload(ctx: Call, argv: list[bytes]) -> Outcome:
    return load_again(ctx, argv, saves=True)


def load_aof(ctx: Call, argv: list[bytes]) -> Outcome:
    return load_again(ctx, argv, saves=False)


def load_again(ctx: Call, argv: list[bytes], *, saves: bool) -> Outcome:
    """The client waits until the server has done it."""
    keeping = ctx.state.keeping
    if not ctx.may_block:
        raise CommandError(f"ERR DEBUG {argv[1].decode().upper()} cannot run inside a transaction")
    if not keeping.is_durable:
        raise CommandError(NO_FOLDER)
    if keeping.is_full:
        raise CommandError(FULL)
    keeping.reloads.append((ctx.id, saves))
    ctx.blocked_on = Waiter(ctx.id, ctx.db.number, [], argv, NO_TIME, NO_TIME)
    return NOTHING


def sleep(ctx: Call, argv: list[bytes]) -> Outcome:
    seconds = parse_float(argv[2])
    if not 0 <= seconds <= LONGEST_SLEEP_S:
        raise CommandError(f"ERR DEBUG SLEEP takes 0 to {LONGEST_SLEEP_S:.0f} seconds")
    ctx.now_ms = ctx.state.debugging.sleep(seconds)
    return OK


def set_active_expire(ctx: Call, argv: list[bytes]) -> Outcome:
    if argv[2] not in (b"0", b"1"):
        raise CommandError("ERR DEBUG SET-ACTIVE-EXPIRE takes 0 or 1")
    ctx.state.debugging.expires_actively = argv[2] == b"1"
    return OK


def set_packed_threshold(ctx: Call, argv: list[bytes]) -> Outcome:
    size = parse_size(argv[2].decode("utf-8", "surrogateescape"))
    if size < 0:
        raise CommandError("ERR argument must be a memory value")
    if size > LARGEST_THRESHOLD:
        raise CommandError("ERR argument cannot be bigger than 4gb")
    return OK


def show_help(ctx: Call, argv: list[bytes]) -> Outcome:
    return help_reply(
        "DEBUG",
        [
            "LOADAOF", "    Forget everything in memory; load the last checkpoint and replay the journal.",
            "QUICKLIST-PACKED-THRESHOLD <size>", "    Accepted, without effect.",
            "RELOAD", "    Write a checkpoint, forget everything in memory, and load it again.",
            "SET-ACTIVE-EXPIRE <0|1>", "    Whether keys are removed before somebody asks for them.",
            "SLEEP <seconds>", "    Stop the whole broker for so long. Decimals are allowed.",
        ],
    )  # fmt: skip


# By name and number of words.
HANDLERS: Final[dict[tuple[bytes, int], Callable[[Call, list[bytes]], Outcome]]] = {
    (b"RELOAD", 2): reload,
    (b"LOADAOF", 2): load_aof,
    (b"SLEEP", 3): sleep,
    (b"SET-ACTIVE-EXPIRE", 3): set_active_expire,
    (b"QUICKLIST-PACKED-THRESHOLD", 3): set_packed_threshold,
    (b"HELP", 2): show_help,
}

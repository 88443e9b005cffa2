"""SAVE and SHUTDOWN, which administrators of Redis know. Both are refused, with what to do instead."""

from headrace.commands.call import Call
from headrace.commands.outcome import Outcome
from headrace.commands.spec import command, optional, word
from headrace.errors import CommandError


@command(
    "SAVE",
    group="server", flags="admin noscript no_multi", since="1.0.0", complexity="O(1)",
    summary="Refused: this broker keeps its data in memory only.",
)  # fmt: skip
def save(ctx: Call, argv: list[bytes]) -> Outcome:
    raise CommandError("ERR nothing is saved: this broker keeps its data in memory only")


@command(
    "SHUTDOWN", optional(word("NOSAVE")), optional(word("SAVE")), optional(word("NOW")), optional(word("FORCE")),
    optional(word("ABORT")),
    group="server", flags="admin noscript loading stale no_multi allow_busy", since="1.0.0", complexity="O(1)",
    summary="Refused: a broker is stopped where it runs.",
)  # fmt: skip
def shutdown(ctx: Call, argv: list[bytes]) -> Outcome:
    """One client must not be able to stop what others depend on."""
    raise CommandError("ERR clients cannot stop this broker: end its process with Ctrl-C or SIGTERM")

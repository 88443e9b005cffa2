"""The reply of every HELP subcommand, in the shape Redis gives it: one simple string per line."""

from headrace.commands.outcome import Outcome
from headrace.wire.encoder import encode
from headrace.wire.values import Status, Value


def help_reply(name: str, lines: list[str]) -> Outcome:
    """Help for a command with subcommands.

    `lines` alternates syntax and explanation, the latter indented by four blanks:
    ["ID", "    Tell the number of this connection."].
    """
    head = f"{name.upper()} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    shown: list[Value] = [Status(line) for line in [head, *lines, "HELP", "    Print this help."]]
    return Outcome(encode(shown, resp3=False))  # Simple strings in an array look the same in both protocols.

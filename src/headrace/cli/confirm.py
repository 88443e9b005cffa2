"""Asking before something is destroyed.

On a terminal the question comes on stderr and only "y" or "yes" goes on. Without a terminal nobody can answer, so the
command wants --yes.
"""

import sys

from headrace.cli.usage import WrongUsage
from headrace.errors import Refused


def confirm(what: str, *, yes: bool) -> None:
    """Returns when it may be done. `what` follows "this will": "remove 3 entries of 'orders'"."""
    if yes:
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise WrongUsage(f"this will {what}; add --yes to do it without being asked.")
    print(f"This will {what}. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("nothing was changed.")


def is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())

"""headrace with commands that have a fault: `python -m support.faulty_commands serve ...`.

A value that contains `fault` makes APPEND change the key and fail before anybody can be told, and GET and XREAD fail.
"""

from __future__ import annotations

import headrace.commands.table  # noqa: F401  # Importing it declares every command.
from headrace.cli.main import run
from headrace.commands.call import Call
from headrace.commands.outcome import Outcome
from headrace.commands.spec import TABLE, Handler

WORD = b"fault"


def spoil(name: bytes, *, is_write: bool) -> None:
    command = TABLE[name]
    sound = command.handler
    assert sound is not None

    def faulty(ctx: Call, argv: list[bytes]) -> Outcome:
        handler: Handler = sound
        outcome = handler(ctx, argv)
        if WORD in (argv[-1] if is_write else outcome.reply):
            raise KeyError("a fault made for a test")
        return outcome

    command.handler = faulty


spoil(b"APPEND", is_write=True)
spoil(b"GET", is_write=False)
spoil(b"XREAD", is_write=False)
if __name__ == "__main__":
    run()

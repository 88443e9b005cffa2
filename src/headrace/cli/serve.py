"""headrace serve: run a broker until it is told to stop.

Only options and words live here; headrace.server.broker does the work. Everything is said on stderr: one line when
clients may connect, one sentence when the broker cannot start.
"""

import os
from typing import Annotated

import typer

from headrace.cli.exit_codes import USAGE
from headrace.cli.output import say

# The next number after Redis's own 6379 that is easy to remember; both can run on one machine.
DEFAULT_PORT = 7379


def serve(
    memory: Annotated[
        bool, typer.Option("--memory", help="Keep everything in memory; required in this version.")
    ] = False,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="TCP port.")] = DEFAULT_PORT,
    unixsocket: Annotated[str | None, typer.Option(metavar="PATH", help="Listen on this Unix socket as well.")] = None,
) -> None:
    """Run a broker in the foreground. SIGTERM and Ctrl-C stop it cleanly."""
    if not memory:
        say("only --memory exists in this version: nothing would be kept on disk. Run: headrace serve --memory")
        raise typer.Exit(USAGE)

    from headrace.server import broker

    def ready(url: str) -> None:
        say(f"ready at {url} · pid {os.getpid()} · {broker.build_name()} build · in memory, gone when it stops")

    broker.serve(broker.Settings(host=host, port=port, unixsocket=unixsocket), ready)

"""headrace serve: run a broker until it is told to stop.

Only options and words live here; headrace.server.broker does the work. Everything is said on stderr: one line when
clients may connect, one sentence when the broker cannot start.
"""

import os
from enum import StrEnum
from typing import Annotated

import typer

from headrace.cli.output import say
from headrace.cli.usage import WrongUsage

# The next number after Redis's own 6379 that is easy to remember; both can run on one machine.
DEFAULT_PORT = 7379


DEFAULT_FOLDER = "headrace-data"


class Fsync(StrEnum):
    """When a write is on the disk for sure."""

    always = "always"
    everysec = "everysec"
    no = "no"


def serve(
    folder: Annotated[
        str | None,
        typer.Option("--dir", metavar="DIR", help=f"Keep the data in this folder.  [default: ./{DEFAULT_FOLDER}]"),
    ] = None,
    fsync: Annotated[
        Fsync | None,
        typer.Option(
            metavar="always|everysec|no",
            help="Sync before every reply, once a second, or when the system likes.  [default: always]",
        ),
    ] = None,
    memory: Annotated[bool, typer.Option("--memory", help="Keep nothing: all is gone when it stops.")] = False,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="TCP port.")] = DEFAULT_PORT,
    unixsocket: Annotated[str | None, typer.Option(metavar="PATH", help="Listen on this Unix socket as well.")] = None,
    enable_debug_command: Annotated[
        bool, typer.Option("--enable-debug-command", help="Allow DEBUG, for tests: any client can stop the broker.")
    ] = False,
) -> None:
    """Run a broker in the foreground. SIGTERM and Ctrl-C stop it cleanly."""
    if memory and (folder is not None or fsync is not None):
        raise WrongUsage("--memory keeps nothing, so it goes neither with --dir nor with --fsync.")
    if folder == "":
        raise WrongUsage("--dir needs the name of a folder.")

    from headrace.server import broker

    policy = (fsync or Fsync.always).value
    path = None if memory else folder or DEFAULT_FOLDER
    kept = "in memory, gone when it stops" if path is None else f"kept in {path}, fsync {policy}"

    def ready(url: str) -> None:
        say(f"ready at {url} · pid {os.getpid()} · {broker.build_name()} build · {kept}")

    settings = broker.Settings(
        host=host, port=port, unixsocket=unixsocket, folder=path, fsync=policy, allows_debug=enable_debug_command
    )
    broker.serve(settings, ready, say)

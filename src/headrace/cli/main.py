"""The headrace command: its subcommands and how it ends.

Subcommands import what they need when they run, so that `headrace --help` stays quick. Errors that a user can cause
arrive here as HeadraceError and become one line on stderr and an exit code; anything else is a bug and keeps its
traceback. The codes are in exit_codes.py.
"""

import errno
import os
import sys
from shlex import quote
from typing import Annotated, Any

import typer

from headrace.cli import (
    ack,
    backup,
    check,
    claim,
    dlq,
    groups,
    ordered,
    pending,
    pipeline,
    publish,
    queues,
    restore,
    serve,
    streams,
    tail,
    worker,
)
from headrace.cli.exit_codes import CANNOT_CONNECT, CLOSED_PIPE, FAILURE, INTERRUPTED, NOT_FOUND, OK, USAGE
from headrace.cli.output import ClosedPipe, say
from headrace.cli.usage import Command, Url, WrongUsage
from headrace.errors import CommandError, ConnectionLost, HeadraceError, NotFound, ProtocolError

app = typer.Typer(
    name="headrace",
    help="A message broker with Redis Streams semantics over the Redis protocol.",
    no_args_is_help=True,
    rich_markup_mode=None,  # Rich help costs 110 ms of imports; plain help keeps `headrace --help` under 200 ms.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

CODES: tuple[tuple[type[HeadraceError], int], ...] = (
    (WrongUsage, USAGE),
    (NotFound, NOT_FOUND),
    (ConnectionLost, CANNOT_CONNECT),
    (ProtocolError, CANNOT_CONNECT),
)

# What Typer raises for options and arguments it cannot read (ClickException). It exports only this subclass.
UnreadableArguments: Any = typer.BadParameter.__mro__[2]


def show_version(value: bool) -> None:
    if value:
        from headrace.cli.version import version_line

        typer.echo(version_line())
        raise typer.Exit


@app.callback()
def headrace(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback does the work.
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show version and build, then exit.")
    ] = False,
    url: Url = None,
) -> None:
    """A message broker with Redis Streams semantics over the Redis protocol."""
    if url is None:
        return
    if context.invoked_subcommand == "serve":
        raise WrongUsage("serve takes no --url: it is the broker. Give --host and --port behind it.")
    if context.invoked_subcommand == "check":
        raise WrongUsage("check takes no --url: it looks at the folder of a broker that is stopped.")
    os.environ["HEADRACE_URL"] = url  # For the command that follows, unless it has a --url of its own.


app.command("serve", cls=Command)(serve.serve)
app.command("worker", cls=Command)(worker.worker)
app.command("check", cls=Command)(check.check)
app.command("publish", cls=Command)(publish.publish)
app.command("tail", cls=Command)(tail.tail)
app.add_typer(streams.app, name="streams")
app.add_typer(groups.app, name="groups")
app.command("pending", cls=Command)(pending.pending)
app.command("claim", cls=Command)(claim.claim)
app.command("ack", cls=Command)(ack.ack)
app.add_typer(queues.app, name="queues")
app.add_typer(dlq.app, name="dlq")
app.add_typer(ordered.app, name="ordered")
app.add_typer(pipeline.app, name="pipeline")
app.command("backup", cls=Command)(backup.backup)
app.command("restore", cls=Command)(restore.restore)


def run() -> None:
    """The entry point of `headrace` and of `python -m headrace`."""
    open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # A terminal of few letters is no reason to fail.
    code = run_app()
    try:
        sys.stdout.flush()
    except OSError:
        drop_output()
        code = code or CLOSED_PIPE
    sys.exit(code)


def run_app() -> int:
    """Run the subcommand; how it ended, after saying why where it failed."""
    try:
        return app(prog_name="headrace", standalone_mode=False) or OK
    except HeadraceError as error:
        say(words_of(error))
        return next((code for kind, code in CODES if isinstance(error, kind)), FAILURE)
    except UnreadableArguments as error:
        return say_usage(error)
    except ClosedPipe:
        drop_output()
        return CLOSED_PIPE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        drop_output()
        say("cannot write the output: no space left on the device.")
        return FAILURE


def open_missing_streams() -> None:
    """Started without stdin, stdout or stderr (`>&-`), a connection would take their place and get our output."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # Each takes the lowest number that is free.
        pass
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115 - by number, and open until the end.
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115 - as above.
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115 - as above.


def words_of(error: HeadraceError) -> str:
    """The sentence, without the first word that is meant for programs: WRONGTYPE, NOGROUP, ERR.

    What is missing is told with the command that lists what there is.
    """
    if isinstance(error, NotFound) and error.stream is not None:
        if error.group is None:
            return f"there is no stream {error.stream!r}. See: headrace streams ls"
        return f"stream {error.stream!r} has no group {error.group!r}. See: headrace groups ls {quote(error.stream)}"
    text = str(error)
    if isinstance(error, NotFound) and error.prefix == "EMPTYKEY":
        return f"{text.partition('. ')[0]}. See: headrace queues ls"
    if isinstance(error, CommandError) and error.prefix == "PAUSED" and len(error.args) > 2:
        return f"{text.partition('. ')[0]}. End that: headrace queues resume {quote(str(error.args[2]))}"
    if isinstance(error, CommandError) and len(error.prefix) > 1 and error.prefix.isupper():
        return text.removeprefix(error.prefix).strip()
    return text


def say_usage(error: Any) -> int:
    """Typer's complaint as one line; a bare `headrace` or `headrace streams` shows its help instead."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return USAGE
    sentence = " ".join(error.format_message().split()).rstrip(".")
    command = error.ctx.command_path if getattr(error, "ctx", None) else "headrace"
    stop = "" if sentence.endswith("?") else "."
    say(f"{sentence}{stop} See: {command} --help")
    return int(error.exit_code)


def drop_output() -> None:
    """Nothing more is written: Python would complain at exit about what is left in the buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""The headrace command: its subcommands and how it ends.

Subcommands import what they need when they run, so that `headrace --help` stays quick. Errors that a user can cause
arrive here as HeadraceError and become one line on stderr and an exit code; anything else is a bug and keeps its
traceback. The codes are in exit_codes.py.
"""

import sys
from typing import Annotated

import typer

from headrace.cli import serve
from headrace.cli.exit_codes import FAILURE
from headrace.errors import HeadraceError

app = typer.Typer(
    name="headrace",
    help="A message broker with Redis Streams semantics over the Redis protocol.",
    no_args_is_help=True,
    rich_markup_mode=None,  # Rich help costs 110 ms of imports; plain help keeps `headrace --help` under 200 ms.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(value: bool) -> None:
    if value:
        from headrace.cli.version import version_line

        typer.echo(version_line())
        raise typer.Exit


@app.callback()
def headrace(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show version and build, then exit.")
    ] = False,
) -> None:
    """A message broker with Redis Streams semantics over the Redis protocol."""


app.command("serve")(serve.serve)


def run() -> None:
    """The entry point of `headrace` and of `python -m headrace`."""
    try:
        app(prog_name="headrace")
    except HeadraceError as error:
        print(f"headrace: {error}", file=sys.stderr)
        sys.exit(FAILURE)

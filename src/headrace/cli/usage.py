"""What users may write on the command line, checked before anything is sent.

Parsers here raise WrongUsage with a sentence that shows what was written and how to write it; main.py ends with the
code for usage then. Anything that only the broker can judge is left to it.
"""

from typing import Annotated

import typer

from headrace.errors import ConfigError, HeadraceError

LARGEST_COUNT = 2**63 - 1  # What a server can read as a number.


class WrongUsage(HeadraceError):
    """The command line cannot be understood; nothing was sent."""


def check_name(what: str, name: str) -> str:
    if not name:
        raise WrongUsage(f"the name of the {what} is empty.")
    return name


def stream_name(text: str) -> str:
    return check_name("stream", text)


def group_name(text: str) -> str:
    return check_name("group", text)


def consumer_name(text: str) -> str:
    return check_name("consumer", text)


def duration(text: str) -> str:
    """Checked only; the client takes the text."""
    from headrace.client.times import parse_duration_ms

    try:
        parse_duration_ms(text)
    except ConfigError as error:
        raise WrongUsage(str(error)) from error
    return text


def place(text: str) -> str:
    """Checked only; the client takes the text, and reckons from its own now."""
    from headrace.client.times import parse_place

    try:
        found = parse_place(text, 0)
    except ConfigError as error:
        raise WrongUsage(str(error)) from error
    if found != "$":
        entry_id(found)
    return text


def entry_id(text: str) -> str:
    """An ID with both numbers within 64 bits."""
    from headrace.client.times import ENTRY_ID

    if ENTRY_ID.fullmatch(text) is None or any(int(part) >= 2**64 for part in text.split("-")):
        raise WrongUsage(f"{text!r} is no entry ID; write one like 1690275391705-0.")
    return text


Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="The broker. Else HEADRACE_URL.")]
Stream = Annotated[str, typer.Argument(metavar="STREAM", parser=stream_name, help="Name of the stream.")]
Group = Annotated[str, typer.Argument(metavar="GROUP", parser=group_name, help="Name of the group.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
EntryIds = Annotated[
    list[str] | None, typer.Argument(metavar="ID", parser=entry_id, help="Entry IDs.", show_default=False)
]

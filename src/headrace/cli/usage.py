"""What users may write on the command line, checked before anything is sent.

Parsers here raise WrongUsage with a sentence that shows what was written and how to write it; main.py ends with the
code for usage then. Anything that only the broker can judge is left to it.
"""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from headrace.errors import ConfigError, HeadraceError

LARGEST_COUNT = 2**63 - 1  # What a server can read as a number.


class WrongUsage(HeadraceError):
    """The command line cannot be understood; nothing was sent."""


class Command(TyperCommand):
    """A subcommand. Its help names arguments without their Python types."""

    def get_help(self, ctx: Any) -> str:
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = lambda **_: ""  # type: ignore[attr-defined]
        return super().get_help(ctx)


class CommandWithPlace(Command):
    """One with a place as argument: -1h is that and no options, but -h alone is still help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--help" if word == "-h" else word for word in args])


def check_name(what: str, name: str) -> str:
    if not name:
        raise WrongUsage(f"the name of the {what} is empty.")
    return name


def stream_name(text: str) -> str:
    return check_name("stream", text)


def group_name(text: str) -> str:
    return check_name("group", text)


def queue_name(text: str) -> str:
    return check_name("queue", text)


def consumer_name(text: str) -> str:
    return check_name("consumer", text)


def duration(option: str) -> Callable[[str], str]:
    """Checked only; the client takes the text. A refusal names the option."""

    def parse(text: str) -> str:
        from headrace.client.times import parse_duration_ms

        try:
            parse_duration_ms(text, option)
        except ConfigError as error:
            raise WrongUsage(str(error)) from error
        return text

    return parse


def place(option: str) -> Callable[[str], str]:
    """Checked only; the client takes the text, and reckons from its own now. A refusal names the option."""

    def parse(text: str) -> str:
        from headrace.client.times import parse_place

        try:
            found = parse_place(text, 0, option)
        except ConfigError as error:
            raise WrongUsage(str(error)) from error
        if found != "$" and not is_entry_id(found):
            raise WrongUsage(f"{option} is {text!r}, which is no entry ID; write one like 1690275391705-0.")
        return text

    return parse


def place_or_time(option: str) -> Callable[[str], str]:
    """Checked only, as above; also a date, or a time of a day."""

    def parse(text: str) -> str:
        from datetime import datetime

        try:
            datetime.fromisoformat(text.strip())
            return text
        except ValueError:
            pass
        try:
            return place(option)(text)
        except WrongUsage:
            how = "an entry ID like 1690275391705-0, a time like 2026-11-01 or 2026-11-01T12:00:00Z, or a time back"
            raise WrongUsage(f"{option} is {text!r}; write {how} like -7d.") from None

    return parse


def entry_id(text: str) -> str:
    if not is_entry_id(text):
        raise WrongUsage(f"{text!r} is no entry ID; write one like 1690275391705-0.")
    return text


def element_id(text: str) -> str:
    if not is_entry_id(text):
        raise WrongUsage(f"{text!r} is no ID of an element; write one like 1690275391705-1.")
    return text


def is_entry_id(text: str) -> bool:
    """Both numbers within 64 bits."""
    from headrace.client.times import ENTRY_ID

    return ENTRY_ID.fullmatch(text) is not None and all(int(part) < 2**64 for part in text.split("-"))


Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="The broker. Else HEADRACE_URL, headrace.toml.")]
Stream = Annotated[str, typer.Argument(metavar="STREAM", parser=stream_name, help="Name of the stream.")]
Group = Annotated[str, typer.Argument(metavar="GROUP", parser=group_name, help="Name of the group.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
EntryIds = Annotated[
    list[str] | None, typer.Argument(metavar="ID", parser=entry_id, help="Entry IDs.", show_default=False)
]

"""From --url, HEADRACE_URL or headrace.toml to a client that has reached its broker.

The client repeats what is harmless to repeat until its timeout; a person at a terminal wants to know at once that
nobody answers. So the first call is one that is not repeated.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.usage import WrongUsage
from headrace.errors import AccessDenied, ConfigError

if TYPE_CHECKING:
    from headrace.client.client import Client


def open_client(url: str | None) -> "Client":
    """A client whose broker answers. A ConfigError of the URL is wrong usage; Unreachable comes at once."""
    from headrace.cli.output import say
    from headrace.client.client import Client
    from headrace.client.settings import find_url

    try:
        named = url or os.environ.get("HEADRACE_URL") or find_url() or ""
    except ConfigError as error:
        raise WrongUsage(str(error)) from error
    if not named:
        raise WrongUsage(
            "no URL: give --url, like --url headrace://localhost:7379, set HEADRACE_URL, or write it to headrace.toml."
        )
    if named == "embedded:":
        raise WrongUsage(
            "embedded: is a broker inside one process, in memory: this command would find nothing there and leave "
            'nothing behind. Name a folder, embedded:./data, or start one with "headrace serve" and give its URL.'
        )
    try:
        missing = missing_folder(named)
        client = Client(url)
    except ConfigError as error:
        raise WrongUsage(str(error)) from error
    if missing:
        say(f"there was no folder {missing!r}; it was made.")  # Perhaps the name was mistyped.
    try:
        client.command("PING")
    except AccessDenied:
        pass  # A user may be allowed everything but PING. A wrong password shows again at the next call.
    except BaseException:
        client.close()
        raise
    return client


def missing_folder(url: str) -> str:
    """The folder of an embedded: URL that is going to be made."""
    from headrace.client.urls import parse_url

    target = parse_url(url)
    try:
        return target.path if target.kind == "embedded" and not Path(target.path).exists() else ""
    except OSError:  # The client says it better.
        return ""

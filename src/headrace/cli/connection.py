"""From --url, HEADRACE_URL or headrace.toml to a client that has reached its broker.

The client repeats what is harmless to repeat until its timeout; a person at a terminal wants to know at once that
nobody answers. So the first call is one that is not repeated.
"""

import os
from typing import TYPE_CHECKING

from headrace.cli.usage import WrongUsage
from headrace.errors import AccessDenied, ConfigError

if TYPE_CHECKING:
    from headrace.client.client import Client


def open_client(url: str | None) -> "Client":
    """A client whose broker answers. A ConfigError of the URL is wrong usage; Unreachable comes at once."""
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
        client = Client(url)
    except ConfigError as error:
        raise WrongUsage(str(error)) from error
    try:
        client.command("PING")
    except AccessDenied:
        pass  # A user may be allowed everything but PING. A wrong password shows again at the next call.
    except BaseException:
        client.close()
        raise
    return client

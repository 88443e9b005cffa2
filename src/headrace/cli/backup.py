"""headrace backup: a copy of a broker's data, also while it runs."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.folders import existing_folder
from headrace.cli.usage import WrongUsage
from headrace.errors import HeadraceError, JournalError

EMBEDDED = "embedded:"
ADVICE = "Give the folder of a broker, or its URL."


def backup(
    source: Annotated[
        str, typer.Argument(metavar="URL|DIR", help="The broker, or the folder of its data.", show_default=False)
    ],
    target: Annotated[str, typer.Argument(metavar="DEST", help="A new folder for the copy.", show_default=False)],
) -> None:
    """Copy the data of a broker, also while it runs.

    The copy is the data of one moment: all that was answered before the command began is in it. It is made from the
    folder's files, so it has to be started where they are. Clients notice nothing.

    Example: headrace backup headrace-data backups/monday
    """
    from headrace.cli.output import show_facts
    from headrace.cli.progress import shown_bytes
    from headrace.clock import SystemClock
    from headrace.journal.backup import take_backup

    if not target:
        raise WrongUsage("DEST is empty; name a new folder for the copy.")
    folder = find_folder(source)
    with shown_bytes("backup") as update:
        try:
            taken = take_backup(folder, Path(target), SystemClock().now_ms, update)
        except JournalError as error:
            raise JournalError(f"no backup was made: {error}.") from error
    show_facts(
        {"backup": target, "of": taken.folder, "taken": shown_time(taken.taken_ms), "files": len(taken.files),
         "bytes": taken.size_bytes}
    )  # fmt: skip


# Where the data is


def find_folder(source: str) -> Path:
    """The folder of a broker, from its URL or its name."""
    from headrace.client.urls import parse_url

    if source.startswith(EMBEDDED):
        return existing_folder(parse_url(source).path, ADVICE)
    return ask_folder(source) if "://" in source else existing_folder(source, ADVICE)


def ask_folder(url: str) -> Path:
    """Where a running broker says its data is, if that is here."""
    from headrace.cli.connection import open_client
    from headrace.journal.lock import folder_id

    with open_client(url) as broker:
        facts = parse_info(broker.command("INFO", "server")) | parse_info(broker.command("INFO", "persistence"))
        settings = broker.command("CONFIG", "GET", "dir")
    if "headrace_version" not in facts:
        raise HeadraceError("that server is not a headrace broker; make backups with the tools of its own kind.")
    if "folder_id" not in facts:
        raise HeadraceError("that broker was started with --memory: there is nothing on a disk that could be copied.")
    folder = Path(text_of(settings[b"dir"]))
    try:
        is_here = folder_id(folder) == facts["folder_id"]
    except OSError:
        is_here = False
    if not is_here:
        raise HeadraceError(
            f"the data of that broker is in {folder} on its own machine, and cannot be read from here. "
            f"Run there: headrace backup {folder} DEST"
        )
    return folder


def parse_info(answer: Any) -> dict[str, str]:
    pairs = [line.partition(":") for line in text_of(answer).splitlines() if ":" in line]
    return {name: value for name, _, value in pairs}


def text_of(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def shown_time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""headrace restore: a data folder from a backup."""

from collections import Counter
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from headrace.cli.backup import shown_time
from headrace.cli.folders import existing_folder
from headrace.cli.usage import WrongUsage
from headrace.errors import JournalError


def restore(
    source: Annotated[str, typer.Argument(metavar="BACKUP", help="The folder of a backup.", show_default=False)],
    target: Annotated[str, typer.Argument(metavar="DIR", help="A new folder for a broker.", show_default=False)],
) -> None:
    """Make a data folder from a backup, after checking every byte of it.

    Example: headrace restore backups/monday headrace-data
    """
    from headrace.cli.output import say, show_facts
    from headrace.cli.progress import shown_bytes
    from headrace.journal.backup import check_backup, check_empty, restore_backup

    path = existing_folder(source, "Give the folder that headrace backup made.")
    if not target:
        raise WrongUsage("DIR is empty; name a new folder for the data.")
    check_empty(Path(target))
    try:
        with shown_bytes("check") as update:
            found = check_backup(path, update)
        held = count_values(path)
        with shown_bytes("restore") as update:
            restore_backup(path, Path(target), update)
    except JournalError as error:
        raise JournalError(f"nothing was restored: {error}.") from error
    show_facts({"folder": target, "backup_of": found.folder, "taken": shown_time(found.taken_ms), **held})
    say(f"start a broker with it: headrace serve --dir {quote(target)}")


def count_values(path: Path) -> dict[str, int]:
    """Load a backup as a broker would, and count what it holds."""
    from headrace.clock import SystemClock
    from headrace.commands.call import State
    from headrace.engine.keyspace import type_name
    from headrace.engine.stream import Stream
    from headrace.journal.held_files import HeldFiles
    from headrace.server.durability import Durability

    held = HeldFiles(path)
    try:
        state = State(SystemClock().now_ms())
        Durability(state, held)
    finally:
        held.close()
    values = [value for database in state.databases for value in database.values.values()]
    kinds = Counter(type_name(value) for value in values)
    entries = sum(value.length for value in values if isinstance(value, Stream))
    return {"keys": len(values), "streams": kinds["stream"], "entries": entries}

"""headrace ack: tell a group that entries are done with."""

from typing import Annotated

import typer

from headrace.cli.usage import EntryIds, Group, Stream, Url, WrongUsage, Yes, duration

BATCH = 1000  # IDs acknowledged in one call.


def ack(
    stream: Stream,
    group: Group,
    ids: EntryIds = None,
    min_idle: Annotated[
        str | None,
        typer.Option(
            "--min-idle", metavar="DURATION", parser=duration("--min-idle"), help="All that were idle so long."
        ),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete entries that no group needs any more.")] = False,
    yes: Yes = False,
    url: Url = None,
) -> None:
    """Acknowledge pending entries. Name them by ID, or take all that were idle for so long.

    Example: headrace ack orders billing 1690275391705-0
    """
    if bool(ids) == (min_idle is not None):
        raise WrongUsage("say what to acknowledge: either entry IDs, or --min-idle 5m for all that were idle so long.")

    from headrace.cli.confirm import confirm
    from headrace.cli.connection import open_client
    from headrace.cli.output import counted, show_facts

    with open_client(url) as broker:
        handle = broker.stream(stream).group(group)
        handle.info()  # The server counts 0 for a group that does not exist; a wrong name should be told.
        chosen = list(ids or ()) if min_idle is None else [entry.id for entry in handle.pending(min_idle=min_idle)]
        if chosen and (delete or min_idle is not None):
            more = ", and delete what no other group needs" if delete else ""
            entries = counted(len(chosen), "entry", "entries")
            confirm(f"acknowledge {entries} of group {group!r}, processed or not{more}", yes=yes)
        acked = sum(handle.ack(*chosen[at : at + BATCH], delete=delete) for at in range(0, len(chosen), BATCH))
    show_facts({"stream": stream, "group": group, "acked": acked, "not_pending": len(chosen) - acked})

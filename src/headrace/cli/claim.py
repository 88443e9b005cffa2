"""headrace claim: take pending entries over from a consumer that has fallen silent."""

from typing import Annotated

import typer

from headrace.cli.usage import EntryIds, Group, Stream, Url, WrongUsage, consumer_name, duration


def claim(
    stream: Stream,
    group: Group,
    ids: EntryIds = None,
    min_idle: Annotated[
        str | None,
        typer.Option(
            "--min-idle", metavar="DURATION", parser=duration("--min-idle"), help="Only what was idle so long."
        ),
    ] = None,
    consumer: Annotated[
        str | None, typer.Option(metavar="NAME", parser=consumer_name, help="Who takes them. Default: a new name.")
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="At most N entries, without IDs.")] = None,
    url: Url = None,
) -> None:
    """Take over pending entries and show them. Name them by ID, or take all that were idle for so long.

    Example: headrace claim orders billing --min-idle 5m
    """
    if not ids and min_idle is None:
        raise WrongUsage("say what to claim: entry IDs, or --min-idle 5m for all that were idle so long.")

    from headrace.cli.connection import open_client
    from headrace.cli.entries import show_claimed
    from headrace.cli.output import counted, say
    from headrace.client.flows import unique_consumer_name

    name = consumer or unique_consumer_name()
    with open_client(url) as broker:
        handle = broker.stream(stream).group(group)
        claimed = handle.claim(name, *(ids or ()), min_idle=min_idle or 0, limit=limit)
    show_claimed(name, claimed.entries)
    if claimed.deleted_ids:
        were = counted(len(claimed.deleted_ids), "more was", "more were")
        say(f"{were} pending but deleted from the stream, and no longer counted as pending.")
    if ids and len(claimed.entries) < len(set(ids)):
        were = counted(len(set(ids)) - len(claimed.entries), "of the IDs was", "of the IDs were")
        say(f"{were} not pending, or not idle for so long.")

"""headrace pending: what a group was given and has not acknowledged."""

from typing import Annotated

import typer

from headrace.cli.usage import Group, Stream, Url, consumer_name, duration

COLUMNS = ("id", "consumer", "idle_ms", "deliveries")


def pending(
    stream: Stream,
    group: Group,
    min_idle: Annotated[
        str,
        typer.Option(
            "--min-idle", metavar="DURATION", parser=duration("--min-idle"), help="Only what was idle so long: 5m."
        ),
    ] = "0s",
    consumer: Annotated[
        str | None, typer.Option(metavar="NAME", parser=consumer_name, help="Only what this one holds.")
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="At most N entries.")] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Only how many, with whom.")] = False,
    url: Url = None,
) -> None:
    """List entries that were delivered and not acknowledged.

    Example: headrace pending orders billing --min-idle 5m
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts, show_rows

    with open_client(url) as broker:
        handle = broker.stream(stream).group(group)
        if not summary:
            found = handle.pending(min_idle=min_idle, consumer=consumer, limit=limit)
            rows = ({name: getattr(entry, name) for name in COLUMNS} for entry in found)
            is_all = consumer is None and min_idle == "0s"
            show_rows(COLUMNS, rows, nothing="Nothing is pending." if is_all else "Nothing such is pending.")
            return
        total = handle.pending_summary()
    facts = {
        "stream": stream,
        "group": group,
        "pending": total.total,
        "lowest_id": total.lowest_id,
        "highest_id": total.highest_id,
        "by_consumer": [{"consumer": name, "pending": count} for name, count in total.by_consumer.items()],
    }
    show_facts(facts, more="by_consumer", columns=("consumer", "pending"))

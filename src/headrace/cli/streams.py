"""headrace streams: what streams there are, what is in one, and trimming it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.groups import GROUP_COLUMNS, group_row
from headrace.cli.usage import LARGEST_COUNT, Command, Stream, Url, WrongUsage, Yes, place
from headrace.errors import HeadraceError, NotFound, Refused, WrongType

if TYPE_CHECKING:
    from headrace.cli.output import Row
    from headrace.client.flow import Flow
    from headrace.client.requests import Request
    from headrace.client.results import StreamInfo, TrimReport

COLUMNS = ("stream", "length", "groups", "first_id", "last_id")
BATCH = 500  # Streams asked about in one go.

app = typer.Typer(help="Streams: list, look at, trim.", no_args_is_help=True)


@app.command("ls", cls=Command)
def list_streams(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", show_default=False, help="As in: 'orders*'.")] = "*",
    url: Url = None,
) -> None:
    """List the streams, or those whose names match.

    Example: headrace streams ls 'orders*'
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_rows

    with open_client(url) as broker:
        infos = broker.run(read_infos(broker.streams(pattern)))
    nothing = "No streams." if pattern == "*" else "No streams with such a name."
    show_rows(COLUMNS, [stream_row(info) for info in infos], nothing=nothing)


@app.command(cls=Command)
def info(stream: Stream, url: Url = None) -> None:
    """Show a stream and its groups.

    Example: headrace streams info orders
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts

    with open_client(url) as broker:
        found = broker.stream(stream).info()
        groups = [group_row(stream, group) for group in broker.stream(stream).groups()]
    facts = {
        **stream_row(found),
        "last_generated_id": found.last_id,
        "entries_added": found.entries_added,
        "max_deleted_id": found.max_deleted_id,
        "by_group": groups,
    }
    show_facts(facts, more="by_group", columns=GROUP_COLUMNS[1:])


@app.command(cls=Command)
def trim(
    stream: Stream,
    keep: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=LARGEST_COUNT, help="Keep the newest N entries.")
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="PLACE", parser=place("--before"), help="Remove what is older: an ID, or -7d.")
    ] = None,
    partly: Annotated[bool, typer.Option("--partly", help="Only what no group needs any more.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also what groups still need.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    yes: Yes = False,
    url: Url = None,
) -> None:
    """Remove the oldest entries. Refuses to remove what a group still needs. Asks first.

    Example: headrace streams trim orders --before -7d --dry-run
    """
    if (keep is None) == (before is None):
        raise WrongUsage("say what to trim: either --keep N or --before PLACE.")
    if before is not None and before.strip() == "now":
        raise WrongUsage("--before now would remove everything; if that is meant, write --keep 0.")
    if partly and force:
        raise WrongUsage("--partly leaves what groups need and --force does not; give one of them.")

    from headrace.cli.confirm import confirm
    from headrace.cli.connection import open_client
    from headrace.cli.output import counted, say, show_facts

    with open_client(url) as broker:
        target = broker.stream(stream)
        target.info()  # Trimming what does not exist removes nothing; a wrong name should be told.
        report = target.trim(keep=keep, before=before, force=force, dry_run=True)
        is_refused = report.held_by is not None and not force and not partly
        entries = counted(report.removed, "entry", "entries")
        needs = f"group {report.held_by!r} of {stream!r} still needs entries from {report.kept_from_id} on"
        if dry_run:
            row = trim_row(stream, report)
            if not force:
                row = {**row, "removed": 0 if is_refused else report.removed, "removable": report.removed}
            show_facts(row)
            if is_refused:
                say(f"this would be refused: {needs}. With --partly it would remove {entries}.")
            return
        if is_refused:
            raise Refused(
                f"{needs}. Nothing was trimmed. Let it catch up, take only what no group needs with --partly, or "
                "insist with --force."
            )
        if report.removed:
            needed = ", also those that groups still need" if force else ""
            confirm(f"remove {entries} of {stream!r}{needed}", yes=yes)
        report = target.trim(keep=keep, before=before, force=force, partly=partly)
    show_facts(trim_row(stream, report))


def read_infos(names: list[str]) -> "Flow[list[StreamInfo]]":
    """What is known of each; those that vanished meanwhile are left out."""
    from headrace.client import requests

    found: list[StreamInfo] = []
    for start in range(0, len(names), BATCH):
        batch: list[Request[Any]] = [requests.stream_info(name) for name in names[start : start + BATCH]]
        replies = yield batch
        for reply in replies:
            if isinstance(reply, (NotFound, WrongType)):
                continue
            if isinstance(reply, HeadraceError):
                raise reply
            found.append(reply)
    return found


def stream_row(found: "StreamInfo") -> "Row":
    return {
        "stream": found.name,
        "length": found.length,
        "groups": found.groups,
        "first_id": found.first_entry.id if found.first_entry else None,
        "last_id": found.last_entry.id if found.last_entry else None,
    }


def trim_row(stream: str, report: "TrimReport") -> "Row":
    return {
        "stream": stream,
        "removed": report.removed,
        "kept_from_id": report.kept_from_id or None,
        "held_by": report.held_by,
        "dry_run": report.is_dry_run,
    }

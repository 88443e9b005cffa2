"""headrace groups: the consumer groups of a stream, and where they stand."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.usage import Command, CommandWithPlace, Group, Stream, Url, Yes, place
from headrace.errors import Refused

if TYPE_CHECKING:
    from headrace.cli.output import Row
    from headrace.client.results import GroupInfo

GROUP_COLUMNS = ("stream", "group", "consumers", "pending", "lag", "last_delivered_id", "entries_read")
CONSUMER_COLUMNS = ("consumer", "pending", "idle_ms", "inactive_ms")

app = typer.Typer(help="Consumer groups: list, look at, create, move, remove.", no_args_is_help=True)


@app.command("ls", cls=Command)
def list_groups(stream: Stream, url: Url = None) -> None:
    """List the groups of a stream: who is behind, and who holds what.

    Example: headrace groups ls orders
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_rows

    with open_client(url) as broker:
        groups = broker.stream(stream).groups()
    rows = [group_row(stream, group) for group in groups]
    show_rows(GROUP_COLUMNS, rows, known=("stream",), nothing="No groups.")


@app.command(cls=Command)
def info(stream: Stream, group: Group, url: Url = None) -> None:
    """Show a group and its consumers.

    Example: headrace groups info orders billing
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts

    with open_client(url) as broker:
        handle = broker.stream(stream).group(group)
        facts = group_row(stream, handle.info())
        consumers = [
            {"consumer": who.name, "pending": who.pending, "idle_ms": who.idle_ms, "inactive_ms": who.inactive_ms}
            for who in handle.consumers()
        ]
    show_facts(
        {**facts, "by_consumer": consumers},
        more="by_consumer",
        columns=CONSUMER_COLUMNS,
    )


@app.command(cls=Command)
def create(
    stream: Stream,
    group: Group,
    start: Annotated[
        str,
        typer.Option(
            "--start", metavar="PLACE", parser=place("--start"), help="now, beginning, -1h, or the ID to begin behind."
        ),
    ] = "now",
    url: Url = None,
) -> None:
    """Create a group, and the stream where it is missing. An existing group stays as it is.

    Example: headrace groups create orders billing --start beginning
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts

    with open_client(url) as broker:
        handle = broker.stream(stream).group(group)
        is_new = handle.create(start)
        found = handle.info()
    show_facts({**group_row(stream, found), "created": is_new})


# -1h is a place here, not options: unknown ones are taken as arguments.
@app.command(cls=CommandWithPlace, context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
def seek(
    stream: Stream,
    group: Group,
    where: Annotated[
        str,
        typer.Argument(metavar="PLACE", parser=place("PLACE"), help="now, beginning, -1h, or the ID to go on behind."),
    ],
    url: Url = None,
) -> None:
    """Move a group to another place. What lies behind PLACE is given again, what lies before it is passed over.

    Example: headrace groups seek orders billing -1h
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts

    with open_client(url) as broker:
        handle = broker.stream(stream).group(group)
        handle.seek(where)
        found = handle.info()
    show_facts(group_row(stream, found))


@app.command("rm", cls=Command)
def remove(
    stream: Stream,
    group: Group,
    force: Annotated[bool, typer.Option("--force", help="Even while entries are pending.")] = False,
    yes: Yes = False,
    url: Url = None,
) -> None:
    """Remove a group. Refuses while entries are pending in it. Asks first.

    Example: headrace groups rm orders billing
    """
    from headrace.cli.confirm import confirm
    from headrace.cli.connection import open_client
    from headrace.cli.output import counted, show_facts

    with open_client(url) as broker:
        handle = broker.stream(stream).group(group)
        found = handle.info()
        held = counted(found.pending, "pending entry", "pending entries")
        if found.pending and not force:
            raise Refused(
                f"group {group!r} of {stream!r} has {held}, and who holds what would be forgotten. "
                "Let them be acknowledged, or insist with --force."
            )
        pending = f" with {held}" if found.pending else ""
        confirm(f"remove group {group!r} of {stream!r}{pending}", yes=yes)
        is_removed = handle.destroy()
    show_facts({"stream": stream, "group": group, "removed": is_removed, "pending": found.pending})


def group_row(stream: str, found: "GroupInfo") -> "Row":
    return {
        "stream": stream,
        "group": found.name,
        "consumers": found.consumers,
        "pending": found.pending,
        "lag": found.lag,
        "last_delivered_id": found.last_delivered_id,
        "entries_read": found.entries_read,
    }

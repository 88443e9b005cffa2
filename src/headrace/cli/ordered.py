"""headrace ordered: order per key. Its services, and what a person wants to see and do about keys."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import ordered_prove, ordered_services
from headrace.cli.usage import Command, Group, Stream, Url, WrongUsage, Yes
from headrace.errors import CommandError, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.cli.output import Row
    from headrace.client.client import Client
    from headrace.client.lane_keys import Order
    from headrace.client.lane_views import Ticket

COLUMNS = ("key", "state", "attempts", "consumer", "held_ms", "left_ms", "error")
STATES = ("ready", "held", "waiting", "parked")
ID_COLUMNS = ("id",)

Key = Annotated[str, typer.Argument(metavar="KEY", help="The key, as lanes shows it.")]

app = typer.Typer(
    help="Order per key: one message of a key at a time, in stream order.\n\n"
    "In a hurry: `headrace ordered master` and `headrace ordered consumer module:function`, then "
    "`headrace ordered lanes STREAM GROUP` to see which keys are where, and `show`, `park`, `resume` for one of them.",
    no_args_is_help=True,
)
app.command("master", cls=Command)(ordered_services.master)
app.command("consumer", cls=Command)(ordered_services.consumer)
app.command("prove", cls=Command)(ordered_prove.prove)


@app.command(cls=Command)
def lanes(
    stream: Stream,
    group: Group,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="Only keys that are ready, held, waiting or parked.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="At most N keys.")] = 1000,
    url: Url = None,
) -> None:
    """List the keys that have undone messages, and who holds them.

    Example: headrace ordered lanes ticket_stream concurrency_stream_group --state parked
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_rows

    if state not in (None, *STATES):
        raise WrongUsage(f"--state is {state!r}; write one of {', '.join(STATES)}.")
    with open_client(url) as broker:
        order = find_order(broker, stream, group)
        now_ms = server_time_ms(broker)
        rows = list(key_rows(broker, order, state, limit, now_ms))
    show_rows(COLUMNS, rows, nothing="No such keys." if state else "No keys with undone messages that were read.")


@app.command(cls=Command)
def show(
    stream: Stream,
    group: Group,
    key: Annotated[str | None, typer.Argument(metavar="KEY", show_default=False, help="One key. None: all.")] = None,
    url: Url = None,
) -> None:
    """Show how a group is ordered and what is under way; with a key, that key and its messages.

    Example: headrace ordered show ticket_stream concurrency_stream_group 7
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts
    from headrace.client import lane_views
    from headrace.ordered.views import show_order

    with open_client(url) as broker:
        order = find_order(broker, stream, group)
        if key is None:
            found = broker.run(lane_views.info(broker._facts, order))
            show_facts({"stream": stream, "group": group, **show_order(found)})
            return
        of_key = broker.run(lane_views.info_key(broker._facts, order, key))
        now_ms = server_time_ms(broker)
    if of_key is None:
        raise no_key(key, stream, group)
    ids = [{"id": one} for one in of_key.ids]
    facts = {**key_row(key, of_key.ticket, now_ms), "fence": of_key.ticket.fence or None, "messages": of_key.length}
    show_facts({**facts, "ids": ids}, more="ids", columns=ID_COLUMNS)


@app.command(cls=Command)
def park(
    stream: Stream,
    group: Group,
    key: Key,
    error: Annotated[str, typer.Option(metavar="TEXT", help="Why, for those who look at it later.")] = "",
    url: Url = None,
) -> None:
    """Let a key stand still until it is resumed. Whoever holds it is refused from now on.

    Example: headrace ordered park ticket_stream concurrency_stream_group 7 --error 'waiting for the customer'
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts
    from headrace.client import lane_steps

    with open_client(url) as broker:
        order = find_order(broker, stream, group)
        if not broker.run(lane_steps.park(broker._facts, order, key, error)):
            raise no_key(key, stream, group)
    show_facts({"key": key, "parked": True})


@app.command(cls=Command)
def resume(
    stream: Stream,
    group: Group,
    key: Key,
    skip: Annotated[bool, typer.Option("--skip", help="Its first message goes to the dead letters before.")] = False,
    url: Url = None,
) -> None:
    """Let a key that is parked, or waits after a failure, go on at once. Its attempts begin anew.

    Example: headrace ordered resume ticket_stream concurrency_stream_group 7
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts
    from headrace.client import lane_steps

    with open_client(url) as broker:
        order = find_order(broker, stream, group)
        if not broker.run(lane_steps.resume(broker._facts, order, key, skip=skip)):
            raise NotFound(f"key {key!r} is neither parked nor waiting. See: headrace ordered show {stream} {group}")
    show_facts({"key": key, "resumed": True, "skipped": skip})


@app.command(cls=Command)
def rebuild(stream: Stream, group: Group, yes: Yes = False, url: Url = None) -> None:
    """Make the lanes anew from what is pending in the group. Holders are refused, parked keys go on. Asks first.

    Example: headrace ordered rebuild ticket_stream concurrency_stream_group
    """
    from headrace.cli.confirm import confirm
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts
    from headrace.client import lane_steps

    with open_client(url) as broker:
        order = find_order(broker, stream, group)
        confirm(f"end all holds of group {group!r} of {stream!r} and let its parked keys go on", yes=yes)
        broker.run(lane_steps.rebuild(broker._facts, order))
    show_facts({"stream": stream, "group": group, "rebuilding": True})


# Finding


def find_order(broker: "Client", stream: str, group: str) -> "Order":
    """How the group is ordered. NotFound when the stream, the group or its order is missing."""
    from headrace.client import lane_views
    from headrace.client.lane_keys import Order

    settings = broker.run(lane_views.find_settings(broker._facts, stream, group))
    if settings is not None:
        return Order(stream, group, settings)
    if group not in [one.name for one in broker.stream(stream).groups()]:
        raise NotFound(f"NOGROUP stream {stream!r} has no group {group!r}", "NOGROUP", stream, group)
    raise NotFound(
        f"group {group!r} of {stream!r} is not ordered by key. Start: headrace ordered master --stream {stream} "
        f"--group {group}, or a worker whose handler has key="
    )


def no_key(key: str, stream: str, group: str) -> CommandError:
    return NotFound(f"key {key!r} has no undone message that was read. See: headrace ordered lanes {stream} {group}")


def key_rows(
    broker: "Client", order: "Order", state: str | None, limit: int, now_ms: int
) -> "Iterator[Row]":  # fmt: skip
    """Each key once; the map may show one twice while it changes."""
    from headrace.client import lane_views

    cursor, seen = 0, set[str]()
    while len(seen) < limit:
        page = broker.run(lane_views.tickets(broker._facts, order, cursor))
        for key, ticket in page.tickets:
            if state in (None, ticket.state) and key not in seen and len(seen) < limit:
                seen.add(key)
                yield key_row(key, ticket, now_ms)
        cursor = page.cursor
        if not cursor:
            return


def key_row(key: str, ticket: "Ticket", now_ms: int) -> "Row":
    held_ms = max(0, now_ms - ticket.fence // 1000) if ticket.state == "held" else None
    left_ms = max(0, ticket.until_ms - now_ms) if ticket.state in ("held", "waiting") else None
    return {
        "key": key,
        "state": ticket.state,
        "attempts": ticket.attempts,
        "consumer": ticket.consumer or None,
        "held_ms": held_ms,
        "left_ms": left_ms,
        "error": ticket.error or None,
    }


def server_time_ms(broker: "Client") -> int:
    seconds, microseconds = broker.command("TIME")
    return int(seconds) * 1000 + int(microseconds) // 1000

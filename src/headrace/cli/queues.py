"""headrace queues: reliable queues from the command line: what is in them, pushing, popping, and what got stuck."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from headrace.cli.usage import Command, Url, WrongUsage, Yes, duration, element_id, queue_name
from headrace.errors import HeadraceError, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.output import Row
    from headrace.client import reliable_queue as client
    from headrace.client.client import Client
    from headrace.client.results import Element, QueueStats

COLUMNS = ("queue", "undelivered", "delivered", "delayed", "nacks", "redeliveries", "dead", "expired", "paused")
ONLY_PIPED = ("nacks", "redeliveries", "expired")  # A table with all columns is too wide for a terminal; info has them.
JOB_COLUMNS = ("queue", "id", "body")
RECOVERED_COLUMNS = ("queue", "id", "deliveries", "body")
UNDELIVERED_COLUMNS = ("id", "body")
DELIVERED_COLUMNS = ("id", "deliveries", "idle_ms", "body")
DELAYED_COLUMNS = ("id", "deliveries", "due", "body")
LAST_MS = 253_402_300_799_000  # The end of the year 9999: no date can be written behind it, but a delay may end there.

Queue = Annotated[str, typer.Argument(metavar="QUEUE", parser=queue_name, help="Name of the queue.")]
Ids = Annotated[list[str], typer.Argument(metavar="ID", parser=element_id, help="IDs of elements.")]
Count = Annotated[int, typer.Option("--count", "-n", metavar="N", min=1, help="At most N elements.")]

app = typer.Typer(help="Reliable queues: list, look at, push, pop, acknowledge, recover.", no_args_is_help=True)


@app.command("ls", cls=Command)
def list_queues(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", show_default=False, help="As in: 'jobs*'.")] = "*",
    url: Url = None,
) -> None:
    """List the queues, or those whose names match.

    Example: headrace queues ls 'jobs*'
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_rows

    rows: list[Row] = []
    with open_client(url) as broker:
        for name in broker.queues(pattern):
            try:
                rows.append(queue_row(name, broker.queue(name).stats()))
            except NotFound:  # Deleted meanwhile.
                continue
    nothing = "No queues." if pattern == "*" else "No queues with such a name."
    show_rows(COLUMNS, rows, known=ONLY_PIPED, nothing=nothing)


@app.command(cls=Command)
def info(queue: Queue, url: Url = None) -> None:
    """Show a queue: what it holds, and what has happened to it.

    Example: headrace queues info jobs
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts

    with open_client(url) as broker:
        found = broker.queue(queue).stats()
    show_facts({**queue_row(queue, found), "last_id": found.last_id})


@app.command(cls=Command)
def push(
    queue: Queue,
    elements: Annotated[
        list[str], typer.Argument(metavar="ELEMENT", help="What to push; - alone: each line of stdin.")
    ],
    delay: Annotated[
        str | None,
        typer.Option(metavar="DURATION", parser=duration("--delay"), help="Nobody gets them before. Our broker only."),
    ] = None,
    url: Url = None,
) -> None:
    """Append elements to a queue. Shows their IDs; a missing queue is made.

    Example: headrace queues push jobs 'resize 17.jpg' 'resize 18.jpg'
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_rows, write

    with open_client(url) as broker:
        handle = broker.queue(queue)
        if elements == ["-"]:
            push_lines(handle, delay)
            return
        words = [element.encode("utf-8", "surrogateescape") for element in elements]
        ids = handle.push(*words, delay=delay)
    if sys.stdout.isatty():
        write("".join(f"{one}\n" for one in ids), sys.stdout)
    else:
        show_rows(("id",), [{"id": one} for one in ids])


@app.command(cls=Command)
def pop(
    queues: Annotated[
        list[str], typer.Argument(metavar="QUEUE", parser=queue_name, help="Queues, the most urgent first.")
    ],
    count: Count = 1,
    wait: Annotated[
        str, typer.Option(metavar="DURATION", parser=duration("--wait"), help="How long to wait for the first one.")
    ] = "0s",
    ack: Annotated[bool, typer.Option("--ack", help="Acknowledge each once it is shown: it is gone then.")] = False,
    url: Url = None,
) -> None:
    """Take elements and show them. They stay in their queue until they are acknowledged.

    Example: headrace queues pop jobs --count 10 --wait 5s
    """
    from headrace.cli.connection import open_client

    with open_client(url) as broker:
        jobs = broker.pop_first(*queues, count=count, wait=wait)
        show_jobs(jobs, nothing="" if jobs else why_nothing(broker, queues, "Nothing came"))
        if ack:
            for job in jobs:
                job.ack()


@app.command(cls=Command)
def ack(queue: Queue, ids: Ids, url: Url = None) -> None:
    """Acknowledge popped elements. They are done with, and go.

    Example: headrace queues ack jobs 1690275391705-1
    """
    change(url, queue, ids, "ack", "acked")


@app.command(cls=Command)
def nack(queue: Queue, ids: Ids, url: Url = None) -> None:
    """Give popped elements back. They are the next ones to be popped.

    Example: headrace queues nack jobs 1690275391705-1
    """
    change(url, queue, ids, "nack", "given_back")


@app.command(cls=Command)
def recover(
    queue: Queue,
    idle: Annotated[
        str, typer.Option(metavar="DURATION", parser=duration("--idle"), help="Popped so long ago, or longer.")
    ] = "1m",
    count: Count = 100,
    url: Url = None,
) -> None:
    """Take over what was popped and not acknowledged. Shows it, as pop does.

    Example: headrace queues recover jobs --idle 5m
    """
    from headrace.cli.connection import open_client

    with open_client(url) as broker:
        broker.queue(queue).info()  # A wrong name should be told.
        jobs = broker.queue(queue).recover(idle=idle, count=count)
        nothing = "" if jobs else why_nothing(broker, [queue], "Nothing to recover")
    show_jobs(jobs, RECOVERED_COLUMNS, nothing=nothing)


@app.command(cls=Command)
def inspect(
    queue: Queue,
    pending: Annotated[bool, typer.Option("--pending", help="What is popped and not acknowledged.")] = False,
    delayed: Annotated[bool, typer.Option("--delayed", help="What waits for its time. Our broker only.")] = False,
    start: Annotated[int, typer.Option(metavar="N", help="The place to begin at; negative: from the end.")] = 0,
    count: Count = 100,
    url: Url = None,
) -> None:
    """Look at the elements of a queue. Nothing is taken.

    Example: headrace queues inspect jobs --pending
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_rows

    if pending and delayed:
        raise WrongUsage("--pending and --delayed are two views; give one of them.")
    with open_client(url) as broker:
        found = broker.queue(queue).inspect(pending=pending, delayed=delayed, start=start, count=count)
    if pending:
        show_rows(DELIVERED_COLUMNS, map(element_row, found), nothing="Nothing is pending.")
    elif delayed:
        show_rows(DELAYED_COLUMNS, map(element_row, found), nothing="Nothing is delayed.")
    else:
        show_rows(UNDELIVERED_COLUMNS, map(element_row, found), nothing="Nothing is waiting.")


@app.command(cls=Command)
def pause(
    queue: Queue,
    only_in: Annotated[bool, typer.Option("--in", help="Take nothing in; pop goes on.")] = False,
    only_out: Annotated[bool, typer.Option("--out", help="Give nothing out; push goes on.")] = False,
    url: Url = None,
) -> None:
    """Pause a queue: nothing in, nothing out. With --in or --out only one of them.

    Example: headrace queues pause jobs --out
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts

    if only_in and only_out:
        raise WrongUsage("--in and --out together are the default; give one of them, or none.")
    mode: Literal["in", "out", "all"] = "in" if only_in else "out" if only_out else "all"
    with open_client(url) as broker:
        broker.queue(queue).pause(mode)
    show_facts({"queue": queue, "paused": mode})


@app.command(cls=Command)
def resume(queue: Queue, url: Url = None) -> None:
    """End the pause of a queue.

    Example: headrace queues resume jobs
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts

    with open_client(url) as broker:
        broker.queue(queue).info()  # A wrong name should be told.
        broker.queue(queue).resume()
    show_facts({"queue": queue, "paused": "none"})


@app.command("rm", cls=Command)
def remove(queue: Queue, yes: Yes = False, url: Url = None) -> None:
    """Remove a queue with all that is in it. Asks first.

    Example: headrace queues rm jobs
    """
    from headrace.cli.confirm import confirm
    from headrace.cli.connection import open_client
    from headrace.cli.output import counted, show_facts

    with open_client(url) as broker:
        found = broker.queue(queue).stats()
        elements = found.undelivered + found.delivered + found.delayed
        confirm(f"remove queue {queue!r} with {counted(elements, 'element', 'elements')}", yes=yes)
        is_removed = broker.queue(queue).delete()
    show_facts({"queue": queue, "removed": is_removed, "elements": elements})


def change(url: str | None, queue: str, ids: list[str], method: str, done: str) -> None:
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts

    with open_client(url) as broker:
        handle = broker.queue(queue)
        handle.info()  # The server knows of no IDs in a queue that does not exist; a wrong name should be told.
        changed = handle.ack(*ids) if method == "ack" else handle.nack(*ids)
    show_facts({"queue": queue, done: len(changed), "not_delivered": len(set(ids)) - len(changed)})


def queue_row(name: str, found: "QueueStats") -> "Row":
    return {
        "queue": name,
        "undelivered": found.undelivered,
        "delivered": found.delivered,
        "delayed": found.delayed,
        "nacks": found.nacks,
        "redeliveries": found.redeliveries,
        "dead": found.dead,
        "expired": found.expired,
        "paused": found.paused,
    }


def element_row(element: "Element") -> "Row":
    due = None
    if element.due_ms is not None:
        due = datetime.fromtimestamp(min(element.due_ms, LAST_MS) / 1000, UTC).isoformat(timespec="milliseconds")
    return {
        "id": element.id,
        "deliveries": element.deliveries,
        "idle_ms": element.idle_ms,
        "due": due and due.replace("+00:00", "Z"),
        "body": element.body,
    }


def why_nothing(broker: "Client", queues: "Sequence[str]", nothing: str) -> str:
    """A pause is easily forgotten, so a terminal is told of it."""
    paused = []
    for name in queues if sys.stdout.isatty() else ():
        try:
            if broker.queue(name).stats().paused in ("out", "all"):
                paused.append(repr(name))
        except NotFound:
            continue
    return f"{nothing}. Paused: {', '.join(paused)}" if paused else f"{nothing}."


def show_jobs(jobs: "Sequence[client.Job]", columns: "Sequence[str]" = JOB_COLUMNS, *, nothing: str) -> None:
    from headrace.cli.output import show_rows

    rows = [{"queue": job.queue.name, "id": job.id, "deliveries": job.deliveries, "body": job.body} for job in jobs]
    show_rows(columns, rows, nothing=nothing)


def push_lines(handle: "client.Queue", delay: str | None) -> None:
    """Every line of stdin as an element; the ID of each when piped, a summary on a terminal."""
    from headrace.cli.output import counted, show_facts, show_rows
    from headrace.cli.publish import read_lines

    pushed = 0
    try:
        for _, lines in read_lines(sys.stdin.fileno()):
            ids = handle.push(*lines, delay=delay)
            pushed += len(ids)
            if not sys.stdout.isatty():
                show_rows(("id",), [{"id": one} for one in ids])
    except HeadraceError as error:
        before = counted(pushed, "line before it was", "lines before it were")
        error.args = (f"{error} {before} pushed.", *error.args[1:])
        raise
    if sys.stdout.isatty():
        show_facts({"queue": handle.name, "pushed": pushed})

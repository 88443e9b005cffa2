"""headrace dlq: dead letters, which are messages that were given up."""

import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.usage import Command, EntryIds, Group, Stream, Url, WrongUsage, Yes, entry_id, stream_name
from headrace.errors import ConfigError

if TYPE_CHECKING:
    from headrace.cli.output import Row
    from headrace.client.client import Client
    from headrace.client.dead_letters import DeadLetter, Where

COLUMNS = ("id", "entry", "attempts", "at", "error", "payload")

app = typer.Typer(help="Dead letters: list, look at, send again, drop.", no_args_is_help=True)

WhereOption = Annotated[
    str | None, typer.Option("--where", metavar="CONDITION", help="Only those: 'error ~ \"timeout\"', 'attempts > 3'.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell how many it would be.")]


@app.command("ls", cls=Command)
def list_letters(
    stream: Stream,
    group: Group,
    where: WhereOption = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="At most N of them.")] = None,
    url: Url = None,
) -> None:
    """List the dead letters of a group, oldest first.

    Example: headrace dlq ls orders billing
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_rows

    test = parsed(where)
    with open_client(url) as broker:
        rows = [row_of(letter) for letter in islice(letters_of(broker, stream, group, test), limit)]
    show_rows(COLUMNS, rows, nothing="No dead letters.")


@app.command(cls=Command)
def show(
    stream: Stream,
    group: Group,
    letter: Annotated[str, typer.Argument(metavar="ID", parser=entry_id, help="Its ID, as ls shows it.")],
    url: Url = None,
) -> None:
    """Show one dead letter with its traceback.

    Example: headrace dlq show orders billing 1690275391705-0
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts
    from headrace.client import dead_letters

    with open_client(url) as broker:
        found = broker.run(dead_letters.get(stream, group, letter))
    show_facts({**row_of(found), "stream": found.stream, "group": found.group, "key": found.key,
                "traceback": found.traceback})  # fmt: skip


@app.command(cls=Command)
def replay(
    stream: Stream,
    group: Group,
    ids: EntryIds = None,
    where: WhereOption = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="STREAM", parser=stream_name, help="Publish anew, for all groups.")
    ] = None,
    rate: Annotated[str | None, typer.Option(metavar="N/s", help="No more than so many in a time: 50/s, 30/m.")] = None,
    dry_run: DryRun = False,
    url: Url = None,
) -> None:
    """Send dead letters again, to this group alone: those named, those that match, or all.

    Example: headrace dlq replay orders billing --where 'error ~ "timeout"' --rate 50/s
    """
    from headrace.app.handlers import parse_rate
    from headrace.cli.connection import open_client
    from headrace.cli.output import show_facts
    from headrace.client import dead_letters

    try:
        pause_s = 0.0 if rate is None else 1 / parse_rate(rate)
    except ConfigError as error:
        raise WrongUsage(str(error).replace("rate is", "--rate is")) from error
    with open_client(url) as broker:
        chosen = choose(broker, stream, group, ids, where)
        if not dry_run:
            if to is None:
                broker.run(dead_letters.prepare_replay(stream, group))
            for letter in chosen:
                broker.run(dead_letters.replay(broker._facts, stream, group, letter, to))
                time.sleep(pause_s)
    show_facts({"stream": stream, "group": group, "replayed": 0 if dry_run else len(chosen), "chosen": len(chosen)})


@app.command(cls=Command)
def drop(
    stream: Stream,
    group: Group,
    ids: EntryIds = None,
    where: WhereOption = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
) -> None:
    """Delete dead letters for good. Asks first.

    Example: headrace dlq drop orders billing --where 'attempts > 3'
    """
    from headrace.cli.confirm import confirm
    from headrace.cli.connection import open_client
    from headrace.cli.output import counted, show_facts
    from headrace.client import dead_letters

    if not ids and where is None and not everything:
        raise WrongUsage("say which dead letters to drop: IDs, --where, or --all.")
    with open_client(url) as broker:
        chosen = [letter.id for letter in choose(broker, stream, group, ids, where)]
        dropped = 0
        if chosen and not dry_run:
            letters = counted(len(chosen), "dead letter", "dead letters")
            confirm(f"delete {letters} of group {group!r} of {stream!r}", yes=yes)
            for place in range(0, len(chosen), dead_letters.PAGE):
                part = chosen[place : place + dead_letters.PAGE]
                dropped += broker.run(dead_letters.drop(stream, group, part))
    show_facts({"stream": stream, "group": group, "dropped": dropped, "chosen": len(chosen)})


def parsed(where: str | None) -> "Where | None":
    from headrace.client.dead_letters import parse_where

    try:
        return None if where is None else parse_where(where)
    except ConfigError as error:
        raise WrongUsage(str(error)) from error


def choose(broker: "Client", stream: str, group: str, ids: list[str] | None, where: str | None) -> "list[DeadLetter]":
    """Chosen before anything is done, so that what fails again meanwhile is not sent round and round."""
    from headrace.client import dead_letters

    if ids and where is not None:
        raise WrongUsage("give either IDs or --where, not both.")
    test = parsed(where)
    if ids:
        return [broker.run(dead_letters.get(stream, group, letter_id)) for letter_id in dict.fromkeys(ids)]
    return list(letters_of(broker, stream, group, test))


def letters_of(broker: "Client", stream: str, group: str, test: "Where | None") -> "Iterator[DeadLetter]":
    """Where there are none, the group must be there: a name that was mistyped has no dead letters either."""
    from headrace.client import dead_letters, flows

    after = ""
    while True:
        letters = broker.run(dead_letters.page(stream, group, after))
        if not letters and not after:
            broker.run(flows.find_group(stream, group))
        yield from (letter for letter in letters if test is None or test(letter))
        if len(letters) < dead_letters.PAGE:
            return
        after = letters[-1].id


def row_of(letter: "DeadLetter") -> "Row":
    from headrace.cli.entries import read_payload

    return {
        "id": letter.id, "entry": letter.entry_id, "attempts": letter.attempts,
        "at": None if letter.at is None else letter.at.isoformat(timespec="milliseconds"), "error": letter.error,
        "payload": read_payload(letter.entry),
    }  # fmt: skip

"""headrace tail: show entries of a stream, and go on showing new ones.

Reading changes nothing. That holds with --group too: what the group would be given next is read from the stream
itself, behind the group's place. Only with --ack does the group give the entries, to a consumer, and each is
acknowledged once it is shown: one at a time, so that Ctrl-C leaves at most one pending.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.usage import Stream, Url, WrongUsage, consumer_name, group_name, place
from headrace.errors import HeadraceError, NotFound

if TYPE_CHECKING:
    from headrace.client import client
    from headrace.client.results import Entry


def tail(
    stream: Stream,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="PLACE", parser=place("--from"), help="now (default), beginning, -1h, or an entry ID."
        ),
    ] = None,
    last: Annotated[int | None, typer.Option(metavar="N", min=1, help="Begin with the last N entries.")] = None,
    count: Annotated[int | None, typer.Option("-n", metavar="N", min=1, help="Stop after N entries.")] = None,
    exits: Annotated[bool, typer.Option("-e", "--exit", help="Exit when caught up, instead of waiting.")] = False,
    bookmark: Annotated[
        str | None, typer.Option(metavar="NAME", help="Go on where the last tail with this name ended.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="GROUP", parser=group_name, help="What this group would be given next.")
    ] = None,
    ack: Annotated[bool, typer.Option("--ack", help="With --group: take entries as a consumer, and ack them.")] = False,
    consumer: Annotated[
        str | None, typer.Option(metavar="NAME", parser=consumer_name, help="With --ack: who takes them.")
    ] = None,
    url: Url = None,
) -> None:
    """Show entries as they come. Ctrl-C ends it. Changes nothing, unless --ack is given.

    Example: headrace tail orders --from -1h
    """
    if sum(chosen is not None for chosen in (start, last, group)) > 1:
        raise WrongUsage("give only one of --from, --last and --group: each says where to begin.")
    if group is None and (ack or consumer):
        raise WrongUsage("--ack and --consumer need --group.")
    if consumer is not None and not ack:
        raise WrongUsage("--consumer needs --ack: without it nothing is given to a consumer.")
    if bookmark is not None and (group is not None or not bookmark):
        raise WrongUsage("--bookmark needs a name, and does not go with --group, which has its own place.")

    from headrace.cli.connection import open_client

    with open_client(url) as broker:
        source = broker.stream(stream)
        if group is not None and ack:
            show_and_ack(source.group(group), consumer, count, exits=exits)
            return
        if group is not None:
            begin = behind(source.group(group).info().last_delivered_id)
        elif last is not None:
            begin = place_of_last(source, last)
        else:
            begin = start or "now"
        say_if_missing(source, waits=not exits)
        show(source, begin, count, bookmark, exits=exits)


def show(source: "client.Stream", begin: str, count: int | None, bookmark: str | None, *, exits: bool) -> None:
    with kept_bookmark(source, bookmark) as shown:
        show_until(source.follow(begin, bookmark=bookmark, wait=0 if exits else None), count, shown)


def show_until(entries: "Iterator[Entry]", count: int | None, shown: list[str]) -> None:
    """Show up to count entries; the ID of the last one is in `shown` whatever happens."""
    from headrace.cli.entries import show_entry

    for number, entry in enumerate(entries, 1):
        show_entry(entry)
        shown[:] = [entry.id]
        if number == count:
            return


@contextmanager
def kept_bookmark(source: "client.Stream", bookmark: str | None) -> Iterator[list[str]]:
    """Keeps the place of the last entry shown, also after Ctrl-C: the client itself keeps it only after each page."""
    from headrace.client import flows

    shown: list[str] = []
    try:
        yield shown
    finally:
        if bookmark is not None and shown:
            source.client.run(flows.save_bookmark(source.name, bookmark, shown[0]))


def show_and_ack(group: "client.Group", consumer: str | None, count: int | None, *, exits: bool) -> None:
    from headrace.cli.entries import show_entry
    from headrace.client.flows import unique_consumer_name

    group.info()  # A missing group is told before a consumer is made up.
    name = consumer or unique_consumer_name()
    try:
        for number, entry in enumerate(group.consume(name, count=1, wait=0 if exits else None), 1):
            show_entry(entry)
            group.ack(entry.id)
            if number == count:
                return
    finally:
        if consumer is None:
            with suppress(HeadraceError):  # It refuses while an entry is pending with it, and that is right.
                group.delete_consumer(name)


def say_if_missing(source: "client.Stream", *, waits: bool) -> None:
    """A stream that does not exist yet can be waited for; a typing error should not look like silence."""
    from headrace.cli.output import say

    try:
        source.info()
    except NotFound:
        if not waits:
            raise
        say(f"there is no stream {source.name!r} yet; waiting for it.")


def place_of_last(source: "client.Stream", count: int) -> str:
    newest = source.range(count=count, newest_first=True)
    return newest[-1].id if newest else "now"


def behind(entry_id: str) -> str:
    """The lowest ID above."""
    milliseconds, sequence = (int(part) for part in entry_id.split("-"))
    return f"{milliseconds}-{sequence + 1}" if sequence < 2**64 - 1 else f"{milliseconds + 1}-0"

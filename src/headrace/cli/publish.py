"""headrace publish: one message from the command line, or one per line of stdin.

Items are written as in httpie: name=text, name:=json; the first = or := of an item counts. JSON goes out as it was
written, so 9.90 stays 9.90. From stdin, whatever has arrived is sent in one go: a file travels in large batches, the
output of a running program line by line.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from headrace.cli.usage import Stream, Url, WrongUsage, duration
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.client import client

READ_BYTES = 1 << 20  # Of stdin at a time; so much is sent in one go at most.
LONGEST_LINE_BYTES = 256 << 20  # Half of what a server takes as one value: a line beyond it is no message.
STDIN = "-"


class Progress(Protocol):
    def advance(self, read_bytes: int, messages: int) -> None: ...


def publish(
    stream: Stream,
    items: Annotated[
        list[str] | None, typer.Argument(metavar="ITEM", show_default=False, help="NAME=TEXT or NAME:=JSON; or -.")
    ] = None,
    json: Annotated[str | None, typer.Option("--json", metavar="TEXT", help="The whole message as JSON.")] = None,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="Ordering key: customer-42.")] = None,
    publish_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Publish id: twice is once.")] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME=TEXT", show_default=False, help="A header; may be repeated.")
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(metavar="DURATION", parser=duration("--delay"), help="It comes only after so long: 10m."),
    ] = None,
    app: Annotated[
        str | None, typer.Option("--app", metavar="MODULE:APP", help="The broker of this app, instead of a URL.")
    ] = None,
    url: Url = None,
) -> None:
    """Publish a message, or with - one per line of stdin (JSON).

    Example: headrace publish orders item=tea total:=9.90 --key customer-42
    """
    headers = parse_headers(header or [])
    if app is not None:
        url = url_of_app(app, url)
    if items == [STDIN]:
        if json is not None or publish_id is not None or delay is not None:
            raise WrongUsage("- reads the messages from stdin; --json, --id and --delay do not go with it.")
        publish_lines(stream, url, key, headers)
        return
    payload = parse_message(items or [], json)

    from headrace.cli.connection import open_client
    from headrace.cli.output import show_rows, write

    with open_client(url) as broker:
        entry_id = broker.stream(stream).publish(payload, key=key, id=publish_id, headers=headers, delay=delay)
    if sys.stdout.isatty():
        write((entry_id or f"comes in {delay}") + "\n", sys.stdout)
    else:
        show_rows(("id",), [{"id": entry_id}])


def url_of_app(place: str, url: str | None) -> str:
    """Its URL, unless one is given."""
    from headrace.app.loading import load_app
    from headrace.errors import ConfigError

    try:
        return url or load_app(place).url
    except ConfigError as error:
        raise WrongUsage(str(error)) from error


# One message


def parse_message(items: list[str], json: str | None) -> Any:
    """What to publish, as a value whose JSON parts stay as they were written."""
    if json is not None:
        if items:
            raise WrongUsage("give the message either as NAME=TEXT items or with --json, not both.")
        return parse_json(json.encode("utf-8", "surrogateescape"), "--json")
    if not items:
        raise WrongUsage("there is nothing to publish: give NAME=TEXT, NAME:=JSON, --json TEXT, or - for stdin.")
    message: dict[str, Any] = {}
    for item in items:
        name, value = parse_item(item)
        if name in message:
            raise WrongUsage(f"{name!r} is given twice.")
        message[name] = value
    return message


def parse_item(item: str) -> tuple[str, Any]:
    name, equals, value = item.partition("=")
    is_json = name.endswith(":")
    name = name.removesuffix(":") if is_json else name
    if not equals or not name:
        raise WrongUsage(f"{item!r} is neither NAME=TEXT nor NAME:=JSON.")
    try:
        (name + value).encode()
    except UnicodeEncodeError as error:
        raise WrongUsage(f"item {item!r} is not UTF-8; a message of items holds text only.") from error
    return name, parse_json(value.encode(), f"the value of {name!r}") if is_json else value


def parse_json(text: bytes, what: str) -> Any:
    """Checked, and kept as it was written."""
    import msgspec

    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WrongUsage(f"{what} is not JSON: {error}.") from error
    return msgspec.Raw(text)


def parse_headers(items: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise WrongUsage(f"header {item!r} is not NAME=TEXT.")
        headers[name] = value
    return headers


# Many messages


def publish_lines(stream: str, url: str | None, key: str | None, headers: dict[str, str]) -> None:
    """Every line of stdin as a message; the ID of each when piped, a summary on a terminal."""
    from headrace.cli.connection import open_client
    from headrace.cli.output import counted, show_facts, show_rows

    total = 0
    first_id = last_id = None
    with open_client(url) as broker, shown_progress() as progress:
        target = broker.stream(stream)
        try:
            for read_bytes, messages in read_messages():
                ids = send(target, messages, key, headers)
                total += len(ids)
                if ids:
                    first_id, last_id = first_id or ids[0], ids[-1]
                progress.advance(read_bytes, len(ids))
                if not sys.stdout.isatty():
                    show_rows(("id",), ({"id": entry_id} for entry_id in ids))
        except HeadraceError as error:
            before = counted(total, "message before it was", "messages before it were")
            error.args = (f"{error} {before} published.", *error.args[1:])
            raise
    if sys.stdout.isatty():
        show_facts({"stream": stream, "published": total, "first_id": first_id, "last_id": last_id})


def send(target: "client.Stream", messages: list[Any], key: str | None, headers: dict[str, str]) -> list[str]:
    """One call for one message, a batch for several."""
    if len(messages) == 1:
        return [target.publish(messages[0], key=key, headers=headers)]
    return target.publish_many(messages, key=key, headers=headers) if messages else []


def read_messages() -> Iterator[tuple[int, list[Any]]]:
    """Pairs of bytes read and the messages that are complete with them. Lines before a bad one come out first."""
    number = 0
    for read_bytes, lines in read_lines(sys.stdin.fileno()):
        messages: list[Any] = []
        for line in lines:
            number += 1
            try:
                if line.strip():
                    messages.append(parse_json(line, f"line {number}"))
            except WrongUsage as error:
                if messages:
                    yield 0, messages
                raise HeadraceError(str(error)) from error
        yield read_bytes, messages


def read_lines(descriptor: int) -> Iterator[tuple[int, list[bytes]]]:
    """Complete lines as they arrive. The last line needs no end."""
    rest = bytearray()
    while piece := os.read(descriptor, READ_BYTES):
        *lines, tail = piece.split(b"\n")
        if lines:
            lines[0] = bytes(rest) + lines[0]
            rest.clear()
        rest += tail
        if len(rest) > LONGEST_LINE_BYTES:
            raise HeadraceError(f"a line is longer than {LONGEST_LINE_BYTES:,} bytes.")
        yield len(piece), lines
    if rest:
        yield 0, [bytes(rest)]


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """A bar on stderr where that is a terminal: of the file's size, or without an end for a pipe."""
    if not sys.stderr.isatty() or sys.stdin.isatty():
        yield NoProgress()
        return
    import rich.progress
    from rich.console import Console

    size = os.fstat(sys.stdin.fileno()).st_size
    columns = (rich.progress.BarColumn(), rich.progress.TextColumn("{task.fields[messages]:,} messages"))
    with rich.progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield BarProgress(bar, bar.add_task("publish", total=size or None, messages=0))


class NoProgress:
    def advance(self, read_bytes: int, messages: int) -> None:
        pass


class BarProgress:
    def __init__(self, bar: Any, task: Any) -> None:
        self.bar = bar
        self.task = task
        self.messages = 0

    def advance(self, read_bytes: int, messages: int) -> None:
        self.messages += messages
        self.bar.update(self.task, advance=read_bytes, messages=self.messages)

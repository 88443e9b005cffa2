"""How entries are shown: the same facts on a terminal and in a pipe.

An entry that cannot be read as its layout says, because its data is not the JSON it should be, is shown as the text it
holds: one odd entry never stops a tail.
"""

import sys
from typing import TYPE_CHECKING, Any

from headrace.cli.output import Row, counted, json_line, payload_cell, say, show_rows, table_cell, write
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.client.results import Entry

COLUMNS = ("id", "time", "key", "publish_id", "headers", "payload")


def entry_row(entry: "Entry") -> Row:
    time = entry.time
    return {
        "id": entry.id,
        "time": None if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "key": entry.key if is_published(entry) else None,
        "publish_id": entry.publish_id if is_published(entry) else None,
        "headers": entry.headers if is_published(entry) else {},
        "payload": read_payload(entry),
    }


def is_published(entry: "Entry") -> bool:
    """Written in headrace's layout. In entries of others, fields named key or id are theirs."""
    return entry.find(b"data") is not None


def read_payload(entry: "Entry") -> Any:
    try:
        return entry.payload
    except HeadraceError:
        return entry.find(b"data")


def show_entry(entry: "Entry") -> None:
    """One line, at once."""
    row = entry_row(entry)
    if sys.stdout.isatty():
        write(entry_line(row), sys.stdout, flush=True)
    else:
        write(json_line(row), sys.stdout, flush=True)


def show_claimed(consumer: str, entries: "list[Entry]") -> None:
    """As tail shows them. Whose they are now is the same for all: a terminal is told once."""
    if not sys.stdout.isatty():
        rows = ({"consumer": consumer, **entry_row(entry)} for entry in entries)
        show_rows(("consumer", *COLUMNS), rows)
        return
    for entry in entries:
        show_entry(entry)
    if entries:
        say(f"{counted(len(entries), 'entry is', 'entries are')} now pending with {consumer!r}.")
    else:
        write("Nothing to claim.\n", sys.stdout, flush=True)


def entry_line(row: Row) -> str:
    """For a terminal: ID, time of day, then what is there of key and payload. Long ones wrap, nothing is cut."""
    words = [str(row["id"]), (row["time"] or "-").partition("T")[2] or "-"]
    words += [f"{name}={table_cell(row[name])}" for name in ("key", "publish_id") if row[name] is not None]
    words += [f"{table_cell(name)}:{table_cell(value)}" for name, value in row["headers"].items()]
    return "  ".join([*words, payload_cell(row["payload"])]) + "\n"

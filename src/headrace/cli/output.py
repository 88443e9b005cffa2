"""Rows for people and for programs: a table on a terminal, one JSON object per line when piped.

A subcommand hands over plain rows and never asks where they go. Column names are the JSON keys; on a terminal their
underscores become spaces, milliseconds become a duration, and IDs stay in one piece. Bytes that are not UTF-8 are shown
with backslash escapes, and so are control characters on a terminal: what others stored must not steer it.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TextIO

from headrace.errors import HeadraceError

Cell = Any  # Whatever JSON can hold, and bytes.
Row = Mapping[str, Cell]

# Numbers a server may not know; elsewhere an empty cell means that there is nothing.
MAY_BE_UNKNOWN = {"lag", "entries_read", "entries_added"}

LEAST_WIDTH = 6  # Of a column that is no ID. Where a terminal has no room for that, its lines run over.

DURATION_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))


class ClosedPipe(Exception):
    """Nobody reads our output any more. No error: head has seen enough."""


def show_rows(
    columns: Sequence[str],
    rows: Iterable[Row],
    *,
    title: str = "",
    known: Sequence[str] = (),
    nothing: str = "",
    verbatim: bool = False,
    stream: TextIO | None = None,
) -> None:
    """Writes rows to stdout (or stream). Piped rows leave one by one; a table waits for the last of them.

    `known` are columns a terminal does without, such as those that repeat what the user wrote. `nothing` is what it
    says instead of an empty table. With `verbatim` a table shows names and numbers as they are: they are the user's,
    not ours.
    """
    out = sys.stdout if stream is None else stream
    if not out.isatty():
        write_ndjson(columns, rows, out)
        return
    listed = list(rows)
    if nothing and not listed:
        write(nothing + "\n", out, flush=True)
    else:
        write_table([name for name in columns if name not in known], listed, title, out, verbatim=verbatim)


def show_facts(facts: Row, *, more: str = "", columns: Sequence[str] = (), stream: TextIO | None = None) -> None:
    """One thing with its facts: two columns on a terminal, one JSON object when piped.

    `more` names the fact that is a list of rows; a terminal gets it as a table of these columns below the others.
    """
    out = sys.stdout if stream is None else stream
    if not out.isatty():
        write(json_line(facts), out, flush=True)
        return
    plain = {name: value for name, value in facts.items() if name != more}
    rows = [{"fact": heading(name), "value": table_cell(value, name)} for name, value in plain.items()]
    write_table(("fact", "value"), rows, "", out, shows_header=False)
    if more and facts[more]:
        write_table(columns, facts[more], heading(more), out)


def write_ndjson(columns: Sequence[str], rows: Iterable[Row], out: TextIO) -> None:
    for row in rows:
        write(json_line({name: row.get(name) for name in columns}), out)
    write("", out, flush=True)


def json_line(value: Cell) -> str:
    import msgspec

    return msgspec.json.encode(plain_cell(value)).decode() + "\n"


def write_table(
    columns: Sequence[str],
    rows: Iterable[Row],
    title: str,
    out: TextIO,
    *,
    shows_header: bool = True,
    verbatim: bool = False,
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Text, not str: what users stored may hold square brackets, which are markup otherwise.
    show_cell = verbatim_cell if verbatim else table_cell
    cells = [[Text(show_cell(row.get(name), name)) for name in columns] for row in rows]
    table = Table(title=title or None, title_justify="left", header_style="bold", show_header=shows_header)
    for name in columns:
        shown_name = Text(printable(name)) if verbatim else heading(name)
        table.add_column(shown_name, overflow="fold", no_wrap=is_id(name))  # Cut or broken IDs are useless.
    for line in cells:
        table.add_row(*line)
    console = Console(file=out)
    console.width = max(console.width, least_width(columns, cells))
    with console.capture() as shown:
        console.print(table)
    write(shown.get(), out, flush=True)


def write(text: str, out: TextIO, *, flush: bool = False) -> None:
    """All output goes through here. A reader that went away is no error; a full disk is one of ours."""
    try:
        out.write(text)
        if flush:
            out.flush()
    except BrokenPipeError as error:
        raise ClosedPipe from error
    except OSError as error:
        raise HeadraceError(f"cannot write the output: {error.strerror}.") from error


def say(text: str) -> None:
    """A line for people, beside the output."""
    print(f"headrace: {printable(text)}", file=sys.stderr, flush=True)


# Cells


def is_id(name: str) -> bool:
    return name == "id" or name.endswith("_id")


def least_width(columns: Sequence[str], cells: Sequence[Sequence[Any]]) -> int:
    """How wide a table must be so that no ID is broken: each column has a frame of three."""
    widths = [
        max(len(heading(name)), *(line[at].cell_len for line in cells), 0) if is_id(name) else LEAST_WIDTH
        for at, name in enumerate(columns)
    ]
    return sum(widths) + 3 * len(widths) + 1


def counted(number: int, one: str, many: str) -> str:
    """1 entry, 2 entries."""
    return f"{number:,} {one if number == 1 else many}"


def heading(name: str) -> str:
    return name.removesuffix("_ms").replace("_", " ")


def plain_cell(cell: Cell) -> Cell:
    """What JSON can hold: bytes and half characters as text with backslash escapes, at any depth."""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "backslashreplace")
    if isinstance(cell, str):
        return cell.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if isinstance(cell, Mapping):
        return {plain_cell(name): plain_cell(value) for name, value in cell.items()}
    if isinstance(cell, (list, tuple)):
        return [plain_cell(value) for value in cell]
    return cell


def table_cell(cell: Cell, name: str = "") -> str:
    if name == "payload":
        return payload_cell(cell)
    if cell is None:
        return "unknown" if name in MAY_BE_UNKNOWN else "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return show_duration(cell) if name.endswith("_ms") else f"{cell:,}"
    if isinstance(cell, (Mapping, list)):
        return printable(json_line(cell).rstrip("\n")) if cell else "-"
    return printable(str(plain_cell(cell)))


def verbatim_cell(cell: Cell, _name: str = "") -> str:
    """As table_cell, but numbers are digits only, and nothing is read from the name of the column."""
    return str(cell) if isinstance(cell, int) and not isinstance(cell, bool) else table_cell(cell)


def payload_cell(payload: Cell) -> str:
    """Text as it is, everything else as JSON, digit by digit."""
    return printable(plain_cell(payload) if isinstance(payload, (str, bytes)) else json_line(payload).rstrip("\n"))


def show_duration(milliseconds: int) -> str:
    """The two largest units: 12m3s, 2d4h; below a minute 3.4s."""
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f}s"
    for (unit, size), (next_unit, next_size) in pairwise(DURATION_UNITS):
        if milliseconds >= size:
            return f"{milliseconds // size}{unit}{milliseconds % size // next_size}{next_unit}"
    raise AssertionError(milliseconds)


def printable(text: str) -> str:
    """Safe on a terminal: control characters as backslash escapes."""
    return "".join(char if char.isprintable() else escaped(char) for char in text)


def escaped(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")

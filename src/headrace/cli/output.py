"""Rows for people and for programs: a table on a terminal, one JSON object per line when piped.

A subcommand hands over plain rows and never asks where they go. Column names are the JSON keys; on a terminal their
underscores become spaces. Bytes that are not UTF-8 are shown with backslash escapes.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

Cell = str | bytes | int | float | bool | None
Row = Mapping[str, Cell]


def show_rows(columns: Sequence[str], rows: Iterable[Row], *, title: str = "", stream: TextIO | None = None) -> None:
    """Writes rows to stdout (or stream). Piped rows leave one by one; a table waits for the last of them."""
    out = sys.stdout if stream is None else stream
    if out.isatty():
        write_table(columns, rows, title, out)
    else:
        write_ndjson(columns, rows, out)


def write_ndjson(columns: Sequence[str], rows: Iterable[Row], out: TextIO) -> None:
    import msgspec

    for row in rows:
        line = {name: plain_cell(row.get(name)) for name in columns}
        out.write(msgspec.json.encode(line).decode() + "\n")
    out.flush()


def write_table(columns: Sequence[str], rows: Iterable[Row], title: str, out: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", header_style="bold")
    for name in columns:
        table.add_column(name.replace("_", " "))
    for row in rows:
        # Text, not str: what users stored may hold square brackets, which are markup otherwise.
        table.add_row(*(Text(table_cell(row.get(name))) for name in columns))
    Console(file=out).print(table)


def plain_cell(cell: Cell) -> str | int | float | bool | None:
    return cell.decode("utf-8", "backslashreplace") if isinstance(cell, bytes) else cell


def table_cell(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return str(plain_cell(cell))

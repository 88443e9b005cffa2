"""Rows on a terminal and in a pipe."""

import io
import json

from headrace.cli.output import show_rows

ROWS = [
    {"name": "orders", "length_entries": 1200, "owner": None},
    {"name": b"caf\xe9 [red]", "length_entries": 0, "owner": "ann"},
]
COLUMNS = ["name", "length_entries", "owner"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_piped_rows_are_one_json_object_per_line() -> None:
    pipe = io.StringIO()

    show_rows(COLUMNS, ROWS, stream=pipe)

    first, second = [json.loads(line) for line in pipe.getvalue().splitlines()]
    assert first == {"name": "orders", "length_entries": 1200, "owner": None}
    assert second == {"name": "caf\\xe9 [red]", "length_entries": 0, "owner": "ann"}


def test_piped_rows_hold_the_asked_columns_in_the_asked_order() -> None:
    pipe = io.StringIO()

    show_rows(["owner", "name"], ROWS[:1], stream=pipe)

    assert pipe.getvalue() == '{"owner":null,"name":"orders"}\n'


def test_no_rows_are_no_lines_in_a_pipe() -> None:
    pipe = io.StringIO()

    show_rows(COLUMNS, [], stream=pipe)

    assert pipe.getvalue() == ""


def test_a_terminal_gets_a_table_with_readable_numbers() -> None:
    terminal = Terminal()

    show_rows(COLUMNS, ROWS, title="streams", stream=terminal)

    text = terminal.getvalue()
    assert "length entries" in text
    assert "1,200" in text
    assert "streams" in text


def test_square_brackets_of_users_are_text_and_not_markup() -> None:
    terminal = Terminal()

    show_rows(COLUMNS, ROWS, stream=terminal)

    assert "[red]" in terminal.getvalue()

"""Rows on a terminal and in a pipe."""

import errno
import io
import json

import pytest

from headrace.cli.output import ClosedPipe, show_facts, show_rows, table_cell
from headrace.errors import HeadraceError

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


def test_ids_are_never_broken_however_narrow_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    terminal = Terminal()
    row = {"group": "billing" * 9, "last_id": "1690275391705-12345", "first_id": "1690275391705-0"}

    show_rows(["group", "first_id", "last_id"], [row], stream=terminal)

    assert "1690275391705-12345" in terminal.getvalue() and "1690275391705-0 " in terminal.getvalue()


def test_a_terminal_does_without_what_is_known_and_is_told_when_there_is_nothing() -> None:
    terminal, pipe, empty = Terminal(), io.StringIO(), Terminal()

    show_rows(COLUMNS, ROWS, known=("owner",), nothing="Nobody.", stream=terminal)
    show_rows(COLUMNS, ROWS, known=("owner",), nothing="Nobody.", stream=pipe)
    show_rows(COLUMNS, [], nothing="Nobody.", stream=empty)

    assert "owner" not in terminal.getvalue() and "owner" in pipe.getvalue()
    assert empty.getvalue() == "Nobody.\n"


def test_square_brackets_of_users_are_text_and_not_markup() -> None:
    terminal = Terminal()

    show_rows(COLUMNS, ROWS, stream=terminal)

    assert "[red]" in terminal.getvalue()


def test_facts_are_one_json_object_in_a_pipe_and_two_tables_on_a_terminal() -> None:
    facts = {"stream": "orders", "lag": None, "by_group": [{"group": "billing", "lag": None}]}
    pipe, terminal = io.StringIO(), Terminal()

    show_facts(facts, more="by_group", columns=["group", "lag"], stream=pipe)
    show_facts(facts, more="by_group", columns=["group", "lag"], stream=terminal)

    assert json.loads(pipe.getvalue()) == facts
    assert terminal.getvalue().count("unknown") == 2
    assert "by group" in terminal.getvalue()


@pytest.mark.parametrize(
    ("idle_ms", "shown"),
    [(0, "0.0s"), (3400, "3.4s"), (60_000, "1m0s"), (723_000, "12m3s"), (7_500_000, "2h5m"), (90_000_000, "1d1h")],
)
def test_idle_times_are_durations_on_a_terminal(idle_ms: int, shown: str) -> None:
    assert table_cell(idle_ms, "idle_ms") == shown


def test_control_characters_never_reach_a_terminal() -> None:
    terminal = Terminal()

    show_rows(["value"], [{"value": "\x1b[31mred\x07\x9b"}, {"value": b"\x1b]0;x"}], stream=terminal)

    assert "\\x1b[31mred\\x07\\x9b" in terminal.getvalue()
    assert "\\x1b]0;x" in terminal.getvalue()


@pytest.mark.parametrize(("payload", "shown"), [(1200, "1200"), ("tea", "tea"), ({}, "{}"), (None, "null")])
def test_a_payload_is_shown_as_it_is(payload: object, shown: str) -> None:
    assert table_cell(payload, "payload") == shown


def test_half_characters_are_escaped_at_any_depth() -> None:
    pipe = io.StringIO()

    show_rows(["value"], [{"value": {"a": ["\udcff"], "\udcfe": b"\xfd"}}], stream=pipe)

    assert json.loads(pipe.getvalue()) == {"value": {"a": ["\\xff"], "\\xfe": "\\xfd"}}


class Gone(io.StringIO):
    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def flush(self) -> None:
        raise self.error


def test_a_reader_that_went_away_is_no_error_and_a_full_disk_is_one() -> None:
    with pytest.raises(ClosedPipe):
        show_rows(COLUMNS, ROWS, stream=Gone(BrokenPipeError()))
    with pytest.raises(HeadraceError, match="cannot write the output: No space left on device"):
        show_rows(COLUMNS, ROWS, stream=Gone(OSError(errno.ENOSPC, "No space left on device")))

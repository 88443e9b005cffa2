"""Conditions on dead letters, and how a letter is read."""

import pytest

from headrace.client.dead_letters import parse_where, read_letter
from headrace.client.results import Entry
from headrace.errors import ConfigError

LETTER = read_letter(
    Entry(
        "9-0",
        (
            (b"data", b"{}"), (b"key", b"k"), (b"hr:stream", b"orders"), (b"hr:id", b"1-0"), (b"hr:group", b"billing"),
            (b"hr:attempts", b"4"), (b"hr:error", b"TimeoutError: 5 s"), (b"hr:traceback", b"..."),
            (b"hr:at", b"1690275391705"),
        ),
    )
)  # fmt: skip


def test_a_letter_is_its_original_and_its_story():
    assert (LETTER.id, LETTER.stream, LETTER.entry_id, LETTER.group) == ("9-0", "orders", "1-0", "billing")
    assert (LETTER.attempts, LETTER.error, LETTER.traceback) == (4, "TimeoutError: 5 s", "...")
    assert LETTER.pairs == ((b"data", b"{}"), (b"key", b"k"))
    assert LETTER.at.isoformat() == "2023-07-25T08:56:31.705000+00:00"


def test_an_entry_that_somebody_else_put_there_is_shown_as_it_is():
    letter = read_letter(Entry("9-0", ((b"a", b"b"),)))

    assert (letter.stream, letter.attempts, letter.at, letter.payload) == ("", 0, None, {"a": "b"})


@pytest.mark.parametrize("nonsense", [b"x", b"-1", b"", b"9" * 16, b"9" * 5000])
def test_numbers_that_make_no_sense_are_none(nonsense):
    letter = read_letter(Entry("9-0", ((b"hr:attempts", nonsense[:1] * 17), (b"hr:at", nonsense))))

    assert (letter.attempts, letter.at) == (0, None)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ('error ~ "Timeout"', True),
        ("error ~ ^5", False),
        ("error = 'TimeoutError: 5 s'", True),
        ("attempts >= 4", True),
        ("attempts>4", False),
        ("attempts != 4", False),
        ("attempts < 10", True),
        ("key = k", True),
        ("entry = 1-0", True),
        ("id=9-0", True),
    ],
)
def test_conditions(condition, holds):
    assert parse_where(condition)(LETTER) is holds


@pytest.mark.parametrize("condition", ["", "error", "colour = red", "error ~ (", "attempts > many", "attempts"])
def test_what_is_no_condition_is_told(condition):
    with pytest.raises(ConfigError):
        parse_where(condition)

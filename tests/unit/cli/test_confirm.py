"""Who is asked before something is destroyed."""

import io
import sys

import pytest

from headrace.cli.confirm import confirm
from headrace.cli.usage import WrongUsage
from headrace.errors import Refused


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> Terminal:
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(text))
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


@pytest.mark.parametrize("text", ["y\n", "yes\n", " Y \n"])
def test_yes_goes_on(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    shown = answer(monkeypatch, text)

    confirm("remove 3 entries", yes=False)

    assert shown.getvalue() == "This will remove 3 entries. Go on? [y/N] "


@pytest.mark.parametrize("text", ["n\n", "\n", "", "yeah\n"])
def test_anything_else_stops(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    answer(monkeypatch, text)

    with pytest.raises(Refused, match="nothing was changed"):
        confirm("remove 3 entries", yes=False)


def test_without_a_terminal_the_option_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))

    with pytest.raises(WrongUsage, match="remove 3 entries; add --yes"):
        confirm("remove 3 entries", yes=False)


def test_the_option_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    confirm("remove 3 entries", yes=True)

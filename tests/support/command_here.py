"""The headrace command inside the process of a test: quicker than a process of its own."""

from __future__ import annotations

import os
import sys

import pytest

from headrace.cli import main

from .command_line import Ended


class Here:
    """Piped, with HEADRACE_URL set."""

    def __init__(
        self, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *start: str
    ) -> None:
        self.url = url
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self._start = start  # What every call begins with.
        monkeypatch.setenv("HEADRACE_URL", url)

    def __call__(self, *arguments: str | bytes) -> Ended:
        self._monkeypatch.setattr(sys, "argv", ["headrace", *self._start, *map(os.fsdecode, arguments)])
        with pytest.raises(SystemExit) as ended:
            main.run()
        shown = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, shown.out, shown.err)

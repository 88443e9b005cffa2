"""What `--help` tells, and what it costs."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from headrace.cli import main
from headrace.cli.main import app

ALL = {"--help", "-h"}
WITHOUT_URL = {"headrace serve", "headrace backup", "headrace restore", "headrace check"}


def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS = dict(commands(typer.main.get_group(app), "headrace"))


@pytest.mark.parametrize("path", sorted(set(COMMANDS) - {"headrace serve"}))
def test_the_help_of_a_command_has_one_example_that_is_its_own(path: str) -> None:
    examples = re.findall(r"^Example: (.+)$", COMMANDS[path].help, re.MULTILINE)

    assert [example.startswith(path + " ") for example in examples] == [True]


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_help_shows_no_python_types(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [*path.split(), "--help"])
    with pytest.raises(SystemExit):
        main.run()

    shown = capsys.readouterr().out
    assert "<" not in re.sub(r"\[[^]]*<=[^]]*\]", "", shown)
    assert ("--url URL" in shown) == (path not in WITHOUT_URL)


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_every_option_has_a_word_of_explanation(path: str) -> None:
    assert [option.name for option in COMMANDS[path].params if not getattr(option, "help", None)] == []


@pytest.mark.parametrize("path", sorted(set(COMMANDS) - {"headrace serve"}))
def test_the_page_on_the_command_line_names_every_command_and_option(path: str, root: Path) -> None:
    page = (root / "docs/command-line.md").read_text("utf-8")

    assert path in page
    options = {name for option in COMMANDS[path].params for name in option.opts if name.startswith("-")}
    assert {name for name in options - ALL if f"`{name}`" not in page and f"[{name}" not in page} == set()


def test_help_loads_neither_a_client_nor_a_broker() -> None:
    """What makes help slow is imports; they are counted here instead of the time."""
    code = (
        "import sys; sys.argv[1:] = ['--help']\ntry:\n import headrace.__main__\nexcept SystemExit: print(*sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code, "--help"], check=True, capture_output=True, text=True).stdout
    loaded = set(shown.splitlines()[-1].split())

    assert "headrace.cli.main" in loaded
    assert not loaded & {"redis", "hiredis", "msgspec", "asyncio", "headrace.client.client", "headrace.server.broker"}
    assert not loaded & {"pyspark", "pyarrow", "headrace.pipeline"}

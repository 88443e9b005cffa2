"""How the headrace command ends, and what it says then."""

import subprocess
import sys

import pytest

from headrace.cli import exit_codes, main
from headrace.errors import ConfigError


def end_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["headrace", *arguments])
    with pytest.raises(SystemExit) as end:
        main.run()
    assert isinstance(end.value.code, int)
    return end.value.code


def test_version_names_the_build(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert end_of(monkeypatch, "--version") == exit_codes.OK
    assert capsys.readouterr().out.startswith("headrace 0.")


@pytest.mark.parametrize("arguments", [["nonsense"], ["serve", "--port", "many"], ["serve", "--memory", "--port", "0"]])
def test_wrong_arguments_end_with_the_code_for_usage(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    assert end_of(monkeypatch, *arguments) == exit_codes.USAGE


def test_serve_without_memory_says_that_nothing_would_be_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert end_of(monkeypatch, "serve") == exit_codes.USAGE

    said = capsys.readouterr().err
    assert "--memory" in said
    assert said.count("\n") == 1


def test_an_error_of_ours_is_one_line_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: object) -> None:
        raise ConfigError("port 7379 is taken")

    monkeypatch.setattr(main, "app", refuse)

    assert end_of(monkeypatch, "serve", "--memory") == exit_codes.FAILURE
    assert capsys.readouterr().err == "headrace: port 7379 is taken\n"


def test_help_needs_neither_the_engine_nor_rich() -> None:
    """What makes help slow is imports; they are counted here instead of the time."""
    code = "import sys, headrace.cli.main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()

    rooms = {name.split(".")[1] for name in loaded if name.startswith("headrace.")}
    assert rooms == {"cli", "errors"}
    assert "rich.markdown" not in loaded

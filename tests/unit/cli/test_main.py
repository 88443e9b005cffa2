"""How the headrace command ends, and what it says then."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.cli import exit_codes, main
from headrace.cli.usage import WrongUsage
from headrace.errors import (
    AccessDenied,
    CommandError,
    ConfigError,
    ConnectionLost,
    HeadraceError,
    NotFound,
    ProtocolError,
    Refused,
    Unreachable,
)


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


@pytest.mark.parametrize("options", [["--dir", "data"], ["--fsync", "no"]])
def test_serve_in_memory_takes_no_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert end_of(monkeypatch, "serve", "--memory", *options) == exit_codes.USAGE

    said = capsys.readouterr().err
    assert said.startswith("headrace: --memory keeps nothing")
    assert said.count("\n") == 1


def test_an_error_of_ours_is_one_line_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: object) -> None:
        raise ConfigError("port 7379 is taken")

    monkeypatch.setattr(main, "app", refuse)

    assert end_of(monkeypatch, "serve", "--memory") == exit_codes.FAILURE
    assert capsys.readouterr().err == "headrace: port 7379 is taken\n"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (WrongUsage("there is nothing to publish."), exit_codes.USAGE, "there is nothing to publish."),
        (NotFound("NOGROUP there is none."), exit_codes.NOT_FOUND, "there is none."),
        (
            NotFound("stream has no group.", "NOGROUP", "my orders", "x"),
            exit_codes.NOT_FOUND,
            "stream 'my orders' has no group 'x'. See: headrace groups ls 'my orders'",
        ),
        (
            NotFound("there is none.", "ERR", "orders"),
            exit_codes.NOT_FOUND,
            "there is no stream 'orders'. See: headrace streams ls",
        ),
        (Unreachable("Cannot reach it."), exit_codes.CANNOT_CONNECT, "Cannot reach it."),
        (ConnectionLost("It broke."), exit_codes.CANNOT_CONNECT, "It broke."),
        (ProtocolError("It speaks another language."), exit_codes.CANNOT_CONNECT, "It speaks another language."),
        (AccessDenied("It refuses."), exit_codes.FAILURE, "It refuses."),
        (Refused("group 'a' needs it."), exit_codes.FAILURE, "group 'a' needs it."),
        (CommandError("ERR syntax error"), exit_codes.FAILURE, "syntax error"),
        (CommandError("OOM command not allowed"), exit_codes.FAILURE, "command not allowed"),
        (HeadraceError("two\nlines \x1b[2J"), exit_codes.FAILURE, "two\\nlines \\x1b[2J"),
    ],
)
def test_each_error_has_its_code_and_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: HeadraceError, code: int, said: str
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(main, "app", fail)

    assert end_of(monkeypatch, "tail", "orders") == code
    assert capsys.readouterr().err == f"headrace: {said}\n"


def test_ctrl_c_has_its_code_and_no_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "app", interrupted)

    assert end_of(monkeypatch, "tail", "orders") == exit_codes.INTERRUPTED
    assert capsys.readouterr().err == ""


def test_unreadable_options_are_one_line_that_names_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert end_of(monkeypatch, "streams", "ls", "--zebra") == exit_codes.USAGE
    assert capsys.readouterr().err == "headrace: No such option: --zebra. See: headrace streams ls --help\n"


@pytest.mark.parametrize("arguments", [["groups", "seek", "-h"], ["groups", "seek", "orders", "billing", "-h"]])
def test_seek_takes_a_time_back_and_still_shows_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert end_of(monkeypatch, *arguments) == exit_codes.OK
    assert capsys.readouterr().out.startswith("Usage: headrace groups seek")


@pytest.mark.parametrize("arguments", [[], ["streams"], ["groups"]])
def test_a_bare_command_shows_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    end_of(monkeypatch, *arguments)

    shown = capsys.readouterr()
    assert "Usage: " + " ".join(["headrace", *arguments]) in shown.out + shown.err


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_command_started_without_one_of_its_streams_ends_as_usual(closed: int) -> None:
    script = f"exec {closed}>&-; exec {shlex.quote(sys.executable)} -m headrace publish orders"

    ended = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True)

    assert ended.returncode == exit_codes.USAGE
    assert "Traceback" not in ended.stdout + ended.stderr


def test_a_full_disk_is_told_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run([sys.executable, "-m", "headrace", "--help"], stdout=full, stderr=subprocess.PIPE)

    assert ended.returncode == exit_codes.FAILURE
    assert ended.stderr.startswith(b"headrace: cannot write the output") and ended.stderr.count(b"\n") == 1

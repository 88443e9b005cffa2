"""headrace pipeline before and after Spark: what is refused at once, and what is said at the end."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import metadata
from threading import Event

import pytest

from headrace import errors
from headrace.cli import exit_codes, main, reports
from headrace.cli.progress import Pace, figures
from headrace.cli.spark import explained, one_sentence, stopped_by_signal
from headrace.cli.usage import WrongUsage
from headrace.errors import ConfigError, DataLoss, HeadraceError, Refused, Unreachable
from headrace.pipeline import ArchiveReport, CompactReport, Holder, ReplayReport, TrimmedStream


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def terminal() -> Iterator[Terminal]:
    with redirect_stdout(Terminal()) as screen:
        yield screen


def end_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["headrace", "pipeline", *arguments])
    with pytest.raises(SystemExit) as end:
        main.run()
    assert isinstance(end.value.code, int)
    return end.value.code


# Before Spark


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["archive", "orders"], "say where to archive: --to FOLDER."),
        (["archive", "--to", "lake"], "say what to archive: names of streams, or --pattern, and not both."),
        (["archive", "orders", "--pattern", "o*", "--to", "lake"], "and not both."),
        (["archive", "orders", "--to", "lake", "--interval", "soon"], "--interval is 'soon'"),
        (["archive", "orders", "--to", "lake", "--start", "yesterday"], "--start is 'yesterday'"),
        (["replay", "orders", "--from", "yesterday"], "--from is 'yesterday'; write an entry ID"),
        (["replay", "orders", "--until", "15.11.2026"], "a time like 2026-11-01"),
        (["replay", "orders", "--from", "-7days"], "or a time back like -7d."),
        (["trim", "--dry-run", "--yes"], "--dry-run and --yes say different things"),
        (["compact", "lake", "--name", "archive"], "by its folder or by --name, not both."),
        (["compact", "--dry-run", "--yes"], "--dry-run and --yes say different things"),
        (["compact", "--retention", "long"], "--retention is 'long'"),
        (["query", " "], "the SQL is empty."),
        (["query", "select 1", "--limit", "0"], "--limit"),
        (["query", "select 1"], "no URL: give --url"),
        (["query", "select 1", "--url", "embedded:"], "inside one process"),
    ],
)
def test_wrong_words_are_told_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    monkeypatch.delenv("HEADRACE_URL", raising=False)

    assert end_of(monkeypatch, *arguments) == exit_codes.USAGE

    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["archive", "o", "--to", "x"], ["trim"], ["replay", "o"], ["query", "select 1"], ["compact"]]
)
def test_a_broker_that_does_not_answer_is_told_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert end_of(monkeypatch, *words, "--url", "redis://127.0.0.1:1") == exit_codes.CANNOT_CONNECT
    assert capsys.readouterr().err.count("\n") == 1


def test_without_the_extra_one_sentence_tells_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def is_missing(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", is_missing)
    monkeypatch.setitem(sys.modules, "pyspark", None)

    assert end_of(monkeypatch, "query", "select 1", "--url", "redis://127.0.0.1:1") == exit_codes.FAILURE

    err = capsys.readouterr().err
    assert 'pip install "headrace[spark]"' in err and err.count("\n") == 1


# Failures


TRACE = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times: Traceback (most recent call last):
  File "reader.py", line 9, in read
headrace.errors.{kind}: {sentence}

	at org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
Caused by: org.apache.spark.api.python.PythonException: it all went wrong.
"""


def test_an_error_of_ours_inside_a_trace_of_spark_keeps_its_words_and_kind() -> None:
    found = explained(RuntimeError(TRACE.format(kind="Unreachable", sentence="cannot reach redis://x: refused.")))

    assert type(found) is Unreachable
    assert str(found) == "cannot reach redis://x: refused."


def test_options_that_a_job_refuses_are_wrong_usage() -> None:
    inside = RuntimeError(TRACE.format(kind="ConfigError", sentence="rate is 'x'."))

    assert type(explained(inside)) is WrongUsage
    with pytest.raises(WrongUsage, match="rate is 'x'"), one_sentence(verbose=False):
        raise ConfigError("rate is 'x'.")


def test_every_kind_of_error_can_come_out_of_a_trace() -> None:
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, HeadraceError) and kind is not ConfigError:
            assert type(explained(RuntimeError(TRACE.format(kind=kind.__name__, sentence="Why.")))) is kind


def test_a_failure_of_spark_itself_is_its_innermost_cause_in_one_sentence() -> None:
    text = (
        "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: Job aborted.\n\tat a.b(c)\n"
        "Caused by: java.io.IOException: No space left on device\n\tat d.e(f)"
    )

    assert str(explained(RuntimeError(text))) == (
        "Spark failed: No space left on device. Add --verbose to see all of it."
    )
    assert "it does not say why" in str(explained(RuntimeError())).replace("It", "it")


def test_the_whole_trace_is_shown_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*, verbose: bool) -> str:
        with pytest.raises(Refused), one_sentence(verbose=verbose):
            raise Refused("no.")
        return capsys.readouterr().err

    monkeypatch.delenv("HEADRACE_DEBUG", raising=False)
    assert fail(verbose=False) == ""
    assert "Traceback" in fail(verbose=True)
    monkeypatch.setenv("HEADRACE_DEBUG", "1")
    assert "Traceback" in fail(verbose=False)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "To go on with what is left, set fail_on_data_loss to false.",
            "To go on with what is left, use --allow-loss.",
        ),
        ("Set the option failOnDataLoss to false to go on.", "Use --allow-loss to go on."),
    ],
)
def test_loss_is_told_with_the_option_of_the_command(said: str, shown: str) -> None:
    with pytest.raises(DataLoss) as failure, one_sentence(verbose=False):
        raise DataLoss(said)

    assert str(failure.value) == shown
    assert shown in str(explained(RuntimeError(TRACE.format(kind="DataLoss", sentence=said))))


@pytest.mark.parametrize(("verbose", "shown"), [("False", ""), ("True", "ERROR:root:lost the connection\n")])
def test_what_sparks_libraries_log_is_shown_only_on_demand(verbose: str, shown: str) -> None:
    code = f"""
import logging
from headrace.cli.spark import one_sentence
with one_sentence(verbose={verbose}):
    logging.error("lost the connection")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stderr == shown


# Ctrl-C


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_the_job_to_end_and_a_second_one_would_end_the_process(
    capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    before = signal.getsignal(number)
    stop = Event()

    signals: list[int] = []
    with stopped_by_signal(stop, signals):
        os.kill(os.getpid(), number)
        assert stop.wait(10)
        assert signal.getsignal(number) == signal.SIG_DFL

    assert signals == [number]
    assert signal.getsignal(number) == before
    assert capsys.readouterr().err.startswith("headrace: ending")


# What is said at the end


def make_report(**facts: object) -> ArchiveReport:
    given = {"entries": 1_204_331, "through": {"orders": "1731651600000-4"}, "batches": 2, "seconds": 9.5}
    return ArchiveReport(**{**given, **facts})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        (
            {"trimmed": {"orders": 1_198_002}, "held_by": {"orders": Holder("audit", 6329)}},
            'archived 1,204,331 entries through 1731651600000-4 · trimmed 1,198,002 (group "audit" still needs 6,329)',
        ),
        ({}, "archived 1,204,331 entries through 1731651600000-4"),
        ({"entries": 0, "through": {}}, "archived 0 entries"),
        ({"entries": 1, "trimmed": {"orders": 0}}, "archived 1 entry through 1731651600000-4 · trimmed 0"),
        (
            {"trimmed": {"orders": 1}, "held_by": {"orders": Holder("audit", None)}},
            'archived 1,204,331 entries through 1731651600000-4 · trimmed 1 (group "audit" still needs some)',
        ),
        ({"through": {"a": "1-0", "b": "2-0"}}, "archived 1,204,331 entries of 2 streams"),
    ],
)
def test_an_archive_is_told_in_one_line(facts: dict[str, object], line: str) -> None:
    assert reports.archive_line(make_report(**facts)) == line


def test_an_archive_of_several_streams_shows_each() -> None:
    with terminal() as screen:
        reports.show_archive(make_report(through={"a": "1-0", "b": "2-0"}, held_by={"b": Holder("audit", 7)}))

    lines = screen.getvalue().splitlines()
    assert lines[0] == "archived 1,204,331 entries of 2 streams"
    assert any("b" in line and "2-0" in line and "audit" in line and "7" in line for line in lines)


def test_trim_names_the_group_that_holds_it_back_and_that_it_was_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    done = TrimmedStream("orders", "9-0", 3, Holder("audit", 6), is_dry_run=True)

    with terminal():
        reports.show_trim([done], is_dry_run=True)

    assert capsys.readouterr().err == (
        "headrace: 'orders' is held back: group \"audit\" still needs 6.\n"
        "headrace: this was a dry run: nothing was removed. Do it with --yes.\n"
    )


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (ReplayReport(5, 5, 0, 1.0, "n"), "replayed 5 entries of 'orders' to 'again'\n"),
        (
            ReplayReport(5, 1, 4, 1.0, "n", is_dry_run=True),
            "would replay 1 entry of 'orders' to 'again' · skipped 4 that had been replayed before\n",
        ),
    ],
)
def test_a_replay_is_told_in_one_line(report: ReplayReport, line: str) -> None:
    with terminal() as screen:
        reports.show_replay("orders", "again", report)

    assert screen.getvalue() == line


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (CompactReport(12, 3, 1, is_dry_run=False), "joined 12 files into 3 · removed 1 old file\n"),
        (CompactReport(12, 3, 0, is_dry_run=True), "would join 12 files into 3 · would remove 0 old files\n"),
        (CompactReport(1, 1, 2, is_dry_run=False), "nothing to join in 1 file · removed 2 old files\n"),
    ],
)
def test_compaction_is_told_in_one_line(report: CompactReport, line: str) -> None:
    with terminal() as screen:
        reports.show_compact(report)

    assert screen.getvalue() == line


def test_a_long_result_tells_that_there_is_more(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id_ms": number} for number in range(reports.ROWS_ON_SCREEN + 1)]

    with terminal() as screen:
        reports.show_result(["id_ms"], rows, None)

    assert "id_ms" in screen.getvalue() and " 999 " in screen.getvalue() and " 1000 " not in screen.getvalue()
    assert "these are the first 1,000 rows" in capsys.readouterr().err


def test_numbers_and_names_of_a_result_are_shown_as_they_are() -> None:
    row = {"id_ms": 1731651600000, "[bold]": "[red]", "payload": 1234}
    with terminal() as screen:
        reports.show_result(list(row), [row], 5)

    assert "1731651600000" in screen.getvalue() and "[bold]" in screen.getvalue() and "1234" in screen.getvalue()


@pytest.mark.parametrize(
    ("done", "left", "shown"),
    [
        (1000, 500, "1,000 entries  500/s  about 500 left"),
        (1000, 0, "1,000 entries  500/s  up to date"),
        (1000, None, "1,000 entries  500/s"),
    ],
)
def test_progress_tells_entries_their_rate_and_what_is_left(done: int, left: int | None, shown: str) -> None:
    assert figures(done, left, 500.0) == shown


def test_the_start_of_spark_does_not_count_in_the_rate() -> None:
    pace = Pace()

    assert pace.rate(100, 70.0) is None
    assert pace.rate(150, 72.0) == 25.0

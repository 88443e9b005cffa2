"""headrace pipeline as a user runs it. Most commands run in this process, in the session of the tests: Spark is slow to
start. What only a process of its own can show has one: terminal, Ctrl-C, quiet logs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import Client
from headrace.cli import exit_codes, main
from headrace.pipeline.archives import forget
from support.command_line import COMMAND, Ended, environment, on_terminal
from support.servers import wait_until

PATIENCE_S = 300.0  # Only to end a broken test.

Shell = Callable[..., Ended]


@pytest.fixture
def shell(spark: Any, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """shell("trim", "--yes") runs `headrace pipeline trim --yes` in this process."""
    monkeypatch.setenv("HEADRACE_URL", url)

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["headrace", "pipeline", *words])
        with pytest.raises(SystemExit) as end:
            main.run()
        shown = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return Ended(end.value.code, shown.out, shown.err)

    return run


@pytest.fixture
def orders(client: Client, stream: Any) -> Iterator[Any]:
    """A stream of ten messages, a group that has acknowledged four, and an archive's name that is free."""
    stream.publish_many([{"n": number} for number in range(10)], key="customer-42")
    group = stream.group("audit")
    group.create("beginning")
    group.ack(*(entry.id for entry in group.read("ann", count=4)))
    yield stream
    if client.command("HEXISTS", "hr:archives", stream.name):
        forget(client, stream.name)


def test_the_life_of_an_archive(shell: Shell, client: Client, orders: Any, tmp_path: Path) -> None:
    name, lake = orders.name, str(tmp_path / "lake")
    ids = [entry.id for entry in orders.range()]

    archived = shell("archive", name, "--to", lake, "--name", name).row
    assert archived.pop("seconds") > 0
    facts = {"stream": name, "through_id": ids[-1], "trimmed": 0, "held_by": None, "needed": None}
    assert archived == {"entries": 10, "batches": 1, "streams": [facts]}
    elsewhere = shell("archive", name, "--to", str(tmp_path / "other"), "--name", name)
    assert elsewhere.code == exit_codes.FAILURE and f"lies at {lake}" in elsewhere.err
    assert not (tmp_path / "other").exists()

    facts = {"stream": name, "archived_through_id": ids[-1], "removed": 4, "held_by": "audit", "needed": 6}
    assert shell("trim", "--name", name).row == {**facts, "dry_run": True}
    assert orders.length() == 10
    assert shell("trim", name, "--name", name, "--yes").row == {**facts, "dry_run": False}
    assert orders.length() == 6

    sql = f"select key, count(*) n, count(distinct id) ids from `{name}` group by key"
    assert shell("query", sql).row == {"key": "customer-42", "n": 10, "ids": 10}

    words = (
        "replay",
        name,
        "--to",
        f"{name}-again",
        "--archive",
        name,
        "--where",
        "data like '%1%' or data like '%2%'",
    )
    assert shell(*words, "--dry-run").row["added"] == 2
    replayed = [shell(*words).row for _ in range(2)]
    assert [(row["matched"], row["added"], row["skipped"]) for row in replayed] == [(2, 2, 0), (2, 0, 2)]
    assert client.stream(f"{name}-again").length() == 2


@pytest.mark.costly("headrace")
def test_a_query_writes_rows_to_a_pipe_or_a_file(shell: Shell, orders: Any, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    sql = f"select id, data from `{orders.name}` order by id_ms, id_seq"

    rows = shell("query", sql).rows
    assert [row["data"] for row in rows] == [json.dumps({"n": number}, separators=(",", ":")) for number in range(10)]
    assert shell("query", sql, "--limit", "3").rows == rows[:3]
    assert shell("query", sql, "--output", str(file)).row == {"file": str(file), "rows": 10}
    assert len(file.read_text().splitlines()) == 11


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["query", "select * from `{name}-x`"],
            exit_codes.NOT_FOUND,
            "there is no stream '{name}-x'. See: headrace streams ls",
        ),
        (["query", "selec"], exit_codes.USAGE, "the SQL cannot be read: Syntax error at or near 'selec'"),
        (["query", "select * from orders:eu"], exit_codes.USAGE, "stand in backticks: `orders:eu`."),
        (["query", "select total from `{name}`"], exit_codes.USAGE, "the SQL cannot be run: A column"),
        (["query", "select 1", "--output", "rows.xls"], exit_codes.USAGE, "end it with .ndjson, .csv or .parquet"),
        (["query", "select raise_error('no luck')"], exit_codes.FAILURE, "no luck"),
        (["archive", "{name}-x", "--to", "lake"], exit_codes.NOT_FOUND, "there is no stream '{name}-x'."),
        (["archive", "{name}", "--to", "s3://bucket"], exit_codes.USAGE, "tables lie in folders"),
        (["archive", "{name}", "--to", "lake", "--format", "csv"], exit_codes.USAGE, "write delta or parquet"),
        (["trim", "--name", "nix"], exit_codes.USAGE, "the broker knows no archive 'nix'"),
        (["replay", "{name}", "--archive", "nix"], exit_codes.USAGE, "the broker knows no archive 'nix'"),
    ],
)
@pytest.mark.costly("headrace")
def test_a_failure_is_one_line_with_its_code(
    shell: Shell, orders: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)

    ended = shell(*(word.replace("{name}", orders.name) for word in words))

    assert (ended.code, ended.out) == (code, "")
    assert said.replace("{name}", orders.name) in ended.err and ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["archive", "{name}", "--to", "lake", "--format", "csv"], "write delta or parquet"),
        (["archive", "{name}", "--to", "s3://bucket"], "tables lie in folders"),
        (["replay", "{name}", "--rate", "fast"], "rate is 'fast'"),
        (["replay", "{name}", "--archive", "nix"], "the broker knows no archive 'nix'"),
    ],
)
@pytest.mark.costly("headrace")
def test_what_can_be_refused_without_spark_does_not_wait_for_it(
    shell: Shell, orders: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("headrace.cli.spark.spark_session", lambda *_, **__: pytest.fail("Spark was started."))

    ended = shell(*(word.replace("{name}", orders.name) for word in words))

    assert ended.code == exit_codes.USAGE
    assert said in ended.err and ended.err.count("\n") == 1


# Processes of their own


@pytest.mark.long
def test_on_a_terminal_a_query_shows_a_table_and_nothing_of_spark(our_url: str, our_client: Client, name: str) -> None:
    our_client.stream(name).publish_many([{"n": number} for number in range(3)], key="customer-42")

    shown = on_terminal("pipeline", "query", f"select key, count(*) n from `{name}` group by key", url=our_url)

    assert shown.code == 0
    assert "customer-42 │ 3 " in shown.out
    assert "WARN" not in shown.out and "log4j" not in shown.out


@pytest.mark.long
def test_ctrl_c_ends_a_continuous_archive_with_its_summary(
    our_url: str, our_client: Client, name: str, tmp_path: Path
) -> None:
    stream = our_client.stream(name)
    stream.publish_many([{"n": number} for number in range(100)])
    words = ("pipeline", "archive", name, "--to", str(tmp_path / "lake"), "--name", name, "--continuous", "--trim")
    running = subprocess.Popen(
        [*COMMAND, *words, "--interval", "100ms"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(our_url),
        start_new_session=True,  # A terminal's Ctrl-C reaches the whole group: the JVM and Spark's workers too.
    )
    try:
        wait_until(
            lambda: running.poll() is not None or stream.length() == 0, "all to be archived", timeout_s=PATIENCE_S
        )
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE_S)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
        forget(our_client, name)

    assert running.returncode == exit_codes.INTERRUPTED, err.decode()
    report = json.loads(out)
    assert (report["entries"], report["streams"][0]["trimmed"]) == (100, 100)
    assert err.decode() == "headrace: ending after the batch under way; once more ends it at once.\n"

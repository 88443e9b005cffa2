"""headrace queues against ours and Valkey, as a user runs it: piped, and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace import Client
from support.command_here import Here
from support.command_line import Ended, headrace, on_terminal
from support.servers import Kind, Server, kind_parameters

FAILURE, USAGE, NOT_FOUND = 1, 2, 3


@pytest.fixture(scope="module", params=kind_parameters())
def running(request: pytest.FixtureRequest) -> Iterator[Server]:
    kind: Kind = request.param
    with kind.start() as server:
        yield server


class Shell(Here):
    """headrace queues with HEADRACE_URL set."""

    def process(self, *arguments: str, stdin: bytes) -> Ended:
        return headrace("queues", *arguments, url=self.url, stdin=stdin)

    def terminal(self, *arguments: str, types: str = "") -> Ended:
        return on_terminal("queues", *arguments, url=self.url, types=types)


@pytest.fixture
def shell(running: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    running.clean()
    return Shell(f"redis://127.0.0.1:{running.port}", monkeypatch, capsys, "queues")


@pytest.fixture
def jobs(shell: Shell) -> Iterator[Any]:
    """The queue "jobs" with three elements."""
    with Client(shell.url) as client:
        queue = client.queue("jobs")
        queue.push("a", "b", "c")
        yield queue


def test_an_element_goes_from_push_to_ack(shell: Shell) -> None:
    ids = [row["id"] for row in shell("push", "jobs", "resize 17.jpg", b"\xff").rows]

    popped = shell("pop", "jobs", "--count", "2").rows
    assert popped == [
        {"queue": "jobs", "id": ids[0], "body": "resize 17.jpg"}, {"queue": "jobs", "id": ids[1], "body": "\\xff"}
    ]  # fmt: skip
    assert shell("ack", "jobs", ids[0], "1-1").row == {"queue": "jobs", "acked": 1, "not_delivered": 1}
    assert shell("nack", "jobs", ids[1]).row == {"queue": "jobs", "given_back": 1, "not_delivered": 0}
    assert shell("pop", "urgent", "jobs", "--count", "5", "--ack").row["id"] == ids[1]
    facts = shell("info", "jobs").row
    assert (facts["undelivered"], facts["delivered"], facts["nacks"], facts["last_id"]) == (0, 0, 1, ids[1])


def test_every_line_of_stdin_is_an_element(shell: Shell) -> None:
    lines = b"".join(b"%d\n" % number for number in range(2_500)) + b"last"

    rows = shell.process("push", "jobs", "-", stdin=lines).rows

    with Client(shell.url) as client:
        popped = client.queue("jobs").pop(count=3_000)
    assert [job.id for job in popped] == [row["id"] for row in rows]
    assert [job.text for job in popped] == [*map(str, range(2_500)), "last"]


def test_what_a_dead_consumer_held_is_recovered(shell: Shell, jobs: Any) -> None:
    held = jobs.pop(count=2)

    rows = shell("recover", "jobs", "--idle", "0s", "--count", "1").rows

    assert rows == [{"queue": "jobs", "id": held[0].id, "deliveries": 2, "body": "a"}]
    pending = shell("inspect", "jobs", "--pending").rows
    assert [(row["body"], row["deliveries"]) for row in pending] == [("b", 1), ("a", 2)]


def test_inspect_takes_nothing(shell: Shell, jobs: Any) -> None:
    assert [row["body"] for row in shell("inspect", "jobs", "--start", "-2", "--count", "1").rows] == ["b"]
    assert jobs.info().undelivered == 3


def test_what_is_delayed_is_shown_with_its_time(shell: Shell, jobs: Any) -> None:
    if not jobs.client.capabilities().has_queues:
        assert "delay of a push is not possible on this server" in shell("push", "jobs", "x", "--delay", "1h").err
        assert shell("inspect", "jobs", "--delayed").rows == []
        return
    [pushed] = shell("push", "jobs", "late", "--delay", "1h").rows

    row = shell("inspect", "jobs", "--delayed").row

    assert (row["id"], row["body"], row["deliveries"]) == (pushed["id"], "late", 0)
    assert datetime.fromisoformat(row["due"]) > datetime.now(UTC)
    shell("push", "jobs", "never", "--delay", "99999999d")
    assert [row["due"] for row in shell("inspect", "jobs", "--delayed").rows][1] == "9999-12-31T23:59:59.000Z"


def test_a_pause_and_its_end(shell: Shell, jobs: Any) -> None:
    assert shell("pause", "jobs", "--out").row == {"queue": "jobs", "paused": "out"}
    assert jobs.pop() == []
    assert shell.terminal("pop", "nothing", "jobs").out == "Nothing came. Paused: 'jobs'\n"
    assert shell("pop", "jobs").rows == []
    assert shell("pause", "jobs").row["paused"] == "all"
    refused = shell("push", "jobs", "x")
    assert (refused.code, refused.out) == (FAILURE, "")
    assert refused.err == (
        "headrace: queue 'jobs' is paused: it takes no new elements. End that: headrace queues resume jobs\n"
    )
    assert shell("resume", "jobs").row["paused"] == "none"
    assert [job.text for job in jobs.pop()] == ["a"]


def test_queues_are_listed(shell: Shell, jobs: Any) -> None:
    with Client(shell.url) as client:
        client.stream("orders").add({"a": "b"})
        client.queue("mails").push("x")
    jobs.pop()

    rows = shell("ls").rows

    assert [(row["queue"], row["undelivered"], row["delivered"], row["paused"]) for row in rows] == [
        ("jobs", 2, 1, "none"), ("mails", 1, 0, "none")
    ]  # fmt: skip
    assert [row["queue"] for row in shell("ls", "j*").rows] == ["jobs"]
    assert shell.terminal("ls", "nothing*").out == "No queues with such a name.\n"


def test_a_queue_is_removed_after_a_yes(shell: Shell, jobs: Any) -> None:
    jobs.pop()

    refused = shell.terminal("rm", "jobs", types="n\n")
    assert refused.code == FAILURE and "remove queue 'jobs' with 3 elements" in refused.out
    assert shell("rm", "jobs").code == USAGE
    assert shell("rm", "jobs", "--yes").row == {"queue": "jobs", "removed": True, "elements": 3}
    assert shell("ls").rows == []


def test_headings_and_ids_on_a_terminal_are_in_one_piece(shell: Shell, jobs: Any) -> None:
    listed = shell.terminal("ls").out
    pushed = shell.terminal("push", "jobs", "d").out

    assert all(name in listed for name in ("queue", "undelivered", "delivered", "delayed", "dead", "paused"))
    assert pushed == jobs.stats().last_id + "\n"


def test_a_terminal_gets_tables(shell: Shell, jobs: Any) -> None:
    shown = shell.terminal("info", "jobs").out

    assert "undelivered" in shown and "3" in shown and "last id" in shown
    assert shell.terminal("inspect", "jobs", "--pending").out == "Nothing is pending.\n"
    popped = shell.terminal("pop", "jobs").out
    assert "body" in popped and "a" in popped


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["info", "nothing"], NOT_FOUND, "there is no queue 'nothing'. See: headrace queues ls\n"),
        (["inspect", "nothing"], NOT_FOUND, "there is no queue 'nothing'"),
        (["ack", "nothing", "1-1"], NOT_FOUND, "there is no queue 'nothing'"),
        (["nack", "nothing", "1-1"], NOT_FOUND, "there is no queue 'nothing'"),
        (["recover", "nothing"], NOT_FOUND, "there is no queue 'nothing'"),
        (["resume", "nothing"], NOT_FOUND, "there is no queue 'nothing'"),
        (["rm", "nothing", "--yes"], NOT_FOUND, "there is no queue 'nothing'"),
        (["pop", "words"], FAILURE, "'words' is not a queue but a string"),
        (["push", "words", "x"], FAILURE, "'words' is not a queue but a string"),
        (["ack", "jobs", "abc"], USAGE, "'abc' is no ID of an element; write one like 1690275391705-1."),
        (["ack", "jobs"], USAGE, "Missing argument"),
        (["push", "jobs"], USAGE, "Missing argument"),
        (["push", "", "x"], USAGE, "the name of the queue is empty"),
        (["pop", "jobs", "--count", "0"], USAGE, "--count"),
        (["pop", "jobs", "--wait", "soon"], USAGE, "--wait is 'soon'"),
        (["recover", "jobs", "--idle", "soon"], USAGE, "--idle is 'soon'"),
        (["pause", "jobs", "--in", "--out"], USAGE, "give one of them"),
        (["inspect", "jobs", "--pending", "--delayed"], USAGE, "give one of them"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(shell: Shell, arguments: list[str], code: int, words: str) -> None:
    with Client(shell.url) as client:
        client.command("SET", "words", "text")
        client.queue("jobs").push("x")

    ended = shell(*arguments)

    assert (ended.code, ended.out) == (code, "")
    assert words in ended.err and ended.err.count("\n") == 1

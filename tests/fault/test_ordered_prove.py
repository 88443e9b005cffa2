"""headrace ordered prove, as a user runs it: on any server, leaving nothing behind, honest when something is wrong."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from headrace import Client
from headrace.testing import running_broker
from support.command_line import headrace, on_terminal, start_headrace
from support.deployments import KEEPS_NOTHING, Deployment, Process, deployments, real_kinds
from support.servers import wait_until

WAIT_S = 120.0
ENDLESS = ("--keys", "3", "--messages", "1000000", "--consumers", "4", "--duration", "10h", "--lease", "500ms")
SMALL = ("--keys", "10", "--messages", "300", "--consumers", "3", "--duration", "2s", "--kill-every", "1h")


@pytest.fixture
def broker_url() -> Iterator[str]:
    with running_broker() as broker:
        yield broker.url


def find_proof(client: Client) -> str | None:
    """The name of the stream of a proof that runs."""
    return next(iter(client.streams("headrace-proof:*")), None)


def children_of(pid: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def is_running(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def test_it_leaves_a_server_as_it_was(broker_url: str) -> None:
    with Client(broker_url) as client:
        client.command("SET", "headrace-proof", "mine")
        client.command("HSET", "tickets", "7", "mine")

        report = headrace("ordered", "prove", broker_url, *SMALL, "--seed", "5").row

        assert sorted(client.command("KEYS", "*")) == [b"headrace-proof", b"tickets"]
    assert report["holds"] and len(report["checks"]) == 7 and report["seed"] == 5
    assert report["events"]["joined"] >= 3


def test_it_works_on_a_folder_that_needs_no_server(tmp_path: Path) -> None:
    assert headrace("ordered", "prove", f"embedded:{tmp_path / 'data'}", *SMALL).row["holds"]


def test_it_shows_a_table_on_a_terminal() -> None:
    with Process(real_kinds()[0], *KEEPS_NOTHING) as server:
        shown = on_terminal("ordered", "prove", *SMALL, url=server.url)

        assert shown.code == 0, shown.out
        assert shown.out.count("holds") == 7 and "no message was lost" in shown.out
        assert "messages/s; consumers: " in shown.out
        assert server.command_reply("DBSIZE") == 0


def test_it_fails_when_a_promise_does_not_hold(broker_url: str) -> None:
    """Somebody does a message again behind its back."""
    with Client(broker_url) as client:
        process = start_headrace("ordered", "prove", broker_url, *SMALL, url=broker_url)
        wait_until(lambda: is_begun(client), "the first message to be done", timeout_s=WAIT_S)
        done_key = f"{find_proof(client)}:done:0"
        [line] = client.command("LRANGE", done_key, 0, 0)
        client.command("RPUSH", done_key, line)
        out, _ = process.communicate(timeout=WAIT_S)

        assert process.returncode == 5
        report = json.loads(out)
        failed = [check["promise"] for check in report["checks"] if not check["holds"]]
        assert not report["holds"] and "no message was done twice" in failed and "no message was lost" not in failed
        assert client.command("DBSIZE") == 0


def is_begun(client: Client) -> bool:
    name = find_proof(client)
    return name is not None and client.command("EXISTS", f"{name}:done:0") == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_it_leaves_neither_keys_nor_processes(broker_url: str, how: signal.Signals) -> None:
    with Client(broker_url) as client:
        process = start_headrace("ordered", "prove", broker_url, *ENDLESS, "--kill-every", "300ms", url=broker_url)
        wait_until(lambda: is_begun(client), "the first message to be done", timeout_s=WAIT_S)
        consumers = children_of(process.pid)
        process.send_signal(how)

        assert process.wait(WAIT_S) == 130
        close(process)
        assert len(consumers) >= 3 and not any(map(is_running, consumers))
        assert client.command("DBSIZE") == 0


def test_killed_itself_it_leaves_no_process(broker_url: str) -> None:
    """Also none that it had paused."""
    with Client(broker_url) as client:
        process = start_headrace("ordered", "prove", broker_url, *ENDLESS, "--kill-every", "300ms", url=broker_url)
        wait_until(lambda: is_begun(client), "the first message to be done", timeout_s=WAIT_S)
        started: set[int] = set()

        def has_paused_one() -> bool:
            started.update(children_of(process.pid))
            return any(state_of(pid) == "T" for pid in started)

        wait_until(has_paused_one, "a paused consumer", timeout_s=WAIT_S)
        process.kill()
        process.wait(WAIT_S)
        close(process)
        wait_until(lambda: not any(map(is_running, started)), "all to end", timeout_s=WAIT_S)


def state_of(pid: int) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return ""


def close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def test_a_password_reaches_the_consumers_and_no_output() -> None:
    with Process(real_kinds()[0], *KEEPS_NOTHING) as server:
        server.command_reply("CONFIG", "SET", "requirepass", "s3cret")
        url = f"redis://:s3cret@127.0.0.1:{server.port}"

        ended = headrace("ordered", "prove", *SMALL, url=url)

        assert ended.row["holds"] and "s3cret" not in ended.out + ended.err


@pytest.mark.long
@pytest.mark.parametrize("deployment", [one for one in deployments() if not one.is_in_process], ids=str)
def test_it_holds_on_every_server_while_consumers_are_killed(deployment: Deployment) -> None:
    plenty = ("--keys", "100", "--messages", "5000", "--consumers", "4", "--duration", "15s", "--kill-every", "1s")
    with deployment.start() as url:
        ended = headrace("ordered", "prove", url, *plenty)

    report = json.loads(ended.out)
    assert [check for check in report["checks"] if not check["holds"]] == []
    assert ended.code == 0 and report["events"]["killed"] > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--keys", "0"), "keys is 0; it must be from 1 to 100,000"),
        (("--consumers", "1"), "consumers is 1; it must be from 2 to 64"),
        (("--lease", "1ms"), "lease_ms is 1; it must be from 500"),
        (("--duration", "soon"), "--duration is 'soon'"),
    ],
)
def test_what_cannot_be_is_told(words: tuple[str, ...], told: str) -> None:
    ended = headrace("ordered", "prove", "redis://127.0.0.1:1", *words)

    assert ended.code == 2 and told in ended.err and ended.err.count("\n") == 1


def test_a_server_that_is_not_there_is_told_at_once() -> None:
    assert headrace("ordered", "prove", "redis://127.0.0.1:1").code == 4

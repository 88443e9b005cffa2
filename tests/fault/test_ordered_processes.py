"""Workers that keep order, as processes that are killed, stopped and lose their broker. Rows 227-229, 231, 242, 250.

The small counts run always; the large ones are in the long run.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from headrace import Client
from headrace.testing import running_broker
from support.command_line import COMMAND, headrace
from support.durable_broker import DurableBroker
from support.servers import wait_until

WAIT_S = 120.0

DESK = """
import asyncio, os
from headrace import App, Context, Retries

app = App()

@app.handler("tickets", key="ticket_id", group="desk", lease="{lease}", run=5,
             retries=Retries({retries}, first="1ms"), concurrency={concurrency})
async def answer(ticket: dict, ctx: Context) -> None:
    {act}
    await asyncio.sleep({work_s})
    await ctx.commit([("RPUSH", "result:" + ctx.key, ticket["number"])])
"""


def write_desk(
    folder: Path, *, work_s: float = 0.002, act: str = "", retries: int = 1000, concurrency: int = 100
) -> Path:
    text = DESK.format(lease="500ms", work_s=work_s, act=act, retries=retries, concurrency=concurrency)
    (folder / "desk.py").write_text(text)
    return folder


@contextmanager
def worker(folder: Path, url: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """headrace worker desk:app, ended whatever happens."""
    with (folder / "worker.log").open("a") as log:
        process = subprocess.Popen(
            [*COMMAND, "worker", "desk:app", *options], cwd=folder, env={**os.environ, "HEADRACE_URL": url},
            stdin=subprocess.DEVNULL, stderr=log, text=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                process.wait(60)


def log_of(folder: Path) -> str:
    return (folder / "worker.log").read_text()


def publish(client: Client, keys: int, count: int) -> None:
    messages = [{"ticket_id": key, "number": number} for number in range(count) for key in range(keys)]
    client.stream("tickets").publish_many(messages)


def results(client: Client, keys: int) -> list[list[int]]:
    return [[int(number) for number in client.command("LRANGE", f"result:{key}", 0, -1)] for key in range(keys)]


def done(client: Client, keys: int) -> int:
    return sum(client.command("LLEN", f"result:{key}") for key in range(keys))


@pytest.fixture
def broker_url() -> Iterator[str]:
    with running_broker() as broker:
        yield broker.url


@pytest.mark.parametrize(
    ("keys", "count", "kills"),
    [(20, 50, 4), pytest.param(300, 100, 100, marks=pytest.mark.long)],
    ids=["some", "many"],
)
def test_workers_killed_and_stopped_at_random_keep_every_key_in_order(tmp_path, broker_url, keys, count, kills):
    """Rows 227-229 and 250: three workers, one of which dies or sleeps past its lease, again and again."""
    folder = write_desk(tmp_path)
    chance = random.Random(keys)
    with Client(broker_url, timeout="60s") as client, ExitStack() as stack:
        publish(client, keys, count)
        workers = [stack.enter_context(worker(folder, broker_url)) for _ in range(3)]
        for round_ in range(kills):
            goal = (round_ + 1) * keys * count // (kills + 2)
            wait_until(lambda goal=goal: done(client, keys) >= goal, f"{goal} results", timeout_s=WAIT_S)
            victim = chance.randrange(3)
            if round_ % 2:
                workers[victim].kill()
                workers[victim] = stack.enter_context(worker(folder, broker_url))
            else:
                workers[victim].send_signal(signal.SIGSTOP)
                time.sleep(0.8)  # Longer than the lease.
                workers[victim].send_signal(signal.SIGCONT)
        wait_until(lambda: done(client, keys) >= keys * count, "all results", timeout_s=10 * WAIT_S)
        wait_until(lambda: client.stream("tickets").length() == 0, "the stream to be empty", timeout_s=WAIT_S)
        assert results(client, keys) == [list(range(count))] * keys
        assert client.command("EXISTS", "hr:{tickets}:desk:tickets") == 0
        assert client.stream("hr:{tickets}:desk:dead").length() == 0


def test_a_worker_that_was_stopped_past_its_lease_is_refused_when_it_goes_on(tmp_path, broker_url):
    """Row 228: another has the key by then and is done; what the first wanted to do is not done."""
    folder = write_desk(tmp_path, work_s=1.0)
    with Client(broker_url) as client, worker(folder, broker_url) as first:
        publish(client, 1, 1)
        ticket = "hr:{tickets}:desk:tickets"
        wait_until(
            lambda: b"held" in (client.command("HGET", ticket, "0") or b""), "the key to be held", timeout_s=WAIT_S
        )
        first.send_signal(signal.SIGSTOP)
        with worker(folder, broker_url):
            wait_until(lambda: done(client, 1) == 1, "the second to be done", timeout_s=WAIT_S)
            first.send_signal(signal.SIGCONT)
            wait_until(lambda: "key_lost" in log_of(folder), "the first to be told", timeout_s=WAIT_S)
            wait_until(lambda: "late_finish" in log_of(folder), "its run to be refused", timeout_s=WAIT_S)
        assert results(client, 1) == [[0]]


def test_keys_of_a_killed_worker_move_when_their_lease_has_ended(tmp_path, broker_url):
    """Row 242: with all their messages, in order. A message that only waited has not been tried."""
    folder = write_desk(tmp_path, work_s=3600)
    with Client(broker_url) as client:
        publish(client, 3, 4)
        with worker(folder, broker_url) as first:
            held = "hr:{tickets}:desk:until"
            wait_until(lambda: client.command("ZCARD", held) == 3, "three keys to be held", timeout_s=WAIT_S)
            first.kill()
            first.wait(60)
        write_desk(folder)
        with worker(folder, broker_url):
            wait_until(lambda: done(client, 3) == 12, "the second to have it all", timeout_s=WAIT_S)
        assert results(client, 3) == [[0, 1, 2, 3]] * 3


def test_a_broker_killed_under_its_workers_loses_no_order(tmp_path):
    """Row 231: what was answered is kept, lanes and all; the workers go on by themselves."""
    folder = write_desk(tmp_path)
    keys, count = 10, 40
    with DurableBroker(tmp_path / "data") as broker:
        broker.start()
        url = f"redis://127.0.0.1:{broker.port}"
        with Client(url, timeout="60s") as client, worker(folder, url), worker(folder, url):
            publish(client, keys, count)
            for part in (1, 2, 3):
                goal = part * keys * count // 4
                wait_until(lambda goal=goal: done(client, keys) >= goal, f"{goal} results", timeout_s=WAIT_S)
                broker.kill()
                broker.start()
            wait_until(lambda: done(client, keys) >= keys * count, "all results", timeout_s=WAIT_S)
            assert results(client, keys) == [list(range(count))] * keys


def test_a_message_that_kills_its_worker_parks_its_key_and_the_others_go_on(tmp_path, broker_url):
    """Row 247, when the process dies: one retry is two runs. Resumed without that message, the key goes on."""
    act = "os._exit(1) if ctx.key == '1' and ticket['number'] == 1 else None"
    folder = write_desk(tmp_path, act=act, retries=1, concurrency=1)
    with Client(broker_url) as client, worker(folder, broker_url, "--processes", "1", "--reload"):
        publish(client, 3, 3)
        parked = "hr:{tickets}:desk:tickets"
        wait_until(lambda: b"parked" in (client.command("HGET", parked, "1") or b""), "a park", timeout_s=WAIT_S)
        wait_until(lambda: done(client, 3) == 7, "the others", timeout_s=WAIT_S)
        assert b"a worker ended while it ran this message" in client.command("HGET", parked, "1")
        assert headrace("ordered", "resume", "tickets", "desk", "1", "--skip", url=broker_url).code == 0
        wait_until(lambda: done(client, 3) == 8, "the rest of the key", timeout_s=WAIT_S)
        assert results(client, 3) == [[0, 1, 2], [0, 2], [0, 1, 2]]
        assert client.stream("hr:{tickets}:desk:dead").length() == 1

"""Workers whose broker is killed, comes back, or is not there yet. Row 262, on ours and on Valkey."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from headrace import App, Client
from headrace.testing.running_broker import free_port
from support.durable_broker import DurableBroker
from support.servers import wait_until
from support.worker_processes import (
    SERVERS,
    WAIT_S,
    Crew,
    is_done,
    log_of,
    numbers,
    server_in_memory,
    server_on_disk,
    show,
    worker,
    write_shop,
)
from support.worker_programs import run, until

WORKERS = 3
# Who has consumed since the broker came back, by process.
SHOP = """
import os
from headrace import App

app = App()

@app.handler("orders", group="billing", lease="2s", concurrency=1, prefetch=0, retries=1000)
async def bill(number: int) -> None:
    await app.client.command("RPUSH", "done", f"- {number} 0")
    await app.client.command("SADD", "awake", os.getpid())
"""


@pytest.mark.parametrize("restarts", [3, pytest.param(50, marks=pytest.mark.long)])
@pytest.mark.parametrize("server", SERVERS)
def test_every_worker_consumes_again_after_the_broker_was_killed_and_came_back(tmp_path, capsys, server, restarts):
    """Messages are published one after the other until each of the workers has had one."""
    (tmp_path / "shop.py").write_text(SHOP)
    chance = random.Random(restarts)
    back_s: list[float] = []
    published = 0
    with (
        server_on_disk(server, tmp_path / "data") as broker,
        Crew(tmp_path, broker.url, WORKERS, {"orders": "billing"}) as crew,
        Client(broker.url, timeout="60s") as client,
    ):
        pids = {str(process.pid).encode() for process in crew.workers}
        wait_until(lambda: log_of(tmp_path).count("worker_started") == WORKERS, "all workers", timeout_s=WAIT_S)
        for _ in range(restarts):
            broker.kill()
            time.sleep(chance.uniform(0, 1))  # How long it is away; nothing is waited for.
            broker.start()
            began_s = time.monotonic()
            client.command("DEL", "awake")
            awake: set[bytes] = set()
            while awake != pids:
                client.stream("orders").publish(published)
                published += 1
                time.sleep(0.02)
                before, awake = awake, set(client.command("SMEMBERS", "awake"))
                back_s += [time.monotonic() - began_s] * len(awake - before)
                assert time.monotonic() < began_s + WAIT_S, f"only {awake} of {pids} are back"
        wait_until(lambda: is_done(client), "all to be settled", timeout_s=WAIT_S)
        assert set(numbers(client, "done")) == set(range(published))
        assert [process.poll() for process in crew.workers] == [None] * WORKERS
    what = f"{WORKERS} workers, {restarts} restarts, {published} messages, until each consumed again"
    show(capsys, what, back_s, 5.0, is_judged=restarts > 3)


def test_a_worker_waits_for_a_broker_that_is_not_there_yet(tmp_path):
    folder = write_shop(tmp_path)
    broker = DurableBroker(tmp_path / "data")
    broker.port = free_port()
    url = f"redis://127.0.0.1:{broker.port}"
    with broker, worker(folder, url), worker(folder, "redis://127.0.0.1:1") as another:
        wait_until(lambda: log_of(folder).count("broker_lost") == 2, "both to notice", timeout_s=WAIT_S)
        another.terminate()
        assert another.wait(WAIT_S) == 0  # It may be stopped while it waits.
        broker.start()
        with Client(url) as client:
            client.stream("orders").publish(1)
            wait_until(lambda: is_done(client) and numbers(client, "done") == [1], "the message", timeout_s=WAIT_S)
    assert log_of(folder).count("broker_lost") == 2  # One line each, however often they tried.


def test_a_worker_that_may_not_settle_keeps_what_it_finished_until_it_may(monkeypatch):
    """On Valkey, which has rights: they are taken away in the middle of a run. Nothing is forgotten or run twice."""
    monkeypatch.setattr("headrace.worker.settling.REFUSED_PAUSE_S", 0.02)
    begun, may_end = [], asyncio.Event()

    async def program(url: str) -> None:
        app = App(url.replace("redis://", "redis://clerk:secret@"))

        @app.handler("orders", group="billing", lease="10m", retries=0)
        async def bill(number: int) -> None:
            begun.append(number)
            await may_end.wait()

        with Client(url) as client:
            client.command("ACL", "SETUSER", "clerk", "on", ">secret", "~*", "&*", "+@all")
            async with app.worker() as worker:
                await app.publish("orders", 1)
                await until(lambda: begun)
                client.command("ACL", "SETUSER", "clerk", "-@scripting")
                may_end.set()
                counters = worker.counters["orders", "billing"]
                await until(lambda: counters.settlements >= 3)
                assert counters.done == 0 and not is_done(client)
                client.command("ACL", "SETUSER", "clerk", "+@scripting")
                await until(lambda: counters.done == 1)
                assert is_done(client)

    with server_in_memory("valkey") as url:
        run(program(url))
    assert begun == [1]

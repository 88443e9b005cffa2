"""DEBUG RELOAD and LOADAOF on real brokers: the data goes and comes back while clients stay connected."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from headrace.testing.running_broker import running_broker
from support.durable_broker import DurableBroker


@pytest.fixture(params=["memory", "folder"])
def port(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    if request.param == "memory":
        with running_broker(options=["--enable-debug-command"]) as running:
            yield running.port
        return
    with DurableBroker(tmp_path / "data", "--enable-debug-command") as broker:
        broker.start()
        yield broker.port


@pytest.mark.parametrize("how", ["RELOAD", "LOADAOF"])
def test_clients_stay_connected_and_find_everything(port: int, how: str) -> None:
    with redis.Redis(port=port) as client, redis.Redis(port=port) as waiting:
        number = client.client_id()
        client.xgroup_create("orders", "workers", id="0", mkstream=True)
        client.execute_command("SAVE")
        for each in range(500):
            client.xadd("orders", {"number": each})
        client.xreadgroup("workers", "ann", {"orders": ">"}, count=10)
        client.zadd("scores", {"tea": 1.5})
        before = client.xrange("orders")
        got: list[Any] = []
        reader = threading.Thread(target=lambda: got.append(waiting.blpop(["list"], timeout=60)))
        reader.start()
        while client.info("clients")["blocked_clients"] == 0:
            pass

        assert client.execute_command("DEBUG", how) in (b"OK", True)

        assert client.client_id() == number
        assert client.xrange("orders") == before
        assert client.xpending("orders", "workers")["pending"] == 10
        assert client.zscore("scores", "tea") == 1.5
        client.rpush("list", "woken")
        reader.join(60)
        assert got == [(b"list", b"woken")]


def test_the_journal_goes_on_behind_a_reload(tmp_path: Path) -> None:
    with DurableBroker(tmp_path, "--enable-debug-command") as broker:
        broker.start()
        with broker.client() as client:
            client.set("a", "1")
            client.execute_command("DEBUG", "RELOAD")
            client.set("b", "2")
            client.execute_command("DEBUG", "LOADAOF")
            client.set("c", "3")
        broker.kill()

        said = "".join(broker.start())
        with broker.client() as client:
            assert client.mget("a", "b", "c") == [b"1", b"2", b"3"]
    assert "1 part of a checkpoint, 2 frames of the journal" in said


def test_memory_is_still_no_journal(tmp_path: Path) -> None:
    with running_broker(options=["--enable-debug-command"]) as running, redis.Redis(port=running.port) as client:
        assert client.config_get("appendonly") == {"appendonly": "no"}
        assert client.config_get("enable-debug-command") == {"enable-debug-command": "yes"}
        assert client.info("persistence")["aof_enabled"] == 0
        with pytest.raises(redis.ResponseError, match="chosen at the start: serve --dir or serve --memory"):
            client.config_set("appendonly", "yes")


def test_a_broker_sleeps_when_told_to(port: int) -> None:
    with redis.Redis(port=port) as client:
        before, _ = client.time()
        client.execute_command("DEBUG", "SLEEP", "1.1")
        after, _ = client.time()
    assert after > before

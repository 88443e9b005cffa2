"""A real broker with a folder, to be killed and started again; and clients that remember what they were promised."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace.testing.running_broker import free_port

from .servers import wait_until

TIMEOUT_S = 60
FLOOD = 3000
ENOUGH = 150_000  # Promises; then all clients begin anew, so that checking them does not take ever longer.


class DurableBroker:
    """headrace serve --dir FOLDER, again and again."""

    def __init__(
        self, folder: Path, *options: str, environment: Mapping[str, str] | None = None, module: str = "headrace"
    ) -> None:
        self.folder = folder
        self.module = module
        self.options = options
        self.environment = environment
        self.port = free_port()
        self.process: subprocess.Popen[str] | None = None
        self.said: list[str] = []

    def __enter__(self) -> DurableBroker:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.kill()

    def launch(self) -> subprocess.Popen[str]:
        """Start it, without waiting until it is ready."""
        kept = [] if "--memory" in self.options else ["--dir", str(self.folder)]
        command = [sys.executable, "-m", self.module, "serve", *kept, "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, *self.options], stderr=subprocess.PIPE, text=True, env=self.environment
        )
        self.said = []
        return self.process

    def start(self) -> list[str]:
        """Start it; what it said until it was ready."""
        process = self.launch()
        assert process.stderr is not None
        for line in process.stderr:
            self.said.append(line)
            if "ready at" in line:
                return self.said
        process.wait(TIMEOUT_S)
        process.stderr.close()
        raise AssertionError(f"no start: {''.join(self.said)}")

    def wait_until_loading(self) -> None:
        """It was launched: wait until it reads its folder, or has done so."""
        process = self.process
        assert process is not None
        lock = self.folder / "lock"
        number = f"{process.pid}\n"
        wait_until(lambda: (lock.exists() and lock.read_text() == number) or process.poll() is not None, "the lock")

    def kill(self) -> None:
        process = self.process
        assert process is not None and process.stderr is not None
        process.kill()
        process.wait(TIMEOUT_S)
        process.stderr.close()
        self.process = None

    def stop(self) -> tuple[int, str]:
        """SIGTERM; how it ended, and what it said."""
        assert self.process is not None
        self.process.terminate()
        return self.end()

    def end(self) -> tuple[int, str]:
        """It is ending by itself."""
        process = self.process
        assert process is not None
        _, said = process.communicate(timeout=TIMEOUT_S)
        self.process = None
        return process.returncode, said

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, socket_timeout=TIMEOUT_S, retry=Retry(NoBackoff(), 0))


class Load:
    """Clients that write until the broker goes away, over many of its lives.

    Each knows what it was promised, and the one thing it had asked for when the broker went, which may have happened or
    not. `check` compares that with what is there.
    """

    def __init__(self) -> None:
        self.earlier = 0  # Promises from before everything began anew.
        self.threads: list[threading.Thread] = []
        self.clients = new_clients()

    def begin(self, broker: DurableBroker) -> None:
        with broker.client() as client:
            if not client.exists("orders"):
                client.xgroup_create("orders", "workers", id="0", mkstream=True)
        self.threads = [threading.Thread(target=self.write, args=(each, broker.client())) for each in self.clients]
        for thread in self.threads:
            thread.start()

    def write(self, each: Any, client: redis.Redis) -> None:
        with client:
            try:
                while True:
                    each.step(client)
            except redis.ConnectionError:
                pass

    def end(self) -> None:
        """Wait until all have noticed that the broker is gone."""
        for thread in self.threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()

    def check(self, client: redis.Redis) -> None:
        if not self.threads:  # Before the first load there is nothing.
            return
        for each in self.clients:
            each.check(client)
        promises = sum(each.promises for each in self.clients)
        if promises > ENOUGH:
            client.flushall()
            self.earlier += promises
            self.clients = new_clients()

    def promises(self) -> int:
        """How many were checked so far, each at least once."""
        return self.earlier + sum(each.promises for each in self.clients)


def new_clients() -> list[Any]:
    return [Adder(), Worker(), Pusher(), Member(), QueueClient(), Flood()]


class Adder:
    """XADD, each with the next number. One stream, in order, without a gap."""

    def __init__(self) -> None:
        self.next = 0
        self.promises = 0
        self.ids: dict[bytes, int] = {}

    def step(self, client: redis.Redis) -> None:
        numbers = range(self.next, self.next + 3)
        pipeline = client.pipeline(transaction=False)
        for number in numbers:
            pipeline.xadd("orders", {"number": number})
        for number, name in zip(numbers, pipeline.execute(), strict=True):
            self.ids[name] = number
        self.next += 3
        self.promises += 3

    def check(self, client: redis.Redis) -> None:
        found = {name: int(fields[b"number"]) for name, fields in client.xrange("orders")}
        assert self.ids.items() <= found.items(), "entries are lost"
        numbers = list(found.values())
        assert numbers == list(range(len(numbers))), "entries are out of order, or some are missing"
        assert len(numbers) - self.next in range(4), "entries nobody added"
        self.next = len(numbers)
        self.ids = found


class Worker:
    """XREADGROUP and XACK of every second entry: what is delivered stays pending until it is acknowledged."""

    def __init__(self) -> None:
        self.promises = 0
        self.pending: set[bytes] = set()
        self.acked: set[bytes] = set()
        self.asked: set[bytes] = set()

    def step(self, client: redis.Redis) -> None:
        self.asked = set()
        given = client.xreadgroup("workers", "ann", {"orders": ">"}, count=10)
        names = [name for _, entries in given for name, _ in entries]
        self.pending |= set(names)
        self.promises += len(names)
        if names[::2]:
            self.asked = set(names[::2])
            client.xack("orders", "workers", *names[::2])
            self.pending -= self.asked
            self.acked |= self.asked
            self.promises += len(self.asked)

    def check(self, client: redis.Redis) -> None:
        rows = client.xpending_range("orders", "workers", "-", "+", 10_000_000)
        found = {row["message_id"] for row in rows}
        assert not found & self.acked, "acknowledged entries are pending again"
        assert self.pending - self.asked <= found, "pending entries are lost"
        last = client.xinfo_groups("orders")[0]["last-delivered-id"]
        entries = {name for name, _ in client.xrange("orders", max=last)}
        assert entries == found | self.acked | (self.asked - found), "delivered is not pending and acknowledged"
        self.acked = entries - found
        self.pending = found


class Pusher:
    """RPUSH of the next number, and now and then a move to another list in a transaction."""

    def __init__(self) -> None:
        self.next = 0
        self.promises = 0

    def step(self, client: redis.Redis) -> None:
        with client.pipeline(transaction=True) as block:
            block.rpush("list", self.next)
            block.hset("last", "number", self.next)
            block.execute()
        self.next += 1
        self.promises += 2

    def check(self, client: redis.Redis) -> None:
        numbers = [int(number) for number in client.lrange("list", 0, -1)]
        assert numbers == list(range(len(numbers))), "elements are lost or out of order"
        assert len(numbers) - self.next in (0, 1)
        assert int(client.hget("last", "number") or -1) == len(numbers) - 1, "half a transaction"
        self.next = len(numbers)


class Flood:
    """RPUSH, more at once than the broker runs in one turn."""

    def __init__(self) -> None:
        self.next = 0
        self.promises = 0

    def step(self, client: redis.Redis) -> None:
        pipeline = client.pipeline(transaction=False)
        for number in range(self.next, self.next + FLOOD):
            pipeline.rpush("flood", number)
        pipeline.execute()
        self.next += FLOOD
        self.promises += FLOOD

    def check(self, client: redis.Redis) -> None:
        numbers = [int(number) for number in client.lrange("flood", 0, -1)]
        assert numbers == list(range(len(numbers))), "elements are lost, doubled or out of order"
        assert len(numbers) - self.next in range(FLOOD + 1)
        self.next = len(numbers)


class Member:
    """SADD, SREM, ZADD, SET with a time to live."""

    def __init__(self) -> None:
        self.next = 0
        self.promises = 0

    def step(self, client: redis.Redis) -> None:
        client.sadd("set", self.next)
        client.zadd("scores", {str(self.next): self.next})
        client.set("count", self.next, px=3_600_000)
        self.next += 1
        self.promises += 3

    def check(self, client: redis.Redis) -> None:
        members = {int(member) for member in client.smembers("set")}
        assert members in (set(range(self.next)), set(range(self.next + 1)))
        assert client.zcard("scores") in (self.next, self.next + 1)
        assert int(client.get("count") or -1) in (self.next - 1, self.next)
        assert self.next == 0 or client.pttl("count") > 0  # Doing the last step again changes nothing.


class QueueClient:
    """RQ.PUSH, RQ.POP, RQ.ACK of every second: what was popped stays delivered until it is acknowledged."""

    def __init__(self) -> None:
        self.next = 0
        self.promises = 0
        self.delivered: set[int] = set()
        self.acked: set[int] = set()
        self.asked: set[int] = set()

    def step(self, client: redis.Redis) -> None:
        self.asked = set()
        client.execute_command("RQ.PUSH", "queue", self.next, self.next + 1)
        self.next += 2
        rows = client.execute_command("RQ.POP", "COUNT", 2, "queue")
        self.delivered |= {int(body) for _, _, body in rows}
        self.promises += 4
        for _, name, body in rows[::2]:
            self.asked = {int(body)}
            assert client.execute_command("RQ.ACK", "queue", name)
            self.delivered -= self.asked
            self.acked |= self.asked
            self.promises += 1

    def check(self, client: redis.Redis) -> None:
        waiting = [int(body) for _, body in self.rows(client)]
        delivered = {int(row[1]) for row in self.rows(client, "PENDING")}
        everything = {*waiting, *delivered}
        assert waiting == sorted(waiting), "elements are out of order"
        assert not everything & self.acked, "acknowledged elements are back"
        assert self.delivered - self.asked <= delivered, "delivered elements are lost"
        pushed = max([self.next - 1, *everything]) + 1
        assert set(range(pushed)) - everything - self.acked <= self.asked, "elements are lost"
        self.acked = set(range(pushed)) - everything
        self.delivered = delivered
        self.next = pushed

    def rows(self, client: redis.Redis, *view: str) -> list[Any]:
        if not client.exists("queue"):
            return []
        found: list[Any] = client.execute_command("RQ.INSPECT", "queue", *view, 0, 10_000_000)
        return found

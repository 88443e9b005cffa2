"""headrace worker as processes of their own: a shop to run, one worker, and a crew of them that is killed at random."""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import pytest

from headrace import Client, NotFound
from headrace.client.worker_keys import group_keys
from headrace.testing import running_broker

from .command_line import COMMAND
from .deployments import KEEPS_EVERYTHING, Process, is_from_wheel, real_kinds
from .durable_broker import DurableBroker
from .servers import Kind, wait_until

WAIT_S = 120.0  # A limit for what never comes, not a measure of speed.

# Each run is told before it acts, each end after it: entry ID, number, time in ms.
SHOP = """
import asyncio, os, sys, time
from headrace import App, Context, Retries

app = App()
tries = Retries({retries}, first="50ms")

@app.handler("orders", group="billing", lease="{lease}", retries=tries, concurrency={concurrency})
async def bill(number: int, ctx: Context) -> None:
    await tell("runs", number, ctx)
    await act(number)
    await tell("done", number, ctx)

async def tell(name: str, number: int, ctx: Context) -> None:
    await app.client.command("RPUSH", name, f"{{ctx.id}} {{number}} {{time.time_ns() // 1000000}}")

async def act(number: int) -> None:
    {act}
"""


def write_shop(folder: Path, *, act: str = "pass", lease: str = "1s", concurrency: int = 20, retries: int = 2) -> Path:
    source = SHOP.format(act=act, lease=lease, concurrency=concurrency, retries=retries)
    (folder / "shop.py").write_text(source)
    return folder


# Servers: ours and Valkey always, every Redis that is present in the long run.


def real_kind(name: str) -> Kind:
    """By its name, or that of its product."""
    return next(kind for kind in real_kinds() if kind.name.startswith(name))


SERVERS = [
    "headrace",
    "valkey",
    *[pytest.param(kind.name, marks=pytest.mark.long) for kind in real_kinds() if not is_from_wheel(kind)],
]


@contextmanager
def server_in_memory(name: str) -> Iterator[str]:
    """Its URL."""
    if name == "headrace":
        with running_broker() as broker:
            yield broker.url
    else:
        with real_kind(name).start() as server:
            yield f"redis://127.0.0.1:{server.port}"


class Kept(Protocol):
    """A server that keeps what it answered, through kills."""

    url: str

    def start(self) -> Any: ...
    def kill(self) -> None: ...


@contextmanager
def server_on_disk(name: str, folder: Path) -> Iterator[Kept]:
    """Running."""
    kept: OurKept | RealKept = OurKept(folder) if name == "headrace" else RealKept(real_kind(name))
    with kept:
        yield kept


class OurKept(DurableBroker):
    def __enter__(self) -> Self:
        self.start()
        return self

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"


class RealKept(Process):
    def __init__(self, kind: Kind) -> None:
        super().__init__(kind, *KEEPS_EVERYTHING)

    def kill(self) -> None:
        self.end(signal.SIGKILL)


# Workers


def start_worker(folder: Path, url: str, *options: str) -> subprocess.Popen[str]:
    return start_process([*COMMAND, "worker", "shop:app", *options], folder, {"HEADRACE_URL": url})


def start_process(command: list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    with (folder / "worker.log").open("a") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stderr=log,
            text=True,
        )


@contextmanager
def worker(folder: Path, url: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """headrace worker shop:app, ended whatever happens."""
    process = start_worker(folder, url, *options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


@dataclass(frozen=True)
class Kill:
    at_ms: int
    held: frozenset[str]  # The entries that were pending with the one that was killed.


class Crew:
    """So many workers, kept at that number while some are killed or told to stop."""

    def __init__(self, folder: Path, url: str, size: int, groups: Mapping[str, str], *options: str) -> None:
        self.folder = folder
        self.url = url
        self.size = size
        self.groups = groups  # Stream -> group: where it is looked up who holds what.
        self.options = options
        self.workers: list[subprocess.Popen[str]] = []
        self.kills: list[Kill] = []
        self.client = Client(url, timeout="60s")

    def __enter__(self) -> Self:
        self.tend()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self.workers:
            process.terminate()
        for process in self.workers:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(60)
        self.client.close()

    def tend(self) -> None:
        """Start as many as are missing."""
        self.workers = [process for process in self.workers if process.poll() is None]
        while len(self.workers) < self.size:
            self.workers.append(self.start_one())

    def start_one(self) -> subprocess.Popen[str]:
        return start_worker(self.folder, self.url, *self.options)

    def held_by(self, process: subprocess.Popen[str]) -> set[str]:
        """IDs that are pending with a worker."""
        held: set[str] = set()
        for stream, name in self.groups.items():
            try:
                rows = self.client.stream(stream).group(name).pending(limit=10_000)
            except NotFound:
                continue
            held |= {row.id for row in rows if f"-{process.pid}-" in row.consumer}
        return held

    def busy_one(self, chance: random.Random) -> subprocess.Popen[str]:
        """One that is at work; any, when all work is done."""
        found: list[subprocess.Popen[str]] = []

        def is_found() -> bool:
            self.tend()
            found[:] = [process for process in self.workers if self.held_by(process)]
            if not found and not any(self.client.stream(stream).length() for stream in self.groups):
                found[:] = self.workers
            return bool(found)

        wait_until(is_found, "a worker that holds something", timeout_s=WAIT_S)
        return chance.choice(found)

    def kill_one(self, chance: random.Random) -> None:
        """SIGKILL, when it holds something if there is anything to hold; another takes its place."""
        self.kill(self.busy_one(chance))

    def kill_any(self, chance: random.Random) -> None:
        """SIGKILL, whatever it does."""
        self.kill(chance.choice(self.workers))

    def kill(self, process: subprocess.Popen[str]) -> None:
        at_ms = time.time_ns() // 1_000_000
        process.kill()
        process.wait(60)
        self.kills.append(Kill(at_ms, frozenset(self.held_by(process))))
        self.tend()

    def stop_one(self, chance: random.Random) -> None:
        """SIGTERM, in the same way: what it had is free for others."""
        process = self.busy_one(chance)
        process.terminate()
        assert process.wait(60) in (0, -signal.SIGTERM)  # The latter, when it had not begun yet.
        held = self.held_by(process)
        free: set[str] = set()
        for stream, group in self.groups.items():
            free |= {name.decode() for name in self.client.command("ZRANGE", group_keys(stream, group).due, 0, -1)}
        assert held & self.held_by(process) <= free  # Others may take some meanwhile.
        self.tend()

    def wait_until(self, condition: Callable[[], bool], what: str, *, timeout_s: float = WAIT_S) -> None:
        """With a worker for each that dies meanwhile."""

        def is_met() -> bool:
            self.tend()
            return condition()

        wait_until(is_met, what, timeout_s=timeout_s)

    @property
    def held_at_kills(self) -> set[str]:
        return {entry_id for kill in self.kills for entry_id in kill.held}


# What they did


@dataclass(frozen=True)
class Told:
    """One line of the shop's lists `runs` and `done`."""

    id: str
    number: int
    at_ms: int


def told(client: Client, name: str) -> list[Told]:
    rows = [item.decode().split() for item in client.command("LRANGE", name, 0, -1)]
    return [Told(entry_id, int(number), int(at_ms)) for entry_id, number, at_ms in rows]


def numbers(client: Client, name: str) -> list[int]:
    return [row.number for row in told(client, name)]


def is_done(client: Client, stream: str = "orders", group: str = "billing") -> bool:
    return client.stream(stream).length() == 0 and not client.stream(stream).group(group).pending(limit=1)


def log_of(folder: Path) -> str:
    return (folder / "worker.log").read_text()


def redeliveries_s(kills: list[Kill], runs: list[Told]) -> list[float]:
    """From a kill until what it held ran again; one whose next holder was killed too counts from that kill."""
    times: dict[str, list[int]] = {}
    for run in runs:
        times.setdefault(run.id, []).append(run.at_ms)
    waits: list[float] = []
    for place, kill in enumerate(kills):
        for entry_id in kill.held:
            later = [at_ms for at_ms in times.get(entry_id, []) if at_ms > kill.at_ms]
            if later and not any(entry_id in other.held and other.at_ms < min(later) for other in kills[place + 1 :]):
                waits.append((min(later) - kill.at_ms) / 1000)
    return waits


def show(
    capsys: pytest.CaptureFixture[str], what: str, seconds: list[float], deadline_s: float, *, is_judged: bool
) -> None:
    """Median and worst beside the deadline. Judged in the long run, with room for a busy machine: three deadlines."""
    worst = max(seconds)
    middle = statistics.median(seconds)
    say(
        capsys,
        f"{what}: median {middle:.2f} s, worst {worst:.2f} s of {len(seconds)}; the deadline is {deadline_s:g} s",
    )
    assert not is_judged or worst <= 3 * deadline_s


def say(capsys: pytest.CaptureFixture[str], line: str) -> None:
    with capsys.disabled():
        print(f"\n{line}")  # noqa: T201 - a figure for whoever runs it.

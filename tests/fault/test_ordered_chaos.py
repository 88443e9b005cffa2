"""Order per key while everything dies: consumers are killed, paused and leave, masters are killed, so is the broker.

The harness is that of `headrace ordered prove`; here the server itself is killed too, and started again on what it has
synced. Afterwards every promise is recomputed from the data. Small counts run always; the large ones in the long run.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace import Client
from headrace.ordered.prove import Report, prove
from headrace.ordered.prove_plan import Plan
from support.deployments import KEEPS_EVERYTHING, Process, is_from_wheel, real_kinds
from support.durable_broker import DurableBroker
from support.servers import Kind, our_kind

BACK_NS = 5_000_000_000  # Consumers have found the server again by then.
SMALL = Plan(keys=60, messages=1500, consumers=4, kill_every_ms=700, duration_ms=5000, lease_ms=1000, seed=8)
LARGE = Plan(
    keys=1000, messages=100_000, consumers=8, kill_every_ms=2000, duration_ms=150_000, lease_ms=2000, places=32, seed=9
)

KINDS = [our_kind(), *real_kinds()]
small_kinds = pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.ours or is_from_wheel(kind)], ids=lambda kind: kind.name
)
all_kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@dataclass
class Mortal:
    """A server that syncs every write, and comes back after it was killed."""

    url: str
    kill_and_start: Callable[[], None]


@contextmanager
def mortal_server(kind: Kind, folder: Path) -> Iterator[Mortal]:
    if kind.ours:
        with DurableBroker(folder / "data", "--fsync", "always") as broker:
            broker.start()

            def kill_and_start() -> None:
                broker.kill()
                broker.start()

            yield Mortal(f"redis://127.0.0.1:{broker.port}", kill_and_start)
        return
    with Process(kind, *KEEPS_EVERYTHING) as server:
        yield Mortal(server.url, lambda: server.restart(signal.SIGKILL))


class Chaos:
    """Kills the server as often as told, evenly over the messages."""

    def __init__(self, server: Mortal, client: Client, messages: int, kills: int) -> None:
        self.server = server
        self.client = client
        self.thresholds = [messages * (place + 1) // (kills + 1) for place in range(kills)]
        self.outages: list[tuple[int, int]] = []

    def watch(self, done: int, _: int) -> None:
        if self.thresholds and done >= self.thresholds[0]:
            self.thresholds.pop(0)
            begin_ns = time.monotonic_ns()
            self.server.kill_and_start()
            self.client.ping()
            self.outages.append((begin_ns, time.monotonic_ns() + BACK_NS))


def run(kind: Kind, folder: Path, plan: Plan, kills: int) -> Report:
    with mortal_server(kind, folder) as server, Client(server.url, timeout="60s") as client:
        chaos = Chaos(server, client, plan.messages, kills)
        report = prove(client, server.url, plan, chaos.watch, chaos.outages)
        assert len(chaos.outages) == kills
        assert client.command("DBSIZE") == 0  # All of it was removed.
        return report


def failing(report: Report) -> list[str]:
    return [f"{verdict.promise}: {verdict.found}" for verdict in report.verdicts if not verdict.holds]


@small_kinds
def test_order_per_key_outlives_consumers_and_the_server(kind: Kind, tmp_path: Path) -> None:
    report = run(kind, tmp_path, SMALL, kills=2)

    # How quickly a key goes on is judged in the long run: here other tests may have the machine.
    assert [one for one in failing(report) if not one.startswith("a dead one's keys")] == []
    assert report.events["killed"] + report.events["paused"] > 0

"""Order per key while everything dies: consumers are killed, paused and leave, masters are killed, so is the broker.

The harness is that of `headrace ordered prove`; here the server itself is killed too, and started again on what it has
synced. Afterwards every promise is recomputed from the data. Small counts run always; the large ones in the long run.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from headrace import Client
from headrace.ordered.prove import Report, prove
from headrace.ordered.prove_crew import WORKER
from headrace.ordered.prove_plan import GROUP, Plan
from support.command_line import COMMAND, environment
from support.deployments import KEEPS_EVERYTHING, Process, is_from_wheel, quiet_port, real_kinds
from support.durable_broker import DurableBroker
from support.servers import Kind, our_kind, wait_until

STALLS = "a dead one's keys"
BACK_NS = 5_000_000_000  # Consumers have found the server again by then.
MASTER_EVERY_S = 2.0  # One of the masters is killed, if all are up.
WAIT_S = 120.0
SMALL = Plan(keys=60, messages=1500, consumers=4, kill_every_ms=700, duration_ms=5000, lease_ms=1000, seed=8)
MEDIUM = Plan(keys=60, messages=1500, consumers=6, kill_every_ms=1000, duration_ms=10_000, lease_ms=1000, seed=8)
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


class Masters:
    """Coordinators, each on a port of its own. One that is killed comes back."""

    def __init__(self, url: str, plan: Plan, count: int) -> None:
        self.url = url
        self.plan = plan
        self.ports = [quiet_port() for _ in range(count)]
        self.running: list[subprocess.Popen[bytes]] = []
        self.killed = 0

    def __enter__(self) -> Masters:
        self.running = [self.start(port) for port in self.ports]
        wait_until(self.are_up, "the masters to listen", timeout_s=WAIT_S)
        return self

    def are_up(self) -> bool:
        for port in self.ports:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) != 0:
                    return False
        return True

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            process.terminate()
        for process in self.running:
            process.wait(WAIT_S)

    def start(self, port: int) -> subprocess.Popen[bytes]:
        order = self.plan.order
        words = [
            "--stream", order.stream, "--group", order.group, "--tickets", order.tickets,
            "--consumers", order.consumers, "--lease", f"{self.plan.lease_ms}ms", "--port", str(port), "--delete",
        ]  # fmt: skip
        for name in order.settings.keyfields:
            words += ["--key-field", name]
        command = [*COMMAND, "ordered", "master", *words]
        return subprocess.Popen(command, env=environment(self.url), stderr=subprocess.DEVNULL)

    def look(self) -> None:
        """One that was started while the broker was away has ended at once. As a supervisor would, start it again."""
        for place, process in enumerate(self.running):
            if process.poll() is not None:
                self.running[place] = self.start(self.ports[place])

    def kill_one(self, chance: Random) -> None:
        place = chance.randrange(len(self.running))
        self.running[place].kill()
        self.running[place].wait(WAIT_S)
        self.running[place] = self.start(self.ports[place])
        self.killed += 1

    def consumers(self) -> list[tuple[str, ...]]:
        """The command of a consumer of each."""
        return [
            ("ordered", "consumer", "support.proof_by_delegation:handle", "--master", f"http://127.0.0.1:{port}",
             "--stream", self.plan.stream, "--group", self.plan.order.group, "--port", "0", "--shutdown-timeout", "1s")
            for port in self.ports
        ]  # fmt: skip


class Chaos:
    """Kills the server as often as told, evenly over the messages, and a coordinator now and then."""

    def __init__(self, server: Mortal, client: Client, plan: Plan, kills: int, masters: Masters) -> None:
        self.server = server
        self.client = client
        self.masters = masters
        self.thresholds = [plan.messages * (place + 1) // (kills + 1) for place in range(kills)]
        self.outages: list[tuple[int, int]] = []
        self.chance = Random(plan.seed)
        self.next_master_s = time.monotonic() + MASTER_EVERY_S

    def watch(self, done: int, _: int) -> None:
        if self.thresholds and done >= self.thresholds[0]:
            self.thresholds.pop(0)
            begin_ns = time.monotonic_ns()
            self.server.kill_and_start()
            self.client.ping()
            self.outages.append((begin_ns, time.monotonic_ns() + BACK_NS))
        self.masters.look()
        if self.masters.running and time.monotonic() > self.next_master_s and self.masters.are_up():
            self.masters.kill_one(self.chance)
            self.next_master_s = time.monotonic() + self.chance.uniform(0.5, 1.5) * MASTER_EVERY_S


@pytest.fixture(autouse=True)
def importable_support(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the consumers that run support/proof_by_delegation.py."""
    here = str(Path(__file__).resolve().parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])]))


def run(kind: Kind, folder: Path, plan: Plan, *, kills: int, masters: int = 0) -> Report:
    with ExitStack() as stack:
        server = stack.enter_context(mortal_server(kind, folder))
        client = stack.enter_context(Client(server.url, timeout="60s"))
        client.stream(plan.stream).group(GROUP).create(start="beginning")
        coordinators = stack.enter_context(Masters(server.url, plan, masters))
        chaos = Chaos(server, client, plan, kills, coordinators)
        kinds = [*[WORKER] * max(1, masters), *coordinators.consumers()]  # With masters, every other one is theirs.
        report = prove(client, server.url, plan, chaos.watch, outages=chaos.outages, kinds=kinds)
        assert len(chaos.outages) == kills
        assert bool(coordinators.killed) == bool(masters)
        assert masters or client.command("DBSIZE") == 0  # All of it was removed.
    with_masters = f", {coordinators.killed} masters killed" if masters else ""
    print(f"\n{kind.name}: {report.seconds:.0f} s, {dict(report.events)}, server killed {kills} times{with_masters}")
    for verdict in report.verdicts:
        print(f"  {verdict.promise}: {verdict.found}")
    return report


def failing(report: Report, *, but: str = "-") -> list[str]:
    wrong = [verdict for verdict in report.verdicts if not verdict.holds]
    return [f"{verdict.promise}: {verdict.found}" for verdict in wrong if not verdict.promise.startswith(but)]


@small_kinds
def test_order_per_key_outlives_consumers_and_the_server(kind: Kind, tmp_path: Path) -> None:
    report = run(kind, tmp_path, SMALL, kills=2)

    assert failing(report, but=STALLS) == []  # Those are judged in the long run: here other tests may have the machine.
    assert report.events["killed"] + report.events["paused"] > 0


def test_order_per_key_outlives_three_masters(tmp_path: Path) -> None:
    assert failing(run(our_kind(), tmp_path, MEDIUM, kills=1, masters=3), but=STALLS) == []


@pytest.mark.long
@all_kinds
def test_a_hundred_thousand_messages_outlive_consumers_and_the_server(kind: Kind, tmp_path: Path) -> None:
    assert failing(run(kind, tmp_path, LARGE, kills=10)) == []


@pytest.mark.long
@all_kinds
def test_a_hundred_thousand_messages_outlive_three_masters_as_well(kind: Kind, tmp_path: Path) -> None:
    """A consumer that is delegated to waits for its own master: how long that one is away is no matter of leases."""
    assert failing(run(kind, tmp_path, LARGE, kills=10, masters=3), but=STALLS) == []

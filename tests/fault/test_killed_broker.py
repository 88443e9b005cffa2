"""kill -9 and power loss under load: what clients were promised is there at the next start. Judged at the clients."""

import shutil
import threading
import time
from pathlib import Path
from random import Random

import pytest
import redis

from headrace.journal.disk import RealDisk
from headrace.server.durability import Durability
from support.durable_broker import DurableBroker, Load
from support.faulty_disk import FaultyDisk, take_away
from support.memory import MemoryBroker
from support.servers import wait_until


class Play:
    """Kill a broker again and again under load. What it was found to have kept is counted."""

    def __init__(self, folder: Path, seed: int, disk: FaultyDisk | None = None) -> None:
        self.folder = folder
        self.random = Random(seed)
        self.disk = disk
        self.load = Load()
        self.broker = DurableBroker(folder, environment=disk.environment if disk is not None else None)
        self.kills = self.while_starting = self.while_stopping = self.checkpoints = 0

    def run(self, rounds: int) -> str:
        with self.broker as broker:
            for number in range(rounds):
                if self.random.random() < 0.3:
                    self.kill_while_starting()
                if self.disk is not None:
                    self.disk.note(self.folder)
                broker.start()
                with broker.client() as client:
                    self.load.check(client)
                    self.load.begin(broker)
                    self.pause(0.5)
                    if number % 2:
                        client.execute_command("BGSAVE")
                        self.pause(0.2)
                if number % 5 == 4:
                    self.kill_while_stopping()
                else:
                    broker.kill()
                self.kills += 1
                self.load.end()
                if self.disk is not None:
                    self.disk.lose_power(self.folder, self.random)
                self.checkpoints = max(self.checkpoints, *[int(path.name[-8:]) for path in self.checkpoint_files()], 0)
            broker.start()
            with broker.client() as client:
                self.load.check(client)
        return (
            f"{self.load.promises()} promises kept over {self.kills} kills, {self.while_stopping} of them while it "
            f"stopped, and {self.while_starting} more while it started; {self.checkpoints} checkpoints"
        )

    def pause(self, most_s: float) -> None:
        threading.Event().wait(self.random.uniform(0, most_s))

    def kill_while_starting(self) -> None:
        """While it reads its data back."""
        self.broker.launch()
        self.broker.wait_until_loading()
        self.pause(0.1)
        self.broker.kill()
        self.while_starting += 1

    def kill_while_stopping(self) -> None:
        """While it answers the last commands, or writes its last checkpoint."""
        assert self.broker.process is not None
        self.broker.process.terminate()
        self.pause(0.2)
        self.broker.kill()
        self.while_stopping += 1

    def checkpoint_files(self) -> list[Path]:
        return list(self.folder.glob("checkpoint-*"))


def test_nothing_that_was_promised_is_lost_when_the_broker_is_killed(tmp_path: Path) -> None:
    play = Play(tmp_path / "data", seed=1)
    play.run(5)
    assert play.load.promises() > 100


def test_nothing_that_was_promised_is_lost_when_the_power_fails(tmp_path: Path) -> None:
    """Row 176."""
    play = Play(tmp_path / "data", seed=2, disk=FaultyDisk(tmp_path))
    play.run(3)
    assert play.load.promises() > 100


@pytest.mark.long
def test_nothing_that_was_promised_is_lost_in_200_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play = Play(tmp_path / "data", seed=3)
    figures = play.run(200)
    with capsys.disabled():
        print(f"\n{figures}")
    assert play.load.promises() > 10_000


@pytest.mark.long
def test_nothing_that_was_promised_is_lost_in_100_power_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play = Play(tmp_path / "data", seed=4, disk=FaultyDisk(tmp_path))
    figures = play.run(100)
    with capsys.disabled():
        print(f"\n{figures}")
    assert play.load.promises() > 10_000


def test_the_power_failure_of_these_tests_does_lose_what_was_not_synced(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    with DurableBroker(tmp_path / "data", "--fsync", "no", environment=disk.environment) as broker:
        broker.start()
        with broker.client() as client:
            client.set("a", "1")
        broker.kill()

        assert disk.lose_power(tmp_path / "data") > 0
        broker.start()
        with broker.client() as client:
            assert client.get("a") is None


def test_everysec_loses_at_most_two_seconds_and_leaves_no_hole(tmp_path: Path) -> None:
    """Row 176. Judged at the moment when the last promise was given: before that the broker was surely running."""
    disk = FaultyDisk(tmp_path)
    folder = tmp_path / "data"
    promised_s: list[float] = []
    with DurableBroker(folder, "--fsync", "everysec", environment=disk.environment) as broker:
        broker.start()
        with broker.client() as client:
            asked_s = time.monotonic()
            while len(promised_s) < 2000 or promised_s[0] > asked_s - 3.5:
                asked_s = time.monotonic()
                client.rpush("list", len(promised_s))
                promised_s.append(time.monotonic())
        broker.kill()
    sizes = disk.safe_sizes(folder)
    must = len([moment_s for moment_s in promised_s if moment_s <= asked_s - 2])

    losses = 0
    for seed in range(20):
        copy = tmp_path / f"copy {seed}"
        shutil.copytree(folder, copy)
        take_away(copy, sizes, Random(seed) if seed else None)
        found = load_list(copy)
        assert found == [b"%d" % number for number in range(len(found))]
        assert must <= len(found) <= len(promised_s)
        losses += len(found) < len(promised_s)
    assert must > 0
    assert losses > 0


def load_list(folder: Path) -> list[bytes]:
    """What a start would find."""
    broker = MemoryBroker()
    disk = RealDisk(folder)
    durability = Durability(broker.state, disk)
    found: list[bytes] = broker("LRANGE list 0 -1")
    durability.close()
    disk.close()
    return found


def test_what_everysec_has_left_is_synced_also_when_always_is_chosen_and_nobody_writes(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    folder = tmp_path / "data"
    with DurableBroker(folder, "--fsync", "everysec", environment=disk.environment) as broker:
        broker.start()
        with broker.client() as client:
            client.set("a", "1")
            client.config_set("appendfsync", "always")
            log = folder / "log-00000001"
            wait_until(lambda: disk.safe_sizes(folder)[log.name] == log.stat().st_size, "a sync")


def test_a_failed_sync_is_the_end(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    with DurableBroker(tmp_path / "data", environment=disk.environment) as broker:
        broker.start()
        with broker.client() as client:
            client.set("a", "1")
            disk.break_syncs()
            with pytest.raises(redis.ConnectionError):
                client.set("a", "2")
        code, said = broker.end()
        disk.broken.unlink()

        broker.start()
        with broker.client() as client:
            assert client.get("a") in (b"1", b"2")

    assert code == 1
    assert "cannot sync log-00000001: Input/output error" in said


def test_a_failed_sync_is_the_end_also_behind_the_clients_back(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    with DurableBroker(tmp_path / "data", "--fsync", "everysec", environment=disk.environment) as broker:
        broker.start()
        with broker.client() as client:
            disk.break_syncs()
            client.set("a", "1")
            with pytest.raises(redis.ConnectionError):
                client.blpop("nobody pushes here", timeout=30)
        code, said = broker.end()

    assert code == 1
    assert "cannot sync log-00000001: Input/output error" in said

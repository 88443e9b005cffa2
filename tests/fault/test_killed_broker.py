"""kill -9 and power loss under load: what clients were promised is there at the next start. Judged at the clients."""

import threading
from pathlib import Path
from random import Random

import pytest
import redis

from support.durable_broker import DurableBroker, Load
from support.faulty_disk import FaultyDisk


def play(folder: Path, rounds: int, seed: int, disk: FaultyDisk | None = None) -> int:
    """Kill it so often under load; how many promises were kept."""
    random = Random(seed)
    load = Load()
    environment = disk.environment if disk is not None else None
    with DurableBroker(folder, environment=environment) as broker:
        for number in range(rounds):
            if random.random() < 0.2:  # It dies again while it reads its data.
                broker.launch()
                threading.Event().wait(random.uniform(0.1, 0.6))
                broker.kill()
            if disk is not None:
                disk.note(folder)
            broker.start()
            with broker.client() as client:
                load.check(client)
                load.begin(broker)
                threading.Event().wait(random.uniform(0.02, 0.5))
                if number % 2:
                    client.execute_command("BGSAVE")
                    threading.Event().wait(random.uniform(0, 0.2))
            broker.kill()
            load.end()
            if disk is not None:
                disk.lose_power(folder)
        broker.start()
        with broker.client() as client:
            load.check(client)
    return load.promises()


def test_nothing_that_was_promised_is_lost_when_the_broker_is_killed(tmp_path: Path) -> None:
    assert play(tmp_path / "data", 4, seed=1) > 100


def test_nothing_that_was_promised_is_lost_when_the_power_fails(tmp_path: Path) -> None:
    assert play(tmp_path / "data", 3, seed=2, disk=FaultyDisk(tmp_path)) > 100


@pytest.mark.long
def test_nothing_that_was_promised_is_lost_in_200_kills(tmp_path: Path) -> None:
    assert play(tmp_path / "data", 200, seed=3) > 10_000


@pytest.mark.long
def test_nothing_that_was_promised_is_lost_in_100_power_failures(tmp_path: Path) -> None:
    assert play(tmp_path / "data", 100, seed=4, disk=FaultyDisk(tmp_path)) > 10_000


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


def test_everysec_loses_only_the_end_and_leaves_no_hole(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    with DurableBroker(tmp_path / "data", "--fsync", "everysec", environment=disk.environment) as broker:
        broker.start()
        with broker.client() as client:
            number = 0
            while disk.synced.stat().st_size == 0 or number < 200:
                client.rpush("list", number)
                number += 1
            client.execute_command("SAVE")
            saved = number
            for number in range(saved, saved + 100):
                client.rpush("list", number)
        broker.kill()
        disk.lose_power(tmp_path / "data")

        broker.start()
        with broker.client() as client:
            found = [int(element) for element in client.lrange("list", 0, -1)]

    assert found == list(range(len(found)))
    assert saved <= len(found) <= saved + 100


def test_a_full_disk_refuses_writes_serves_reads_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    with DurableBroker(tmp_path / "data", environment=disk.environment) as broker:
        broker.start()
        with broker.client() as first, broker.client() as second, broker.client() as reader:
            first.rpush("list", "before")
            disk.fill()
            held = threading.Thread(target=first.rpush, args=("list", "held"))
            held.start()
            while True:
                try:
                    second.rpush("list", "refused")
                except redis.ResponseError as error:
                    said = str(error)
                    break
            assert said.startswith("MISCONF") and "No space left" in said
            assert reader.lindex("list", 0) == b"before"
            assert reader.info("persistence")["aof_last_write_status"] == "err"
            with pytest.raises(redis.ResponseError, match="no room"):
                reader.execute_command("SAVE")

            disk.make_room()
            held.join(10)
            assert not held.is_alive()
            reader.rpush("list", "after")
            promised = reader.lrange("list", 0, -1)
        broker.kill()

        broker.start()
        with broker.client() as client:
            assert client.lrange("list", 0, -1) == promised
    assert promised[0] == b"before" and b"held" in promised and promised[-1] == b"after"


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

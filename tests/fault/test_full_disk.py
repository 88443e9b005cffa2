"""A full disk: writes are refused, reads are served, and everything goes on when there is room."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from support.durable_broker import DurableBroker
from support.faulty_disk import FaultyDisk
from support.servers import wait_until

RESUME_S = 5  # The promise, judged in the long run.
SMALL = "8m"
KEPT = 300  # Entries.


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
            held.join(60)
            assert not held.is_alive()
            reader.rpush("list", "after")
            promised = reader.lrange("list", 0, -1)
        broker.kill()

        broker.start()
        with broker.client() as client:
            assert client.lrange("list", 0, -1) == promised
    assert promised[0] == b"before" and b"held" in promised and promised[-1] == b"after"


def test_a_read_is_answered_also_when_it_came_together_with_the_write_that_found_no_room(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    with DurableBroker(tmp_path / "data", environment=disk.environment) as broker:
        broker.start()
        assert broker.process is not None
        with broker.client() as first, broker.client() as second, broker.client() as third:
            third.rpush("list", "a")
            writer, reader = [client.connection_pool.get_connection() for client in (first, second)]
            with third.pubsub() as listener:
                listener.subscribe("news")
                assert listener.get_message(timeout=60)["type"] == "subscribe"
                disk.fill()
                os.kill(broker.process.pid, signal.SIGSTOP)  # So that all of it arrives in one turn.
                writer.send_command("RPUSH", "list", "b")
                reader.send_command("PUBLISH", "news", "fresh")
                os.kill(broker.process.pid, signal.SIGCONT)
                assert reader.read_response() == 1
                assert listener.get_message(timeout=60)["data"] == b"fresh"
                assert not writer.can_read(0.5)
            disk.make_room()
            assert writer.read_response() == 2


def test_a_full_disk_keeps_nobody_from_starting_reading_and_stopping(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    with DurableBroker(tmp_path / "data", environment=disk.environment) as broker:
        broker.start()
        with broker.client() as client:
            client.rpush("list", "a")
        broker.kill()
        disk.fill()
        broker.start()
        with broker.client() as client:
            assert client.lrange("list", 0, -1) == [b"a"]
            with pytest.raises(redis.ResponseError, match="no room"):  # There is none for a checkpoint either.
                client.execute_command("SAVE")
        assert broker.stop() == (0, "")

        disk.make_room()
        broker.start()
        with broker.client() as client:
            assert client.rpush("list", "b") == 2


def test_writes_that_found_no_room_until_the_stop_were_never_confirmed_and_it_says_so(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    with DurableBroker(tmp_path / "data", environment=disk.environment) as broker:
        broker.start()
        with broker.client() as first, broker.client() as reader:
            disk.fill()
            outcomes: list[str] = []

            def push() -> None:
                try:
                    first.rpush("list", "held")
                    outcomes.append("confirmed")
                except redis.ConnectionError:
                    outcomes.append("unknown")

            held = threading.Thread(target=push)
            held.start()
            wait_until(lambda: is_full(reader), "a full disk")
            code, said = broker.stop()
            held.join(60)

    assert outcomes == ["unknown"]
    assert code == 1
    assert "there was no room on the disk for the last writes; they were never confirmed, and are gone" in said


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """A real one. Where nobody may mount it, this is said; on a build server it is a failure."""
    place.mkdir()
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    options = f"size={SMALL},mode=700,uid={os.geteuid()},gid={os.getegid()}"
    try:
        subprocess.run([*sudo, "mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = f"no small disk can be mounted here ({error}); run this test as root, or allow sudo"
        if os.environ.get("CI"):
            raise AssertionError(reason) from error
        pytest.skip(reason)
    try:
        yield place
    finally:
        subprocess.run([*sudo, "umount", str(place)], check=True)


class Writer:
    """Adds numbers to a stream that keeps the newest, over many lives of a broker, and knows what it was promised."""

    def __init__(self) -> None:
        self.next = 0
        self.promised: list[int] = []
        self.is_done = threading.Event()

    def write(self, client: redis.Redis) -> None:
        self.is_done.clear()
        while not self.is_done.is_set():
            try:
                client.xadd("orders", {"number": self.next, "text": "x" * 1000}, maxlen=KEPT, approximate=False)
                self.promised.append(self.next)
                self.next += 1
            except redis.ResponseError:  # Refused: it is not there, and the same one may be tried again.
                self.is_done.wait(0.01)
            except redis.ConnectionError:
                self.next += 1  # It may be there or not.
                return

    def check(self, client: redis.Redis) -> None:
        found = [int(fields[b"number"]) for _, fields in client.xrange("orders")]
        assert found == sorted(set(found)), "entries are doubled or out of order"
        assert set(found) <= set(range(self.next + 1)), "entries nobody added"  # One may be held.
        newest = [number for number in self.promised if not found or number >= found[0]]
        assert set(newest) <= set(found), "entries are lost"
        assert len(found) == min(KEPT, len(found)) and len(newest) >= min(KEPT // 2, len(self.promised))


@pytest.mark.long
def test_a_real_disk_runs_full_again_and_again_and_nothing_promised_is_lost(tmp_path: Path) -> None:
    """Under load, with checkpoints while there is room and while there is none, and a kill at the end of each round."""
    writer = Writer()
    with small_disk(tmp_path / "small") as small, DurableBroker(small / "data") as broker:
        ballast = small / "ballast"
        for number in range(20):
            broker.start()
            with broker.client() as client, broker.client() as other:
                writer.check(client)
                client.execute_command("SAVE")
                thread = threading.Thread(target=writer.write, args=(other,))
                thread.start()
                for _ in range(2):
                    ballast.write_bytes(bytes(shutil.disk_usage(small).free - 200_000))
                    wait_until(lambda: is_full(client), "a full disk", timeout_s=60)
                    writer.check(client)
                    with pytest.raises(redis.ResponseError, match="MISCONF"):
                        client.rpush("list", "refused")
                    with pytest.raises(redis.ResponseError, match="no room"):
                        client.execute_command("SAVE")
                    if number % 4 == 3:
                        break  # This one is killed while it is full.
                    ballast.unlink()
                    wait_until(lambda: not is_full(client), "room", timeout_s=RESUME_S)
                    client.execute_command("SAVE")
            broker.kill()
            thread.join(60)
            ballast.unlink(missing_ok=True)
        broker.start()
        with broker.client() as client:
            writer.check(client)
    assert len(writer.promised) > 1000


def is_full(client: redis.Redis) -> bool:
    return bool(client.info("persistence")["aof_last_write_status"] == "err")

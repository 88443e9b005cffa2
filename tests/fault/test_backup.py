"""headrace backup and restore as an operator runs them: beside a broker under load, and on what a crash has left."""

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from headrace.testing.running_broker import running_broker
from support.command_line import TIMEOUT_S, headrace
from support.durable_broker import DurableBroker
from support.servers import valkey_kind

KEYS = 20


class Writer:
    """Writes numbers until told to end, each with several clients, in an order that a copy must not break."""

    def __init__(self, broker: DurableBroker) -> None:
        self.broker = broker
        self.begun = 0  # The number that is being written, or was written last.
        self.done = 0  # Up to here everything was answered.
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.write)

    def __enter__(self) -> "Writer":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join(TIMEOUT_S)

    def write(self) -> None:
        with self.broker.client() as first, self.broker.client() as second:
            while not self.ended.is_set():
                number = self.begun = self.done + 1
                with first.pipeline(transaction=True) as block:
                    block.xadd("orders", {"number": number})
                    block.rpush("list", number)
                    block.execute()
                second.set(f"key:{number % KEYS}", number)
                first.hset("last", "number", number)
                if number % 50 == 0:
                    second.xtrim("orders", maxlen=100, approximate=False)
                if number % 70 == 0:
                    second.rename("list", "old")  # A checkpoint that runs begins again.
                self.done = number

    def wait_for(self, number: int) -> None:
        while self.done < number:
            assert self.thread.is_alive()
            self.ended.wait(0.01)


def check(client: redis.Redis, low: int, high: int) -> None:
    """What is there is what was there at one moment, when between low and high had been written."""
    [(_, fields)] = client.xrevrange("orders", count=1)
    number = int(fields[b"number"])
    assert low <= number <= high
    assert client.lindex("list", -1) in (str(number).encode(), None), "half a transaction"
    held = [int(value) for key in range(KEYS) if (value := client.get(f"key:{key}")) is not None]
    newest = max(held)
    assert newest in (number, number - 1), "something before is missing"
    assert sorted(held) == list(range(max(1, newest - KEYS + 1), newest + 1)), "something before is missing"
    assert int(client.hget("last", "number") or 0) in (newest, newest - 1), "something before is missing"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[DurableBroker]:
    with DurableBroker(tmp_path / "data") as made:
        made.start()
        yield made


def copy_and_check(broker: DurableBroker, place: Path, low: int, writer: Writer, source: str) -> None:
    """Backup, restore, and a broker on what was restored."""
    taken = headrace("backup", source, str(place / "backup")).row
    high = writer.begun
    assert taken["bytes"] > 0
    restored = headrace("restore", str(place / "backup"), str(place / "restored")).row
    with DurableBroker(place / "restored") as second:
        second.start()
        with second.client() as client:
            check(client, low, high)
            assert client.dbsize() == restored["keys"]
            assert client.xlen("orders") == restored["entries"]


def play(broker: DurableBroker, place: Path, rounds: int) -> None:
    with Writer(broker) as writer, broker.client() as client:
        writer.wait_for(100)
        for number in range(rounds):
            low = writer.done
            if number % 2:
                client.execute_command("BGSAVE")
            source = str(broker.folder) if number % 3 else f"redis://localhost:{broker.port}"
            copy_and_check(broker, place / str(number), low, writer, source)
        writer.wait_for(writer.done + 10)  # It went on all the time.


def test_a_backup_beside_a_broker_under_load_is_of_one_moment(broker: DurableBroker, tmp_path: Path) -> None:
    play(broker, tmp_path, 2)


@pytest.mark.long
def test_100_backups_beside_a_broker_under_load_are_each_of_one_moment(broker: DurableBroker, tmp_path: Path) -> None:
    play(broker, tmp_path, 100)


def test_a_folder_whose_broker_was_killed_can_be_copied(broker: DurableBroker, tmp_path: Path) -> None:
    with broker.client() as client:
        client.set("a", "1")
    broker.kill()

    headrace("backup", str(broker.folder), str(tmp_path / "backup")).row  # noqa: B018 - it must end well.
    restored = headrace("restore", str(tmp_path / "backup"), str(tmp_path / "restored"))

    assert restored.row["keys"] == 1
    assert "headrace serve --dir" in restored.err


def test_restore_refuses_a_folder_that_is_not_empty(broker: DurableBroker, tmp_path: Path) -> None:
    headrace("backup", str(broker.folder), str(tmp_path / "backup"))

    ended = headrace("restore", str(tmp_path / "backup"), str(broker.folder))

    assert ended.code == 1
    assert "is there already, and not empty. Choose a new folder." in ended.err


def test_damage_that_stands_in_the_way_of_a_backup_is_told_with_the_command_that_tells_more(
    broker: DurableBroker, tmp_path: Path
) -> None:
    with broker.client() as client:
        client.set("key", "value")
    broker.kill()
    log = broker.folder / "log-00000001"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0x55
    log.write_bytes(data)

    ended = headrace("backup", str(broker.folder), str(tmp_path / "backup"))

    assert ended.code == 1
    assert f"To see what is wrong: headrace check {shlex.quote(str(broker.folder))}." in ended.err
    assert headrace("check", str(broker.folder)).code == 5
    assert not (tmp_path / "backup").exists()


def test_restore_refuses_a_damaged_backup_and_leaves_nothing(broker: DurableBroker, tmp_path: Path) -> None:
    backup, target = tmp_path / "backup", tmp_path / "restored"
    with broker.client() as client:
        client.set("a", "1")
    headrace("backup", str(broker.folder), str(backup))
    log = backup / "log-00000001"
    log.write_bytes(log.read_bytes()[:-1] + b"?")

    ended = headrace("restore", str(backup), str(target))
    assert ended.code == 1
    assert ended.err == f"headrace: nothing was restored: {log} is not as it was when the backup was taken.\n"
    assert not target.exists()

    (backup / "backup").unlink()
    ended = headrace("restore", str(backup), str(target))
    assert "is no finished backup: there is no file 'backup' in it" in ended.err


def test_a_broker_whose_folder_is_elsewhere_says_where_to_make_the_backup(
    broker: DurableBroker, tmp_path: Path
) -> None:
    broker.folder.rename(tmp_path / "elsewhere")

    ended = headrace("backup", f"redis://localhost:{broker.port}", str(tmp_path / "backup"))

    assert ended.code == 1
    assert f"Run there: headrace backup {broker.folder} DEST" in ended.err
    assert not (tmp_path / "backup").exists()


def test_what_keeps_nothing_and_what_is_no_broker_of_ours_is_refused(tmp_path: Path) -> None:
    with running_broker() as running:
        ended = headrace("backup", running.url, str(tmp_path / "backup"))
        assert "started with --memory" in ended.err and ended.code == 1
    with valkey_kind().start() as server:
        ended = headrace("backup", f"redis://127.0.0.1:{server.port}", str(tmp_path / "backup"))
        assert "not a headrace broker" in ended.err and ended.code == 1
    ended = headrace("backup", "redis://127.0.0.1:1", str(tmp_path / "backup"))
    assert ended.code == 4
    ended = headrace("backup", str(tmp_path / "nothing"), str(tmp_path / "backup"))
    assert "there is no folder" in ended.err and ended.code == 3
    ended = headrace("backup", str(tmp_path), str(tmp_path / "backup"))
    assert "holds no data of headrace" in ended.err and ended.code == 1


def test_a_copy_is_not_made_inside_of_what_it_copies(broker: DurableBroker, tmp_path: Path) -> None:
    ended = headrace("backup", str(broker.folder), str(broker.folder / "backup"))
    assert (ended.code, "lies in" in ended.err) == (1, True)
    assert not (broker.folder / "backup").exists()

    assert headrace("backup", str(broker.folder), str(tmp_path / "backup")).code == 0
    ended = headrace("restore", str(tmp_path / "backup"), str(tmp_path / "backup" / "data"))
    assert (ended.code, "lies in" in ended.err) == (1, True)


def test_the_folder_of_an_embedded_url_is_named_as_in_a_client(broker: DurableBroker, tmp_path: Path) -> None:
    (tmp_path / "my data").symlink_to(broker.folder)

    ended = headrace("backup", f"embedded:{tmp_path}/my%20data?fsync=no", str(tmp_path / "backup"))

    assert ended.code == 0, ended.err
    assert (tmp_path / "backup" / "backup").exists()


def test_a_disk_without_room_leaves_no_half_backup(broker: DurableBroker, tmp_path: Path) -> None:
    with broker.client() as client:
        for number in range(100):
            client.set(f"key:{number}", "x" * 100)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    program = f"{limit}; from headrace.cli.main import run; run()"
    command = [sys.executable, "-c", program, "backup", str(broker.folder), str(tmp_path / "backup")]

    ended = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=TIMEOUT_S)

    assert ended.returncode == 1
    assert "no backup was made: cannot write" in ended.stderr
    assert not (tmp_path / "backup").exists()

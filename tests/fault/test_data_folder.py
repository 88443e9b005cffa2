"""The data folder of headrace serve as an operator meets it: what is said, what is refused, what stays."""

import contextlib
import re
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import redis

from headrace.testing.processes import child_process
from headrace.testing.running_broker import free_port
from support.durable_broker import DurableBroker


def test_without_options_the_data_is_kept_in_headrace_data_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "headrace", "serve", "--port", str(free_port())]
    with child_process(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        with process.stderr:
            loaded, ready = process.stderr.readline().decode(), process.stderr.readline().decode()

    assert re.fullmatch(r"headrace: loaded 0 keys from headrace-data in [0-9.]+ s \(.*\)\n", loaded)
    assert ready.endswith("kept in headrace-data, fsync always\n")
    assert (tmp_path / "headrace-data" / "manifest").exists()


def test_nobody_else_may_read_the_data(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with DurableBroker(folder) as broker:
        broker.start()
        with broker.client() as client:
            for number in range(300):
                client.xadd("orders", {"number": number})
            client.save()

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path.name.split("-")[0]: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == dict.fromkeys(["manifest", "log", "confirmed", "checkpoint", "segment", "lock", "host"], 0o600)


def test_a_second_broker_on_the_same_folder_is_refused_with_the_number_of_the_first(tmp_path: Path) -> None:
    with DurableBroker(tmp_path) as first, DurableBroker(tmp_path) as second:
        first.start()
        assert first.process is not None
        number = first.process.pid
        with pytest.raises(AssertionError, match=rf"in use by process {number}\. Stop it"):
            second.start()


def test_a_taken_port_is_told_before_a_folder_is_made_or_read(tmp_path: Path) -> None:
    folder, full = tmp_path / "new", tmp_path / "full"
    with DurableBroker(full) as broker:
        broker.start()
        broker.stop()
    with socket.socket() as other, DurableBroker(folder) as broker, DurableBroker(full) as again:
        other.bind(("127.0.0.1", 0))
        other.listen()
        broker.port = again.port = other.getsockname()[1]
        with pytest.raises(AssertionError, match=r"no start: headrace: Port \d+ on 127.0.0.1 is already in use"):
            broker.start()
        with pytest.raises(AssertionError, match=r"no start: headrace: Port \d+ on 127.0.0.1 is already in use"):
            again.start()

    assert not folder.exists()


def test_after_a_clean_stop_there_is_nothing_to_replay(tmp_path: Path) -> None:
    with DurableBroker(tmp_path) as broker:
        broker.start()
        with broker.client() as client:
            client.xadd("orders", {"item": "tea"}, id="1-1")
            client.xgroup_create("orders", "workers", id="0")
            client.xreadgroup("workers", "ann", {"orders": ">"})
            client.set("a", "1", px=3_600_000)
        assert broker.stop() == (0, "")

        said = "".join(broker.start())
        with broker.client() as client:
            assert client.xpending("orders", "workers")["pending"] == 1
            assert client.pttl("a") > 0
        assert broker.stop() == (0, "")
        names = sorted(path.name for path in tmp_path.iterdir())
        broker.start()

    assert "loaded 2 keys" in said
    assert "0 frames of the journal" in said
    # The second stop had nothing to write.
    assert names == ["checkpoint-00000001", "confirmed", "lock", "log-00000002", "manifest"]


def test_ids_grow_also_when_the_clock_goes_back_over_a_restart(tmp_path: Path) -> None:
    future = "99999999999999-7"
    with DurableBroker(tmp_path) as broker:
        broker.start()
        with broker.client() as client:
            client.xadd("orders", {"item": "tea"}, id=future)
            client.xdel("orders", future)
        broker.kill()
        broker.start()
        with broker.client() as client:
            assert client.xadd("orders", {"item": "milk"}) == b"99999999999999-8"
            client.xdel("orders", "99999999999999-8")
        broker.stop()
        broker.start()
        with broker.client() as client:
            assert client.xadd("orders", {"item": "sugar"}) == b"99999999999999-9"


def test_a_torn_end_is_cut_off_and_told(tmp_path: Path) -> None:
    with DurableBroker(tmp_path) as broker:
        broker.start()
        with broker.client() as client:
            client.set("a", "1")
        broker.kill()
        with (tmp_path / "log-00000001").open("ab") as log:
            log.write(b"HRF1 and half a header")

        said = broker.start()
        with broker.client() as client:
            assert client.get("a") == b"1"

    assert re.search(r"log-00000001: the last 22 bytes, from byte \d+ on, were never confirmed .* dropped", said[0])


def test_damage_is_refused_with_the_file_and_nothing_is_changed(tmp_path: Path) -> None:
    with DurableBroker(tmp_path) as broker:
        broker.start()
        with broker.client() as client:
            for number in range(10):
                client.set("a", number)
        broker.kill()
        log = tmp_path / "log-00000001"
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 1
        log.write_bytes(data)
        before = contents_of(tmp_path)

        broker.launch()
        code, said = broker.end()

    assert code == 1
    assert re.fullmatch(r"headrace: The data in .* cannot be used: .*\. Nothing was changed\. .*\n", said)
    assert said.endswith(f"To save what can be saved: headrace check {tmp_path} --repair\n")
    assert re.search(r"log-00000001 is damaged at byte \d+: a (frame|header) with a wrong checksum, and", said)
    assert contents_of(tmp_path) == before


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


def test_a_checkpoint_can_be_asked_for_in_the_words_of_redis(tmp_path: Path) -> None:
    with DurableBroker(tmp_path) as broker:
        broker.start()
        with broker.client() as client:
            before = client.lastsave()
            client.set("a", "1")
            assert client.info("persistence")["rdb_changes_since_last_save"] == 1
            assert client.execute_command("SAVE") is True
            facts = client.info("persistence")
            assert (facts["aof_enabled"], facts["rdb_changes_since_last_save"], facts["rdb_bgsave_in_progress"]) == (
                1,
                0,
                0,
            )
            assert client.lastsave() >= before
            for command in ["BGSAVE", "BGREWRITEAOF", "BGSAVE SCHEDULE"]:
                client.execute_command(*command.split())
                assert client.info("persistence")["rdb_bgsave_in_progress"] == 1
                with pytest.raises(redis.ResponseError, match="already in progress"):
                    client.execute_command("SAVE")
                while client.info("persistence")["rdb_bgsave_in_progress"]:
                    pass
            assert client.config_get("append*") == {"appendonly": "yes", "appendfsync": "always"}
            assert client.config_set("appendfsync", "everysec")
            with pytest.raises(redis.ResponseError, match="chosen at the start"):
                client.config_set("appendonly", "no")

    assert (tmp_path / "checkpoint-00000004").exists()


def test_clients_are_served_while_a_checkpoint_begins_again_and_again(tmp_path: Path) -> None:
    with DurableBroker(tmp_path) as broker:
        broker.start()
        with broker.client() as client:
            pipeline = client.pipeline(transaction=False)
            for number in range(3000):
                pipeline.set(f"key {number}", number)
            pipeline.execute()
            client.execute_command("BGSAVE")
            renames = 0
            while client.info("persistence")["rdb_bgsave_in_progress"]:
                client.rename(f"key {renames}", f"renamed {renames}")
                renames += 1
            names = set(client.keys())
        broker.kill()
        said = "".join(broker.start())
        with broker.client() as client:
            assert set(client.keys()) == names
            assert client.get("renamed 0") == b"0"

    assert "loaded 3,000 keys" in said
    assert renames > 0


def test_checkpoints_during_a_long_pipeline_hold_every_command_once(tmp_path: Path) -> None:
    """Its commands run in many turns; a key is saved only when the journal has all that was done to it."""
    pushes = 60_000
    with DurableBroker(tmp_path) as broker:
        broker.start()
        with broker.client() as client, broker.client() as other:
            pipeline = client.pipeline(transaction=False)
            for number in range(pushes):
                pipeline.rpush(f"list {number % 50}", number)
            thread = threading.Thread(target=pipeline.execute)
            thread.start()
            while thread.is_alive():
                with contextlib.suppress(redis.ResponseError):  # One is being written.
                    other.execute_command("BGSAVE")
            thread.join()
        broker.kill()
        broker.start()
        with broker.client() as client:
            for number in range(50):
                assert [int(item) for item in client.lrange(f"list {number}", 0, -1)] == list(range(number, pushes, 50))


def test_a_folder_that_cannot_be_used_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with DurableBroker(tmp_path / "file") as broker, pytest.raises(AssertionError, match="Cannot use the folder"):
        broker.start()

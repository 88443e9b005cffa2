"""One folder, several processes: hosts that are killed, stopped, closed or forked. Judged by those who use it."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from random import Random

import pytest

from headrace import Client, CommandError
from headrace.journal.pointer import read_pointer
from support.faulty_disk import FaultyDisk
from support.other_process import Failed, Other
from support.servers import wait_until
from support.shared_folder import LONG_S, Folder, describe, now_ms

SEED = 5


def play(path: Path, kills: int) -> str:
    """Four processes under load; the host is killed so often. A sentence about it."""
    random = Random(SEED)
    kills_ms = []
    with Folder(path) as folder:
        for _ in range(4):
            folder.start_member()
        folder.wait_until_served(folder.members, 0)
        for _ in range(kills):
            threading.Event().wait(random.uniform(0.1, 1.0))
            kills_ms.append(folder.kill_host())
            folder.wait_until_served(folder.members, now_ms())
            newcomer = folder.start_member()
            folder.wait_until_served([newcomer], 0)
        folder.stop()
        judgement = folder.judge()
        gaps_ms = folder.gaps_ms(kills_ms)
    assert judgement.promised > 100 * kills
    assert not judgement.lost
    assert max(gaps_ms) < LONG_S * 1000
    return f"{kills} hosts killed, {judgement.promised} promises kept; members were {describe(gaps_ms)}"


def test_nothing_promised_is_lost_when_the_host_is_killed(tmp_path: Path) -> None:
    play(tmp_path, 3)


@pytest.mark.long
def test_nothing_promised_is_lost_when_twenty_hosts_are_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = play(tmp_path, 20)

    with capsys.disabled():
        sys.stdout.write(f"\n{told}\n")


def test_nothing_promised_is_lost_when_hosts_leave_under_load(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        for _ in range(3):
            folder.start_member()
        folder.wait_until_served(folder.members, 0)
        while len(folder.members) > 1:
            folder.let_host_leave()
            folder.wait_until_served(folder.members, now_ms())
        folder.stop()
        judgement = folder.judge()

    assert judgement.promised > 100
    assert not judgement.lost


def test_after_a_failed_sync_the_host_says_so_and_another_process_takes_over(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    url = f"embedded:{tmp_path}/data"
    with Other(url, environment=disk.environment) as host, Client(url) as client:
        host("client.stream('orders').add({'item': 'tea'})")
        assert client.stream("orders").length() == 1
        disk.break_syncs()

        for _ in range(2):
            with pytest.raises(Failed, match=r"JournalError: .*cannot sync log-00000001: Input/output error"):
                host("client.stream('orders').add({'item': 'coffee'})")
        assert client.stream("orders").length() in (1, 2)
        pointer = read_pointer(tmp_path / "data")
        assert pointer is not None and pointer.pid == os.getpid()
        with pytest.raises(Failed, match="JournalError"):
            host("client.ping()")


def test_a_full_disk_holds_writes_of_the_host_and_of_others_until_there_is_room(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    url = f"embedded:{tmp_path}/data"
    with Other(url, environment=disk.environment) as host, Client(url) as client, Client(url) as reader:
        host("client.stream('orders').add({'item': 'tea'})")
        client.ping()
        disk.fill()
        host.start("client.stream('orders').add({'item': 'coffee'})")
        wait_until(lambda: reader.stream("orders").length() == 2, "the write that finds no room")
        with pytest.raises(CommandError, match="MISCONF"):
            client.stream("orders").add({"item": "milk"})
        assert reader.command("INFO", "persistence").count(b"aof_last_write_status:err") == 1

        disk.make_room()
        host.result()
        client.stream("orders").add({"item": "milk"})
        host.kill()

        assert [entry.fields["item"] for entry in client.stream("orders").range()] == ["tea", "coffee", "milk"]


def test_a_call_of_the_host_that_finds_no_room_gives_up_after_its_time(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    with Other(f"embedded:{tmp_path}/data", environment=disk.environment, timeout="2s") as host:
        host("client.stream('orders').add({'item': 'tea'})")
        disk.fill()
        with pytest.raises(Failed, match=r"ConnectionLost: .* has no room on its disk and waited for 2 s"):
            host("client.stream('orders').add({'item': 'coffee'})")
        with pytest.raises(Failed, match="MISCONF"):
            host("client.stream('orders').add({'item': 'milk'})")
        assert host("client.stream('orders').length()") == "2"
        disk.make_room()
        wait_until(lambda: host("client.command('INFO', 'persistence').count(b'status:err')") == "0", "room")
        host("client.stream('orders').add({'item': 'milk'})")

"""One folder, several processes: hosts that are killed, stopped, closed or forked. Judged by those who use it."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from random import Random

import pytest

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

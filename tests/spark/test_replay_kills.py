"""Drivers are killed while they replay an archive: run again, every entry is there, and there once, in order.

A failure prints its seed.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import redis

from headrace import Client
from headrace.pipeline.jobs.archive import archive
from headrace.pipeline.jobs.replay import replay
from support.killed_driver import KilledDriver

REPLAY = """
import sys
from headrace.pipeline.jobs.replay import replay
from headrace.pipeline.session import session

url, stream, target, folder = sys.argv[1:]
spark = session(master="local[2]", config=SMALL)
replay(stream, to=target, url=url, path=folder, where="fields['n'] % 2 = 0", rate="20000/s", spark=spark)
"""


def kill_again_and_again(
    url: str, client: Client, spark: Any, name: str, folder: Path, *, kills: int, rows: int
) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    with redis.Redis.from_url(url) as server:
        pipeline = server.pipeline(transaction=False)
        for number in range(rows):
            pipeline.xadd(name, {"n": number})
        pipeline.execute()
    archive(name, folder / "table", url=url, name=f"archive-{name}", spark=spark)
    target = client.stream(f"{name}-again")
    driver = KilledDriver(REPLAY, folder, url, name, target.name, str(folder / "table"))
    points = sorted(chance.sample(range(1, rows // 2), kills))
    for point in points:
        driver.run_and_kill(when=lambda point=point: target.length() >= point)
    replay(name, to=target.name, url=url, path=folder / "table", where="fields['n'] % 2 = 0", spark=spark)

    copies = [int(entry.fields["n"]) for entry in target.iterate()]
    assert copies == list(range(0, rows, 2)), f"seed {seed}, killed at {points}"


def test_a_replay_killed_half_way_and_run_again_gives_the_set_once(
    our_url: str, our_client: Client, spark: Any, name: str, tmp_path: Path
) -> None:
    kill_again_and_again(our_url, our_client, spark, name, tmp_path, kills=1, rows=8000)


@pytest.mark.long
def test_a_replay_killed_again_and_again_gives_the_set_once(
    url: str, client: Client, spark: Any, name: str, tmp_path: Path
) -> None:
    kill_again_and_again(url, client, spark, name, tmp_path, kills=20, rows=60_000)

"""Drivers and tasks are killed while they archive, and consumers delete and the archive trims what they may: every
entry that was published is in the table, and there once.

A failure prints its seed.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from headrace import Client
from headrace.pipeline.entry_ids import id_of
from headrace.pipeline.jobs.archive import archive
from headrace.pipeline.tables.table import open_table
from support.killed_driver import KilledDriver
from support.servers import wait_until

ARCHIVE = """
import sys
from headrace.pipeline.jobs.archive import archive
from headrace.pipeline.session import session

url, stream, folder = sys.argv[1:]
spark = session(master="local[2,3]", config=SMALL)
archive(
    stream, folder, url=url, name="archive-" + stream, trim=True, continuous=True, interval="0s",
    max_entries_per_batch=300, duration="240s", spark=spark,
)
"""

POINTS = 12  # A kill comes after so many files or commits at most.
DELAY_S = 0.3


class Traffic:
    """A producer, and consumers that acknowledge and delete, both as fast as they can and until stopped."""

    def __init__(self, url: str, stream: str, most: int) -> None:
        self.url = url
        self.stream = stream
        self.most = most
        self.published: list[str] = []
        self.consumed = 0
        self.stopped = threading.Event()
        self.failures: list[BaseException] = []

    def publish(self) -> None:
        with Client(self.url) as client:
            while not self.stopped.is_set() and len(self.published) < self.most:
                begin = len(self.published)
                self.published += client.stream(self.stream).add_many({"n": str(begin + n)} for n in range(50))
                self.stopped.wait(0.005)

    def consume(self) -> None:
        with Client(self.url) as client:
            group = client.stream(self.stream).group("workers")
            while not self.stopped.is_set():
                taken = group.read("ann", count=100, wait="100ms")
                if taken:
                    group.ack(*(entry.id for entry in taken), delete=True)
                    self.consumed += len(taken)

    def guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.failures.append(error)

    @contextmanager
    def running(self) -> Iterator[None]:
        with Client(self.url) as client:
            client.stream(self.stream).group("workers").create("beginning")
        threads = [threading.Thread(target=self.guarded, args=[work]) for work in (self.publish, self.consume)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stopped.set()
            for thread in threads:
                thread.join()
        assert self.failures == []


def count_traces(folder: Path) -> int:
    """How much the archive has done: it grows with each file and each commit."""
    return sum(1 for path in folder.rglob("*") if path.suffix in (".parquet", ".json", ".partial"))


def moment(folder: Path, chance: random.Random) -> Callable[[], bool]:
    """Holds at a random moment of a run: some files or commits from now, and some milliseconds later."""
    target = count_traces(folder) + chance.randrange(POINTS)
    delay_s = chance.random() * DELAY_S
    reached: list[float] = []

    def is_reached() -> bool:
        if not reached and count_traces(folder) >= target:
            reached.append(time.monotonic())
        return bool(reached) and time.monotonic() - reached[0] >= delay_s

    return is_reached


def kill_tasks(leader: int) -> int:
    """Kill the Python processes of Spark's tasks in the driver's group; how many there were."""
    killed = 0
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            process = int(entry.name)
            if os.getpgid(process) == leader and b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                os.kill(process, signal.SIGKILL)
                killed += 1
    return killed


def archived_ids(folder: Path) -> list[str]:
    ids = [
        entry_id
        for one in open_table(folder).files()
        for entry_id in pq.read_table(one.path, columns=["id"], partitioning=None)["id"].to_pylist()
    ]
    return sorted(ids, key=id_of)


def kill_again_and_again(spark: Any, url: str, name: str, place: Path, kind: str, *, kills: int, most: int) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    folder = place / "archive"
    driver = KilledDriver(ARCHIVE, place, url, name, str(folder))
    traffic = Traffic(url, name, most)
    with Client(url) as client:
        traffic.published.append(client.stream(name).add({"n": "first"}))
        archive(name, folder, url=url, name=f"archive-{name}", format=kind, spark=spark)  # From here on it is held.
        with traffic.running():
            wait_until(lambda: traffic.consumed >= 500, "some entries to be consumed", timeout_s=60)
            for number in range(kills):
                when = moment(folder, chance)
                if number % 2 == 0:
                    when = after_killing_tasks(driver, when, moment(folder, chance))
                assert driver.run_and_kill(when), f"seed {seed}: it ended by itself"
        archive(name, folder, url=url, name=f"archive-{name}", trim=True, spark=spark)

        left = [entry.id for entry in client.stream(name).iterate()]
    archived = archived_ids(folder)
    assert len(archived) == len(set(archived)), f"seed {seed}: doubled"
    assert archived == traffic.published, f"seed {seed}: missing {len(set(traffic.published) - set(archived))}"
    assert set(left) <= set(archived) and len(left) < len(archived)


def after_killing_tasks(
    driver: KilledDriver, first: Callable[[], bool], then: Callable[[], bool]
) -> Callable[[], bool]:
    """Kill the tasks at the first moment; the driver has to go on, and is killed at the second one."""
    done: list[int] = []

    def is_reached() -> bool:
        if not done and first():
            done.append(kill_tasks(driver.group))
        return bool(done) and then()

    return is_reached


@pytest.mark.costly("valkey")
def test_drivers_and_tasks_killed_at_any_moment_lose_and_double_nothing(
    spark: Any, url: str, name: str, tmp_path: Path
) -> None:
    kill_again_and_again(spark, url, name, tmp_path, "delta", kills=1, most=6000)


@pytest.mark.long
def test_drivers_and_tasks_killed_fifty_times_lose_and_double_nothing(
    spark: Any, url: str, name: str, tmp_path: Path
) -> None:
    kill_again_and_again(spark, url, name, tmp_path, "delta", kills=50, most=200_000)


@pytest.mark.long
def test_a_table_of_plain_parquet_files_survives_kills_as_well(
    spark: Any, our_url: str, name: str, tmp_path: Path
) -> None:
    kill_again_and_again(spark, our_url, name, tmp_path, "parquet", kills=20, most=100_000)

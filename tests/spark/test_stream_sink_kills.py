"""Drivers are killed and tasks fail while rows are written to a stream: every row arrives, and arrives once.

The first attempt of every task fails when it has staged its rows; and drivers are killed in the middle of publishing.

A failure prints its seed.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from headrace import Client
from headrace.pipeline.staging import STAGED_S
from support.killed_driver import KilledDriver

ROWS = 4000  # Per batch: eight chunks, so that a kill falls between two of them.

PROGRAM = """
import sys
import pyarrow
from pyspark import TaskContext
from headrace.pipeline.session import session

url, stream, numbers, checkpoint = sys.argv[1:]
spark = session(master="local[2,3]", config=SMALL)

def spoil_the_first_attempt(batches):
    yield from batches
    if TaskContext.get().attemptNumber() == 0:
        yield pyarrow.record_batch({"data": pyarrow.array([None], pyarrow.string())})  # Refused by the sink.

rows = spark.readStream.option("maxFilesPerTrigger", 1).text(numbers).selectExpr("value data")
rows = rows.repartition(2).mapInArrow(spoil_the_first_attempt, "data string")
writer = rows.writeStream.format("headrace").option("url", url).option("stream", stream)
writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
"""


def numbers(client: Client, name: str) -> list[int]:
    return sorted(json.loads(entry.fields["data"])["n"] for entry in client.stream(name).iterate())


def write_numbers(folder: Path, batches: int) -> Path:
    folder.mkdir()
    for batch in range(batches):
        lines = (json.dumps({"n": batch * ROWS + row}) for row in range(ROWS))
        (folder / f"{batch:03}.json").write_text("\n".join(lines))
    return folder


def kill_again_and_again(url: str, client: Client, name: str, folder: Path, *, kills: int, batches: int) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    source = write_numbers(folder / "numbers", batches)
    driver = KilledDriver(PROGRAM, folder, url, name, str(source), str(folder / "checkpoint"))
    points = sorted(chance.sample(range(1, batches * ROWS), kills))
    for point in points:
        driver.run_and_kill(when=lambda point=point: client.stream(name).length() >= point)
    driver.run_to_the_end()

    assert numbers(client, name) == list(range(batches * ROWS)), f"seed {seed}, killed at {points}"
    left = client.command("KEYS", f"hr:{{{name}}}:*")
    dead = [key for key in left if b":staged:" in key]
    assert len(dead) >= 2 * batches, "the first attempt of every task had staged its rows"
    assert all(0 < client.command("TTL", key) <= STAGED_S for key in dead)
    assert len(left) == len(dead) + 1, "nothing else is kept but the fence"


@pytest.mark.costly("headrace")
def test_tasks_that_fail_and_a_driver_killed_in_the_middle_of_a_batch_write_every_row_once(
    url: str, client: Client, name: str, tmp_path: Path
) -> None:
    kill_again_and_again(url, client, name, tmp_path, kills=1, batches=2)


@pytest.mark.long
def test_a_driver_killed_again_and_again_writes_every_row_once(
    url: str, client: Client, name: str, tmp_path: Path
) -> None:
    kill_again_and_again(url, client, name, tmp_path, kills=15, batches=8)

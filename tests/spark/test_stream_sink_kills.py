"""Drivers are killed and tasks fail while rows are written to a stream: every row arrives, and arrives once.

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

ROWS = 4000  # Per batch: ten chunks, so that a kill falls between two of them.

STREAMING = """
import sys
from headrace.pipeline.session import session

url, stream, numbers, checkpoint = sys.argv[1:]
spark = session(master="local[2]", config={"spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "2"})
rows = spark.readStream.schema("n int").option("maxFilesPerTrigger", 1).json(numbers)
writer = rows.repartition(2).writeStream.format("headrace").option("url", url).option("stream", stream)
writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
"""

RETRIED = """
import sys
import pyarrow
from pyspark import TaskContext
from headrace.pipeline.session import session

url, stream, rows = sys.argv[1:]
spark = session(master="local[2,3]", config={"spark.driver.memory": "512m"})

def spoil_the_first_attempt(batches):
    yield from batches
    if TaskContext.get().attemptNumber() == 0:
        yield pyarrow.record_batch({"data": pyarrow.array([None], pyarrow.string())})  # Refused by the sink.

frame = spark.range(0, int(rows), 1, 2).selectExpr("to_json(named_struct('n', id)) data")
frame = frame.mapInArrow(spoil_the_first_attempt, "data string")
frame.write.format("headrace").option("url", url).option("stream", stream).mode("append").save()
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
    driver = KilledDriver(STREAMING, folder, url, name, str(source), str(folder / "checkpoint"))
    points = sorted(chance.sample(range(1, batches * ROWS), kills))
    for point in points:
        driver.run_and_kill(when=lambda point=point: client.stream(name).length() >= point)
    driver.run_to_the_end()

    assert numbers(client, name) == list(range(batches * ROWS)), f"seed {seed}, killed at {points}"
    left = client.command("KEYS", f"hr:{{{name}}}:*")
    assert [key for key in left if b":sink:" in key] == left[:1], "nothing but the fence is kept"


def test_a_driver_killed_in_the_middle_of_a_batch_writes_every_row_once(
    url: str, client: Client, name: str, tmp_path: Path
) -> None:
    kill_again_and_again(url, client, name, tmp_path, kills=1, batches=2)


@pytest.mark.long
def test_a_driver_killed_again_and_again_writes_every_row_once(
    url: str, client: Client, name: str, tmp_path: Path
) -> None:
    kill_again_and_again(url, client, name, tmp_path, kills=15, batches=8)


def test_a_task_that_failed_after_its_rows_were_staged_does_not_double_them(
    our_url: str, our_client: Client, name: str, tmp_path: Path
) -> None:
    KilledDriver(RETRIED, tmp_path, our_url, name, str(2 * ROWS)).run_to_the_end()

    assert numbers(our_client, name) == list(range(2 * ROWS))
    left = our_client.command("KEYS", f"hr:{{{name}}}:*")
    assert len(left) == 2, "each first attempt had staged its rows"
    assert all(0 < our_client.command("TTL", key) <= STAGED_S for key in left)

"""An archive takes less room on disk than a stream takes in memory. Tasks' own code, without Spark."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace import Client
from headrace.pipeline.archive_files import SliceWriter
from headrace.pipeline.archive_layout import create_archive
from headrace.pipeline.ranges import Slice
from headrace.pipeline.reader import read_slice

COUNT = 30_000
MOST = 0.5  # Of the memory. On Redis and Valkey it is 0.2 to 0.3; ours packs JSON tighter: 0.42.

chance = random.Random(1)  # Values are half of them random, as those of real programs are.


def make_fields(number: int) -> dict[str, str]:
    note = f"order placed via web {chance.getrandbits(80):020x}"
    return {"user": f"user-{chance.randrange(100_000):05d}", "amount": f"{number % 9973 / 7:.2f}", "note": note}


def make_json(number: int) -> dict[str, str]:
    customer = f"customer-{chance.randrange(100_000)}"
    order = {"id": number, "customer": customer, "total": number % 9973 / 7, "ref": f"{chance.getrandbits(64):016x}"}
    return {"data": json.dumps(order), "key": customer}


@pytest.mark.parametrize("make", [make_fields, make_json], ids=["fields", "json"])
def test_an_archive_takes_less_than_half_the_room_of_the_stream(
    url: str, client: Client, name: str, tmp_path: Path, make: Callable[[int], dict[str, str]]
) -> None:
    stream = client.stream(name)
    stream.add_many(make(number) for number in range(COUNT))
    table = create_archive(tmp_path / "archive", "delta")

    files = SliceWriter(table, name).write(read_slice(url, Slice(name, "0-0", stream.info().last_id)))

    assert sum(file.rows for file in files) == COUNT
    memory_bytes = client.command("MEMORY", "USAGE", name, "SAMPLES", 0)
    assert sum(file.size_bytes for file in files) <= MOST * memory_bytes

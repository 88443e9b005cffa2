"""Entries that are deleted in the order they came leave nothing behind, in memory and on disk (row 31)."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from support.durable_broker import DurableBroker

MIB = 2**20
BATCH = 1000


def add_and_delete(client: redis.Redis, entries: int) -> None:
    """Deletion follows a batch behind, as after the work is done."""
    before: list[bytes] = []
    for first in range(0, entries, BATCH):
        pipeline = client.pipeline(transaction=False)
        for number in range(first, first + BATCH):
            pipeline.xadd("orders", {"number": number, "text": "x" * 50})
        added = pipeline.execute()
        if before:
            assert client.xdel("orders", *before) == BATCH
        before = added
    assert client.xdel("orders", *before) == BATCH


@pytest.mark.parametrize("entries", [6_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_memory_and_disk_are_back_where_they_began(tmp_path: Path, entries: int) -> None:
    """Row 31."""
    with DurableBroker(tmp_path / "data", "--fsync", "no") as broker:
        broker.start()
        with broker.client() as client:
            start = client.info("memory")["used_memory"]
            add_and_delete(client, entries // 2)
            client.execute_command("SAVE")
            add_and_delete(client, entries // 2)
            assert client.info("memory")["used_memory"] < start + MIB
            client.execute_command("SAVE")
            assert sum(path.stat().st_size for path in (tmp_path / "data").iterdir()) < MIB
            assert client.xlen("orders") == 0
        broker.kill()
        broker.start()
        with broker.client() as client:
            assert client.xinfo_stream("orders")["entries-added"] == entries

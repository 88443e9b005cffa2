"""`embedded:FOLDER` in Spark: the driver's process hosts the folder, tasks are attached to it and never host."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from headrace import Client
from headrace.journal.pointer import read_pointer
from headrace.pipeline.jobs.archive import archive
from headrace.pipeline.jobs.query import KEPT, table
from headrace.pipeline.jobs.trim import trim


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def test_streams_of_a_folder_are_archived_and_queried(spark: Any, folder: Path, tmp_path: Path) -> None:
    with Client("embedded:./data") as client:
        ids = client.stream("orders").add_many([{"n": str(number)} for number in range(500)])

    report = archive("orders", tmp_path / "lake", url="embedded:./data", spark=spark)
    assert report.entries == 500
    trim("orders", url="embedded:./data", dry_run=False)
    with Client("embedded:./data") as client:
        ids += client.stream("orders").add_many([{"n": "new"}] * 10)
    rows = table("orders", url="embedded:./data", spark=spark).select("id").collect()

    assert sorted(row.id for row in rows) == sorted(ids)
    pointer = read_pointer(folder)
    assert pointer is not None and pointer.pid == os.getpid()
    KEPT.popitem()[1].close()


def test_rows_are_written_to_a_stream_of_a_folder(spark: Any, folder: Path) -> None:
    with Client(f"embedded:{folder}") as client:
        frame = spark.range(100).selectExpr("cast(id as string) as n")
        frame.write.format("headrace").mode("append").option("url", client.url).option("stream", "numbers").save()

        assert client.stream("numbers").length() == 100


@pytest.mark.long
def test_a_task_does_not_host_a_folder_that_nobody_hosts(spark: Any, folder: Path) -> None:
    reader = spark.read.format("headrace").option("url", f"embedded:{folder}").option("streams", "orders")

    with pytest.raises(Exception, match="no process hosts the folder"):
        reader.load().collect()

    assert not folder.exists()

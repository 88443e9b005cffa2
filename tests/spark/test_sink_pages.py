"""The Python of the pages on the stream sink and on replay runs, from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import Client
from headrace.pipeline.jobs.archive import archive
from headrace.testing import running_broker


@pytest.fixture
def broker() -> Iterator[Client]:
    """A broker of its own with some orders."""
    with running_broker() as running, Client(running.url) as client:
        for number in range(6):
            kind = "refund" if number % 2 else "sale"
            client.stream("orders").add({"type": kind, "key": f"customer-{number % 3}", "n": number})
        yield client


def run_page(root: Path, page: str, client: Client, folder: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", (root / "docs" / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        here = block.replace("redis://localhost:7379", client.url)
        exec(here.replace("./checkpoints", str(folder / "checkpoints")), names)  # Spark's "." is where it was started.


def test_the_page_on_the_stream_sink_runs(spark: Any, root: Path, broker: Client, tmp_path: Path) -> None:
    run_page(root, "pipeline-sink.md", broker, tmp_path)

    assert [entry.fields["n"] for entry in broker.stream("refunds").range()] == ["1", "3", "5"]
    counts = {entry.key: entry.payload["count"] for entry in broker.stream("counts").range()}
    assert counts == {"customer-0": 2, "customer-1": 2, "customer-2": 2}
    reports = [(entry.key, entry.payload) for entry in broker.stream("reports").range()]
    assert reports == [("tea", {"cups": 3}), ("coffee", {"cups": 5})]


def test_the_page_on_replay_runs(
    spark: Any, root: Path, broker: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive("orders", tmp_path / "lake", url=broker.url, spark=spark)

    run_page(root, "replay.md", broker, tmp_path)

    assert capsys.readouterr().out == "3 3 0\n"
    assert [entry.fields["n"] for entry in broker.stream("orders-again").range()] == ["1", "3", "5"]

"""The Python of the page on archives runs, with Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headrace import Client
from headrace.pipeline.jobs.archive import archive
from headrace.pipeline.tables.table import open_table
from headrace.testing import running_broker

BLOCK = re.compile(
    r"^<!-- shown only: \S*test_archive_page.py .*? -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def test_the_python_of_the_page_runs_from_top_to_bottom(
    spark: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = BLOCK.findall((root / "docs/archive.md").read_text("utf-8"))
    monkeypatch.chdir(tmp_path)

    with running_broker() as broker, Client(broker.url) as client:
        client.stream("orders").publish_many([{"id": number} for number in range(3)], key="customer-42")
        archive("orders", "./lake", url=broker.url, spark=spark)
        names: dict[str, Any] = {}
        for block in blocks:
            here = block.replace("redis://localhost:7379", broker.url)
            here = here.replace('"./by-day', f'"{tmp_path}/by-day')  # Spark was started in another folder.
            exec(compile(here, "docs/archive.md", "exec"), names)

    assert len(blocks) == 3
    assert names["data"] == b'{"id":0}' and names["archived"].num_rows == 3
    assert names["report"].files_after == 1
    assert open_table(tmp_path / "by-day").figures().rows == 3

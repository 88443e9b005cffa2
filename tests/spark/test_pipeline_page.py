"""The Python of the page on the pipeline runs, with Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headrace import Client
from headrace.testing import running_broker

BLOCK = re.compile(
    r"^<!-- shown only: \S*test_pipeline_page.py .*? -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def test_the_python_of_the_page_runs_from_top_to_bottom(
    spark: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = BLOCK.findall((root / "docs/pipeline.md").read_text("utf-8"))
    monkeypatch.chdir(tmp_path)

    with running_broker() as broker, Client(broker.url) as client:
        client.stream("orders").publish_many([{"id": number} for number in range(3)], key="customer-42")
        names: dict[str, Any] = {}
        for block in blocks:
            exec(compile(block.replace("redis://localhost:7379", broker.url), "docs/pipeline.md", "exec"), names)

        assert len(blocks) == 3
        assert (names["report"].entries, names["replayed"].added, client.stream("orders-again").length()) == (3, 3, 3)
        assert names["by_hour"].collect()[0]["count"] == 3
    assert "customer-42" in capsys.readouterr().out

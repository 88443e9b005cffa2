"""The page on reading streams in Spark keeps its word: its Python runs, and its table has the options there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headrace import Client
from headrace.pipeline.options import SOURCE_OPTIONS
from headrace.testing import running_broker

PAGE = "docs/pipeline-source.md"


def test_the_page_names_every_option_and_no_others(root: Path) -> None:
    named = re.findall(r"^\| `(\w+)` \|", (root / PAGE).read_text("utf-8"), re.MULTILINE)

    assert sorted(named) == sorted(set(SOURCE_OPTIONS) - {"archive"})


def test_the_python_of_the_page_runs(
    spark: Any, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", (root / PAGE).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    with running_broker() as broker, Client(broker.url) as client:
        for number in range(3):
            client.stream("orders").add({"key": "tea", "order_id": number, "total": 9.5 + number})
        for block in blocks:
            here = block.replace("redis://localhost:7379", broker.url).replace('"./', f'"{tmp_path}/')
            exec(here, names)
        count = names["later"].count()

    printed = capsys.readouterr().out
    assert count == 3
    assert re.search(r"\|tea\|\s+3\|", printed) and '"lag": 0' in printed.replace("'", '"')
    assert spark.read.parquet(str(tmp_path / "orders")).count() == 3

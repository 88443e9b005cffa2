"""The examples of examples/spark/ do what they say, to the last number.

Each example runs once after each part of its sample entries, in the session of this folder; entry IDs are given, so
results are exact. Their streams have plain names, so they have a broker of their own.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "spark"))  # As when they run by themselves.

import sample

from headrace import Client
from headrace.testing import running_broker
from support.deployments import Deployment

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "spark"
SCRIPTS = ("windowed_counts", "running_counts", "late_events", "sessions", "joined_streams", "layers")
SCRIPT_TIMEOUT_S = 300


def load(name: str) -> Any:
    """An example as a module. Not in sys.modules, so that its classes travel to Spark's workers with their code."""
    spec = importlib.util.spec_from_file_location(f"example_{Path(name).name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(example: Any, spark: Any, url: str, folder: Path) -> Iterator[Any]:
    """Adds a part of the example's entries and runs it, part by part."""
    for part in example.PARTS:
        sample.add(url, part)
        yield example.main(spark, url, str(folder))


def payloads(url: str, stream: str) -> list[Any]:
    with Client(url) as client:
        return [entry.payload for entry in client.stream(stream).iterate()]


@pytest.fixture(scope="module")
def broker_url() -> Iterator[str]:
    with running_broker() as broker:
        yield broker.url


@pytest.mark.costly("headrace")
def test_minutes_that_are_over_are_counted_and_written_to_another_stream(
    spark: Any, server: Deployment, tmp_path: Path
) -> None:
    with server.start() as url:
        first, second = [
            payloads(url, "orders-per-minute") for _ in results(load("windowed_counts"), spark, url, tmp_path)
        ]

    assert first == [{"minute": "2026-01-01T09:00:00Z", "count": 2}]
    assert second == [*first, {"minute": "2026-01-01T09:01:00Z", "count": 2}]


def test_counts_that_change_are_written_each_time_they_do(spark: Any, broker_url: str, tmp_path: Path) -> None:
    first, second = [
        payloads(broker_url, "orders-so-far") for _ in results(load("running_counts"), spark, broker_url, tmp_path)
    ]

    assert sorted((row["minute"], row["count"]) for row in first) == [
        ("2026-01-01T09:00:00Z", 2),
        ("2026-01-01T09:01:00Z", 1),
    ]
    assert second == [*first, {"minute": "2026-01-01T09:01:00Z", "count": 2}]


def test_what_is_late_within_the_watermark_counts_and_what_is_later_is_dropped(
    spark: Any, broker_url: str, tmp_path: Path
) -> None:
    [(first, dropped_first), (second, dropped_second)] = results(load("late_events"), spark, broker_url, tmp_path)

    assert [tuple(row) for row in first] == [(datetime(2026, 1, 1, 9, 0), 2, 20.5)]
    assert [tuple(row) for row in second] == [
        (datetime(2026, 1, 1, 9, 5), 1, 23.0),
        (datetime(2026, 1, 1, 9, 10), 1, 25.0),
    ]
    assert (dropped_first, dropped_second) == (0, 1)


def test_a_session_goes_on_over_runs_and_is_closed_by_its_timer(spark: Any, broker_url: str, tmp_path: Path) -> None:
    first, second = results(load("sessions"), spark, broker_url, tmp_path)

    assert first == []
    assert [tuple(row) for row in second] == [("ann", 1767258000000, 10, 2), ("bob", 1767258300000, 25, 2)]


def test_payments_find_their_orders_and_unpaid_orders_are_told_in_the_end(
    spark: Any, broker_url: str, tmp_path: Path
) -> None:
    joined = results(load("joined_streams"), spark, broker_url, tmp_path)
    first, second = [payloads(broker_url, "settled") for _ in joined]

    assert first == [{"number": "1", "total": 9.9, "paid_at": "2026-01-01T09:05:00Z"}]
    assert sorted(second, key=lambda row: row["number"]) == [
        *first,
        {"number": "2", "total": 4.5, "paid_at": "2026-01-01T09:20:00Z"},
        {"number": "3", "total": 7.0, "paid_at": None},
        {"number": "4", "total": 1.2, "paid_at": "2026-01-01T10:31:00Z"},
    ]
    assert second[-1]["number"] == "3"  # It had to wait for the watermark.


def test_raw_entries_become_typed_rows_without_doubles_and_totals_per_day(
    spark: Any, broker_url: str, tmp_path: Path
) -> None:
    from deltalake import DeltaTable

    def rows(layer: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = DeltaTable(str(tmp_path / layer)).to_pyarrow_table().to_pylist()
        return found

    seen = []
    for _ in results(load("layers"), spark, broker_url, tmp_path):
        days = {row["day"]: (row["sales"], row["total"]) for row in rows("gold")}
        seen.append((len(rows("bronze")), sorted(row["sale"] for row in rows("silver")), days))

    last_year, this_year = date(2025, 12, 31), date(2026, 1, 1)
    assert seen == [
        (4, ["s1", "s2"], {last_year: (1, Decimal("9.90")), this_year: (1, Decimal("4.50"))}),
        (6, ["s1", "s2", "s3"], {last_year: (1, Decimal("9.90")), this_year: (2, Decimal("11.50"))}),
    ]
    [remark] = [row for row in rows("bronze") if row["data"] == b"till 7 is out of paper"]
    assert remark["id"] == "1767258003000-0"


# The notebook


def notebook_cells() -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads((EXAMPLES / "notebook.ipynb").read_text("utf-8"))["cells"]
    return cells


@pytest.mark.usefixtures("spark")  # The notebook takes the session that is there.
def test_the_notebook_runs_from_top_to_bottom() -> None:
    names: dict[str, Any] = {}
    for cell in notebook_cells():
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"notebook cell {cell['id']}", "exec"), names)

    table = names["table"]
    assert [(f"{row.minute:%H:%M}", row["count"]) for _, row in table.iterrows()] == [
        ("09:00", 2),
        ("09:01", 1),
        ("09:03", 1),
    ]


def test_the_notebook_is_kept_without_results() -> None:
    for cell in notebook_cells():
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


# The declarative pipeline


def definitions() -> dict[str, Any]:
    """What the pipeline defines: the function of each table, by name."""
    from pyspark.pipelines.graph_element_registry import GraphElementRegistry, graph_element_registration_context

    class Flows(GraphElementRegistry):  # type: ignore[misc]
        def __init__(self) -> None:
            self.functions: dict[str, Any] = {}

        def register_output(self, output: Any) -> None:
            pass

        def register_flow(self, flow: Any) -> None:
            self.functions[flow.target] = flow.func

        def register_auto_cdc_flow(self, flow: Any) -> None:
            raise AssertionError(flow)

        def register_sql(self, sql_text: str, file_path: Path) -> None:
            raise AssertionError(file_path)

    flows = Flows()
    with graph_element_registration_context(flows):
        load("pipeline/definitions")
    return flows.functions


def test_the_tables_of_the_declarative_pipeline_have_the_visits_and_their_counts(
    spark: Any, broker_url: str, drain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(broker_url) as client:
        client.stream("visits").add_many({"page": page} for page in load("pipeline/run").PAGES)

    monkeypatch.setenv("HEADRACE_URL", broker_url)

    tables = definitions()
    drain(tables["visits"]().writeStream.format("memory").queryName("visits"))
    counts = {row.page: row["count"] for row in tables["visits_per_page"]().collect()}
    spark.catalog.dropTempView("visits")

    assert list(tables) == ["visits", "visits_per_page"]
    assert counts == {"/": 3, "/milk": 1, "/tea": 2}


@pytest.mark.long
def test_spark_pipelines_runs_the_pipeline_and_adds_only_what_is_new_when_run_again(
    broker_url: str, tmp_path: Path
) -> None:
    pipeline = load("pipeline/run")
    with Client(broker_url) as client:
        visits = client.stream("visits")
        client.command("DEL", "visits")
        visits.add_many({"page": page} for page in pipeline.PAGES)
        first = pipeline.main(broker_url, str(tmp_path))
        visits.add({"page": "/tea"})
        second = pipeline.main(broker_url, str(tmp_path))
        client.command("DEL", "visits")

    assert first == {"/": 3, "/milk": 1, "/tea": 2}
    assert second == {"/": 3, "/milk": 1, "/tea": 3}


# By themselves, and in the docs


def run_alone(name: str, *options: str) -> str:
    command = [sys.executable, EXAMPLES / f"{name}.py", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SCRIPT_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_an_example_runs_by_itself_with_a_broker_of_its_own() -> None:
    said = run_alone("late_events")

    assert said.splitlines() == [
        "09:00  2 readings, 20.5 °C", "dropped: 0",
        "09:05  1 readings, 23.0 °C", "09:10  1 readings, 25.0 °C", "dropped: 1",
    ]  # fmt: skip


@pytest.mark.long
def test_an_example_reads_the_server_it_is_given_as_it_is() -> None:
    with running_broker() as broker:
        sample.add(broker.url, load("late_events").PARTS[0])
        said = run_alone("late_events", "--url", broker.url)

    assert said.splitlines() == ["09:00  2 readings, 20.5 °C", "dropped: 0"]


@pytest.mark.long
@pytest.mark.parametrize("name", [*SCRIPTS, "pipeline/run"])
def test_every_example_runs_by_itself(name: str) -> None:
    assert run_alone(name)


def test_every_example_is_on_the_page_and_shown_as_it_is() -> None:
    page = (ROOT / "docs" / "spark-examples.md").read_text("utf-8")
    for name in (*SCRIPTS, "pipeline/definitions"):
        assert f"`examples/spark/{name}.py`" in page
    files = "\n".join((EXAMPLES / f"{name}.py").read_text("utf-8") for name in (*SCRIPTS, "pipeline/definitions"))
    flat = "\n".join(line.strip() for line in files.splitlines())
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)

    assert len(blocks) >= len(SCRIPTS)
    for block in blocks:
        assert "\n".join(line.strip() for line in textwrap.dedent(block).strip().splitlines()) in flat

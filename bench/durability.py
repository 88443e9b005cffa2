"""Our broker beside a real server when both keep their data: throughput of XADD, restart after kill -9, memory.

Each server has a folder of its own on the same disk; the real one keeps an append-only file with the same policy. What
is measured takes turns as in `broker.py`, whose pieces and ways of counting are used here. Nothing passes or fails.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # So that the file also runs as a script.

from bench.broker import (
    Growth,
    Machine,
    MachineMeter,
    Memory,
    Scale,
    Throughput,
    add_shared_options,
    alternate,
    compare_growth,
    find_others,
    guarded,
    limit,
    positive,
    print_heading,
    print_lines,
    print_memory,
    print_throughput,
    show_progress,
    summarise,
)
from bench.load import SHAPES, Adds, Load, LoadError, Workload, add_entries, three_field_entries
from bench.servers import Cores, Program, Server, find_real, running

POLICIES = ("always", "everysec")
QUIET_S = 120.0  # For a rewrite or a checkpoint to come to its end.
KEY = "s"  # Where add_entries adds.
READ_COUNTS = (100, 1)  # How many entries a read makes pending.
QUICK = {"seconds": 0.2, "rounds": 3, "entries": 100_000, "restarts": 2}


@dataclass(frozen=True, slots=True)
class KeptAdds:
    """XADD while every write is kept. A round begins with an empty stream and a fresh journal."""

    adds: Adds

    def prepare(self, server: Server) -> None:
        self.adds.prepare(server)
        server.control.call("BGREWRITEAOF")
        wait_until_quiet(server)

    def run(self, server: Server, seconds: float) -> Load:
        return self.adds.run(server, seconds)


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("c1", "XADD one field, 1 connection, one at a time", KeptAdds(Adds(1, 1))),
        Workload("c10", "XADD one field, 10 connections, one at a time", KeptAdds(Adds(10, 1))),
        Workload("c50", "XADD one field, 50 connections, one at a time", KeptAdds(Adds(50, 1))),
        Workload("c1-p16", "XADD one field, 1 connection, pipelines of 16", KeptAdds(Adds(1, 16))),
        Workload("c50-p16", "XADD one field, 50 connections, pipelines of 16", KeptAdds(Adds(50, 16))),
        Workload("xadd3-c50", "XADD three fields, 50 connections", KeptAdds(Adds(50, 1, three_field_entries))),
    )
}


@dataclass(frozen=True, slots=True)
class Restart:
    """From the start of a process until it has given the length of the stream, against the real server."""

    shape: str
    server: str
    build: str | None
    entries: int
    seconds: float
    real_seconds: float
    ratio: float
    ratio_min: float
    ratio_max: float
    cpu_s: float
    real_cpu_s: float
    cpu_ratio: float
    folder_bytes: int
    real_folder_bytes: int


def main(arguments: Sequence[str] | None = None) -> int:
    return guarded(run, parse_options(arguments))


def run(options: argparse.Namespace) -> int:
    """Measure what the options ask for and print it."""
    real = find_real(options.real)
    programs = [real, *find_others(options, real)]
    cores = Cores.apart() if options.pin else Cores()
    throughput: list[Throughput] = []
    restarts: list[Restart] = []
    memory: list[Memory] = []
    machines: list[Machine] = []
    names: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", dir=options.dir) as folder:
        place = Path(folder)
        for policy in options.policy:
            rows, machine, names = measure_policy(policy, programs, place / policy, cores, options)
            throughput += rows
            machines.append(machine)
        for shape in SHAPES if options.restarts else ():
            restarts += measure_restart(shape, programs, place / f"restart-{shape}", cores, options)
        for shape in SHAPES if options.memory else ():
            memory += weigh_kept(shape, programs, place / f"memory-{shape}", cores, options.entries)
    show_progress("")
    report = {
        "settings": {"seconds": options.seconds, "rounds": options.rounds, "null": options.null},
        "machine": asdict(max(machines, key=lambda machine: machine.others_busy_cores)),
        "servers": names,
        "throughput": [asdict(row) for row in throughput],
        "restart": [asdict(row) for row in restarts],
        "memory": [asdict(row) for row in memory],
    }
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    if not sys.stdout.isatty():
        print_lines(report)
        return 0
    console = Console()
    print_heading(console, names, machines[0])
    print_throughput(console, throughput)
    print_restarts(console, restarts)
    print_memory(console, memory)
    return 0


# --- measuring -----------------------------------------------------------------------------------------------------


def measure_policy(
    policy: str, programs: Sequence[Program], place: Path, cores: Cores, options: argparse.Namespace
) -> tuple[list[Throughput], Machine, list[dict[str, Any]]]:
    """All workloads with one policy. Its name goes in front of theirs."""
    rows: list[Throughput] = []
    with ExitStack() as stack:
        servers = [stack.enter_context(running(program.keeping(place, policy), cores)) for program in programs]
        names = [{"label": server.program.label, **asdict(server.identity)} for server in servers]
        meter = MachineMeter(servers, cores)
        for name in options.workload:
            workload = WORKLOADS[name]
            named = Workload(f"{policy}-{name}", workload.summary, workload.load)
            rows += summarise(named, servers, list(alternate(named, servers, options.rounds, options.seconds)))
        return rows, meter.read(), names


def wait_until_quiet(server: Server) -> None:
    """Wait until nothing is written in the background."""
    give_up = time.monotonic() + QUIET_S
    while time.monotonic() < give_up:
        facts = server.control.info("persistence")
        names = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")
        if all(facts.get(name, "0") == "0" for name in names):
            return
        time.sleep(0.01)
    raise LoadError(f"{server.program.label} writes in the background for more than {QUIET_S:.0f} s")


def measure_restart(
    shape: str, programs: Sequence[Program], place: Path, cores: Cores, options: argparse.Namespace
) -> list[Restart]:
    """Fill a folder with each program, kill it, then start and kill in turn."""
    kept = [program.keeping(place, "everysec") for program in programs]
    counts = []
    for program in kept:
        show_progress(f"restart: {options.entries} entries, {shape}, {program.label}")
        with running(program, cores) as server:
            counts.append(add_entries(server, shape, options.entries))
            wait_until_quiet(server)
            kill(server)
    starts: list[list[tuple[float, float]]] = [[] for _ in kept]
    identities = []
    for number in range(options.restarts):
        for index, program in enumerate(kept):
            show_progress(f"restart: {shape}, {program.label}, {number + 1} of {options.restarts}")
            begin = time.perf_counter()
            with running(program, cores) as server:
                length = server.control.call("XLEN", KEY)
                starts[index].append((time.perf_counter() - begin, server.cpu_s()))
                identities.append(server.identity)
                if length != counts[index]:
                    raise LoadError(f"{program.label} has {length} entries after the start, not {counts[index]}")
                kill(server)
    sizes = [sum(file.stat().st_size for file in Path(program.folder).rglob("*") if file.is_file()) for program in kept]
    rows = []
    for index in range(1, len(kept)):
        ratios = [own[0] / real[0] for own, real in zip(starts[index], starts[0], strict=True)]
        cpu_ratios = [own[1] / real[1] for own, real in zip(starts[index], starts[0], strict=True)]
        row = Restart(
            shape=shape,
            server=str(identities[index]),
            build=identities[index].build,
            entries=counts[index],
            seconds=round(statistics.median(own[0] for own in starts[index]), 3),
            real_seconds=round(statistics.median(real[0] for real in starts[0]), 3),
            ratio=round(statistics.median(ratios), 3),
            ratio_min=round(min(ratios), 3),
            ratio_max=round(max(ratios), 3),
            cpu_s=round(statistics.median(own[1] for own in starts[index]), 3),
            real_cpu_s=round(statistics.median(real[1] for real in starts[0]), 3),
            cpu_ratio=round(statistics.median(cpu_ratios), 3),
            folder_bytes=sizes[index],
            real_folder_bytes=sizes[0],
        )
        rows.append(row)
    return rows


def kill(server: Server) -> None:
    """With its whole group, at once."""
    os.killpg(os.getpgid(server.pid), signal.SIGKILL)


def weigh_kept(shape: str, programs: Sequence[Program], place: Path, cores: Cores, entries: int) -> list[Memory]:
    """Fill one stream in a new process of each program, then make all of it pending; how much grew it each time?"""
    grown: dict[str, list[Growth]] = {shape: []}
    for program in programs:
        show_progress(f"memory: {entries} entries, {shape}, {program.label}")
        with running(program.keeping(place, "everysec"), cores) as server:
            add_entries(server, shape, 1000)  # What is needed once belongs to no entry.
            server.control.call("FLUSHALL")
            wait_until_quiet(server)
            scale = Scale(server)
            count = add_entries(server, shape, entries)
            wait_until_quiet(server)
            grown[shape].append(scale.read(count))
            for read_count in READ_COUNTS if shape == "one-field" else ():
                show_progress(f"memory: {entries} pending, read by {read_count}, {program.label}")
                read_all(server, b"by%d" % read_count, read_count, count)
                wait_until_quiet(server)
                grown.setdefault(f"pending, read by {read_count}", []).append(scale.read(count))
    return [row for name, growths in grown.items() for row in compare_growth(name, growths)]


def read_all(server: Server, group: bytes, read_count: int, entries: int) -> None:
    """Have every entry pending in a new group."""
    control = server.control
    control.call("XGROUP", "CREATE", KEY, group, "0")
    depth = min(100, entries // read_count)
    for _ in range(entries // read_count // depth):
        control.repeat(depth, "XREADGROUP", "GROUP", group, "reader", "COUNT", read_count, "STREAMS", KEY, ">")
    if (pending := control.call("XPENDING", KEY, group)[0]) != entries:
        raise LoadError(f"{pending} of {entries} entries are pending after all were read")


def print_restarts(console: Console, restarts: Sequence[Restart]) -> None:
    table = Table("entries", "server", title="Start after kill -9, until the length of the stream is known")
    for heading in ("s", "real s", "ratio", "min-max", "CPU s", "real CPU s", "CPU ratio", "MB on disk", "real MB"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in restarts:
        table.add_row(
            f"{row.entries:,} {row.shape}",
            row.server,
            f"{row.seconds:.2f}",
            f"{row.real_seconds:.2f}",
            f"[bold]{row.ratio:.2f}",
            f"{row.ratio_min:.2f}-{row.ratio_max:.2f}",
            f"{row.cpu_s:.2f}",
            f"{row.real_cpu_s:.2f}",
            f"[bold]{row.cpu_ratio:.2f}",
            f"{row.folder_bytes / 1e6:.0f}",
            f"{row.real_folder_bytes / 1e6:.0f}",
        )
    console.print(table)


# --- options -------------------------------------------------------------------------------------------------------


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/durability.py",
        description="Measure our broker beside a real server while both keep their data on disk: XADD with the "
        "policies always and everysec, the start after kill -9, bytes per entry and per pending entry.",
        epilog="workloads:\n" + "\n".join(f"  {row.name:<16} {row.summary}" for row in WORKLOADS.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_shared_options(parser)
    add = parser.add_argument
    add("--quick", action="store_true", help="few and short rounds, 100,000 entries: is everything alive?")
    add(
        "--workload",
        metavar="NAME",
        nargs="+",
        action="extend",
        choices=WORKLOADS,
        help="only these workloads (default: all, see below)",
    )
    add("--policy", nargs="+", choices=POLICIES, default=list(POLICIES), help="only with these (default: both)")
    add("--throughput", action=argparse.BooleanOptionalAction, default=True, help="measure XADD (default: yes)")
    add("--restarts", type=int, default=5, help="starts of each server; 0: none (default: %(default)s)")
    add("--memory", action=argparse.BooleanOptionalAction, default=True, help="measure bytes (default: yes)")
    add("--entries", type=positive(int), default=1_000_000, help="for --restarts and --memory (default: %(default)s)")
    add("--dir", metavar="FOLDER", help="where the servers keep their data: a real disk (default: the system's choice)")
    options = parser.parse_args(arguments)
    if options.quick:
        limit(options, QUICK)
    options.workload = list(dict.fromkeys(options.workload or WORKLOADS)) if options.throughput else []
    return options


if __name__ == "__main__":
    sys.exit(main())

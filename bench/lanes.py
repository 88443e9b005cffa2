"""Order per key beside no order at all: LANE.TAKE and LANE.SETTLE against XREADGROUP, XACK and XDEL, on every server.

Both ways do the same messages on the same server in turns, on one connection; what is done and the next batch go out in
one write. On the real server the steps are headrace's functions. A batch of 10 over 100 keys is 10 keys with a message
each; over one key it is a run of 10. Servers and ways of counting are those of `broker.py`. Nothing passes or fails.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import hiredis
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # So that the file also runs as a script.

from bench.broker import (
    MachineMeter,
    add_shared_options,
    find_others,
    guarded,
    limit,
    positive,
    print_heading,
    show_progress,
)
from bench.load import Load, LoadError, collector_at_rest
from bench.servers import HOST, REPLY_S, Cores, Server, encode_command, find_real, running

from headrace.client import functions
from headrace.client.lane_keys import Order, Settings

STREAM, GROUP, CONSUMER = "tickets", "agents", "ann"
KEYS = (1, 100, 10_000, 100_000)
BATCHES = (1, 10, 100)
LEASE_MS = 600_000
BODY = b"x" * 100
FILL = 500  # XADDs in one write.
QUICK = {"rounds": 1, "messages": 2000}
FEWER = {1: 10, 10: 2}  # A small batch takes longer for a message: so many times fewer of them are measured.

Words = tuple[bytes | str | int, ...]


@dataclass(frozen=True, slots=True)
class Ordered:
    """One number of keys and one size of batches on one server. Figures are medians of rounds."""

    server: str
    build: str | None
    layout: str
    keys: int
    batch: int
    messages: int
    messages_per_s: float
    unordered_per_s: float
    ratio: float  # Ordered to unordered; 1 would be order for nothing.
    ratio_min: float
    ratio_max: float
    cpu_us_per_message: float
    unordered_cpu_us_per_message: float
    messages_per_core_s: float


class Talk:
    """One connection that sends several commands in one write."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection((HOST, server.port), timeout=REPLY_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = hiredis.Reader()

    def __call__(self, *commands: bytes) -> list[Any]:
        self._socket.sendall(b"".join(commands))
        replies: list[Any] = []
        while len(replies) < len(commands):
            reply = self._reader.gets()
            if reply is False:
                self._reader.feed(self._socket.recv(65536))
            elif isinstance(reply, hiredis.ReplyError):
                raise LoadError(f"a command was answered with: {reply}")
            else:
                replies.append(reply)
        return replies

    def close(self) -> None:
        self._socket.close()


class Lanes:
    """The ordered way on one server."""

    def __init__(self, server: Server, layout: str) -> None:
        self.is_ours = server.program.is_ours
        self.order = Order(STREAM, GROUP, Settings(("k",), layout=layout))
        if not self.is_ours:
            server.control.call("FUNCTION", "LOAD", "REPLACE", functions.library_source())

    def command(self, name: str, *words: bytes | str | int) -> bytes:
        if self.is_ours:
            return encode_command(f"LANE.{name}", STREAM, GROUP, *words)
        step = f"{functions.LIBRARY}_lane_{name.lower()}"
        return encode_command("FCALL", step, len(self.order.keys), *self.order.keys, GROUP, *words)

    def drive(self, talk: Talk, keys: int, batch: int) -> Iterator[int]:
        """Take and settle until nothing is left; how many messages each turn brought."""
        layout: Words = () if self.is_ours else ("LAYOUT", self.order.settings.layout)
        talk(self.command("CONFIG", "KEYFIELDS", 1, "k", *layout))
        [[session, _]] = talk(self.command("REGISTER", CONSUMER))
        wanted = min(keys, batch)
        words: Words = (CONSUMER, session, "LEASE", LEASE_MS, "KEYS", wanted, "RUN", batch // wanted)
        take = self.command("TAKE", *words)
        talk(take)  # The one page of the rebuild that a new order begins with.
        [[grants, _]] = talk(take)
        while grants:
            yield sum(len(grant[4]) for grant in grants)
            clauses: list[bytes | str | int] = []
            for key, fence, _, _, entries in grants:
                clauses += ["DONE", key, fence, len(entries), *(entry[0] for entry in entries)]
            flags, [grants, _] = talk(self.command("SETTLE", *clauses), take)
            if not all(flags):
                raise LoadError("a clause was refused")


def drive_unordered(talk: Talk, _keys: int, batch: int) -> Iterator[int]:
    read = encode_command("XREADGROUP", "GROUP", GROUP, CONSUMER, "COUNT", batch, "STREAMS", STREAM, ">")
    [reply] = talk(read)
    while reply:
        ids = [entry[0] for entry in reply[0][1]]
        yield len(ids)
        _, _, reply = talk(encode_command("XACK", STREAM, GROUP, *ids), encode_command("XDEL", STREAM, *ids), read)


def fill(server: Server, keys: int, messages: int, chance: random.Random) -> None:
    """A new stream whose messages belong to keys by chance."""
    server.control.call("FLUSHALL")
    server.control.call("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM")
    talk = Talk(server)
    for start in range(0, messages, FILL):
        count = min(FILL, messages - start)
        adds = [encode_command("XADD", STREAM, "*", "k", chance.randrange(keys), "body", BODY) for _ in range(count)]
        talk(*adds)
    talk.close()


def measure(
    server: Server, way: Callable[[Talk, int, int], Iterator[int]], keys: int, batch: int, messages: int
) -> Load:
    """All messages of a filled stream, one way."""
    talk = Talk(server)
    done = 0
    with collector_at_rest(), server.cores.together():
        turns = way(talk, keys, batch)
        server_cpu_s, client_cpu_s, begin = server.cpu_s(), time.process_time(), time.perf_counter()
        for count in turns:
            done += count
        elapsed_s = time.perf_counter() - begin
        load = Load(done, elapsed_s, server.cpu_s() - server_cpu_s, time.process_time() - client_cpu_s)
    talk.close()
    if done != messages or server.control.call("XLEN", STREAM):
        raise LoadError(f"{done} of {messages} messages were done")
    return load


def compare(server: Server, layout: str, keys: int, batch: int, options: argparse.Namespace) -> Ordered:
    lanes, chance = Lanes(server, layout), random.Random(8)
    messages = max(batch, options.messages // FEWER.get(batch, 1))
    rounds: list[tuple[Load, Load]] = []
    for number in range(options.rounds):
        show_progress(f"{server.identity}: {keys:,} keys, batch {batch}, {number + 1} of {options.rounds}")
        pair = []
        for way in (lanes.drive, drive_unordered):
            fill(server, keys, messages, chance)
            pair.append(measure(server, way, keys, batch, messages))
        rounds.append((pair[0], pair[1]))
    ratios = [plain.elapsed_s / ordered.elapsed_s for ordered, plain in rounds]
    cpu_us = statistics.median(1e6 * ordered.server_cpu_s / messages for ordered, _ in rounds)
    return Ordered(
        server=str(server.identity),
        build=server.identity.build,
        layout=layout,
        keys=keys,
        batch=batch,
        messages=messages,
        messages_per_s=round(statistics.median(messages / ordered.elapsed_s for ordered, _ in rounds)),
        unordered_per_s=round(statistics.median(messages / plain.elapsed_s for _, plain in rounds)),
        ratio=round(statistics.median(ratios), 3),
        ratio_min=round(min(ratios), 3),
        ratio_max=round(max(ratios), 3),
        cpu_us_per_message=round(cpu_us, 2),
        unordered_cpu_us_per_message=round(
            statistics.median(1e6 * plain.server_cpu_s / messages for _, plain in rounds), 2
        ),
        messages_per_core_s=round(1e6 / cpu_us),
    )


def run(options: argparse.Namespace) -> int:
    """Measure what the options ask for and print it."""
    real = find_real(options.real)
    cores = Cores.apart() if options.pin else Cores()
    with ExitStack() as stack:
        programs = [real, *find_others(options, real)]
        servers = [stack.enter_context(running(program, cores)) for program in programs]
        names = [{"label": server.program.label, **asdict(server.identity)} for server in servers]
        meter = MachineMeter(servers, cores)
        rows = [
            compare(server, layout, keys, batch, options)
            for keys in options.keys
            for batch in options.batch
            for server in servers
            for layout in (options.layout if not server.program.is_ours else ["list"])
        ]
        machine = meter.read()
    show_progress("")
    report = {
        "settings": {"rounds": options.rounds, "messages": options.messages},
        "machine": asdict(machine),
        "servers": names,
        "ordered": [asdict(row) for row in rows],
    }
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    if sys.stdout.isatty():
        console = Console()
        print_heading(console, names, machine)
        print_ordered(console, rows)
    else:
        print(json.dumps({"kind": "run", **asdict(machine), "rounds": options.rounds, "messages": options.messages}))
        for kind, lines in (("server", names), ("ordered", report["ordered"])):
            for line in lines:
                print(json.dumps({"kind": kind, **line}))  # type: ignore[dict-item]
    return 0


def print_ordered(console: Console, rows: Sequence[Ordered]) -> None:
    table = Table("server", "layout", title="Order per key: taken and settled, against read, acked and deleted")
    for heading in (
        "keys",
        "batch",
        "ordered/s",
        "unordered/s",
        "ratio",
        "min-max",
        "CPU µs",
        "unordered µs",
        "per core",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.server,
            row.layout,
            f"{row.keys:,}",
            str(row.batch),
            f"{row.messages_per_s:,.0f}",
            f"{row.unordered_per_s:,.0f}",
            f"[bold]{row.ratio:.2f}",
            f"{row.ratio_min:.2f}-{row.ratio_max:.2f}",
            f"{row.cpu_us_per_message:.1f}",
            f"{row.unordered_cpu_us_per_message:.1f}",
            f"{row.messages_per_core_s:,.0f}",
        )
    console.print(table)


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/lanes.py",
        description="Measure order per key on our broker and on a real server, against no order at all.",
    )
    add_shared_options(parser)
    add = parser.add_argument
    add("--quick", action="store_true", help="one short round: is everything alive?")
    add("--keys", type=positive(int), nargs="+", default=list(KEYS), help="numbers of keys (default: %(default)s)")
    add("--batch", type=positive(int), nargs="+", default=list(BATCHES), help="sizes of batches (default: %(default)s)")
    add("--messages", type=positive(int), default=40_000, help="in each round; fewer for small batches")
    add("--layout", nargs="+", choices=("list", "set"), default=["list"], help="of lanes on the real server")
    options = parser.parse_args(arguments)
    if options.quick:
        limit(options, QUICK)
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    return guarded(run, parse_options(arguments))


if __name__ == "__main__":
    sys.exit(main())

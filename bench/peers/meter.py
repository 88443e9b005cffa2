"""What every program of the worker benchmark shares: the message, the clock and the line it prints.

    python PROGRAM.py URL WHAT COUNT

WHAT is one of the program's measures. Handlers are timed from their first call to the last one, so nobody pays for
starting. CPU is that of the whole process. Most programs run in an environment without headrace, so this file needs
the standard library only.
"""

import asyncio
import json
import statistics
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

STREAM = "bench:{worker}:orders"
GROUP = "bench"
PAYLOAD = {"id": 17, "customer": "customer-42", "total": 9.9}
PUBLISHERS = 50
RATE = 500  # Messages in a second, where the delay is measured.
PATIENCE_S = 300.0


class Meter:
    """Counts messages until all have come; any thread may count."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.seen = 0
        self.first = 0  # Messages in the first call: the clock starts there, so they do not count.
        self.begin_s = self.begin_cpu_s = self.wall_s = self.cpu_s = 0.0
        self.late_ms: list[float] = []
        self.lock = threading.Lock()
        self.all_came = threading.Event()

    def add(self, messages: int = 1) -> None:
        with self.lock:
            if not self.seen:
                self.first = messages
                self.begin_s, self.begin_cpu_s = time.perf_counter(), time.process_time()
            self.seen += messages
            if self.seen >= self.count:
                self.finish()

    def finish(self) -> None:
        """The end is now. It may be moved: who knows more than the others, when all is confirmed, ends then."""
        self.wall_s = time.perf_counter() - self.begin_s
        self.cpu_s = time.process_time() - self.begin_cpu_s
        self.all_came.set()

    def add_sent(self, sent_s: float) -> None:
        """A message that tells when it was sent."""
        self.late_ms.append((time.perf_counter() - sent_s) * 1000)
        self.add()

    async def wait(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not self.all_came.is_set():  # noqa: ASYNC110 - other threads count too.
                await asyncio.sleep(0.01)

    def report(self) -> None:
        if self.seen != self.count:
            sys.exit(f"{self.count} messages were published and {self.seen} came")
        figures: dict[str, float] = {}
        if self.late_ms:
            steps = statistics.quantiles(self.late_ms, n=100)
            figures = {"p50_ms": round(steps[49], 3), "p99_ms": round(steps[98], 3)}
        show(self.count - self.first, self.wall_s, self.cpu_s, **figures)


def show(messages: int, wall_s: float, cpu_s: float, **figures: float) -> None:
    """The line that the benchmark reads."""
    per_s, cpu_us = messages / wall_s, 1e6 * cpu_s / messages
    print(json.dumps({"per_s": round(per_s), "cpu_us": round(cpu_us, 2), **figures}), flush=True)


async def timed(messages: int, run: Callable[[], Awaitable[Any]]) -> None:
    """For publishing. The program has sent one message before: connecting is not measured."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    await run()
    show(messages, time.perf_counter() - wall_s, time.process_time() - cpu_s)


async def publish_often(count: int, publish: Callable[[], Awaitable[Any]]) -> None:
    """Small publishers: tasks that each await one message after the other. The count is a multiple of their number."""

    async def one() -> None:
        for _ in range(count // PUBLISHERS):
            await publish()

    await asyncio.gather(*[one() for _ in range(PUBLISHERS)])


async def publish_steadily(count: int, publish: Callable[[float], Awaitable[Any]]) -> None:
    """RATE messages in a second, one by one; each carries the time it was sent."""
    begin_s = time.perf_counter()
    for number in range(count):
        await asyncio.sleep(max(0.0, begin_s + number / RATE - time.perf_counter()))
        await publish(time.perf_counter())


def run(main: Callable[[str, str, int], Coroutine[Any, Any, None]]) -> None:
    """On uvloop where it is installed: the best for everybody."""
    try:
        import uvloop

        factory: Any = uvloop.new_event_loop
    except ImportError:
        factory = None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

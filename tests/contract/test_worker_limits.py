"""How much runs and for how long, and how much is held, on every server. Rows 253, 260, 265."""

import asyncio
import threading
import time
from collections import Counter

import pytest

from headrace import Context, Retries
from headrace.worker import consumer
from support.worker_programs import is_empty, run, until

pytestmark = pytest.mark.any_socket

QUICK = Retries(2, first="10ms", longest="20ms")


def test_a_run_beyond_its_time_limit_is_a_failure(app, name):
    """Row 260: for tasks and for threads."""
    runs = Counter()
    released = threading.Event()

    @app.handler(name, group="task", timeout="50ms", retries=QUICK)
    async def slow(order: dict) -> None:
        runs["task"] += 1
        if runs["task"] == 1:
            await asyncio.Event().wait()

    @app.handler(name, group="thread", timeout="50ms", retries=QUICK)
    def blocked(order: dict) -> None:
        runs["thread"] += 1
        if runs["thread"] == 1:
            released.wait(30)

    async def program():
        async with app.worker() as worker:
            await app.publish(name, {"id": 1})
            await until(lambda: all(one.done == 1 and one.failed == 1 for one in worker.counters.values()))
            released.set()

    run(program())
    assert runs == {"task": 2, "thread": 2}


def test_a_rate_limits_how_many_begin(app, name):
    """Row 265: without it 20 would begin at once; a tenth of a second may be made up for, so 15 wait for their turn."""
    begun = []

    @app.handler(name, rate="50/s")
    async def bill(number: int) -> None:
        begun.append(time.monotonic())

    async def program():
        await app.publish_many(name, range(20))
        async with app.worker():
            await until(lambda: len(begun) == 20)

    run(program())
    assert begun[-1] - begun[0] >= 10 / 50


def test_in_flight_is_bounded(app, name):
    """Row 265: concurrency + prefetch, whatever waits in the stream."""
    running, most = [], []

    @app.handler(name, concurrency=3, prefetch=4)
    async def bill(number: int) -> None:
        running.append(number)
        most.append(len(running))
        await asyncio.sleep(0.005)
        running.remove(number)

    async def program():
        await app.publish_many(name, range(60))
        held = []
        async with app.worker() as worker:
            while worker.counters[name, "bill"].done < 60:
                held.append(len(await app.client.stream(name).group("bill").pending()))
                await asyncio.sleep(0.002)
        await app.close()
        return held

    held = run(program())
    assert max(most) == 3 and max(held) <= 7


def test_plain_functions_run_in_threads_side_by_side(app, name):
    """Row 253. Ten that wait for each other all end; a thread may publish and commit by ctx.wait_for."""
    together = threading.Barrier(10)
    threads = set()
    target = f"{{{name}}}:next"

    @app.handler(name)
    def render(number: int, ctx: Context) -> None:
        threads.add(threading.current_thread().name)
        together.wait(30)
        ctx.wait_for(ctx.commit(publish=[(target, number)]))

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, range(10))
            await until(lambda: worker.counters[name, "render"].done == 10)
            return await app.client.stream(target).length()

    assert run(program()) == 10
    assert len(threads) == 10


def test_large_messages_are_read_a_few_at_a_time(app, name, monkeypatch):
    """What is held is limited by bytes too; a quarter more, and a message for each loop, may be on their way."""
    monkeypatch.setattr(consumer, "MOST_HELD_BYTES", 1_000_000)
    held = []

    @app.handler(name, concurrency=2, prefetch=100)
    async def store(data: bytes) -> None:
        held.append(sum([source.held_bytes for source in worker.consumers[0].sources]))
        await asyncio.sleep(0)

    worker = None

    async def program():
        nonlocal worker
        await app.publish_many(name, [b"x" * 200_000] * 40)
        async with app.worker() as worker:
            await until(lambda: is_empty(app, name, "store"))

    run(program())
    assert len(held) == 40 and max(held) <= 1_250_000 + 2 * 200_000

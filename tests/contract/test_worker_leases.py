"""What a worker holds, on every server: kept while it runs, given back when it leaves, taken over. Rows 211, 254,
260-263."""

import asyncio
import threading
import time
from collections import Counter

import pytest

from headrace import App, Context, Retries
from headrace.worker import housekeeping
from headrace.worker.source import Source
from support.worker_programs import is_empty, run, until

pytestmark = pytest.mark.any_socket


def test_a_slow_message_holds_up_no_other_and_runs_once(app, name):
    """Rows 218 and 260: a handler of several leases runs once, while others flow. One of ten: tests/fault."""
    runs = Counter()

    @app.handler(name, lease="1s", concurrency=2, prefetch=2)
    async def handle(number: int) -> None:
        runs[number] += 1
        if number == 0:
            await asyncio.sleep(3)

    async def program():
        async with app.worker() as worker, app.worker():
            await app.publish_many(name, range(50))
            await until(lambda: len(runs) == 50)
            assert worker.counters[name, "handle"].late == 0
            await until(lambda: is_empty(app, name, "handle"))

    run(program())
    assert set(runs.values()) == {1}


def test_a_handler_that_blocks_the_event_loop_keeps_its_lease(url, name):
    """Row 260: the thread of leases needs no event loop. Another worker, in a thread of its own, would take it."""
    runs = []
    ready = threading.Event()
    done = threading.Event()

    def one_app(label):
        app = App(url)

        @app.handler(name, group="g", lease="1s", concurrency=1, prefetch=0)
        async def handle(number: int) -> None:
            runs.append((label, number))
            time.sleep(2.5)  # noqa: ASYNC251 - that is the point.

        return app

    async def watch():
        async with one_app("second").worker():
            ready.set()
            await asyncio.to_thread(done.wait)

    async def program():
        app = one_app("first")
        async with app.worker() as worker:
            await app.publish(name, 1)
            await until(lambda: runs)
            thread.start()
            await until(lambda: worker.counters[name, "g"].done + len(runs) > 1)
            done.set()
        await asyncio.to_thread(thread.join)

    thread = threading.Thread(target=lambda: asyncio.run(watch()))
    run(program())
    assert runs == [("first", 1)]


def test_what_was_prefetched_or_unfinished_is_free_at_once_when_a_worker_stops(url, name):
    """Row 261: the lease is ten minutes, so nothing but giving back can bring it to the second worker."""
    first, second = App(url), App(url)
    begun, seen = [], Counter()

    @first.handler(name, group="g", lease="10m", concurrency=3)
    async def hang(number: int) -> None:
        begun.append(number)
        await asyncio.Event().wait()

    @second.handler(name, group="g", lease="10m")
    async def handle(number: int, ctx: Context) -> None:
        assert ctx.attempt == 1
        seen[number] += 1

    async def program():
        await first.publish_many(name, range(40))
        async with first.worker(shutdown_timeout=0):
            await until(lambda: len(begun) == 3)
        async with second.worker():
            await until(lambda: len(seen) == 40)
            await until(lambda: is_empty(second, name, "g"))
        await first.close()

    run(program())
    assert set(seen.values()) == {1}


def test_a_worker_told_to_stop_twice_waits_for_no_handler(app, name):
    begun = []

    @app.handler(name, lease="10m")
    async def hang(number: int) -> None:
        begun.append(number)
        await asyncio.Event().wait()

    async def program():
        worker = app.worker(shutdown_timeout="1h")
        running = asyncio.ensure_future(worker.run())
        await app.publish(name, 1)
        await until(lambda: begun)
        worker.stop()
        worker.stop()
        await running
        return worker.counters[name, "hang"].released

    assert run(program()) == 1


def test_what_a_worker_is_given_while_it_leaves_is_not_lost(app, name, monkeypatch):
    """A read that was broken off may still be answered: the name of its consumer must not go with what it was given."""
    find_strays = Source.find_strays

    async def find_strays_too_early(source):
        strays = await find_strays(source)
        if source.stream == name:
            await app.publish(name, {"id": 17})
            assert await app.client.stream(name).group("bill").read(source.consumer)
        return strays

    @app.handler(name)
    async def bill(order: dict) -> None: ...

    async def program():
        async with app.worker():
            monkeypatch.setattr(Source, "find_strays", find_strays_too_early)
        assert len(await app.client.stream(name).group("bill").pending()) == 1
        await app.close()

    run(program())


def test_a_retry_that_a_worker_was_given_without_knowing_is_given_back_when_it_stops(app, name):
    """As when the connection broke before the answer: the lease is ten minutes, and others have it at once."""

    @app.handler(name, group="g", lease="10m", retries=Retries(3, first="10m"))
    async def bill(number: int) -> None:
        raise ValueError("no")

    due = f"hr:{{{name}}}:g:due"

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, range(2))
            await until(lambda: worker.counters[name, "g"].retried == 2)
            waiting, given = await app.client.command("ZRANGE", due, 0, -1)
            await app.client.command("XCLAIM", name, "g", worker.name, 0, given, "JUSTID")
            await app.client.command("ZREM", due, given)
        scores = [float(await app.client.command("ZSCORE", due, one)) for one in (waiting, given)]
        await app.close()
        return scores

    waiting_ms, given_ms = run(program())
    assert given_ms <= time.time() * 1000 + 60_000 < waiting_ms


def test_handlers_that_run_may_finish_when_a_worker_stops(app, name):
    """Row 224: stop ends it after running handlers finish."""
    begun, ended = [], []

    @app.handler(name)
    async def bill(number: int) -> None:
        begun.append(number)
        await asyncio.sleep(0.3)
        ended.append(number)

    async def program():
        async with app.worker() as worker:
            await app.publish(name, 1)
            await until(lambda: begun)
        assert worker.counters[name, "bill"].done == 1
        consumers = await app.client.stream(name).group("bill").consumers()
        await app.close()
        return consumers

    assert run(program()) == []
    assert ended == [1]


def test_a_late_finisher_is_refused_and_counted(app, name):
    """Rows 211 and 260: another consumer has taken the message over meanwhile."""
    begun, go_on = [], asyncio.Event()

    @app.handler(name, group="g", lease="10m")
    async def handle(number: int, ctx: Context) -> None:
        begun.append(ctx.id)
        await go_on.wait()

    async def program():
        async with app.worker() as worker:
            await app.publish(name, 1)
            await until(lambda: begun)
            group = app.client.stream(name).group("g")
            await group.claim("somebody", *begun, min_idle=0)
            go_on.set()
            await until(lambda: worker.counters[name, "g"].late == 1)
            assert [row.consumer for row in await group.pending()] == ["somebody"]
            await group.ack(*begun)

    run(program())


def test_names_of_workers_that_died_are_removed_once_they_hold_nothing(app, name):
    """Row 263: one that holds something stays until it is handed over, or until somebody has deleted it."""

    @app.handler(name, lease="100ms")
    async def bill(number: int) -> None: ...

    async def program():
        group = app.client.stream(name).group("bill")
        await group.create(start="beginning")
        await app.publish(name, 1)
        assert len(await group.read("dead-with-one", count=1)) == 1
        await app.publish(name, 2)
        [deleted] = await group.read("dead-with-a-deleted-one", count=1)
        await app.client.command("HSET", f"hr:{{{name}}}:bill:attempts", deleted.id, "1")
        await app.client.stream(name).delete(deleted.id)
        await app.client.command("XGROUP", "CREATECONSUMER", name, "bill", "dead-without")
        async with app.worker() as worker:
            await until(lambda: worker.counters[name, "bill"].done == 1)

            async def only_ours():
                return [one.name for one in await group.consumers()] == [worker.name]

            await until(only_ours)
            assert await group.pending() == []
            assert await app.client.command("EXISTS", f"hr:{{{name}}}:bill:attempts") == 0
        await app.close()

    run(program())


def test_names_of_workers_that_died_leave_the_stream_of_replayed_dead_letters_too(app, name, monkeypatch):
    """Row 263."""
    monkeypatch.setattr(housekeeping, "TRIM_EVERY_S", 0.1)
    again = f"hr:{{{name}}}:bill:again"

    @app.handler(name, lease="100ms")
    async def bill(number: int) -> None: ...

    async def program():
        group = app.client.stream(again).group("bill")
        await group.create(start="beginning")
        await app.client.command("XGROUP", "CREATECONSUMER", again, "bill", "dead-without")
        async with app.worker():

            async def is_gone():
                return "dead-without" not in [one.name for one in await group.consumers()]

            await until(is_gone)
        await app.close()

    run(program())

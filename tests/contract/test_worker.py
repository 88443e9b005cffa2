"""Workers on every server: messages are read, run, settled and given back. Rows 166-168, 214-225, 252-254, 260-263.

Each test is one asyncio program with workers inside, as a user would write it.
"""

import asyncio
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace import App, Bury, Context, Entry, Retries, Retry
from headrace.worker import settling
from headrace.worker.source import Source
from support.worker_programs import is_empty, run, until

QUICK = Retries(3, first="10ms", longest="20ms")


@dataclass
class Order:
    id: int


pytestmark = pytest.mark.any_socket


@pytest.fixture
def app(url):
    return App(url)


def test_hello_world_handles_a_message_and_leaves_nothing(app, name):
    """Rows 219 and 252: acknowledged and deleted; no group, consumer or ack to write."""
    seen = []

    @app.handler(name)
    async def bill(order: dict) -> None:
        seen.append(order)

    async def program():
        async with app.worker():
            await app.publish(name, {"id": 17})
            await until(lambda: seen)
            await until(lambda: is_empty(app, name, "bill"))

    run(program())
    assert seen == [{"id": 17}]


def test_the_first_example_of_the_readme_runs_and_has_eight_lines(url, name, capsys):
    """Row 252: only the URL differs."""
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
    example = readme.split("```python\n", 1)[1].split("```", 1)[0]
    assert len(example.splitlines()) <= 8
    space: dict = {}
    source = example.replace("embedded:./data", url).replace('"orders"', repr(name))
    exec(compile(source, "README.md", "exec"), space)
    app = space["app"]

    async def program():
        async with app.worker() as worker:
            await app.publish(name, {"id": 17})
            await until(lambda: worker.counters[name, "bill"].done == 1)

    run(program())
    assert capsys.readouterr().out == "billing 17\n"


def test_an_entry_stays_until_every_group_has_handled_it(app, name):
    """Row 219: with a second group the entry stays until it is done there too."""
    handled = []
    may_ship = asyncio.Event()

    @app.handler(name)
    async def bill(order: dict) -> None:
        handled.append("bill")

    @app.handler(name)
    async def ship(order: dict) -> None:
        await may_ship.wait()
        handled.append("ship")

    async def program():
        async with app.worker() as worker:
            await app.publish(name, {"id": 1})
            await until(lambda: worker.counters[name, "bill"].done == 1)
            assert await app.client.stream(name).length() == 1
            may_ship.set()
            await until(lambda: is_empty(app, name, "ship"))

    run(program())
    assert handled == ["bill", "ship"]


def test_five_workers_on_a_missing_stream_miss_nothing(url, name):
    """Row 216: NOGROUP makes the group from 0, with the stream; racing for it is harmless."""
    seen = []

    def one_app():
        app = App(url)

        @app.handler(name, group="billing")
        async def bill(order: dict) -> None:
            seen.append(order["id"])

        return app

    async def program():
        apps = [one_app() for _ in range(5)]
        await apps[0].publish(name, {"id": 0})
        workers = [app.worker() for app in apps]
        await asyncio.gather(*[worker.__aenter__() for worker in workers])
        await apps[0].publish_many(name, [{"id": number} for number in range(1, 20)])
        await until(lambda: len(seen) == 20)
        await asyncio.gather(*[worker.__aexit__(None, None, None) for worker in workers])

    run(program())
    assert sorted(seen) == list(range(20))


def test_messages_run_at_the_same_time_each_in_a_task_of_its_own(app, name):
    """Row 217: ten that wait for each other all end."""
    together = asyncio.Barrier(10)
    tasks = set()

    @app.handler(name)
    async def meet(number: int) -> None:
        tasks.add(asyncio.current_task())
        await together.wait()

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, range(10))
            await until(lambda: worker.counters[name, "meet"].done == 10)

    run(program())
    assert len(tasks) == 10


def test_a_slow_message_holds_up_no_other_and_runs_once(app, name):
    """Rows 218 and 260: a handler of ten leases runs once, while others flow."""
    runs = Counter()

    @app.handler(name, lease="300ms", concurrency=2, prefetch=2)
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

        @app.handler(name, group="g", lease="400ms", concurrency=1, prefetch=0)
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


def test_a_failed_message_is_tried_again_and_knows_its_attempt(app, name):
    """Rows 166 and 220: same ID, attempts 1, 2, 3."""
    attempts = []

    @app.handler(name, retries=QUICK)
    async def bill(order: Order, ctx: Context) -> None:
        attempts.append((ctx.id, ctx.attempt, ctx.last_error))
        if ctx.attempt < 3:
            raise ValueError(f"no {ctx.attempt}")

    async def program():
        async with app.worker():
            entry_id = await app.publish(name, Order(1))
            await until(lambda: is_empty(app, name, "bill"))
            return entry_id

    entry_id = run(program())
    assert attempts == [(entry_id, 1, ""), (entry_id, 2, "ValueError: no 1"), (entry_id, 3, "ValueError: no 2")]


def test_a_message_that_always_fails_runs_n_plus_one_times_and_is_buried_with_all_that_is_known(app, name):
    """Rows 167, 168 and 221."""
    runs = []
    told = []

    @app.handler(name, group="billing", retries=QUICK)
    async def bill(order: dict, ctx: Context) -> None:
        runs.append(ctx.attempt)
        raise ValueError("declined")

    @app.on_bury
    async def on_bury(entry: Entry, ctx: Context, error: str) -> None:
        told.append((entry.payload, ctx.attempt, error))

    async def program():
        async with app.worker() as worker:
            entry_id = await app.publish(name, {"id": 17}, key="k")
            await until(lambda: worker.counters[name, "billing"].buried == 1)
            assert await is_empty(app, name, "billing")
            return entry_id, await app.client.stream(f"hr:{{{name}}}:billing:dead").range()

    entry_id, [dead] = run(program())
    assert runs == [1, 2, 3, 4]
    assert told == [({"id": 17}, 4, "ValueError: declined")]
    assert dead.pairs[:2] == ((b"data", b'{"id":17}'), (b"key", b"k"))
    fields = dead.fields
    assert (fields["hr:stream"], fields["hr:id"], fields["hr:group"]) == (name, entry_id, "billing")
    assert (fields["hr:attempts"], fields["hr:error"]) == ("4", "ValueError: declined")
    assert "in bill" in fields["hr:traceback"]


def test_on_bury_is_told_again_until_it_succeeds_and_the_message_stays_meanwhile(app, name):
    """Row 222: raising twice, it is called three times; the handler is not run again."""
    runs, told = [], []

    @app.handler(name, retries=Retries(1, first="10ms", longest="20ms"))
    async def bill(order: dict) -> None:
        runs.append(1)
        raise ValueError("no")

    @app.on_bury(name)
    def on_bury(entry, ctx, error):
        told.append(error)
        if len(told) < 3:
            raise RuntimeError("nobody listens") if len(told) == 1 else SystemExit(3)

    async def program():
        async with app.worker() as worker:
            await app.publish(name, {"id": 1})
            await until(lambda: worker.counters[name, "bill"].buried == 1)
            assert await is_empty(app, name, "bill")

    run(program())
    assert len(runs) == 2 and told == ["ValueError: no"] * 3


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt,
        SystemExit,
        asyncio.CancelledError,
        BaseException,
        GeneratorExit,
        Unspeakable,
        ValueError("\ud800"),
    ],
)
def test_whatever_ends_a_run_is_a_failure_and_no_success(app, name, error):
    """Row 225."""
    runs = []

    @app.handler(name, retries=QUICK)
    async def bill(order: dict) -> None:
        runs.append(1)
        if len(runs) == 1:
            raise error

    async def program():
        async with app.worker() as worker:
            await app.publish(name, {"id": 1})
            await until(lambda: is_empty(app, name, "bill"))
            assert worker.counters[name, "bill"].failed == 1

    run(program())
    assert len(runs) == 2


@pytest.mark.parametrize("error", [StopIteration, SystemExit, GeneratorExit])
def test_whatever_ends_a_plain_function_is_a_failure_too(app, name, error):
    """A StopIteration, as next() raises it, must not leave its message with a worker for ever."""
    runs = []

    @app.handler(name, retries=QUICK)
    def bill(order: dict) -> None:
        runs.append(1)
        if len(runs) == 1:
            raise error

    async def program():
        async with app.worker():
            await app.publish(name, {"id": 1})
            await until(lambda: is_empty(app, name, "bill"))

    run(program())
    assert len(runs) == 2


def test_a_settlement_that_the_server_refuses_is_repeated_and_costs_no_attempt(app, name, monkeypatch):
    """As when its memory is full; here the records of attempts cannot be written for a while."""
    monkeypatch.setattr(settling, "REFUSED_PAUSE_S", 0.02)
    attempts = f"hr:{{{name}}}:bill:attempts"
    seen = []

    @app.handler(name, retries=QUICK)
    async def bill(order: dict, ctx: Context) -> None:
        seen.append(ctx.attempt)
        if len(seen) == 1:
            raise ValueError("no")

    async def program():
        async with app.worker() as worker:
            counters = worker.counters[name, "bill"]
            await app.client.command("SET", attempts, "no hash")
            await app.publish(name, {"id": 1})
            await until(lambda: counters.settlements >= 3)
            await app.client.command("DEL", attempts)
            await until(lambda: is_empty(app, name, "bill"))
            return counters.failed

    assert run(program()) == 1
    assert seen == [1, 2]


def test_a_handler_decides_by_raising_retry_or_bury(app, name):
    runs = Counter()

    @app.handler(name, retries=Retries(3, first="1h"))
    async def bill(order: dict) -> None:
        runs[order["id"]] += 1
        if order["id"] == 1 and runs[1] == 1:
            raise Retry("busy", after="10ms")
        if order["id"] == 2:
            raise Bury("no such customer")

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, [{"id": 1}, {"id": 2}])
            await until(lambda: worker.counters[name, "bill"].done == 1)
            assert await is_empty(app, name, "bill")
            return await app.client.stream(f"hr:{{{name}}}:bill:dead").range()

    [dead] = run(program())
    assert runs == {1: 2, 2: 1}
    assert dead.fields["hr:error"] == "no such customer" and dead.fields["hr:attempts"] == "1"


def test_a_payload_that_does_not_fit_is_buried_at_once_with_the_reason(app, name):
    """Row 253: no retries."""
    seen = []

    @app.handler(name)
    async def bill(order: Order) -> None:
        seen.append(order)

    async def program():
        async with app.worker() as worker:
            await app.publish(name, {"id": "seventeen"})
            await app.publish(name, {"id": 17})
            await app.client.stream(name).add({"id": "18"})
            await until(lambda: worker.counters[name, "bill"].buried + len(seen) == 3)
            await until(lambda: is_empty(app, name, "bill"))
            return await app.client.stream(f"hr:{{{name}}}:bill:dead").range()

    [dead] = run(program())
    assert sorted(order.id for order in seen) == [17, 18]
    assert "Expected `int`, got `str`" in dead.fields["hr:error"] and dead.fields["hr:attempts"] == "1"


def test_acknowledgements_are_joined_and_flushed_at_the_end(app, name):
    """Row 254: 10,000 messages, far fewer calls."""
    seen = []

    @app.handler(name)
    async def bill(number: int) -> None:
        seen.append(number)

    async def program():
        await app.publish_many(name, range(10_000))
        async with app.worker() as worker:
            await until(lambda: len(seen) == 10_000)
        counters = worker.counters[name, "bill"]
        assert counters.done == 10_000 and counters.settlements < 500
        assert await is_empty(app, name, "bill")
        await app.close()

    run(program())
    assert sorted(seen) == list(range(10_000))


def test_an_idle_stream_does_not_end_the_loop(app, name):
    """Row 224: longer than a blocking read, then a message."""
    seen = []

    @app.handler(name)
    async def bill(order: dict) -> None:
        seen.append(order)

    async def program():
        async with app.worker():
            await asyncio.sleep(1.3)
            await app.publish(name, {"id": 1})
            await until(lambda: seen)

    run(program())


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


def test_a_group_that_is_destroyed_under_a_worker_is_made_again(app, name):
    """Row 262, as after a FLUSHALL."""
    seen = []

    @app.handler(name)
    async def bill(number: int) -> None:
        seen.append(number)

    async def program():
        async with app.worker():
            await app.publish(name, 1)
            await until(lambda: seen == [1])
            await app.client.command("DEL", name)
            await app.publish(name, 2)
            await until(lambda: seen == [1, 2])

    run(program())


def test_names_of_workers_that_died_are_removed_once_they_hold_nothing(app, name):
    """Row 263: one that holds something stays until it is handed over."""

    @app.handler(name, lease="100ms")
    async def bill(number: int) -> None: ...

    async def program():
        group = app.client.stream(name).group("bill")
        await group.create(start="beginning")
        await app.publish(name, 1)
        assert len(await group.read("dead-with-one", count=1)) == 1
        await app.client.command("XGROUP", "CREATECONSUMER", name, "bill", "dead-without")
        async with app.worker() as worker:
            await until(lambda: worker.counters[name, "bill"].done == 1)

            async def only_ours():
                return [one.name for one in await group.consumers()] == [worker.name]

            await until(only_ours)
        await app.close()

    run(program())


def test_a_stream_that_is_something_else_ends_the_start_with_words(app, name):
    @app.handler(name)
    async def bill(number: int) -> None: ...

    async def program():
        await app.client.command("SET", name, "text")
        try:
            async with app.worker():
                pass
        finally:
            await app.close()

    with pytest.raises(Exception, match="is not a stream"):
        run(program())

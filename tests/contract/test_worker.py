"""Workers on every server: messages are read, run and acknowledged. Rows 214-219, 224, 252, 262.

Each test is one asyncio program with workers inside, as a user would write it. What becomes of failures is in
test_worker_failures.py; leases, and how a worker leaves, in test_worker_leases.py.
"""

import asyncio
from pathlib import Path

import pytest

from headrace import App
from headrace.worker import outage
from support.worker_programs import is_empty, run, until

pytestmark = pytest.mark.any_socket


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


def test_a_server_that_says_no_is_told_once_and_not_with_every_try(app, name, monkeypatch, caplog):
    """Four calls a second are refused; a log that repeats itself hides what else is in it."""
    monkeypatch.setattr("headrace.worker.consumer.REFUSED_PAUSE_S", 0.01)
    told = []

    @app.handler(name)
    async def bill(number: int) -> None:
        told.append(number)

    async def program():
        async with app.worker() as worker:
            await app.client.command("DEL", name)
            await app.client.command("SET", name, "text")
            refusals = worker.outage.refusals
            await until(lambda: (name, "bill") in refusals and refusals[name, "bill"].count >= 20)
            monkeypatch.setattr(outage, "TELL_EVERY_S", 0.0)
            await until(lambda: refusals[name, "bill"].count == 0)
            monkeypatch.setattr(outage, "TELL_EVERY_S", 30.0)
            lines = [record.fields for record in caplog.records if record.msg and record.event == "call_refused"]
            await app.client.command("DEL", name)
            await app.publish(name, 1)
            await until(lambda: told)
        await app.close()
        return lines

    with caplog.at_level("ERROR", "headrace.worker"):
        lines = run(program())
    assert lines[0]["times"] == 1 and lines[1]["times"] >= 20
    assert len(lines) <= 4  # The second one, and what was refused while it was looked for.

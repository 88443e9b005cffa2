"""How a worker ends when something goes wrong at its end, on every server."""

import asyncio
import threading

import pytest

from headrace.client import worker_steps
from headrace.errors import ConnectionLost
from support.worker_programs import run, until

pytestmark = pytest.mark.any_socket


def test_a_handler_that_cannot_give_back_keeps_no_other_from_it(app, name, caplog):
    """Here the first one has lost its connection; the other gives its message back before its connection is closed."""
    begun = []

    @app.handler(name, group="first")
    async def first(number: int) -> None:
        begun.append("first")
        await asyncio.sleep(60)

    @app.handler(name, group="second")
    async def second(number: int) -> None:
        begun.append("second")
        await asyncio.sleep(60)

    async def program():
        async with app.worker(shutdown_timeout="10ms") as worker:
            await app.publish(name, 1)
            await until(lambda: len(begun) == 2)

            async def lost():
                raise ConnectionLost("the server has gone")

            async def slow(give_back=worker.consumers[1].give_back):
                await asyncio.sleep(0.3)  # Longer than the rest of the end takes.
                await give_back()

            worker.consumers[0].give_back, worker.consumers[1].give_back = lost, slow
        async with app:
            groups = [app.client.stream(name).group(group) for group in ("first", "second")]
            return [(await group.pending_summary()).by_consumer for group in groups], worker

    (first_pending, second_pending), worker = run(program())
    assert list(first_pending.values()) == [1] and list(second_pending.values()) in ([], [1])
    assert worker.counters[name, "second"].released == 1
    assert [record.event for record in caplog.records if record.event == "not_given_back"] == ["not_given_back"]


def test_a_worker_that_is_cancelled_while_it_starts_leaves_nothing_behind(app, name):
    @app.handler(name)
    async def handle(number: int) -> None: ...

    async def program():
        for pause_s in (0.0, 0.001, 0.003, 0.01, 0.03):
            try:
                async with asyncio.timeout(pause_s):
                    async with app.worker():
                        await asyncio.sleep(60)
            except TimeoutError:
                pass

    run(program())
    assert [thread.name for thread in threading.enumerate() if thread.name == "headrace leases"] == []


@pytest.mark.parametrize("key", [None, "id"])
def test_a_loop_that_fails_inside_a_program_is_told(app, name, caplog, key, monkeypatch):
    """Nobody waits for it there: without a word the handler would stand still."""

    @app.handler(name, key=key)
    async def handle(order: dict) -> None: ...

    async def program():
        async with app.worker():
            monkeypatch.setattr(worker_steps, "due", None)
            await until(lambda: any(getattr(record, "event", "") == "loop_failed" for record in caplog.records))

    run(program())

"""Around handlers, on every server: middleware, and what is provided. Row 266."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from headrace import Context, Middleware, Retries
from support.worker_programs import run, until

pytestmark = pytest.mark.any_socket


def test_hooks_run_in_their_documented_order(app, name):
    """Row 266."""
    log = []

    class Recording(Middleware):
        def __init__(self, label):
            self.label = label

    for hook in ("before_process", "after_process", "before_ack", "after_ack", "before_retry", "after_retry",
                 "before_bury", "after_bury"):  # fmt: skip

        def record(self, ctx, *more, hook=hook):
            log.append(f"{self.label} {hook}")
            return asyncio.sleep(0)

        setattr(Recording, hook, record)
    app.middleware(Recording("one"))
    app.middleware(Recording("two"))

    @app.handler(name, retries=Retries(1, first="10ms"))
    async def bill(number: int) -> None:
        log.append("handler")
        if number == 2:
            raise ValueError

    async def program():
        async with app.worker():
            await app.publish(name, 1)
            await until(lambda: "one after_ack" in log)
            log.append("-")
            await app.publish(name, 2)
            await until(lambda: "one after_bury" in log)

    run(program())
    done = ["one before_process", "two before_process", "handler", "two after_process", "one after_process"]
    assert log == [
        *done, "one before_ack", "two before_ack", "two after_ack", "one after_ack", "-",
        *done, "one before_retry", "two before_retry", "two after_retry", "one after_retry",
        *done, "one before_bury", "two before_bury", "two after_bury", "one after_bury",
    ]  # fmt: skip


class Database:
    def __init__(self) -> None:
        self.rows: list[int] = []
        self.is_open = True


def test_what_is_provided_is_made_once_and_ended_with_the_worker(app, name):
    """Row 266: injection by annotation."""
    made = []

    @app.provide
    async def database() -> AsyncIterator[Database]:
        made.append(Database())
        yield made[-1]
        made[-1].is_open = False

    @app.handler(name)
    async def bill(number: int, database: Database, ctx: Context) -> None:
        assert database.is_open and ctx.published_at is not None
        database.rows.append(number)

    async def program():
        async with app.worker():
            await app.publish_many(name, range(5))
            await until(lambda: len(made[0].rows) == 5)

    run(program())
    assert len(made) == 1 and not made[0].is_open


@pytest.mark.parametrize("key", [None, "id"])
def test_hooks_of_the_last_messages_have_ended_when_the_worker_has(app, name, key):
    """Also those that follow a settlement at the very end, and what they use is still there."""
    told = []

    class Slow(Middleware):
        async def after_ack(self, ctx):
            await asyncio.sleep(0.05)
            told.append(ctx.id)

    app.middleware(Slow())
    begun = asyncio.Event()

    @app.handler(name, key=key)
    async def bill(order: dict) -> None:
        begun.set()
        await asyncio.sleep(0.05)

    async def program():
        async with app.worker():
            entry_id = await app.publish(name, {"id": 1})
            await begun.wait()
        return entry_id

    assert [run(program())] == told

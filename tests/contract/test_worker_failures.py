"""Messages that fail, on every server: tried again, given up, buried. Rows 166-168, 220-222."""

import asyncio
from collections import Counter
from dataclasses import dataclass

import pytest

from headrace import Bury, Context, Entry, Retries, Retry
from headrace.worker import settling
from support.worker_programs import is_empty, run, until

QUICK = Retries(3, first="10ms", longest="20ms")


@dataclass
class Order:
    id: int


pytestmark = pytest.mark.any_socket


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
            return await app.dead(name).list()

    [letter] = run(program())
    assert len(runs) == 2 and told == ["ValueError: no"] * 3
    assert letter.error == "ValueError: no" and "in bill" in letter.traceback  # Of the run, not of on_bury.


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


def read_and_die(app, name, group, count):
    """A worker that read messages in advance and was killed: they are pending with it, and never ran."""

    async def read():
        handle = app.client.stream(name).group(group)
        await handle.create(start="beginning")
        assert len(await handle.read("killed", count=count)) == count

    return read()


@pytest.mark.parametrize("batch", [None, 5])
def test_a_message_that_was_only_read_by_a_worker_that_died_still_has_its_one_run(app, name, batch):
    """Row 221 with retries=0: one run and no more; but one that never began has it still before it."""
    runs = []

    async def bill(message: int, ctx: Context) -> None:
        runs.append((message, ctx.attempt))

    async def bill_all(messages: list[int], contexts: list[Context]) -> None:
        runs.extend((message, ctx.attempt) for message, ctx in zip(messages, contexts, strict=True))

    app.handler(name, group="g", retries=0, lease="200ms", batch=batch)(bill if batch is None else bill_all)

    async def program():
        await app.publish_many(name, range(3))
        await read_and_die(app, name, "g", 2)
        async with app.worker():
            await until(lambda: is_empty(app, name, "g"))
        dead = await app.dead(name).count()
        records = await app.client.command("EXISTS", f"hr:{{{name}}}:g:attempts")
        await app.close()
        return dead, records

    assert run(program()) == (0, 0)
    assert sorted(runs) == [(0, 1), (1, 1), (2, 1)]


def test_a_message_whose_one_run_was_begun_by_a_worker_that_died_is_buried(app, name):
    """Row 221 with retries=0: that it began is on record, also for a message that comes for the first time."""
    begun = []

    @app.handler(name, group="g", retries=0, lease="200ms")
    async def bill(number: int) -> None:
        begun.append(number)
        await asyncio.Event().wait()

    async def program():
        async with app.worker(shutdown_timeout=0) as worker:
            await app.publish(name, 1)
            await until(lambda: begun)
            [row] = await app.client.stream(name).group("g").pending()
            assert row.consumer == worker.name
            record = await app.client.command("HGET", f"hr:{{{name}}}:g:attempts", row.id)
            # As if it were dead: it cannot extend, settle or give back what is another's.
            await app.client.stream(name).group("g").claim("nobody", row.id, min_idle=0)
        async with app.worker():
            await until(lambda: app.dead(name).count())
        [letter] = await app.dead(name).list()
        await app.close()
        return record, letter

    record, letter = run(program())
    assert record == b"1 1" and begun == [1]
    assert letter.attempts == 1 and letter.error == "a worker ended while it ran this message"

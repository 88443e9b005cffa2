"""Handlers of batches, on every server. Rows 223, 253."""

import asyncio
from dataclasses import dataclass

import pytest

from headrace import Bury, Context, Middleware, Retries
from support.worker_programs import is_empty, run, until

pytestmark = pytest.mark.any_socket

QUICK = Retries(2, first="10ms", longest="20ms")


@dataclass
class Order:
    id: int


@dataclass
class Receipt:
    order: int


def test_batches_gather_by_number_or_by_time(app, name):
    """Row 253."""
    batches = []

    @app.handler(name, batch=10, wait="100ms")
    async def store(clicks: list[Order], contexts: list[Context]) -> None:
        assert [context.attempt for context in contexts] == [1] * len(clicks)
        batches.append([click.id for click in clicks])

    async def program():
        await app.publish_many(name, [Order(number) for number in range(20)])
        async with app.worker() as worker:
            await until(lambda: len(batches) == 2)
            await app.publish_many(name, [Order(20), Order(21)])
            await until(lambda: sum(map(len, batches)) == 22)
            await until(lambda: is_empty(app, name, "store"))
            assert worker.counters[name, "store"].done == 22

    run(program())
    assert [len(batch) for batch in batches[:2]] == [10, 10]
    assert sorted(number for batch in batches for number in batch) == list(range(22))


def test_two_batches_are_read_while_one_runs(app, name):
    """So that the server settles one and gives one meanwhile. A batch is read whole."""
    sizes = []

    async def program():
        may_end = asyncio.Event()

        @app.handler(name, batch=10, wait="30s")
        async def store(clicks: list[Order]) -> None:
            sizes.append(len(clicks))
            await may_end.wait()

        await app.publish_many(name, [Order(number) for number in range(60)])
        async with app.worker() as worker:
            counters = worker.counters[name, "store"]
            await until(lambda: sizes and counters.read >= 30)
            assert (sizes, counters.done) == ([10], 0)
            may_end.set()
            await until(lambda: counters.done == 60)

    run(program())
    assert sizes == [10] * 6


def test_one_bad_message_does_not_take_its_batch_along(app, name):
    """Row 253: after a failed batch each is tried alone; a misfit is buried alone, at once."""
    stored = []

    @app.handler(name, batch=10, wait="50ms", retries=QUICK)
    async def store(clicks: list[Order]) -> None:
        if any(click.id == 3 for click in clicks):
            raise ValueError("three")
        stored.extend(click.id for click in clicks)

    async def program():
        await app.publish_many(name, [{"id": number} for number in range(9)] + [{"id": "nine"}])
        async with app.worker() as worker:
            await until(lambda: worker.counters[name, "store"].buried == 2)
            await until(lambda: is_empty(app, name, "store"))
            return await app.client.stream(f"hr:{{{name}}}:store:dead").range()

    dead = run(program())
    assert sorted(stored) == [0, 1, 2, 4, 5, 6, 7, 8]
    assert [entry.payload["id"] for entry in dead] == ["nine", 3]
    assert dead[1].fields["hr:attempts"] == "3"


def test_a_batch_publishes_a_list(app, name):
    """Row 223."""
    target = f"{{{name}}}:next"

    @app.handler(name, batch=10, wait="50ms", publish_to=target)
    async def store(clicks: list[Order]) -> list[Receipt]:
        return [Receipt(click.id) for click in clicks]

    async def program():
        await app.publish_many(name, [Order(number) for number in range(25)])
        async with app.worker():
            await until(lambda: is_empty(app, name, "store"))
            return await app.client.stream(target).range()

    assert sorted(entry.payload["order"] for entry in run(program())) == list(range(25))


@pytest.mark.parametrize("publishes", [False, True])
@pytest.mark.parametrize("key", [None, "key"])
def test_a_batch_is_acknowledged_as_a_whole_once_all_hooks_have_run(app, name, key, publishes):
    """Row 266. One that fails in the middle fails the attempt of all; none of them was acknowledged before."""
    hooked, runs = [], []

    class Strict(Middleware):
        async def before_ack(self, ctx):
            hooked.append(ctx.attempt)
            if len(hooked) == 2:
                raise ValueError("not yet")

    app.middleware(Strict())
    target = f"{{{name}}}:next"

    wait = "30s" if key is None else None  # A batch is full, however slowly its messages come.

    @app.handler(name, key=key, batch=3, wait=wait, publish_to=target if publishes else None, retries=QUICK)
    async def store(clicks: list[dict]) -> list[int]:
        runs.append([click["id"] for click in clicks])
        return [click["id"] for click in clicks]

    async def program():
        await app.publish_many(name, [{"key": 1, "id": number} for number in range(3)])
        async with app.worker() as worker:
            await until(lambda: is_empty(app, name, "store"))
            counters = worker.counters[name, "store"]
            assert (counters.done, counters.late, counters.buried) == (3, 0, 0)
            return await app.client.stream(target).length()

    assert run(program()) == (3 if publishes else 0)
    assert runs[0] == [0, 1, 2] and sorted(number for one in runs[1:] for number in one) == [0, 1, 2]
    assert len(hooked) == 2 + 3


def test_dead_letters_that_come_again_are_in_batches_of_their_own(app, name):
    """They lie in another stream, and a batch that publishes is settled in one step."""
    batches, is_well, target = [], [], f"{{{name}}}:next"

    @app.handler(name, batch=10, wait="1s", publish_to=target)
    async def store(clicks: list[dict]) -> list[int]:
        batches.append([click["id"] for click in clicks])
        if not is_well:
            raise Bury
        return batches[-1]

    async def program():
        async with app.worker() as worker:
            counters = worker.counters[name, "store"]
            await app.publish_many(name, [{"id": number} for number in range(3)])
            await until(lambda: counters.buried == 3)
            is_well.append(True)
            await app.dead(name).replay()
            await app.publish_many(name, [{"id": number} for number in range(3, 6)])
            await until(lambda: counters.done == 6)
            assert counters.late == 0
            return await app.client.stream(target).length()

    assert run(program()) == 6
    assert all(len({number < 3 for number in batch}) == 1 for batch in batches), batches

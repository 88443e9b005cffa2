"""Handlers of batches, on every server. Rows 223, 253."""

from dataclasses import dataclass

import pytest

from headrace import Context, Retries
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

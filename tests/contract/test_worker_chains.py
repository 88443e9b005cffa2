"""What a handler returns goes on to another stream, on every server. Row 223."""

from dataclasses import dataclass

import pytest

from headrace import Context
from support.worker_programs import is_empty, run, until

pytestmark = pytest.mark.any_socket


@dataclass
class Order:
    id: int


@dataclass
class Receipt:
    order: int


def test_what_a_handler_returns_goes_on_with_its_acknowledgement(app, name):
    """Row 223. None publishes nothing."""
    receipts = []
    target = f"{{{name}}}:receipts"

    @app.handler(name, publish_to=target)
    async def bill(order: Order) -> Receipt | None:
        return Receipt(order.id) if order.id % 2 else None

    @app.handler(target)
    async def mail(receipt: Receipt) -> None:
        receipts.append(receipt.order)

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, [Order(number) for number in range(20)])
            await until(lambda: len(receipts) == 10)
            await until(lambda: is_empty(app, name, "bill"))
            assert (worker.counters[name, "bill"].done, worker.counters[name, "bill"].late) == (20, 0)

    run(program())
    assert sorted(receipts) == list(range(1, 20, 2))


def test_a_chain_may_lead_into_any_stream(app, name):
    """Row 223: in a cluster the other stream lies in another slot; each follow-up arrives once all the same."""
    receipts = []
    targets = [f"{name}-receipts", f"{name}-copies"]

    @app.handler(name, publish_to=targets[0])
    async def bill(order: Order, ctx: Context) -> Receipt | None:
        if order.id % 2:
            return Receipt(order.id)
        await ctx.commit(publish=[(targets[1], Receipt(order.id))])
        return None

    @app.handler(targets[0])
    async def mail(receipt: Receipt) -> None:
        receipts.append(receipt.order)

    @app.handler(targets[1])
    async def copy(receipt: Receipt) -> None:
        receipts.append(receipt.order)

    async def program():
        async with app.worker():
            await app.publish_many(name, [Order(number) for number in range(20)])
            await until(lambda: len(receipts) >= 20)
            await until(lambda: is_empty(app, name, "bill"))
            outbox = app.client.stream(f"hr:{{{name}}}:outbox")

            async def is_sent():
                return await outbox.length() == 0

            await until(is_sent)

    run(program())
    assert sorted(receipts) == list(range(20))


def test_a_chain_into_something_that_is_no_stream_fails_that_message_alone(app, name):
    """The others of the same settlement are acknowledged; this one is buried with the server's reason."""
    target = f"{{{name}}}:text"

    @app.handler(name, publish_to=target, retries=0)
    async def bill(order: Order) -> Receipt | None:
        return Receipt(order.id) if order.id == 7 else None

    async def program():
        await app.client.command("SET", target, "text")
        await app.publish_many(name, [Order(number) for number in range(20)])
        async with app.worker() as worker:
            await until(lambda: worker.counters[name, "bill"].buried == 1)
            await until(lambda: worker.counters[name, "bill"].done == 19)
            [dead] = await app.client.stream(f"hr:{{{name}}}:bill:dead").range()
        return dead

    dead = run(program())
    assert dead.payload == {"id": 7} and "WRONGTYPE" in dead.fields["hr:error"]

"""ctx.commit on every server: effects, follow-ups and the acknowledgement in one step. Rows 259 and 260."""

import asyncio
from dataclasses import dataclass

import pytest

from headrace import Context, LeaseLost
from support.worker_programs import is_empty, run, until

pytestmark = pytest.mark.any_socket


@dataclass
class Order:
    id: int


def test_effects_follow_ups_and_the_acknowledgement_are_one_step(app, name):
    """Row 259."""
    totals, target = f"{{{name}}}:totals", f"{{{name}}}:next"

    @app.handler(name)
    async def bill(order: Order, ctx: Context) -> None:
        await ctx.commit(
            [("HINCRBY", totals, "paid", order.id), ("SET", f"{{{name}}}:last", order.id)],
            publish=[(target, {"paid": order.id})],
        )
        assert ctx.is_settled

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, [Order(number) for number in range(1, 11)])
            await until(lambda: worker.counters[name, "bill"].done == 10)
            assert await is_empty(app, name, "bill")
            paid = await app.client.command("HGET", totals, "paid")
            follow_ups = await app.client.stream(target).range()
        return paid, follow_ups

    paid, follow_ups = run(program())
    assert paid == b"55" and sorted(entry.payload["paid"] for entry in follow_ups) == list(range(1, 11))


def test_a_commit_that_cannot_be_does_nothing_and_fails_the_run(app, name):
    """Row 259: the good effect before the bad one is not done either."""
    good, bad = f"{{{name}}}:good", f"{{{name}}}:bad"

    @app.handler(name, retries=0)
    async def bill(order: Order, ctx: Context) -> None:
        await ctx.commit([("INCRBY", good, 1), ("HINCRBY", bad, "x", 1)])

    async def program():
        async with app.worker() as worker:
            await app.client.command("SET", bad, "text")
            await app.publish(name, Order(1))
            await until(lambda: worker.counters[name, "bill"].buried == 1)
            return await app.client.command("GET", good)

    assert run(program()) is None


def test_a_commit_after_the_lease_was_lost_does_nothing(app, name):
    """Rows 259 and 260: another has the message by now."""
    count, lost, begun, go_on = f"{{{name}}}:count", [], [], asyncio.Event()

    @app.handler(name, group="g", lease="10m")
    async def bill(order: Order, ctx: Context) -> None:
        begun.append(ctx.id)
        await go_on.wait()
        try:
            await ctx.commit([("INCRBY", count, 1)])
        except LeaseLost:
            lost.append(ctx.id)
            raise

    async def program():
        async with app.worker() as worker:
            await app.publish(name, Order(1))
            await until(lambda: begun)
            group = app.client.stream(name).group("g")
            await group.claim("somebody", *begun, min_idle=0)
            go_on.set()
            await until(lambda: worker.counters[name, "g"].late == 1)
            await group.ack(*begun)
            return await app.client.command("GET", count)

    assert run(program()) is None
    assert len(lost) == 1

"""Conservation (row 313): whatever is published is handled or dead in the end, by ID, and nothing else is left.

One run of all features from one seed: publishing at once, later, twice with one id and in batches; messages that fail,
kill nobody, do not fit or are given up; chains; dead letters that are sent again; workers that come, go and are cut off
in the middle of everything, as if they were killed.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from typing import Any

import pytest

from headrace import App, Bury, Context, Retries
from support.worker_programs import is_empty, run, until

MESSAGES = 250
KINDS = ("fine", "chain", "flaky", "poison", "hopeless", "misfit")
WEIGHTS = (40, 20, 20, 5, 5, 5)
QUICK = Retries(4, first="5ms", longest="30ms")


class Shop:
    """The app, and a ledger of what its handlers did."""

    def __init__(self, seed: int) -> None:
        self.orders, self.parcels = f"{{shop-{seed}}}:orders", f"{{shop-{seed}}}:parcels"
        self.handled: Counter[int] = Counter()
        self.parcel_ids: dict[int, set[str]] = defaultdict(set)
        self.app = App("embedded:")
        self.app.handler(
            self.orders, group="sell", lease="200ms", retries=QUICK, concurrency=8, publish_to=self.parcels
        )(self.sell)
        self.app.handler(self.parcels, group="send", lease="200ms", retries=20, batch=5, wait="5ms")(self.send)

    async def sell(self, order: dict[str, int], ctx: Context) -> dict[str, int] | None:
        number, kind = order["id"], KINDS[order["kind"]]
        await asyncio.sleep(number % 7 / 1000)
        if kind == "poison" or (kind == "flaky" and ctx.attempt < 3):
            raise ValueError(kind)
        if kind == "hopeless":
            raise Bury(kind)
        self.handled[number] += 1
        return {"id": number} if kind == "chain" else None

    async def send(self, parcels: list[dict[str, int]], contexts: list[Context]) -> None:
        for parcel, ctx in zip(parcels, contexts, strict=True):
            self.parcel_ids[parcel["id"]].add(ctx.id)


async def cut_off(worker: Any) -> None:
    """As if its process were killed: nothing is settled or given back any more."""
    assert worker.housekeeper is not None
    worker.housekeeper.cancel()
    for consumer in worker.consumers:
        consumer.runner.is_stopping = True
        settlers = [task for settler in consumer.runner.settlers.values() for task in settler.tasks]
        for task in [*consumer.loops, *consumer.runner.tasks, *settlers]:
            task.cancel()
    worker.leases.stop()
    await worker.stack.aclose()


async def come_and_go(shop: Shop, chance: random.Random, ending: asyncio.Event) -> None:
    workers: list[Any] = []
    while not ending.is_set():
        if len(workers) < 3:
            workers.append(await shop.app.worker(shutdown_timeout=0).__aenter__())
        await asyncio.sleep(chance.uniform(0.02, 0.15))
        if len(workers) > 1 and chance.random() < 0.6:
            worker = workers.pop(chance.randrange(len(workers)))
            await (cut_off(worker) if chance.random() < 0.6 else worker.__aexit__(None, None, None))
        if chance.random() < 0.2:
            await shop.app.dead(shop.orders).replay(where="error ~ poison", rate="1000/s")
    for worker in workers:
        await worker.__aexit__(None, None, None)


async def publish_all(shop: Shop, chance: random.Random) -> dict[int, str]:
    """What was published: number -> kind."""
    kinds = {number: chance.choices(KINDS, WEIGHTS)[0] for number in range(MESSAGES)}
    for number, kind in kinds.items():
        order: Any = {"id": number, "kind": KINDS.index(kind) if kind != "misfit" else "misfit"}
        way = chance.randrange(4)
        if way == 0:
            await shop.app.publish(shop.orders, order, delay=chance.uniform(0, 0.3))
        elif way == 1:
            for _ in range(2):
                await shop.app.publish(shop.orders, order, id=f"order-{number}")
        elif way == 2:
            await shop.app.publish_many(shop.orders, [order])
        else:
            await shop.app.publish(shop.orders, order)
        await asyncio.sleep(chance.uniform(0, 0.008))
    return kinds


async def is_quiet(shop: Shop) -> bool:
    """Nothing waits anywhere: not delayed, not due, not pending, not to be read, not to be read again."""
    client, tag = shop.app.client, shop.orders.partition("}")[0] + "}"
    beside = f"hr:{tag}:{shop.orders}"
    for key in (f"{beside}:delayed", f"{beside}:sell:due", f"hr:{tag}:{shop.parcels}:send:due"):
        if await client.command("ZCARD", key):
            return False
    again = f"{beside}:sell:again"
    if await client.command("EXISTS", again) and not await is_empty(shop.app, again, "sell"):
        return False
    return await is_empty(shop.app, shop.orders, "sell") and await is_empty(shop.app, shop.parcels, "send")


@pytest.mark.parametrize("seed", [1, 2, *[pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 53)]])
def test_whatever_is_published_is_handled_or_dead_in_the_end(seed: int) -> None:
    shop, chance = Shop(seed), random.Random(seed)

    async def program() -> tuple[dict[int, str], list[Any]]:
        ending = asyncio.Event()
        crowd = asyncio.ensure_future(come_and_go(shop, chance, ending))
        kinds = await publish_all(shop, random.Random(-seed))
        ending.set()
        await crowd
        async with shop.app.worker():
            await until(lambda: is_quiet(shop), f"the shop to be quiet (seed {seed})")
        letters = await shop.app.dead(shop.orders).list()
        beside = f"hr:{{shop-{seed}}}:{shop.orders}"
        records = await shop.app.client.command("HLEN", f"{beside}:sell:attempts")
        await shop.app.close()
        assert records == 0
        return kinds, letters

    kinds, letters = run(program())
    dead = Counter(letter.payload["id"] for letter in letters)
    assert set(shop.handled) | set(dead) == set(kinds)
    assert set(dead.values()) <= {1}
    assert {number for number, kind in kinds.items() if kind in ("poison", "hopeless", "misfit")} <= set(dead)
    assert all(len(ids) == 1 for ids in shop.parcel_ids.values())  # Follow-ups come with the acknowledgement: once.
    chained = {number for number, kind in kinds.items() if kind == "chain"}
    assert chained - set(dead) <= set(shop.parcel_ids) <= chained

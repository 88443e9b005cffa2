"""Documented usage of apps and workers that must type-check."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

from headrace import App, Bury, Context, DeadLetter, Entry, Middleware, Retries, Retry


@dataclass
class Order:
    id: int


@dataclass
class Receipt:
    order: int


class Database: ...


app = App("embedded:./data", keep="7d")


@app.handler(
    "orders", group="billing", retries=Retries(5, first="1s", factor=2, longest="5m"), lease="30s", timeout="10m",
    concurrency=100, rate="500/s", publish_to="receipts",
)  # fmt: skip
async def bill(order: Order, ctx: Context) -> Receipt:
    if ctx.attempt > 3:
        raise Bury("no such customer")
    if ctx.key is None:
        raise Retry(after="5m")
    await ctx.commit([("HINCRBY", "{orders}:totals", "42", 1)], publish=[("receipts", Receipt(order.id))])
    return Receipt(order.id)


@app.handler("clicks", batch=500, wait="200ms")
async def store(clicks: list[Order], contexts: list[Context]) -> None: ...


@app.handler("tickets", key="ticket_id", run=50, poison="skip", keyless="dead")
async def answer(ticket: Order, ctx: Context) -> None:
    fence: int | None = ctx.fence
    assert fence is not None and ctx.key is not None


@app.handler("thumbnails")
def render(job: bytes, ctx: Context) -> None:
    entry_id: str | None = ctx.wait_for(app.publish("next", job))
    assert entry_id is not None


@app.provide
async def database() -> AsyncIterator[Database]:
    yield Database()


@app.on_bury
async def tell(entry: Entry, ctx: Context, error: str) -> None: ...


class Timing(Middleware):
    async def before_process(self, ctx: Context) -> None: ...


app.middleware(Timing())


async def main() -> None:
    entry_id: str | None = await app.publish("orders", Order(1), id="order-1", delay="10m")
    later: str | None = await app.publish("orders", Order(1), at=datetime.now(UTC))
    ids: list[str] = await app.publish_many("orders", [Order(1), Order(2)])
    assert entry_id is None and later is None and ids
    async with app.worker(shutdown_timeout="10s") as worker:
        assert worker.counters["orders", "billing"].done == 0
        worker.stop()
    letters: list[DeadLetter] = await app.dead("orders").list(where='error ~ "timeout"')
    assert letters[0].attempts and letters[0].error
    replayed: int = await app.dead("orders", "billing").replay(rate="50/s")
    assert replayed

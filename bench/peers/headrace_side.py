"""headrace itself, measured as the others are. Its handlers end when the server has confirmed the last of them."""

import asyncio
from typing import Any

import meter

from headrace import App

BATCH = 1000
THREADS = 4  # As many as Dramatiq has,
PREFETCH = 1000  # and as many read in advance.


async def main(url: str, what: str, count: int) -> None:
    app = App(url)
    counted = meter.Meter(count)
    declare(app, what, counted)
    if what.startswith("publish"):
        await app.publish(meter.STREAM, meter.PAYLOAD)
    if what == "publish":
        await meter.timed(count, lambda: meter.publish_often(count, lambda: app.publish(meter.STREAM, meter.PAYLOAD)))
    elif what == "publish-many":
        await meter.timed(count, lambda: app.publish_many(meter.STREAM, [meter.PAYLOAD] * count))
    else:
        if what != "latency":
            await app.publish_many(meter.STREAM, [meter.PAYLOAD] * count)
        async with app.worker() as worker:
            counters = worker.counters[meter.STREAM, meter.GROUP]
            if what == "latency":
                await meter.publish_steadily(count, lambda sent_s: app.publish(meter.STREAM, sent_s))
            while counters.done < count:  # noqa: ASYNC110 - the counters wake nobody.
                await asyncio.sleep(0.002)
            counted.finish()
        counted.report()
    await app.close()


def declare(app: App, what: str, counted: meter.Meter) -> None:
    if what == "handle":

        @app.handler(meter.STREAM, group=meter.GROUP)
        async def handle(order: dict[str, Any]) -> None:
            counted.add()

    if what == "batch":

        @app.handler(meter.STREAM, group=meter.GROUP, batch=BATCH)
        async def handle_many(orders: list[dict[str, Any]]) -> None:
            counted.add(len(orders))

    if what == "plain":

        @app.handler(meter.STREAM, group=meter.GROUP, concurrency=THREADS, prefetch=PREFETCH)
        def handle_in_thread(order: dict[str, Any]) -> None:
            counted.add()

    if what == "latency":

        @app.handler(meter.STREAM, group=meter.GROUP)
        async def handle_sent(sent_s: float) -> None:
            counted.add_sent(sent_s)


meter.run(main)

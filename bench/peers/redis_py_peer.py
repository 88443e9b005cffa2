"""redis-py with asyncio, and the loops one would write by hand around it. Nothing is retried, extended or deleted."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import meter
import redis.asyncio

READ = 1000
PIPELINE = 1000


async def main(url: str, what: str, count: int) -> None:
    client: Any = redis.asyncio.Redis.from_url(url)
    counted = meter.Meter(count)
    await client.xgroup_create(meter.STREAM, meter.GROUP, "0", mkstream=True)

    async def publish(payload: Any = meter.PAYLOAD) -> None:
        await client.xadd(meter.STREAM, {"data": json.dumps(payload)})

    if what.startswith("publish"):
        await publish()
    if what == "publish":
        await meter.timed(count, lambda: meter.publish_often(count, publish))
    elif what == "publish-many":
        await meter.timed(count, lambda: publish_many(client, count))
    elif what == "latency":
        consuming = asyncio.ensure_future(consume(client, counted.add_sent, counted, acks_each=True))
        await meter.publish_steadily(count, publish)
        await consuming
        counted.report()
    else:
        await publish_many(client, count)
        await consume(client, lambda _: counted.add(), counted, acks_each=what == "handle")
        counted.report()
    await client.aclose()


async def publish_many(client: Any, count: int) -> None:
    for begin in range(0, count, PIPELINE):
        pipeline = client.pipeline(transaction=False)
        for _ in range(min(PIPELINE, count - begin)):
            pipeline.xadd(meter.STREAM, {"data": json.dumps(meter.PAYLOAD)})
        await pipeline.execute()


async def consume(client: Any, handle: Callable[[Any], None], counted: meter.Meter, *, acks_each: bool) -> None:
    """One XACK for each message, or one for each reply."""
    while not counted.all_came.is_set():
        for _, entries in await client.xreadgroup(meter.GROUP, "one", {meter.STREAM: ">"}, count=READ, block=1000):
            for entry_id, fields in entries:
                handle(json.loads(fields[b"data"]))
                if acks_each:
                    await client.xack(meter.STREAM, meter.GROUP, entry_id)
            if not acks_each:
                await client.xack(meter.STREAM, meter.GROUP, *[entry_id for entry_id, _ in entries])


meter.run(main)

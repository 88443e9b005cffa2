"""taskiq on a Redis stream: tasks, 100 at once, without results."""

import asyncio
from typing import Any

import meter
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

READ = 1000  # Messages in one reply, and read in advance.
AT_ONCE = 100


async def main(url: str, what: str, count: int) -> None:
    broker = RedisStreamBroker(
        url, queue_name=meter.STREAM, consumer_group_name=meter.GROUP, consumer_id="0", xread_count=READ
    )
    counted = meter.Meter(count)

    @broker.task
    async def handle(order: dict[str, Any]) -> None:
        counted.add()

    @broker.task
    async def handle_sent(sent_s: float) -> None:
        counted.add_sent(sent_s)

    async def publish() -> None:
        await handle.kiq(meter.PAYLOAD)

    await broker.startup()
    if what == "publish":
        await publish()
        await meter.timed(count, lambda: meter.publish_often(count, publish))
    else:
        if what == "handle":
            await meter.publish_often(count, publish)
        receiver = asyncio.create_task(run_receiver_task(broker, max_async_tasks=AT_ONCE, max_prefetch=READ))
        if what == "latency":
            await meter.publish_steadily(count, handle_sent.kiq)
        await counted.wait()
        counted.report()
        receiver.cancel()
        await asyncio.gather(receiver, return_exceptions=True)
    await broker.shutdown()


meter.run(main)

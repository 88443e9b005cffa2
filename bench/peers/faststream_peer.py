"""FastStream on Redis streams: handlers of one message, 100 at once, and of batches. Each is acknowledged after it."""

from typing import Any

import meter
from faststream import AckPolicy
from faststream.redis import RedisBroker, StreamSub

READ = 1000  # Messages in one reply.
AT_ONCE = 100  # Handlers. One is a third slower.


async def main(url: str, what: str, count: int) -> None:
    broker = RedisBroker(url, logger=None)
    counted = meter.Meter(count)
    declare(broker, what, counted)
    client = await broker.connect()
    await client.xgroup_create(meter.STREAM, meter.GROUP, "0", mkstream=True)

    async def publish(payload: Any = meter.PAYLOAD) -> None:
        await broker.publish(payload, stream=meter.STREAM)

    if what == "publish":
        await publish()
        await meter.timed(count, lambda: meter.publish_often(count, publish))
    else:
        if what != "latency":
            await meter.publish_often(count, publish)
        await broker.start()
        if what == "latency":
            await meter.publish_steadily(count, publish)
        await counted.wait()
        counted.report()
    await broker.stop()


def declare(broker: RedisBroker, what: str, counted: meter.Meter) -> None:
    one = StreamSub(meter.STREAM, group=meter.GROUP, consumer="one", max_records=READ)

    if what == "handle":

        @broker.subscriber(stream=one, ack_policy=AckPolicy.ACK, max_workers=AT_ONCE)
        async def handle(order: dict[str, Any]) -> None:
            counted.add()

    if what == "batch":
        many = StreamSub(meter.STREAM, group=meter.GROUP, consumer="one", max_records=READ, batch=True)

        @broker.subscriber(stream=many, ack_policy=AckPolicy.ACK)
        async def handle_many(orders: list[dict[str, Any]]) -> None:
            counted.add(len(orders))

    if what == "latency":

        @broker.subscriber(stream=one, ack_policy=AckPolicy.ACK, max_workers=AT_ONCE)
        async def handle_sent(sent_s: float) -> None:
            counted.add_sent(sent_s)


meter.run(main)

"""Dramatiq: plain functions in threads, which is what it is made for."""

import asyncio
import os

import meter

os.environ["dramatiq_queue_prefetch"] = "1000"  # noqa: SIM112 - so it is called. Messages read in advance.

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import Retries

THREADS = 4  # More of them share one core to their own harm.


async def main(url: str, what: str, count: int) -> None:
    broker = RedisBroker(url=url, middleware=[Retries()])  # The other middlewares cost a third more.
    dramatiq.set_broker(broker)
    counted = meter.Meter(count)

    @dramatiq.actor
    def handle(order: dict[str, object]) -> None:
        counted.add()

    @dramatiq.actor
    def handle_sent(sent_s: float) -> None:
        counted.add_sent(sent_s)

    async def publish_all() -> None:
        for _ in range(count):
            handle.send(meter.PAYLOAD)

    async def publish_sent(sent_s: float) -> None:
        handle_sent.send(sent_s)

    if what == "publish":
        handle.send(meter.PAYLOAD)
        await meter.timed(count, publish_all)
        return
    if what != "latency":
        await publish_all()
    worker = dramatiq.Worker(broker, worker_threads=THREADS)
    worker.start()
    if what == "latency":
        await meter.publish_steadily(count, publish_sent)
    await counted.wait()
    counted.report()
    await asyncio.to_thread(worker.stop)


meter.run(main)

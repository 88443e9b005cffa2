"""A hundred tasks with taskiq, over the broker named: a list, a channel, or a stream; results in Redis."""

import asyncio
import sys

from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker, PubSubBroker, RedisAsyncResultBackend, RedisStreamBroker

JOBS = 100
PATIENCE_S = 60
BROKERS = {"list": ListQueueBroker, "channel": PubSubBroker, "stream": RedisStreamBroker}

url, kind = sys.argv[1:]
broker = BROKERS[kind](url).with_result_backend(RedisAsyncResultBackend(url, result_ex_time=600))


@broker.task
async def double(number: int) -> int:
    return 2 * number


async def main() -> None:
    await broker.startup()
    receiver = asyncio.create_task(run_receiver_task(broker, run_startup=False))
    if kind == "channel":
        await asyncio.sleep(1)  # A channel keeps nothing for those who come later.
    tasks = [await double.kiq(number) for number in range(JOBS)]
    results = [await task.wait_result(timeout=PATIENCE_S) for task in tasks]
    assert [result.return_value for result in results] == [2 * number for number in range(JOBS)]
    assert not any(result.is_err for result in results)
    receiver.cancel()
    await asyncio.gather(receiver, return_exceptions=True)
    await broker.shutdown()
    print(f"{JOBS} jobs done")


asyncio.run(main())

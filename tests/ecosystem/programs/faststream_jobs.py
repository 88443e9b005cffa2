"""A hundred messages each over a list, a channel, a pattern, a stream and a stream's group with FastStream."""

import asyncio
import sys
from collections import Counter

from faststream import FastStream
from faststream.redis import ListSub, PubSub, RedisBroker, StreamSub

JOBS = 100
PATIENCE_S = 60

broker = RedisBroker(sys.argv[1])
app = FastStream(broker)
seen: Counter[str] = Counter()
replies: Counter[str] = Counter()


@broker.subscriber(list="jobs")
async def from_list(number: int) -> None:
    seen["list"] += 1


@broker.subscriber(list=ListSub("batches", batch=True, max_records=10))
async def from_batches(numbers: list[int]) -> None:
    seen["batches"] += len(numbers)


@broker.subscriber("news")
async def from_channel(number: int) -> None:
    seen["channel"] += 1


@broker.subscriber(channel=PubSub("logs.*", pattern=True))
async def from_pattern(number: int) -> None:
    seen["pattern"] += 1


@broker.subscriber(stream="events")
@broker.publisher(list="answers")
async def from_stream(number: int) -> int:
    seen["stream"] += 1
    return 2 * number


@broker.subscriber(stream=StreamSub("orders", group="billing", consumer="ann"))
async def from_group(number: int) -> None:
    seen["group"] += 1


@broker.subscriber(list="answers")
async def from_answers(number: int) -> None:
    assert number % 2 == 0
    seen["answers"] += 1


@broker.subscriber("questions")
async def question(number: int) -> int:
    return number + 1


@app.after_startup
async def publish() -> None:
    for number in range(JOBS):
        await broker.publish(number, list="jobs")
        await broker.publish(number, "news")
        await broker.publish(number, f"logs.{number % 3}")
        await broker.publish(number, stream="events")
        await broker.publish(number, stream="orders")
    await broker.publish_batch(*range(JOBS), list="batches")
    answer = await broker.request(41, "questions", timeout=PATIENCE_S)
    assert await answer.decode() == 42


async def stop_when_all_came() -> None:
    names = ("list", "batches", "channel", "pattern", "stream", "group", "answers")
    async with asyncio.timeout(PATIENCE_S):
        while any(seen[name] < JOBS for name in names):
            await asyncio.sleep(0.01)
    app.exit()


async def main() -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(app.run())
        tasks.create_task(stop_when_all_came())
    assert set(seen.values()) == {JOBS}, seen
    print(f"{JOBS} jobs done")


asyncio.run(main())

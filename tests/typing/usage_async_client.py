"""The documented use of AsyncClient, as mypy --strict must see it. Checked by make lint; never run."""

from typing import assert_type

from headrace import (
    AsyncClient,
    AsyncGroup,
    AsyncJob,
    AsyncLinkedList,
    AsyncQueue,
    AsyncStream,
    Claimed,
    Element,
    Entry,
    Message,
    QueueInfo,
    TrimReport,
)


async def streams() -> None:
    async with AsyncClient("redis://localhost") as client:
        orders = client.stream("orders")
        assert_type(orders, AsyncStream)
        assert_type(await orders.add({"id": "17"}), str)
        assert_type(await orders.publish({"id": 17}, id="order-17"), str)
        assert_type(await orders.publish({"id": 17}, delay="5s"), str | None)
        assert_type(await orders.publish_many([{"id": 17}]), list[str])
        assert_type(await orders.length(), int)
        assert_type(await orders.range(since="-1h"), list[Entry])
        assert_type(await orders.get("1-0"), Entry | None)
        assert_type(await orders.trim(keep=100_000), TrimReport)
        async for entry in orders.iterate(page=7):
            assert_type(entry, Entry)
        async for entry in orders.follow(start="now"):
            assert_type(entry, Entry)


async def groups(client: AsyncClient) -> None:
    billing = client.stream("orders").group("billing")
    assert_type(billing, AsyncGroup)
    assert_type(await billing.read("worker-1", count=10, wait="5s"), list[Entry])
    assert_type(await billing.claim("worker-2", min_idle="5m"), Claimed)
    assert_type(await billing.lag(), int | None)
    async for entry in billing.consume("worker-1"):
        await billing.ack(entry.id)


async def queues(client: AsyncClient) -> None:
    jobs = client.queue("jobs")
    assert_type(jobs, AsyncQueue)
    assert_type(await jobs.push(b"a", "b", delay="10m"), list[str])
    assert_type(await client.pop_first("urgent", "jobs"), list[AsyncJob])
    for job in await jobs.pop(count=10, wait="5s"):
        assert_type(job, AsyncJob)
        assert_type(await job.ack(), bool)
    assert_type(await jobs.recover(idle="1m"), list[AsyncJob])
    assert_type(await jobs.inspect(pending=True), list[Element])
    assert_type(await jobs.info(), QueueInfo)


async def lists_and_channels(client: AsyncClient) -> None:
    inbox = client.list("inbox")
    assert_type(inbox, AsyncLinkedList)
    assert_type(await inbox.pop(wait="5s"), list[bytes])
    assert_type(await client.channel("news").publish("hi"), int)
    async with client.channels("news.*").listen() as messages:
        async for message in messages:
            assert_type(message, Message)

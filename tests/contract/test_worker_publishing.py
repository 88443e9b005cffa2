"""How messages come to handlers, on every server: delayed, once, joined, confirmed. Rows 256-258, 266."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from headrace import ConfigError, Context, Unconfirmed, Unsupported
from support.worker_programs import run, until

pytestmark = pytest.mark.any_socket


def test_a_delayed_message_comes_when_it_is_due_and_not_before(app, name):
    """Row 256."""
    seen = {}

    @app.handler(name)
    async def bill(order: dict) -> None:
        seen[order["id"]] = time.time()

    async def program():
        async with app.worker():
            begun = time.time()
            assert await app.publish(name, {"id": 1}, delay="300ms") is None
            assert await app.publish(name, {"id": 2}, at=datetime.now(UTC) + timedelta(milliseconds=600)) is None
            await app.publish(name, {"id": 0})
            await until(lambda: len(seen) == 3)
            return begun

    begun = run(program())
    assert list(seen) == [0, 1, 2]
    assert seen[1] - begun >= 0.299 and seen[2] - begun >= 0.599


def test_publishing_an_id_twice_is_once(app, name):
    """Row 257, also for delayed messages."""
    seen = []

    @app.handler(name)
    async def bill(order: dict) -> None:
        seen.append(order["id"])

    async def program():
        first = await app.publish(name, {"id": 1}, id="order-1")
        assert await app.publish(name, {"id": 1}, id="order-1") == first
        await app.publish(name, {"id": 2}, id="order-2", delay="100ms")
        await app.publish(name, {"id": 2}, id="order-2", delay="100ms")
        async with app.worker():
            await until(lambda: len(seen) == 2)
            await app.publish(name, {"id": 3})
            await until(lambda: 3 in seen)

    run(program())
    assert seen == [1, 2, 3]


def test_headers_key_and_publish_id_reach_the_handler(app, name):
    """Row 266: the context."""
    seen = []

    @app.handler(name)
    async def bill(order: dict, ctx: Context) -> None:
        seen.append((ctx.key, ctx.publish_id, ctx.headers, ctx.stream, ctx.group))

    async def program():
        async with app.worker():
            await app.publish(name, {"id": 1}, key="customer-42", id="order-1", headers={"tenant": "a"})
            await until(lambda: seen)

    run(program())
    assert seen == [("customer-42", "order-1", {"tenant": "a"}, name, "bill")]


def test_many_small_publishers_are_joined(app, name):
    """Row 258: 50 tasks that publish at the same time travel in a few pipelines."""

    async def program():
        ids = await asyncio.gather(*[app.publish(name, {"id": number}) for number in range(50)])
        entries = await app.client.stream(name).range()
        await app.close()
        return ids, entries

    ids, entries = run(program())
    assert [entry.id for entry in entries] == ids and len(set(ids)) == 50


def test_a_message_may_be_confirmed_by_replicas(app, name, deployment):
    """Where there is a replica it has the message too; where there is none, the caller is told, and it was added."""
    if deployment.name.endswith("-sentinel"):
        assert run(publish_confirmed(app, name)) == 1
        return
    with pytest.raises(Unsupported if deployment.name.endswith("-cluster") else Unconfirmed):
        run(publish_confirmed(app, name))
    assert run(count(app, name)) == (0 if deployment.name.endswith("-cluster") else 1)


async def publish_confirmed(app, name):
    async with app:
        await app.publish(name, {"id": 1}, min_replicas=1)
        return await app.client.stream(name).length()


async def count(app, name):
    async with app:
        return await app.client.stream(name).length()


@pytest.mark.parametrize("stream", ["half a character \ud800", "x\ud800"])
def test_a_stream_that_cannot_be_written_is_refused_and_no_other_message_suffers(app, name, stream):
    async def program():
        async with app:
            bad, good = await asyncio.gather(app.publish(stream, 1), app.publish(name, 2), return_exceptions=True)
            assert isinstance(bad, ConfigError), bad
            return good, [entry.id for entry in await app.client.stream(name).range()]

    good, ids = run(program())
    assert ids == [good]

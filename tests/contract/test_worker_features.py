"""What handlers may ask for, on every server: chains, delays, batches, threads, limits, hooks, injection.

Rows 223, 253, 256-258, 260, 265, 266.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypedDict

import msgspec
import pydantic
import pytest

from headrace import App, Context, Entry, Middleware, Retries, Unconfirmed, Unsupported
from headrace.worker import consumer, housekeeping
from support.worker_programs import is_empty, run, until

QUICK = Retries(2, first="10ms", longest="20ms")


pytestmark = pytest.mark.any_socket


@pytest.fixture
def app(url):
    return App(url)


@dataclass
class Order:
    id: int


@dataclass
class Receipt:
    order: int


class OrderDict(TypedDict):
    id: int


class OrderStruct(msgspec.Struct):
    id: int


class OrderModel(pydantic.BaseModel):
    id: int


# Chains


def test_what_a_handler_returns_goes_on_with_its_acknowledgement(app, name):
    """Row 223. None publishes nothing."""
    receipts = []
    target = f"{{{name}}}:receipts"

    @app.handler(name, publish_to=target)
    async def bill(order: Order) -> Receipt | None:
        return Receipt(order.id) if order.id % 2 else None

    @app.handler(target)
    async def mail(receipt: Receipt) -> None:
        receipts.append(receipt.order)

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, [Order(number) for number in range(20)])
            await until(lambda: len(receipts) == 10)
            await until(lambda: is_empty(app, name, "bill"))
            assert (worker.counters[name, "bill"].done, worker.counters[name, "bill"].late) == (20, 0)

    run(program())
    assert sorted(receipts) == list(range(1, 20, 2))


def test_a_chain_may_lead_into_any_stream(app, name):
    """Row 223: in a cluster the other stream lies in another slot; each follow-up arrives once all the same."""
    receipts = []
    targets = [f"{name}-receipts", f"{name}-copies"]

    @app.handler(name, publish_to=targets[0])
    async def bill(order: Order, ctx: Context) -> Receipt | None:
        if order.id % 2:
            return Receipt(order.id)
        await ctx.commit(publish=[(targets[1], Receipt(order.id))])
        return None

    @app.handler(targets[0])
    async def mail(receipt: Receipt) -> None:
        receipts.append(receipt.order)

    @app.handler(targets[1])
    async def copy(receipt: Receipt) -> None:
        receipts.append(receipt.order)

    async def program():
        async with app.worker():
            await app.publish_many(name, [Order(number) for number in range(20)])
            await until(lambda: len(receipts) >= 20)
            await until(lambda: is_empty(app, name, "bill"))
            outbox = app.client.stream(f"hr:{{{name}}}:outbox")

            async def is_sent():
                return await outbox.length() == 0

            await until(is_sent)

    run(program())
    assert sorted(receipts) == list(range(20))


def test_a_chain_into_something_that_is_no_stream_fails_that_message_alone(app, name):
    """The others of the same settlement are acknowledged; this one is buried with the server's reason."""
    target = f"{{{name}}}:text"

    @app.handler(name, publish_to=target, retries=0)
    async def bill(order: Order) -> Receipt | None:
        return Receipt(order.id) if order.id == 7 else None

    async def program():
        await app.client.command("SET", target, "text")
        await app.publish_many(name, [Order(number) for number in range(20)])
        async with app.worker() as worker:
            await until(lambda: worker.counters[name, "bill"].buried == 1)
            await until(lambda: worker.counters[name, "bill"].done == 19)
            [dead] = await app.client.stream(f"hr:{{{name}}}:bill:dead").range()
        return dead

    dead = run(program())
    assert dead.payload == {"id": 7} and "WRONGTYPE" in dead.fields["hr:error"]


# Time


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


def test_a_run_beyond_its_time_limit_is_a_failure(app, name):
    """Row 260: for tasks and for threads."""
    runs = Counter()
    released = threading.Event()

    @app.handler(name, group="task", timeout="50ms", retries=QUICK)
    async def slow(order: dict) -> None:
        runs["task"] += 1
        if runs["task"] == 1:
            await asyncio.Event().wait()

    @app.handler(name, group="thread", timeout="50ms", retries=QUICK)
    def blocked(order: dict) -> None:
        runs["thread"] += 1
        if runs["thread"] == 1:
            released.wait(30)

    async def program():
        async with app.worker() as worker:
            await app.publish(name, {"id": 1})
            await until(lambda: all(one.done == 1 and one.failed == 1 for one in worker.counters.values()))
            released.set()

    run(program())
    assert runs == {"task": 2, "thread": 2}


def test_a_rate_limits_how_many_begin(app, name):
    """Row 265: without it 20 would begin at once; a tenth of a second may be made up for, so 15 wait for their turn."""
    begun = []

    @app.handler(name, rate="50/s")
    async def bill(number: int) -> None:
        begun.append(time.monotonic())

    async def program():
        await app.publish_many(name, range(20))
        async with app.worker():
            await until(lambda: len(begun) == 20)

    run(program())
    assert begun[-1] - begun[0] >= 10 / 50


def test_in_flight_is_bounded(app, name):
    """Row 265: concurrency + prefetch, whatever waits in the stream."""
    running, most = [], []

    @app.handler(name, concurrency=3, prefetch=4)
    async def bill(number: int) -> None:
        running.append(number)
        most.append(len(running))
        await asyncio.sleep(0.005)
        running.remove(number)

    async def program():
        await app.publish_many(name, range(60))
        held = []
        async with app.worker() as worker:
            while worker.counters[name, "bill"].done < 60:
                held.append(len(await app.client.stream(name).group("bill").pending()))
                await asyncio.sleep(0.002)
        await app.close()
        return held

    held = run(program())
    assert max(most) == 3 and max(held) <= 7


# Kinds of handlers


def test_every_kind_of_annotation(app, name):
    """Row 253."""
    seen = {}

    @app.handler(name)
    async def as_dict(order: dict) -> None:
        seen["dict"] = order

    @app.handler(name)
    async def as_dataclass(order: Order) -> None:
        seen["dataclass"] = order

    @app.handler(name)
    async def as_typed_dict(order: OrderDict) -> None:
        seen["typed dict"] = order

    @app.handler(name)
    async def as_struct(order: OrderStruct) -> None:
        seen["struct"] = order

    @app.handler(name)
    async def as_model(order: OrderModel) -> None:
        seen["model"] = order

    @app.handler(name)
    async def as_bytes(order: bytes) -> None:
        seen["bytes"] = order

    @app.handler(name)
    def as_text(order: str) -> None:
        seen["text"] = order

    @app.handler(name)
    async def as_entry(order: Entry) -> None:
        seen["entry"] = order.pairs

    async def program():
        async with app.worker():
            await app.publish(name, {"id": 17})
            await until(lambda: len(seen) == 8)

    run(program())
    assert seen == {
        "dict": {"id": 17}, "dataclass": Order(17), "typed dict": {"id": 17}, "struct": OrderStruct(17),
        "model": OrderModel(id=17), "bytes": b'{"id":17}', "text": '{"id":17}', "entry": ((b"data", b'{"id":17}'),),
    }  # fmt: skip


def test_plain_functions_run_in_threads_side_by_side(app, name):
    """Row 253. Ten that wait for each other all end; a thread may publish and commit by ctx.wait_for."""
    together = threading.Barrier(10)
    threads = set()
    target = f"{{{name}}}:next"

    @app.handler(name)
    def render(number: int, ctx: Context) -> None:
        threads.add(threading.current_thread().name)
        together.wait(30)
        ctx.wait_for(ctx.commit(publish=[(target, number)]))

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, range(10))
            await until(lambda: worker.counters[name, "render"].done == 10)
            return await app.client.stream(target).length()

    assert run(program()) == 10
    assert len(threads) == 10


def test_batches_gather_by_number_or_by_time(app, name):
    """Row 253."""
    batches = []

    @app.handler(name, batch=10, wait="100ms")
    async def store(clicks: list[Order], contexts: list[Context]) -> None:
        assert [context.attempt for context in contexts] == [1] * len(clicks)
        batches.append([click.id for click in clicks])

    async def program():
        await app.publish_many(name, [Order(number) for number in range(20)])
        async with app.worker() as worker:
            await until(lambda: len(batches) == 2)
            await app.publish_many(name, [Order(20), Order(21)])
            await until(lambda: sum(map(len, batches)) == 22)
            await until(lambda: is_empty(app, name, "store"))
            assert worker.counters[name, "store"].done == 22

    run(program())
    assert [len(batch) for batch in batches[:2]] == [10, 10]
    assert sorted(number for batch in batches for number in batch) == list(range(22))


def test_one_bad_message_does_not_take_its_batch_along(app, name):
    """Row 253: after a failed batch each is tried alone; a misfit is buried alone, at once."""
    stored = []

    @app.handler(name, batch=10, wait="50ms", retries=QUICK)
    async def store(clicks: list[Order]) -> None:
        if any(click.id == 3 for click in clicks):
            raise ValueError("three")
        stored.extend(click.id for click in clicks)

    async def program():
        await app.publish_many(name, [{"id": number} for number in range(9)] + [{"id": "nine"}])
        async with app.worker() as worker:
            await until(lambda: worker.counters[name, "store"].buried == 2)
            await until(lambda: is_empty(app, name, "store"))
            return await app.client.stream(f"hr:{{{name}}}:store:dead").range()

    dead = run(program())
    assert sorted(stored) == [0, 1, 2, 4, 5, 6, 7, 8]
    assert [entry.payload["id"] for entry in dead] == ["nine", 3]
    assert dead[1].fields["hr:attempts"] == "3"


def test_a_batch_publishes_a_list(app, name):
    """Row 223."""
    target = f"{{{name}}}:next"

    @app.handler(name, batch=10, wait="50ms", publish_to=target)
    async def store(clicks: list[Order]) -> list[Receipt]:
        return [Receipt(click.id) for click in clicks]

    async def program():
        await app.publish_many(name, [Order(number) for number in range(25)])
        async with app.worker():
            await until(lambda: is_empty(app, name, "store"))
            return await app.client.stream(target).range()

    assert sorted(entry.payload["order"] for entry in run(program())) == list(range(25))


# Around handlers


def test_hooks_run_in_their_documented_order(app, name):
    """Row 266."""
    log = []

    class Recording(Middleware):
        def __init__(self, label):
            self.label = label

    for hook in ("before_process", "after_process", "before_ack", "after_ack", "before_retry", "after_retry",
                 "before_bury", "after_bury"):  # fmt: skip

        def record(self, ctx, *more, hook=hook):
            log.append(f"{self.label} {hook}")
            return asyncio.sleep(0)

        setattr(Recording, hook, record)
    app.middleware(Recording("one"))
    app.middleware(Recording("two"))

    @app.handler(name, retries=Retries(1, first="10ms"))
    async def bill(number: int) -> None:
        log.append("handler")
        if number == 2:
            raise ValueError

    async def program():
        async with app.worker():
            await app.publish(name, 1)
            await until(lambda: "one after_ack" in log)
            log.append("-")
            await app.publish(name, 2)
            await until(lambda: "one after_bury" in log)

    run(program())
    done = ["one before_process", "two before_process", "handler", "two after_process", "one after_process"]
    assert log == [
        *done, "one before_ack", "two before_ack", "two after_ack", "one after_ack", "-",
        *done, "one before_retry", "two before_retry", "two after_retry", "one after_retry",
        *done, "one before_bury", "two before_bury", "two after_bury", "one after_bury",
    ]  # fmt: skip


class Database:
    def __init__(self) -> None:
        self.rows: list[int] = []
        self.is_open = True


def test_what_is_provided_is_made_once_and_ended_with_the_worker(app, name):
    """Row 266: injection by annotation."""
    made = []

    @app.provide
    async def database() -> AsyncIterator[Database]:
        made.append(Database())
        yield made[-1]
        made[-1].is_open = False

    @app.handler(name)
    async def bill(number: int, database: Database, ctx: Context) -> None:
        assert database.is_open and ctx.published_at is not None
        database.rows.append(number)

    async def program():
        async with app.worker():
            await app.publish_many(name, range(5))
            await until(lambda: len(made[0].rows) == 5)

    run(program())
    assert len(made) == 1 and not made[0].is_open


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


def test_entries_are_kept_where_it_is_asked_for(url, name):
    """keep=True on one handler keeps the stream's entries."""
    app = App(url)

    @app.handler(name, keep=True)
    async def bill(number: int) -> None: ...

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, range(5))
            await until(lambda: worker.counters[name, "bill"].done == 5)
            return await app.client.stream(name).length()

    assert run(program()) == 5


def test_large_messages_are_read_a_few_at_a_time(app, name, monkeypatch):
    """What is held is limited by bytes too; a quarter more, and a message for each loop, may be on their way."""
    monkeypatch.setattr(consumer, "MOST_HELD_BYTES", 1_000_000)
    held = []

    @app.handler(name, concurrency=2, prefetch=100)
    async def store(data: bytes) -> None:
        held.append(sum([source.held_bytes for source in worker.consumers[0].sources]))
        await asyncio.sleep(0)

    worker = None

    async def program():
        nonlocal worker
        await app.publish_many(name, [b"x" * 200_000] * 40)
        async with app.worker() as worker:
            await until(lambda: is_empty(app, name, "store"))

    run(program())
    assert len(held) == 40 and max(held) <= 1_250_000 + 2 * 200_000


def test_what_no_group_needs_goes_also_when_others_acknowledged_it(app, name, monkeypatch):
    """Row 263. A plain consumer never deletes, a group is abandoned and destroyed: only what a group needs stays."""
    monkeypatch.setattr(housekeeping, "EVERY_S", 0.02)
    monkeypatch.setattr(housekeeping, "TRIM_EVERY_S", 0.02)

    @app.handler(name)
    async def bill(number: int) -> None: ...

    async def program():
        stream = app.client.stream(name)
        slow, abandoned = stream.group("slow"), stream.group("abandoned")
        await slow.create(start="beginning")
        await abandoned.create(start="beginning")
        async with app.worker() as worker:
            ids = await app.publish_many(name, range(6))
            await until(lambda: worker.counters[name, "bill"].done == 6)
            entries = await slow.read("reader", count=4, wait="5s")
            await slow.ack(*[entry.id for entry in entries if entry.id != ids[2]])
            kept_for_both = await stream.length()
            await abandoned.destroy()
            await until(lambda: first_is(stream, ids[2]))
            kept_for_slow = [entry.id for entry in await stream.range()]
            await slow.ack(ids[2])
            await slow.ack(*[entry.id for entry in await slow.read("reader", count=4, wait="5s")])
            await until(lambda: is_empty(app, name, "bill"))
            return ids, kept_for_both, kept_for_slow

    ids, kept_for_both, kept_for_slow = run(program())
    assert kept_for_both == 6
    assert kept_for_slow == ids[2:]


async def first_is(stream, entry_id):
    return [entry.id for entry in await stream.range()][:1] == [entry_id]


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

"""What handlers may ask for goes with key= too: threads, limits, hooks, chains, delays. Rows 222, 223, 253-266."""

import asyncio
import threading
from dataclasses import dataclass

import pytest

from headrace import App, Context, Middleware, Retries
from headrace.client import lane_views, worker_steps
from headrace.worker import housekeeping
from support.order_watch import nothing_left, order_of, tickets
from support.worker_programs import run, until

pytestmark = pytest.mark.any_socket


@dataclass
class Ticket:
    ticket_id: int
    number: int


def test_plain_functions_keep_order_too(app, name):
    seen, running, overlaps = [], set(), []

    @app.handler(name, key="ticket_id", concurrency=4)
    def handle(ticket: Ticket) -> None:
        overlaps.append(ticket.ticket_id in running)
        running.add(ticket.ticket_id)
        seen.append((ticket.ticket_id, ticket.number, threading.current_thread().name))
        running.discard(ticket.ticket_id)

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, tickets(range(5), 10))
            await until(lambda: worker.counters[name, "handle"].done == 50)

    run(program())
    assert not any(overlaps) and all("headrace handler" in thread for *_, thread in seen)
    for key in range(5):
        assert [number for one, number, _ in seen if one == key] == list(range(10))


def test_a_run_past_its_time_limit_has_failed_and_its_key_waits(app, name):
    runs = []

    @app.handler(name, key="ticket_id", timeout="50ms", retries=Retries(1, first="10ms"))
    async def handle(ticket: Ticket, ctx: Context) -> None:
        runs.append((ticket.number, ctx.attempt))
        if len(runs) == 1:
            await asyncio.sleep(60)

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, tickets([1], 2))
            await until(lambda: worker.counters[name, "handle"].done == 2)

    run(program())
    assert runs == [(0, 1), (0, 2), (1, 1)]


def test_a_rate_holds_for_ordered_messages(app, name):
    """Ten at 50 a second need a fifth of a second at least, by the clock of the loop."""
    begun = []

    @app.handler(name, key="ticket_id", rate="50/s")
    async def handle(ticket: Ticket) -> None:
        begun.append(asyncio.get_running_loop().time())

    async def program():
        async with app.worker():
            await app.publish_many(name, tickets(range(2), 10))
            await until(lambda: len(begun) == 20)

    run(program())
    assert begun[-1] - begun[0] > 0.2


def test_what_a_handler_returns_goes_on_with_its_acknowledgement_and_its_key(app, name):
    """Row 223: the follow-up carries the key of its own stream as a field."""
    target, receipts = f"{{{name}}}:receipts", []

    @app.handler(name, key="ticket_id", publish_to=target)
    async def handle(ticket: Ticket) -> dict:
        return {"customer": ticket.ticket_id, "number": ticket.number}

    @app.handler(target, key="customer")
    async def mail(receipt: dict, ctx: Context) -> None:
        receipts.append((ctx.key, receipt["number"], ctx.entry.fields["customer"]))

    async def program():
        async with app.worker():
            await app.publish_many(name, tickets(range(3), 10))
            await until(lambda: len(receipts) == 30)
            await until(lambda: nothing_left(app, target, "mail"))

    run(program())
    for key in "012":
        assert [row for row in receipts if row[0] == key] == [(key, number, key) for number in range(10)]


def test_a_chain_that_is_impossible_fails_its_message_before_the_next_one_runs(app, name):
    target, runs = f"{{{name}}}:text", []

    @app.handler(name, group="g", key="ticket_id", publish_to=target, retries=Retries(1, first="10ms"), poison="skip")
    async def handle(ticket: Ticket) -> dict | None:
        runs.append(ticket.number)
        return {"no": "stream"} if ticket.number == 1 else None

    async def program():
        async with app.worker() as worker:
            await app.client.command("SET", target, "text")
            await app.publish_many(name, tickets([1], 3))
            await until(lambda: worker.counters[name, "g"].done == 2)
            return await app.dead(name).list()

    [letter] = run(program())
    assert runs == [0, 1, 1, 2] and "WRONGTYPE" in letter.error


def test_a_batch_with_publish_to_settles_all_its_messages_with_what_it_returns(app, name):
    target = f"{{{name}}}:sums"

    @app.handler(name, group="g", key="ticket_id", batch=10, publish_to=target)
    async def handle(batch: list[Ticket]) -> list[int]:
        return [sum(ticket.number for ticket in batch)]

    async def program():
        await app.publish_many(name, tickets([1], 10))
        async with app.worker() as worker:
            await until(lambda: worker.counters[name, "g"].done == 10)
            return [entry.payload for entry in await app.client.stream(target).range()]

    assert run(program()) == [45]


def test_hooks_and_injected_values_work_with_a_key(app, name):
    told = []

    class Telling(Middleware):
        async def before_process(self, ctx):
            told.append(("before_process", ctx.key, ctx.fence is not None))

        async def after_ack(self, ctx):
            told.append(("after_ack", ctx.key))

        async def after_retry(self, ctx, error):
            told.append(("after_retry", error))

    class Database:
        pass

    app.middleware(Telling())

    @app.provide
    def database() -> Database:
        return Database()

    @app.handler(name, key="ticket_id", retries=Retries(1, first="10ms"))
    async def handle(ticket: Ticket, database: Database, ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ValueError("no")

    async def program():
        async with app.worker():
            await app.publish(name, Ticket(1, 0))
            await until(lambda: len(told) == 4)

    run(program())
    assert told == [
        ("before_process", "1", True), ("after_retry", "ValueError: no"), ("before_process", "1", True),
        ("after_ack", "1"),
    ]  # fmt: skip


def test_on_bury_is_told_again_until_it_succeeds_without_another_run(app, name):
    """Row 222: also for a message that was buried in its first run."""
    runs, told = [], []

    @app.handler(name, key="ticket_id", retries=Retries(1, first="10ms"), poison="skip")
    async def handle(ticket: Ticket) -> None:
        runs.append(ticket.number)
        raise ValueError("no")

    @app.on_bury
    def on_bury(entry, ctx, error):
        told.append(error)
        if len(told) < 3:
            raise RuntimeError("nobody listens")

    async def program():
        async with app.worker() as worker:
            await app.publish(name, Ticket(1, 0))
            await until(lambda: worker.counters[name, "handle"].buried == 1)
            return await app.dead(name).list()

    [letter] = run(program())
    assert runs == [0, 0] and told == ["ValueError: no"] * 3
    assert "in handle" in letter.traceback


def test_delayed_messages_come_when_they_are_due(app, name):
    """Row 257."""
    seen = []

    @app.handler(name, key="ticket_id")
    async def handle(ticket: Ticket) -> None:
        seen.append(ticket.number)

    async def program():
        async with app.worker():
            await app.publish(name, Ticket(1, 1), delay="200ms")
            await app.publish(name, Ticket(1, 0))
            await until(lambda: len(seen) == 2)

    run(program())
    assert seen == [0, 1]


def test_publishing_adds_the_key_as_a_field_where_the_server_would_read_json_else(app, name):
    """Text, whole numbers and truth; nothing where the name is one of the layout's own, or there is no such member."""

    @app.handler(name, key="ticket_id")
    async def handle(ticket: dict) -> None: ...

    @app.handler(name, group="by_id", key="id")
    async def handle_by_id(ticket: dict) -> None: ...

    async def program():
        await app.publish(name, {"ticket_id": 7, "id": 3})
        await app.publish(name, Ticket(8, 1), key="k")
        await app.publish_many(name, [{"ticket_id": "nine"}, {"ticket_id": True}, {"ticket_id": 1.5}, {"other": 1}])
        await app.publish(name, "text")
        entries = await app.client.stream(name).range()
        await app.close()
        return [{name: value for name, value in entry.fields.items() if name != "data"} for entry in entries]

    assert run(program()) == [
        {"ticket_id": "7"}, {"key": "k", "ticket_id": "8"}, {"ticket_id": "nine"}, {"ticket_id": "true"}, {}, {},
        {"type": "text/plain"},
    ]  # fmt: skip


def test_names_of_dead_workers_leave_while_those_of_the_living_and_of_the_lanes_stay(app, name, monkeypatch):
    monkeypatch.setattr(housekeeping, "TRIM_EVERY_S", 0.1)
    monkeypatch.setattr(housekeeping, "EVERY_S", 0.1)
    monkeypatch.setattr(housekeeping, "IDLE_LEASES", 1)
    seen = []

    @app.handler(name, key="ticket_id", lease="1500ms")
    async def handle(ticket: Ticket) -> None:
        seen.append(ticket.number)

    async def program():
        async with app.worker() as worker:
            client, order = app.client, await order_of(app, name, "handle")
            await client.command("HSET", order.consumers, "dead one", "1 1 1 ")
            await client.command("XGROUP", "CREATECONSUMER", name, "handle", "old one")
            await app.publish(name, Ticket(1, 0))
            await until(lambda: seen)

            async def is_tidy():
                names = {one.name for one in await client.run(lane_views.consumers(client._facts, order))}
                in_group = {one.name for one in await client.stream(name).group("handle").consumers()}
                return names == {worker.name} and in_group <= {worker.name, "lanes", "master"}

            await until(is_tidy)
            in_group = {one.name for one in await client.stream(name).group("handle").consumers()}
            assert {worker.name, "master"} <= in_group

    run(program())


def test_records_of_the_time_without_order_do_not_disturb(url, name):
    """A group that had retries waiting is kept in order from now on: they come in their turn."""
    before, after, seen = App(url), App(url), []

    @before.handler(name, group="g", retries=Retries(3, first="1h"))
    async def fail(ticket: dict) -> None:
        raise ValueError("no")

    @after.handler(name, group="g", key="ticket_id")
    async def handle(ticket: dict) -> None:
        seen.append(ticket["number"])

    async def program():
        async with before.worker() as worker:
            await before.publish_many(name, tickets([1], 5))
            await until(lambda: worker.counters[name, "g"].retried == 5)
        async with after.worker():
            await until(lambda: nothing_left(after, name, "g"))
            due = await after.client.run(worker_steps.due(after.client._facts, name, "g", "x", 10))
            assert due.wait_ms is None

    run(program())
    assert seen == list(range(5))

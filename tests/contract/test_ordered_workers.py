"""Handlers with key= on every server: one message of a key at a time, in order. Rows 172, 227, 247-250.

Each test is one asyncio program with workers inside, as a user would write it.
"""

import asyncio
import random
from dataclasses import dataclass

import pytest

from headrace import App, Bury, Context, Retries
from support.order_watch import OrderWatch, nothing_left, resume, ticket_of, tickets
from support.worker_programs import run, until

QUICK = Retries(2, first="10ms", longest="20ms")

pytestmark = pytest.mark.any_socket


@dataclass
class Ticket:
    ticket_id: int
    number: int


def test_messages_of_a_key_run_one_by_one_in_order_and_different_keys_at_once(url, name):
    """Rows 172 and 227: two workers, 30 keys, 20 messages of each."""
    watch, together = OrderWatch(), []

    def one_app():
        app = App(url)

        @app.handler(name, group="g", key="ticket_id", concurrency=10)
        async def handle(ticket: Ticket) -> None:
            async with watch.run(ticket.ticket_id, ticket.number, random.random() / 200):
                together.append(len(watch.running))

        return app

    async def program():
        first, second = one_app(), one_app()
        await first.publish_many(name, tickets(range(30), 20))
        async with first.worker() as worker, second.worker() as other:
            await until(lambda: watch.count == 600)
            await until(lambda: nothing_left(first, name, "g"))
            done = [one.counters[name, "g"].done for one in (worker, other)]
            late = [one.counters[name, "g"].late for one in (worker, other)]
        assert sum(done) == 600 and min(done) > 0 and late == [0, 0]
        await first.close()
        await second.close()

    run(program())
    watch.assert_in_order(range(30), 20)
    assert max(together) > 1


def test_a_failed_message_holds_up_its_own_key_only_and_comes_first_again(app, name):
    """Row 245: attempts 1 and 2 of the first, then the rest; the other key is done long before."""
    seen = []

    @app.handler(name, key="ticket_id", retries=Retries(3, first="300ms"))
    async def handle(ticket: Ticket, ctx: Context) -> None:
        seen.append((ctx.key, ticket.number, ctx.attempt, ctx.last_error))
        if ticket.ticket_id == 1 and ticket.number == 0 and ctx.attempt == 1:
            raise ValueError("no")

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, tickets([1, 2], 5))
            await until(lambda: worker.counters[name, "handle"].done == 10)
            assert worker.counters[name, "handle"].retried == 1

    run(program())
    assert [row for row in seen if row[0] == "1"] == [
        ("1", 0, 1, ""), ("1", 0, 2, "ValueError: no"), ("1", 1, 1, ""), ("1", 2, 1, ""), ("1", 3, 1, ""),
        ("1", 4, 1, ""),
    ]  # fmt: skip
    assert seen.index(("2", 4, 1, "")) < seen.index(("1", 0, 2, "ValueError: no"))


def test_after_the_last_attempt_the_key_is_parked_and_goes_on_when_it_is_resumed(app, name):
    """Row 247: later messages of the key wait, other keys flow, nothing is lost."""
    runs, is_well = [], []

    @app.handler(name, key="ticket_id", retries=QUICK)
    async def handle(ticket: Ticket) -> None:
        runs.append((ticket.ticket_id, ticket.number))
        if ticket.ticket_id == 1 and not is_well:
            raise ValueError("no")

    async def program():
        async with app.worker() as worker:
            counters = worker.counters[name, "handle"]
            await app.publish_many(name, tickets([1, 2], 3))
            await until(lambda: counters.parked == 1 and counters.done == 3)
            ticket = await ticket_of(app, name, "handle", "1")
            assert (ticket.state, ticket.attempts, ticket.error) == ("parked", 3, "ValueError: no")
            is_well.append(True)
            assert await resume(app, name, "handle", "1")
            await until(lambda: counters.done == 6)
            await until(lambda: nothing_left(app, name, "handle"))

    run(program())
    assert [number for key, number in runs if key == 1] == [0, 0, 0, 0, 1, 2]


def test_poison_skip_buries_the_message_and_the_key_goes_on(app, name):
    """Row 247. on_bury is told before."""
    runs, told = [], []

    @app.handler(name, group="g", key="ticket_id", retries=QUICK, poison="skip")
    async def handle(ticket: Ticket) -> None:
        runs.append(ticket.number)
        if ticket.number == 1:
            raise ValueError("no")

    @app.on_bury
    async def on_bury(entry, ctx, error):
        told.append((ctx.attempt, error))

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, tickets([1], 3))
            await until(lambda: worker.counters[name, "g"].buried == 1 and worker.counters[name, "g"].done == 2)
            await until(lambda: nothing_left(app, name, "g"))
            return await app.dead(name).list()

    [letter] = run(program())
    assert runs == [0, 1, 1, 1, 2]
    assert told == [(3, "ValueError: no")]
    assert (letter.attempts, letter.error, letter.payload["number"]) == (3, "ValueError: no", 1)


def test_what_can_never_succeed_is_buried_at_once_and_the_key_goes_on(app, name):
    """Bury raised, or a payload that does not fit: also where the poison policy is to park."""
    seen = []

    @app.handler(name, key="ticket_id")
    async def handle(ticket: Ticket) -> None:
        if ticket.number == 1:
            raise Bury("no such customer")
        seen.append(ticket.number)

    async def program():
        async with app.worker() as worker:
            await app.publish_many(
                name, [{"ticket_id": 1, "number": number} for number in (0, 1, "two", 3)]
            )  # fmt: skip
            await until(
                lambda: worker.counters[name, "handle"].buried == 2 and worker.counters[name, "handle"].done == 2
            )
            await until(lambda: nothing_left(app, name, "handle"))
            return await app.dead(name).list()

    letters = run(program())
    assert seen == [0, 3]
    assert letters[0].error == "no such customer" and "Expected `int`, got `str`" in letters[1].error


def test_a_message_without_a_key_is_a_key_of_its_own_or_a_dead_letter(app, name):
    """Row 248: no crash, others flow. The field `key` of a message counts where the named one is missing."""
    seen, strict = [], []

    @app.handler(name, group="own", key="ticket_id")
    async def handle(message: dict, ctx: Context) -> None:
        seen.append((message["number"], ctx.key))

    @app.handler(name, group="strict", key="ticket_id", keyless="dead")
    async def handle_strictly(message: dict, ctx: Context) -> None:
        strict.append((message["number"], ctx.key))

    async def program():
        async with app.worker():
            ids = [
                await app.publish(name, {"number": 1, "ticket_id": 7}),
                await app.publish(name, {"number": 2}),
                await app.publish(name, {"number": 3}, key="k"),
                await app.client.stream(name).add({"number": "4", "ticket_id": "8"}),
            ]
            await until(lambda: nothing_left(app, name, "own"))
            await until(lambda: nothing_left(app, name, "strict"))
            return ids, await app.dead(name, "strict").list()

    ids, [letter] = run(program())
    assert sorted(seen, key=str) == sorted([(1, "7"), (2, f"id:{ids[1]}"), (3, "k"), ("4", "8")], key=str)
    assert sorted(strict, key=str) == sorted([(1, "7"), (3, "k"), ("4", "8")], key=str)
    assert letter.payload == {"number": 2} and letter.error.startswith("no key")


def test_a_hot_key_is_taken_in_runs_that_are_settled_together(app, name):
    """Row 249: 500 messages of one key, 50 at a time: far fewer calls than messages."""
    seen = []

    @app.handler(name, key="ticket_id", run=50)
    async def handle(ticket: Ticket) -> None:
        seen.append(ticket.number)

    async def program():
        await app.publish_many(name, tickets([1], 500))
        async with app.worker() as worker:
            await until(lambda: worker.counters[name, "handle"].done == 500)
            return worker.counters[name, "handle"].settlements

    settlements = run(program())
    assert seen == list(range(500)) and settlements <= 50


def test_a_batch_is_one_keys_messages_in_order(app, name):
    """With key=, batch= is how many of one key come as one list."""
    batches = []

    @app.handler(name, key="ticket_id", batch=4)
    async def handle(batch: list[Ticket], contexts: list[Context]) -> None:
        assert {ctx.key for ctx in contexts} == {str(batch[0].ticket_id)}
        batches.append((batch[0].ticket_id, [ticket.number for ticket in batch]))

    async def program():
        await app.publish_many(name, tickets([1, 2], 10))
        async with app.worker() as worker:
            await until(lambda: worker.counters[name, "handle"].done == 20)

    run(program())
    assert [numbers for key, numbers in batches if key == 1] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [numbers for key, numbers in batches if key == 2] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_a_failed_batch_is_run_one_by_one_so_that_only_the_guilty_message_is_skipped(app, name):
    batches = []

    @app.handler(name, group="g", key="ticket_id", batch=5, retries=Retries(1, first="10ms"), poison="skip")
    async def handle(batch: list[Ticket]) -> None:
        batches.append([ticket.number for ticket in batch])
        if 2 in batches[-1]:
            raise ValueError("no")

    async def program():
        await app.publish_many(name, [*tickets([1], 5), {"ticket_id": 1, "number": "five"}, *tickets([1], 1)])
        async with app.worker() as worker:
            await until(lambda: worker.counters[name, "g"].done == 5 and worker.counters[name, "g"].buried == 2)
            await until(lambda: nothing_left(app, name, "g"))

    run(program())
    assert batches[:5] == [[0, 1, 2, 3, 4], [0], [1], [2], [2]]
    assert [number for batch in batches[5:] for number in batch] == [3, 4, 0]


def test_two_handlers_of_one_stream_may_keep_order_by_different_keys(app, name):
    """Each group has lanes of its own."""
    by_customer, by_ticket = OrderWatch(), OrderWatch()

    @app.handler(name, key="customer")
    async def bill(message: dict) -> None:
        async with by_customer.run(message["customer"], len(by_customer.seen[message["customer"]])):
            pass

    @app.handler(name, key="ticket_id", concurrency=3)
    async def answer(message: dict) -> None:
        async with by_ticket.run(message["ticket_id"], message["number"], 0.001):
            pass

    async def program():
        async with app.worker():
            messages = [{**ticket, "customer": ticket["ticket_id"] % 2} for ticket in tickets(range(6), 10)]
            await app.publish_many(name, messages)
            await until(lambda: by_customer.count == by_ticket.count == 60)
            await until(lambda: nothing_left(app, name, "bill"))

    run(program())
    by_customer.assert_in_order([0, 1], 30)
    by_ticket.assert_in_order(range(6), 10)


def test_a_worker_that_stops_hands_its_keys_over_at_once_and_uncounted(url, name):
    """Rows 250 and 261: the lease is ten minutes, so nothing but giving back can bring them to the second worker."""
    first, second = App(url), App(url)
    begun, seen = [], []

    @first.handler(name, group="g", key="ticket_id", lease="10m", concurrency=3)
    async def hang(ticket: Ticket) -> None:
        begun.append(ticket)
        await asyncio.Event().wait()

    @second.handler(name, group="g", key="ticket_id", lease="10m")
    async def handle(ticket: Ticket, ctx: Context) -> None:
        seen.append((ticket.ticket_id, ticket.number, ctx.attempt))

    async def program():
        await first.publish_many(name, tickets(range(6), 3))
        async with first.worker(shutdown_timeout=0):
            await until(lambda: len(begun) == 3)
        async with second.worker() as worker:
            await until(lambda: worker.counters[name, "g"].done == 18)
            names = {one.name for one in await second.client.stream(name).group("g").consumers()}
            assert names <= {worker.name, "lanes", "master"}

    run(program())
    assert {row[2] for row in seen} == {1}
    for key in range(6):
        assert [number for one, number, _ in seen if one == key] == [0, 1, 2]

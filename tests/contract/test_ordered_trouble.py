"""Handlers with key= when something goes wrong: lost keys, lost answers, lost groups. Rows 228, 229, 234, 237, 242."""

import asyncio
import threading

import pytest

from headrace import App, ConfigError, Context, LeaseLost, OrderedConsumer, Refused, Retries
from headrace.client import lane_steps
from headrace.errors import ConnectionLost
from headrace.worker import housekeeping
from support.order_watch import OrderWatch, nothing_left, order_of, park, resume, ticket_of, tickets
from support.worker_programs import run, until

pytestmark = pytest.mark.any_socket


def test_effects_committed_with_the_fence_happen_exactly_once_and_in_order(url, name):
    """Row 229: three workers, keys that are taken from them again and again; the lists are exactly 0..n-1."""
    apps = [App(url) for _ in range(3)]

    def declare(app):
        @app.handler(name, group="g", key="ticket_id", lease="10m", retries=Retries(100, first="1ms", longest="5ms"))
        async def handle(message: dict, ctx: Context) -> None:
            await asyncio.sleep(0.001)
            await ctx.commit([("RPUSH", f"{{{name}}}:{ctx.key}", message["number"])])

    async def program():
        for app in apps:
            declare(app)
        await apps[0].publish_many(name, tickets(range(5), 30))
        workers = [app.worker() for app in apps]
        for worker in workers:
            await worker.__aenter__()
        while not await nothing_left(apps[0], name, "g"):
            for key in map(str, range(5)):
                await park(apps[0], name, "g", key)
                await resume(apps[0], name, "g", key)
            await asyncio.sleep(0.02)
        for worker in workers:
            await worker.__aexit__(None, None, None)
        client = apps[0].client
        results = [await client.command("LRANGE", f"{{{name}}}:{key}", 0, -1) for key in range(5)]
        for app in apps:
            await app.close()
        return results

    assert [list(map(int, numbers)) for numbers in run(program())] == [list(range(30))] * 5


def test_a_commit_under_an_old_fence_does_nothing(app, name):
    """Rows 228 and 229: the key is another's by then; what runs next has a higher fence."""
    lost, fences, go_on = [], [], asyncio.Event()
    done = f"{{{name}}}:done"

    @app.handler(name, key="ticket_id", lease="10m")
    async def handle(message: dict, ctx: Context) -> None:
        fences.append(ctx.fence)
        await go_on.wait()
        try:
            await ctx.commit([("RPUSH", done, message["number"])])
        except LeaseLost as error:
            lost.append(str(error))
            raise

    async def program():
        async with app.worker() as worker:
            counters = worker.counters[name, "handle"]
            await app.publish_many(name, tickets([1], 2))
            await until(lambda: fences)
            await park(app, name, "handle", "1")
            go_on.set()
            await until(lambda: counters.late == 1)
            assert await app.client.command("EXISTS", done) == 0
            await resume(app, name, "handle", "1")
            await until(lambda: counters.done == 2)
            return await app.client.command("LRANGE", done, 0, -1)

    assert run(program()) == [b"0", b"1"]
    assert "key '1' is no longer this worker's" in lost[0] and fences[0] < fences[1] == fences[2]


@pytest.mark.parametrize("word", [None, "\ud800", 1.5], ids=["no word", "half a letter", "a fraction"])
def test_a_commit_that_cannot_be_fails_its_own_message_and_no_other(app, name, word):
    """Row 229: it shares a call with those of other keys, which must not suffer."""
    done = f"{{{name}}}:done"

    @app.handler(name, group="g", key="ticket_id", retries=0, poison="skip")
    async def handle(message: dict, ctx: Context) -> None:
        await asyncio.sleep(0.01)
        effect = ("INCRBY", done, word) if message["ticket_id"] == 3 else ("INCRBY", done, 1)
        await ctx.commit([effect])

    async def program():
        async with app.worker() as worker:
            counters = worker.counters[name, "g"]
            await app.publish_many(name, tickets(range(10), 2))
            await until(lambda: counters.buried == 2 and counters.done == 18)
            await until(lambda: nothing_left(app, name, "g"))
            return await app.client.command("GET", done)

    assert run(program()) == b"18"


def test_a_key_that_is_lost_ends_its_handler_and_whatever_it_wanted_is_refused(app, name):
    """Row 228: its task is cancelled; the key is not given back, as it is not ours."""
    begun, ended, fences = [], [], []

    @app.handler(name, key="ticket_id", lease="2s")
    async def handle(message: dict, ctx: Context) -> None:
        fences.append(ctx.fence)
        begun.append(message["number"])
        if len(begun) == 1:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append(ctx.is_settled)
                raise

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, tickets([1], 2))
            await until(lambda: begun)
            assert await park(app, name, "handle", "1")
            await until(lambda: ended)
            assert (await ticket_of(app, name, "handle", "1")).state == "parked"
            await resume(app, name, "handle", "1")
            await until(lambda: worker.counters[name, "handle"].done == 2)
            assert worker.counters[name, "handle"].late == 1

    run(program())
    assert begun == [0, 0, 1] and ended == [False]
    assert fences[0] < fences[1] == fences[2]


def test_a_plain_function_that_outlives_its_key_is_refused(app, name):
    """A thread cannot be ended: what it did is settled by whoever has the key now."""
    begun, go_on = [], threading.Event()

    @app.handler(name, key="ticket_id", lease="2s", concurrency=2)
    def handle(message: dict) -> None:
        begun.append(message["number"])
        if len(begun) == 1:
            go_on.wait(60)

    async def program():
        async with app.worker() as worker:
            counters = worker.counters[name, "handle"]
            await app.publish_many(name, tickets([1], 2))
            await until(lambda: begun)
            await park(app, name, "handle", "1")
            await until(lambda: counters.late == 1)
            await resume(app, name, "handle", "1")
            await until(lambda: counters.done == 2)
            go_on.set()

    run(program())
    assert begun == [0, 0, 1]


def test_a_long_handler_keeps_its_key(url, name):
    """Row 260: longer than its lease, with another worker beside it."""
    watch = OrderWatch()

    def one_app():
        app = App(url)

        @app.handler(name, group="g", key="ticket_id", lease="1s")
        async def handle(message: dict) -> None:
            async with watch.run(message["ticket_id"], message["number"], 2.5 if message["number"] == 0 else 0.0):
                pass

        return app

    async def program():
        first, second = one_app(), one_app()
        async with first.worker() as worker, second.worker() as other:
            await first.publish_many(name, tickets([1], 3))
            await until(lambda: watch.count == 3)
            await until(lambda: nothing_left(first, name, "g"))
            assert [one.counters[name, "g"].late for one in (worker, other)] == [0, 0]
        await first.close()

    run(program())
    watch.assert_in_order([1], 3)


def test_all_that_is_gone_is_made_again(app, name):
    """Rows 216 and 234, as after a FLUSHALL: the group, the settings and the session."""
    seen = []

    @app.handler(name, key="ticket_id")
    async def handle(message: dict) -> None:
        seen.append(message["number"])

    async def program():
        async with app.worker():
            await app.publish_many(name, tickets([1], 2))
            await until(lambda: len(seen) == 2)
            keys = (await order_of(app, name, "handle")).keys
            for key in keys:
                await app.client.command("DEL", key)
            await app.publish_many(name, tickets([1], 3))
            await until(lambda: len(seen) == 5)
            await until(lambda: nothing_left(app, name, "handle"))

    run(program())
    assert seen == [0, 1, 0, 1, 2]


def test_maps_that_are_deleted_under_a_worker_are_made_again(app, name):
    """Row 234: tickets and consumers are gone; nothing is lost, nothing overtakes."""
    watch = OrderWatch()

    @app.handler(name, key="ticket_id", lease="500ms", retries=Retries(9, first="1ms"))
    async def handle(message: dict) -> None:
        if message["number"] not in watch.seen[message["ticket_id"]]:
            async with watch.run(message["ticket_id"], message["number"], 0.005):
                pass

    async def program():
        async with app.worker():
            await app.publish_many(name, tickets(range(5), 20))
            await until(lambda: watch.count >= 20)
            order = await order_of(app, name, "handle")
            await app.client.command("DEL", order.tickets)
            await app.client.command("DEL", order.consumers)
            await app.client.run(lane_steps.rebuild(app.client._facts, order))
            await until(lambda: nothing_left(app, name, "handle"))

    run(program())
    watch.assert_in_order(range(5), 20)


def test_a_session_that_was_ended_begins_again(app, name):
    """Row 235: somebody registered under our name, or swept it."""
    seen = []

    @app.handler(name, key="ticket_id")
    async def handle(message: dict) -> None:
        seen.append(message["number"])

    async def program():
        async with app.worker() as worker:
            order = await order_of(app, name, "handle")
            await app.client.run(lane_steps.register(app.client._facts, order, worker.name))
            await app.publish_many(name, tickets([1], 3))
            await until(lambda: len(seen) == 3)

    run(program())
    assert seen == [0, 1, 2]


def test_keys_whose_answer_was_lost_do_not_wait_for_the_end_of_their_lease(app, name, monkeypatch):
    """The server has given keys to a worker that never heard of it. The lease is ten minutes."""
    watch, losses = OrderWatch(), []

    @app.handler(name, key="ticket_id", lease="10m", concurrency=4)
    async def handle(message: dict) -> None:
        async with watch.run(message["ticket_id"], message["number"], 0.001):
            pass

    async def program():
        async with app.worker() as worker:
            client = worker.consumers[0].client
            run_flow = client.run

            async def losing(flow):
                result = await run_flow(flow)
                names = [type(one).__name__ for one in result] if isinstance(result, list) else []
                if "Taken" in names and any(one.grants for one in result if isinstance(one, lane_steps.Taken)):
                    losses.append(names)
                    if len(losses) % 3 == 1:
                        raise ConnectionLost("the answer was lost")
                return result

            monkeypatch.setattr(client, "run", losing)
            await app.publish_many(name, tickets(range(10), 10))
            await until(lambda: nothing_left(app, name, "handle"))

    run(program())
    assert len(losses) > 3 and watch.overlaps == 0
    for numbers in watch.seen.values():
        first_runs = [number for place, number in enumerate(numbers) if number not in numbers[:place]]
        assert first_runs == list(range(10))


def test_a_worker_without_a_key_refuses_a_group_that_keeps_order(url, name):
    first, second = App(url), App(url)

    @first.handler(name, group="g", key="ticket_id")
    async def handle(message: dict) -> None: ...

    @second.handler(name, group="g")
    async def break_order(message: dict) -> None: ...

    async def program():
        async with first.worker():
            pass
        with pytest.raises(ConfigError, match="keeps order by 'ticket_id', which break_order would break"):
            async with second.worker():
                pass

    run(program())


def test_a_worker_without_a_key_tells_that_order_was_turned_on_beside_it(url, name, monkeypatch, caplog):
    monkeypatch.setattr(housekeeping, "EVERY_S", 0.05)
    monkeypatch.setattr(housekeeping, "TRIM_EVERY_S", 0.05)
    first, second = App(url), App(url)

    @first.handler(name, group="g")
    async def break_order(message: dict) -> None: ...

    @second.handler(name, group="g", key="ticket_id")
    async def handle(message: dict) -> None: ...

    async def program():
        async with first.worker():
            assert "keeps order" not in caplog.text
            async with second.worker():
                await until(lambda: "keeps order by 'ticket_id', which break_order would break" in caplog.text)

    run(program())


def test_dead_letters_of_a_group_that_keeps_order_are_published_anew_or_not_at_all(app, name):
    """A replay to the group alone would come out of turn."""
    seen, is_well = [], []

    @app.handler(name, key="ticket_id", retries=0, poison="skip")
    async def handle(message: dict) -> None:
        if not is_well:
            raise ValueError("no")
        seen.append(message["number"])

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, tickets([1], 2))
            await until(lambda: worker.counters[name, "handle"].buried == 2)
            is_well.append(True)
            with pytest.raises(Refused, match=r"keeps order per key.*--to"):
                await app.dead(name).replay()
            assert await app.dead(name).replay(to=name) == 2
            await until(lambda: seen == [0, 1])

    run(program())


def test_order_is_not_turned_on_while_dead_letters_are_to_be_read_again(url, name):
    """They lie beside the stream, and a group that keeps order does not look there."""
    plain, ordered = App(url), App(url)
    seen, is_well = [], []

    @plain.handler(name, group="g", retries=0)
    async def handle_plain(message: dict) -> None:
        if not is_well:
            raise ValueError("no")
        seen.append(message["number"])

    @ordered.handler(name, group="g", key="ticket_id")
    async def handle(message: dict) -> None:
        seen.append(message["number"])

    async def program():
        async with plain.worker() as worker:
            await plain.publish_many(name, tickets([1], 2))
            await until(lambda: worker.counters[name, "g"].buried == 2)
        assert await plain.dead(name).replay() == 2
        with pytest.raises(Refused, match=r"2 dead letters that were sent again and not done yet.*without order"):
            async with ordered.worker():
                pass
        with pytest.raises(Refused, match="2 dead letters"):
            async with OrderedConsumer(handle, url=url, stream=name, group="g"):
                pass
        is_well.append(True)
        async with plain.worker() as worker:
            await until(lambda: worker.counters[name, "g"].done == 2)
        async with ordered.worker():
            await ordered.publish(name, {"ticket_id": 1, "number": 2})
            await until(lambda: sorted(seen) == [0, 1, 2])  # Without order the first two come as they like.

    run(program())

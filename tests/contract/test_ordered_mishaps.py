"""What goes wrong around delegated consumers and coordinators: maps that somebody writes into, handlers that fail."""

import asyncio
from contextlib import suppress

import pytest

from headrace import OrderedConsumer, Retries
from headrace.client import lane_steps
from headrace.ordered import running
from support.ordered_programs import GROUP, scene
from support.worker_programs import run, until

pytestmark = pytest.mark.any_socket

QUICK = Retries(first="10ms", longest="20ms")


@pytest.fixture(params=["master", "broker"])
def make(request, name):
    """make(it, handler, url): a consumer of the scene, of either kind."""

    def made(it, handler, url, **more):
        way = {"master": it.master.url} if request.param == "master" else {"url": url}
        return OrderedConsumer(handler, stream=name, **way, **{"retries": QUICK, **more})

    return made


@pytest.mark.parametrize("damage", ["", "nonsense", "17 0 5 http://127.0.0.1:1/"])
def test_a_consumer_whose_place_in_the_map_was_damaged_registers_again(make, url, name, damage):
    async def program():
        done = []

        async def handle(message):
            done.append(message.key)

        async with scene(url, name) as it, make(it, handle, url, name="c1") as consumer:
            await it.add("a")
            await until(lambda: consumer.runner.done == 1)
            await it.client.command("HSET", f"{{{name}}}:consumers", "c1", damage)
            await it.add("b")
            await until(lambda: done == ["a", "b"])

    run(program())


class Untold(Exception):
    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), Untold(), ValueError("half a character \ud800"), SystemExit(3)], ids=repr
)
def test_whatever_a_handler_raises_is_a_failed_attempt(make, url, name, error):
    async def program():
        attempts = []

        async def handle(message):
            attempts.append(message.attempt)
            if len(attempts) == 1:
                raise error

        async with scene(url, name) as it, make(it, handle, url, name="c1") as consumer:
            await it.add("a")
            await until(lambda: consumer.runner.done == 1)
            assert consumer.runner.failed == 1
        assert attempts == [1, 2]

    run(program())


def test_a_handler_that_will_not_end_does_not_keep_its_consumer_from_ending(make, url, name, monkeypatch):
    monkeypatch.setattr(running, "CANCELLED_S", 0.05)

    async def program():
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def handle(message):
            begun.set()
            while not may_end.is_set():
                with suppress(asyncio.CancelledError):
                    await may_end.wait()

        async with scene(url, name) as it:
            async with make(it, handle, url, name="c1", shutdown_timeout="10ms"):
                await it.add("a")
                await begun.wait()
            assert await it.owners() == {"lanes": 1}  # Given back.
            may_end.set()

    run(program())


@pytest.mark.parametrize("health", ["http://[", "http://h:99999/", "http://a b/"])
def test_a_health_url_that_is_none_ends_no_coordinator(url, name, health):
    """Whoever registers at the broker itself may name anything."""

    async def program():
        async with scene(url, name, lease_ms=300) as it:
            register = lane_steps.register(it.client._facts, it.master.order, "bad", 1, health)
            session = (await it.client.run(register)).number
            await until(lambda: it.master.roster.failures.get(("bad", session), 0) > 1)
            await it.register("good", 1)
            await it.add("a")
            assert [message["ticket_id"] for message in await it.messages("good")] == ["a"]
            assert not any(loop.done() for loop in it.master.loops)

    run(program())


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (b'{"ticket_id": 7.0}', b"7"),
        (b'{"ticket_id": 1e2}', b"100"),
        (b'{"ticket_id": "a", "more": "\xff"}', b"a"),
        (b'{"ticket_id": "\\ud800"}', None),
        (b'{"ticket_id": NaN}', None),
        (b"{" + b'"a":{' * 5000, None),
    ],
    ids=["whole", "exponent", "not UTF-8", "half a character", "not a number", "deep"],
)
def test_coordinators_find_the_same_key_as_the_broker(url, name, data, key):
    async def program():
        async with scene(url, name) as it:
            await it.register("c1")
            added = await it.client.command("XADD", name, "*", "data", data)
            [message] = await it.messages("c1")
            return message["ticket_id"], added

    found, added = run(program())
    assert found == (b"id:" + added if key is None else key).decode()


def test_a_coordinator_goes_on_when_the_last_fence_is_nonsense(url, name):
    async def program():
        async with scene(url, name) as it:
            await it.register("c1", 2)
            await it.add("a")
            await it.messages("c1")
            await it.client.command("HSET", f"hr:{{{name}}}:{GROUP}:order", "fence", "nonsense")
            status, _ = await it.call("GET", "/api/consumers/c1/messages")
            assert status == 200
            await it.add("b")
            assert {message["ticket_id"] for message in await it.messages("c1", 2)} == {"a", "b"}

    run(program())


def test_registering_again_waits_until_the_server_lets_it(url, name, caplog):
    """A refusal that passes must not end the consumer: here something else stands in the place of a key it needs."""

    async def program():
        done = []
        beside = f"hr:{{{name}}}:{GROUP}:"

        async def handle(message):
            done.append(message.key)

        async with scene(url, name) as it, OrderedConsumer(handle, url=url, stream=name, name="c1") as consumer:
            await it.add("a")
            await until(lambda: consumer.runner.done == 1)
            await it.client.command("SET", beside + "ready", "something else")
            await it.client.command("HDEL", beside + "order", "keyfields")
            await until(lambda: any(is_refused(record) for record in caplog.records))
            await it.client.command("DEL", beside + "ready")
            await it.add("b")
            await until(lambda: done == ["a", "b"])

    run(program())


def is_refused(record):
    return getattr(record, "event", "") == "call_refused" and record.fields.get("consumer") == "c1"


def test_a_key_that_comes_again_waits_until_its_handler_of_before_has_ended(make, url, name):
    """Somebody parks the key and resumes it while its handler runs: the same consumer may be given it once more."""

    async def program():
        running, runs = set(), []
        begun = asyncio.Event()

        async def handle(message):
            assert message.key not in running, "two of one key at once"
            running.add(message.key)
            runs.append(message.fence)
            try:
                begun.set()
                if len(runs) == 1:
                    await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.3)  # It tidies up, and the key is here again meanwhile.
                running.discard(message.key)

        async with scene(url, name, lease_ms=3000) as it, make(it, handle, url, name="c1", capacity=2) as consumer:
            await it.add("a")
            await begun.wait()
            facts, order = it.client._facts, it.master.order
            assert await it.client.run(lane_steps.park(facts, order, "a"))
            assert await it.client.run(lane_steps.resume(facts, order, "a"))
            await until(lambda: consumer.runner.done == 1)
            assert consumer.runner.failed == 0
        assert len(runs) == 2 and runs[0] < runs[1]

    run(program())

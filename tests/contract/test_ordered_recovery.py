"""The coordinator on every server: consumers that fall silent, are slow or leave, and coordinators that end.

Rows 228, 231, 234, 239-245, 250, 305, 307.
"""

import asyncio
import contextlib
import socket
import time

import pytest

from headrace.client import lane_steps
from headrace.client.lane_views import info_key
from headrace.ordered import keeping
from headrace.ordered.consumer_health import health_app
from headrace.ordered.held_keys import server_time_ms
from headrace.ordered.serving import Serving
from support.ordered_programs import GROUP, SHORT_MS, scene
from support.worker_programs import run, until

pytestmark = [pytest.mark.any_socket, pytest.mark.other_process]


@contextlib.asynccontextmanager
async def health_server():
    """What a consumer's health URL leads to."""
    serving = Serving(health_app(lambda: {"status": "ok"}), "127.0.0.1", 0, "port")
    serving.start()
    try:
        yield f"{serving.url}/api/health"
    finally:
        await serving.stop()


@pytest.fixture
def unused_url():
    """Nobody listens there, and nobody else is given the port meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/api/health"


def test_the_keys_of_a_consumer_that_fell_silent_go_to_another_with_all_their_messages(url, name, unused_url):
    """Rows 242 and 307, the holder is gone: the first message comes first, and the rest behind it."""

    async def program():
        async with scene(url, name, lease_ms=SHORT_MS) as it:
            await it.register("gone", health=unused_url)
            ids = [await it.add("7", number) for number in range(3)]
            await until(lambda: it.is_held("7"))
            await it.register("there")
            for entry_id in ids:
                [message] = await it.messages("there")
                assert message["message_id"] == entry_id
                assert (await it.acknowledge("there", message))[0] == 200

    run(program())


def test_a_late_acknowledgement_of_a_consumer_that_was_stopped_is_refused(url, name):
    """Row 228: its key is with another by then, under a larger fence."""

    async def program():
        async with scene(url, name, lease_ms=SHORT_MS) as it:
            await it.register("stopped")
            await it.add("7")
            [message] = await it.messages("stopped")
            await it.register("other")
            [again] = await it.messages("other")
            assert again["fence"] > message["fence"]
            for more in ({}, {"fence": message["fence"]}):
                assert (await it.acknowledge("stopped", message, **more))[0] == 409
            assert (await it.acknowledge("other", again))[0] == 200

    run(program())


def test_a_message_read_by_hand_goes_to_the_holder_of_its_key_and_in_its_place(url, name):
    """Rows 244, 245 and 307, the holder is alive: it stays with it, and older messages go before younger ones."""

    async def program():
        async with scene(url, name) as it:
            await it.register("c1")
            ids = [await it.add("7", "0")]
            [message] = await it.messages("c1")
            ids += [await it.add("7", str(number)) for number in (1, 2)]
            await it.client.command("XREADGROUP", "GROUP", GROUP, "master", "COUNT", 10, "STREAMS", name, ">")
            ids.append(await it.add("7", "3"))
            # The older of the strays is touched last: who goes by idle time would take the younger one first.
            await it.client.command("XCLAIM", name, GROUP, "master", 0, ids[1])
            for entry_id in ids:
                [message] = await it.messages("c1")
                assert message["message_id"] == entry_id
                await it.acknowledge("c1", message)

    run(program())


def test_a_message_read_by_hand_whose_key_nobody_holds_goes_to_whoever_is_free(url, name):
    """Rows 244 and 307, there is no ticket."""

    async def program():
        async with scene(url, name) as it:
            entry_id = await it.add("7")
            await it.client.command("XREADGROUP", "GROUP", GROUP, "master", "COUNT", 10, "STREAMS", name, ">")
            await it.register("c1")
            [message] = await it.messages("c1")
            assert message["message_id"] == entry_id

    run(program())


def test_a_slow_consumer_keeps_its_key_as_long_as_its_health_answers(url, name):
    """Row 305: over several leases, without a call of its own; until it may hold no longer."""

    async def program():
        async with health_server() as health, scene(url, name, lease_ms=SHORT_MS, max_hold_ms=3 * SHORT_MS) as it:
            await it.register("slow", health=health)
            await it.add("7")
            await until(lambda: it.is_held("7"))
            before = await it.ticket("7")
            await until(lambda: is_extended(it, before))
            await until(lambda: is_given_anew(it, before))  # The longest hold has passed: health alone is not enough.

    async def is_extended(it, before):
        now = await it.ticket("7")
        assert now["fence"] == before["fence"]
        return now["until_ms"] > before["until_ms"] + SHORT_MS

    async def is_given_anew(it, before):
        now = await it.ticket("7")
        return now["state"] == "held" and now["fence"] > before["fence"] and now["attempts"] == 2

    run(program())


def test_a_health_url_that_fails_alone_moves_no_key(url, name, unused_url, monkeypatch):
    """Row 243: the lease is not over. With early_revoke it moves at once."""
    monkeypatch.setattr(keeping, "LONGEST_ASK_S", 0.05)

    async def program():
        async with scene(url, name) as it:
            session = await it.register("c1", health=unused_url)
            await it.add("7")
            await until(lambda: it.is_held("7"))
            before = await it.ticket("7")
            await it.register("c2")
            await until(lambda: it.master.roster.failures.get(("c1", session), 0) > 3)
            after = await it.ticket("7")
            assert (after["consumer_name"], after["fence"]) == ("c1", before["fence"])
        async with scene(url, name, early_revoke=True) as it:
            await it.register("c2")
            [message] = await it.messages("c2")
            assert message["ticket_id"] == "7"

    run(program())


def test_coordinators_may_end_and_others_go_on_with_what_was_undone(url, name):
    """Rows 231, 234 and 240: nothing is in their memory; all messages are done, each key in order."""

    async def program():
        expected = {str(key): [] for key in range(7)}
        async with scene(url, name) as it:
            await it.register("c1", capacity=5)
            for number in range(60):
                await it.add(str(number % 7), number)
                expected[str(number % 7)].append(str(number))
            await it.messages("c1", 5)
        done = {key: [] for key in expected}
        for part in range(3):
            async with scene(url, name) as it:
                while sum(map(len, done.values())) < 20 * (part + 1):
                    for message in await it.messages("c1"):
                        assert (await it.acknowledge("c1", message))[0] == 200
                        done[message["ticket_id"]].append(message["fields"]["n"])
                if part == 1:  # The maps are lost, and made again from the stream and what is pending.
                    await it.client.command("DEL", it.master.order.tickets)
                    await it.client.command("DEL", it.master.order.consumers)
                    await it.client.run(lane_steps.rebuild(it.client._facts, it.master.order))
                    await it.register("c1", capacity=5)
        assert done == expected

    run(program())


def test_free_consumers_share_the_keys_evenly(url, name):
    """Row 241: none of two equal ones gets more than 60 of 100."""

    async def program():
        counts = {"c1": 0, "c2": 0}

        async def work(it, consumer):
            while sum(counts.values()) < 100:
                for message in await it.messages(consumer, 0):
                    if (await it.acknowledge(consumer, message))[0] == 200:
                        counts[consumer] += 1

        async with scene(url, name) as it:
            for consumer in counts:
                await it.register(consumer, capacity=2)
            for number in range(100):
                await it.add(str(number))
            await asyncio.gather(*[work(it, consumer) for consumer in counts])
            assert 40 <= counts["c1"] <= 60, counts

    run(program())


def test_a_consumer_that_leaves_gives_its_keys_back_at_once(url, name):
    """Row 250: and leaving twice is harmless."""

    async def program():
        async with scene(url, name) as it:
            session = await it.register("c1")
            await it.add("7")
            await it.messages("c1")
            await it.register("c2")
            assert (await it.ok("POST", "/api/consumers/leave", {"consumer": "c1", "session": session}))[
                "given_back"
            ] == 1
            [message] = await it.messages("c2")
            assert message["attempt"] == 1
            assert (await it.ok("POST", "/api/consumers/leave", {"consumer": "c1"}))["given_back"] == 0

    run(program())


def test_asking_for_messages_does_not_count_as_a_delivery(url, name):
    """Row 239: XPENDING shows real attempts, however often one looks; XREADGROUP 0 shows the same message."""

    async def program():
        async with scene(url, name) as it:
            await it.register("c1")
            entry_id = await it.add("7")
            for _ in range(5):
                await it.messages("c1")
            [pending] = await it.client.stream(name).group(GROUP).pending()
            assert (pending.id, pending.consumer, pending.deliveries) == (entry_id, "c1", 1)
            history = await it.client.command("XREADGROUP", "GROUP", GROUP, "c1", "STREAMS", name, "0")
            assert entry_id.encode() in repr(history).encode()

    run(program())


def test_a_question_that_waits_is_answered_when_something_is_given(url, name):
    async def program():
        async with scene(url, name) as it:
            await it.register("c1")
            asked = asyncio.ensure_future(it.ok("GET", "/api/consumers/c1/messages?wait=30"))
            await until(lambda: it.master.delegator.arrivals)
            start_s = time.monotonic()
            entry_id = await it.add("7")
            answer = await asked
            assert [message["message_id"] for message in answer["messages"]] == [entry_id]
            assert time.monotonic() - start_s < 30  # It did not wait for its end.
            nothing = await it.ok("GET", f"/api/consumers/c1/messages?wait=0.1&after={answer['after']}")
            assert nothing["messages"] == [] and nothing["held"] == answer["held"]

    run(program())


def test_a_key_is_held_for_a_lease_from_the_last_sign_of_life_and_no_longer(url, name):
    """Row 242: whoever died right after it would else keep its keys for nearly two."""

    async def program():
        async with scene(url, name) as it:
            session = await it.register("c1")
            await it.add("7", 1)
            [message] = await it.messages("c1")
            master = it.master
            held = [("7", message["fence"])]
            await it.client.run(lane_steps.extend(it.client._facts, master.order, "c1", session, 1000, held))
            master.roster.signs["c1", session] -= 20  # Of the lease, 10 seconds are left.
            await master.keeper.extend_all()
            ticket = (await it.client.run(info_key(it.client._facts, master.order, "7"))).ticket
            left_ms = ticket.until_ms - await it.client.run(server_time_ms(master.order))
            assert 1000 < left_ms <= 10_000

    run(program())

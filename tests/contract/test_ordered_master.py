"""The coordinator on every server: registering, delegating, acknowledging. Rows 226-238, 240-248, 305, 307.

Each test is one asyncio program with coordinators inside and consumers made of plain HTTP calls.
"""

import asyncio
import contextlib
import time

import pytest

from headrace.client import lane_steps
from headrace.client.lane_views import info_key
from headrace.ordered import keeping
from headrace.ordered.consumer_health import health_app
from headrace.ordered.held_keys import server_time_ms
from headrace.ordered.serving import Serving
from support.ordered_programs import GROUP, scene
from support.worker_programs import run, until

pytestmark = [pytest.mark.any_socket, pytest.mark.other_process]

SHORT_MS = 1500  # A lease that a test can wait for, and that a busy machine still keeps.


@contextlib.asynccontextmanager
async def health_server():
    """What a consumer's health URL leads to."""
    serving = Serving(health_app(lambda: {"status": "ok"}), "127.0.0.1", 0, "port")
    serving.start()
    try:
        yield f"{serving.url}/api/health"
    finally:
        await serving.stop()


def unused_url() -> str:
    """Nobody listens there."""
    serving = Serving(health_app(dict), "127.0.0.1", 0, "port")
    serving.socket.close()
    return f"{serving.url}/api/health"


# Delegating and acknowledging


def test_a_message_is_delegated_acknowledged_and_followed_by_the_next_of_its_key(url, name):
    """Rows 227, 230, 236: one at a time, in stream order; the group's pending list names the real holder."""

    async def program():
        async with scene(url, name) as it:
            await it.register("c1", capacity=10)
            ids = [await it.add("7", number) for number in range(3)]
            for number, entry_id in enumerate(ids):
                [message] = await it.messages("c1")
                assert (message["message_id"], message["fields"]["n"]) == (entry_id, str(number))
                owners = await it.owners()
                assert owners["c1"] == 1 and owners.keys() <= {"c1", "lanes", "master"}
                status, answer = await it.acknowledge("c1", message)
                assert (status, answer["acknowledged"], answer["already"]) == (200, True, False)
            assert await it.owners() == {}
            assert await it.client.command("HGETALL", it.master.order.tickets) in ([], {})

    run(program())


def test_different_keys_are_held_at_the_same_time_up_to_the_capacity(url, name):
    """Row 305: and no more, however much there is."""

    async def program():
        async with scene(url, name) as it:
            for number in range(10):
                await it.add(str(number))
            await it.register("c1", capacity=4)
            held = await it.messages("c1", 4)
            assert [message["ticket_id"] for message in held] == ["0", "1", "2", "3"]
            await it.acknowledge("c1", held[0])
            held = await it.messages("c1", 4)
            assert [message["ticket_id"] for message in held] == ["1", "2", "3", "4"]
            assert (await it.owners())["c1"] == 4

    run(program())


def test_two_coordinators_never_give_more_than_the_capacity_together(url, name):
    """Row 246: they use the session of the map of consumers, and take turns."""

    async def program():
        async with scene(url, name, masters=2) as it:
            for number in range(60):
                await it.add(str(number))
            await it.register("c1", capacity=3)
            done = set()
            while len(done) < 60:
                held = await it.messages("c1", of=len(done) % 2)
                assert len(held) <= 3
                for message in held:
                    assert message["ticket_id"] not in done
                    status, _ = await it.acknowledge("c1", message, of=len(done) % 2)
                    assert status == 200
                    done.add(message["ticket_id"])

    run(program())


def test_an_acknowledgement_may_be_repeated(url, name):
    """Row 236: 200 again, and it says so. The next message of the key is not touched by it."""

    async def program():
        async with scene(url, name) as it:
            await it.register("c1")
            for number in range(2):
                await it.add("7", number)
            [message] = await it.messages("c1")
            assert (await it.acknowledge("c1", message))[0] == 200
            for _ in range(2):
                status, answer = await it.acknowledge("c1", message, fence=message["fence"])
                assert (status, answer["already"]) == (200, True)
            [following] = await it.messages("c1")
            assert following["fields"]["n"] == "1"

    run(program())


def test_whoever_does_not_hold_the_key_is_refused_and_nothing_changes(url, name):
    """Rows 228 and 236: another consumer, another fence, another session, a message that is not the first."""

    async def program():
        async with scene(url, name) as it:
            await it.register("c1")
            await it.register("c2")
            first, second = [await it.add("7", number) for number in range(2)]
            await until(lambda: it.ticket("7"))
            await until(lambda: held_by(it, "7"))
            holder = (await it.ticket("7"))["consumer_name"]
            other = "c2" if holder == "c1" else "c1"
            [message] = await it.messages(holder)
            before = await it.ticket("7")
            tries = [
                (other, message, {}),
                (other, message, {"fence": message["fence"]}),
                (holder, message, {"fence": message["fence"] - 1}),
                (holder, message, {"session": 12345}),
                (holder, {**message, "message_id": second}, {}),
                ("nobody", message, {}),
            ]
            for consumer, what, more in tries:
                status, answer = await it.acknowledge(consumer, what, **more)
                assert status == 409 and answer["what_to_do"], (consumer, more, answer)
            after = await it.ticket("7")
            assert (after["fence"], after["message_ids"]) == (before["fence"], [first, second])

    run(program())


async def held_by(it, key):
    found = await it.ticket(key)
    return found is not None and found["state"] == "held"


def test_a_message_that_nobody_was_given_is_not_found(url, name):
    async def program():
        async with scene(url, name) as it:
            await it.register("c1")
            status, answer = await it.acknowledge("c1", {"ticket_id": "7", "message_id": "99999999999999-0"})
            assert status == 404 and "was not given" in answer["error"]

    run(program())


def test_registering_again_starts_a_new_session_and_fences_the_one_before(url, name):
    """Row 235: the key is given to the new session, under another fence; the old session is refused."""

    async def program():
        async with scene(url, name) as it:
            old = await it.register("c1")
            await it.add("7")
            [message] = await it.messages("c1")
            new = await it.register("c1")
            assert new > old
            status, _ = await it.acknowledge("c1", message, session=old)
            assert status == 409
            status, _ = await it.acknowledge("c1", message, fence=message["fence"])
            assert status == 409
            [again] = await it.messages("c1")
            assert again["message_id"] == message["message_id"] and again["fence"] > message["fence"]
            status, answer = await it.acknowledge("c1", again, fence=again["fence"], session=new)
            assert (status, answer["already"]) == (200, False)

    run(program())


def test_xack_first_and_then_the_acknowledgement_frees_the_key_at_once(url, name):
    """Row 237: the order of the article."""

    async def program():
        async with scene(url, name) as it:
            await it.register("c1")
            for number in range(2):
                await it.add("7", number)
            [message] = await it.messages("c1")
            assert await it.client.command("XACK", name, GROUP, message["message_id"]) == 1
            assert (await it.acknowledge("c1", message))[0] == 200
            [following] = await it.messages("c1")
            assert following["fields"]["n"] == "1"

    run(program())


def test_xack_alone_is_enough_when_the_acknowledgement_is_lost(url, name):
    """Row 237: the next message of the key comes all the same, with the next extension."""

    async def program():
        async with scene(url, name, lease_ms=SHORT_MS) as it:
            await it.register("c1")
            for number in range(2):
                await it.add("7", number)
            [message] = await it.messages("c1")
            await it.client.command("XACK", name, GROUP, message["message_id"])
            await until(lambda: holds_second(it))

    async def holds_second(it):
        held = await it.messages("c1", 0)
        return [message["fields"]["n"] for message in held] == ["1"]

    run(program())


def test_a_message_that_was_deleted_while_it_was_held_does_not_stop_its_key(url, name):
    """It holds nothing to handle: whoever asks for it gets the next one, within a lease."""

    async def program():
        async with scene(url, name, lease_ms=SHORT_MS) as it:
            await it.register("c1")
            for number in range(2):
                await it.add("7", number)
            [message] = await it.messages("c1")
            await it.client.command("XDEL", name, message["message_id"])
            [message] = await it.messages("c1")
            assert message["fields"]["n"] == "1"

    run(program())


def test_a_deleted_map_of_tickets_does_not_leave_consumers_full_for_ever(url, name):
    async def program():
        async with scene(url, name) as it:
            await it.register("c1")
            for number in range(2):
                await it.add("7", number)
            [before] = await it.messages("c1")
            await it.client.command("DEL", f"{{{name}}}:tickets")
            [again] = await it.messages("c1")
            assert (again["message_id"], again["fence"] > before["fence"]) == (before["message_id"], True)

    run(program())


def test_a_failed_message_comes_again_after_its_delay_and_then_its_key_is_parked(url, name):
    """Row 247: the key stands still with its error, later messages wait, other keys flow; resumed it goes on."""

    async def program():
        async with scene(url, name, max_attempts=2) as it:
            await it.register("c1")
            await it.add("7", "poison")
            await it.add("7", "later")
            for attempt in (1, 2):
                [message] = await it.messages("c1")
                assert (message["attempt"], message["fields"]["n"]) == (attempt, "poison")
                body = {"consumer": "c1", "ticket_id": "7", "message_id": message["message_id"], "error": "declined"}
                await it.ok("POST", "/api/messages/fail", body)
            [parked] = (await it.ok("GET", "/api/parked"))["tickets"]
            assert (parked["ticket_id"], parked["state"], parked["error"]) == ("7", "parked", "declined")
            await it.add("8", "other")
            [message] = await it.messages("c1")
            assert message["ticket_id"] == "8"
            await it.acknowledge("c1", message)
            assert await it.client.run(lane_steps.resume(it.client._facts, it.master.order, "7"))
            [message] = await it.messages("c1")
            assert (message["fields"]["n"], message["attempt"]) == ("poison", 1)

    run(program())


def test_a_poisoned_message_may_be_skipped_to_the_dead_letters(url, name):
    """Row 247: by setting, or at once when the consumer says so."""

    async def program():
        async with scene(url, name, max_attempts=1, poison="skip") as it:
            await it.register("c1")
            for value in ("poison", "hopeless", "good"):
                await it.add("7", value)
            for value, more in (("poison", {}), ("hopeless", {"bury": True})):
                [message] = await it.messages("c1")
                assert message["fields"]["n"] == value
                body = {"consumer": "c1", "ticket_id": "7", "message_id": message["message_id"], "error": "no", **more}
                await it.ok("POST", "/api/messages/fail", body)
            [message] = await it.messages("c1")
            assert message["fields"]["n"] == "good"
            assert await it.client.command("XLEN", it.master.order.dead) == 2

    run(program())


def test_messages_without_a_key_have_a_lane_each(url, name):
    """Row 248: acknowledged without a ticket_id, as there is none to send."""

    async def program():
        async with scene(url, name) as it:
            await it.register("c1", capacity=5)
            for number in range(2):
                await it.client.command("XADD", name, "*", "n", str(number))
            held = await it.messages("c1", 2)
            assert [message["ticket_id"] for message in held] == [f"id:{message['message_id']}" for message in held]
            for message in held:
                body = {"consumer": "c1", "message_id": message["message_id"]}
                assert (await it.ok("POST", "/api/messages/acknowledge", body))["already"] is False

    run(program())


def test_the_key_may_be_a_number_or_text_in_the_json_of_a_message(url, name):
    """As App.publish and headrace publish write messages."""

    async def program():
        async with scene(url, name) as it:
            await it.register("c1", capacity=5)
            stream = it.client.stream(name)
            await stream.publish({"ticket_id": 7, "n": "0"})
            await stream.publish({"ticket_id": "käse/1", "n": "1"})
            held = await it.messages("c1", 2)
            assert [message["ticket_id"] for message in held] == ["7", "käse/1"]
            assert (await it.ok("GET", "/api/tickets/k%C3%A4se/1"))["consumer_name"] == "c1"
            body = {"consumer": "c1", "ticket_id": 7, "message_id": held[0]["message_id"]}
            assert (await it.ok("POST", "/api/messages/acknowledge", body))["acknowledged"]

    run(program())


# Recovery


def test_the_keys_of_a_consumer_that_fell_silent_go_to_another_with_all_their_messages(url, name):
    """Rows 242 and 307, the holder is gone: the first message comes first, and the rest behind it."""

    async def program():
        async with scene(url, name, lease_ms=SHORT_MS) as it:
            await it.register("gone", health=unused_url())
            ids = [await it.add("7", number) for number in range(3)]
            await until(lambda: held_by(it, "7"))
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
            await until(lambda: held_by(it, "7"))
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


def test_a_health_url_that_fails_alone_moves_no_key(url, name, monkeypatch):
    """Row 243: the lease is not over. With early_revoke it moves at once."""
    monkeypatch.setattr(keeping, "LONGEST_ASK_S", 0.05)

    async def program():
        async with scene(url, name) as it:
            session = await it.register("c1", health=unused_url())
            await it.add("7")
            await until(lambda: held_by(it, "7"))
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

"""The coordinator on every server: registering, delegating, acknowledging. Rows 227-237, 246-248, 305.

Each test is one asyncio program with coordinators inside and consumers made of plain HTTP calls.
"""

import pytest

from headrace.client import lane_steps
from support.ordered_programs import GROUP, SHORT_MS, scene
from support.worker_programs import run, until

pytestmark = [pytest.mark.any_socket, pytest.mark.other_process]


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
            message = await it.hold_first_of_two("c1")
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
            await until(lambda: it.is_held("7"))
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
            message = await it.hold_first_of_two("c1")
            assert await it.client.command("XACK", name, GROUP, message["message_id"]) == 1
            assert (await it.acknowledge("c1", message))[0] == 200
            [following] = await it.messages("c1")
            assert following["fields"]["n"] == "1"

    run(program())


def test_xack_alone_is_enough_when_the_acknowledgement_is_lost(url, name):
    """Row 237: the next message of the key comes all the same, with the next extension."""

    async def program():
        async with scene(url, name, lease_ms=SHORT_MS) as it:
            message = await it.hold_first_of_two("c1")
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
            message = await it.hold_first_of_two("c1")
            await it.client.command("XDEL", name, message["message_id"])
            [message] = await it.messages("c1")
            assert message["fields"]["n"] == "1"

    run(program())


def test_a_deleted_map_of_tickets_does_not_leave_consumers_full_for_ever(url, name):
    async def program():
        async with scene(url, name) as it:
            before = await it.hold_first_of_two("c1")
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

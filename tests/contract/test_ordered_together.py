"""Acknowledgements that the coordinator gets at the same time: they share calls, and nothing else."""

import asyncio

import pytest

from headrace.errors import WrongType
from headrace.ordered.bodies import Acknowledge, Fail
from support.ordered_programs import scene
from support.worker_programs import run

pytestmark = [pytest.mark.any_socket, pytest.mark.other_process]


def test_several_messages_are_acknowledged_with_one_request_and_each_is_answered(url, name):
    async def program():
        async with scene(url, name) as it:
            await it.register("c1", capacity=2)
            for key in "789":
                await it.add(key)
            held = await it.messages("c1", 2)
            rows = [{"consumer": "c1", **{name: row[name] for name in ("ticket_id", "message_id")}} for row in held]
            answers = await it.ok("POST", "/api/messages/acknowledge", [*rows, {**rows[0], "message_id": "1"}])
            assert [row.get("acknowledged") for row in answers] == [True, True, True]
            assert [row.get("already") for row in answers] == [False, False, True]
            [last] = await it.messages("c1")
            later = {"consumer": "c2", "ticket_id": last["ticket_id"], "message_id": last["message_id"]}
            [again, refused] = await it.ok("POST", "/api/messages/acknowledge", [rows[0], later])
            assert again["already"] and refused["status"] == 409 and refused["error"] and refused["what_to_do"]
            for wrong in ([{"consumer": "c1"}], [rows[0]] * 101, [rows[0], 7]):
                status, _ = await it.call("POST", "/api/messages/acknowledge", wrong)
                assert status == 400
            assert await it.ok("POST", "/api/messages/acknowledge", []) == []
            assert await it.owners() == {"c1": 1}

    run(program())


def test_what_the_broker_refuses_of_one_consumer_does_not_touch_what_others_say_at_the_same_time(url, name):
    async def program():
        async with scene(url, name) as it:
            for consumer, key in (("c1", "7"), ("c2", "8")):
                await it.register(consumer)
                await it.add(key)
                await it.messages(consumer)
            [one], [two] = await it.messages("c1"), await it.messages("c2")
            await it.client.command("SET", it.master.order.dead, "no stream")
            asked = it.master.coordinator
            bury = Fail("c1", one["message_id"], one["ticket_id"], bury=True)
            refused, done = await asyncio.gather(
                asked.fail(bury), asked.acknowledge(Acknowledge("c2", two["message_id"], two["ticket_id"])),
                return_exceptions=True,
            )  # fmt: skip
            assert isinstance(refused, WrongType) and done["acknowledged"] and not done["already"]
            assert await it.owners() == {"c1": 1}

    run(program())


def test_acknowledgements_at_the_same_time_share_one_call_and_bring_the_next_messages_with_it(url, name, monkeypatch):
    async def program():
        async with scene(url, name) as it:
            await it.register("c1", capacity=5)
            for number in range(10):
                await it.add(str(number))
            held = await it.messages("c1", 5)
            sent = []
            call_many = it.master.client._transport.call_many

            async def count(requests, timeout_s):
                sent.append([word for request in requests for word in map(str, request.argv)])
                return await call_many(requests, timeout_s)

            monkeypatch.setattr(it.master.client._transport, "call_many", count)
            asked = it.master.coordinator
            done = [asked.acknowledge(Acknowledge("c1", row["message_id"], row["ticket_id"])) for row in held]
            await asyncio.gather(*done)
            settling = [words for words in sent if "KEEP" in words]
            assert len(settling) == 1 and settling[0].count("DONE") == 5 and "LIMIT" in settling[0]
            assert len(await it.messages("c1", 5)) == 5 and await it.owners() == {"c1": 5}

    run(program())

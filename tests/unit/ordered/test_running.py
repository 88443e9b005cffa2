"""What a delegated consumer runs."""

import asyncio

from headrace import Retries
from headrace.client.results import Entry
from headrace.ordered.delegated_message import OrderedMessage
from headrace.ordered.running import Runner


def test_a_message_that_is_lost_before_its_handler_began_keeps_no_place():
    ran = []

    async def handle(message):
        ran.append(message)

    async def program():
        runner = Runner(handle, None, 1, Retries())
        runner.begin(OrderedMessage("a", 1, 1, "", Entry("1-1", (), "s")))
        runner.lose(1)
        async with asyncio.timeout(30):
            await runner.changed.wait()
        return runner

    runner = asyncio.run(program())
    assert (runner.messages, runner.tasks, runner.last_fences, ran) == ({}, {}, {}, [])

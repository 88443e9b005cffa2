"""The leases of keys, as the thread of a worker keeps them."""

import asyncio
import time

import pytest

from headrace import Client
from headrace.client.lane_keys import Order, Settings
from headrace.client.lane_steps import Grant
from headrace.client.results import Entry
from headrace.errors import ConnectionLost
from headrace.worker.ordered_keys import HeldKeys
from support.servers import free_port
from support.worker_programs import run, until


def test_a_lease_that_ended_is_told_although_the_broker_cannot_be_reached():
    """Another key, which could still be extended, must not hide it."""
    lost = []

    async def program():
        keys = HeldKeys(None, Order("s", "g", Settings(("k",))), "ann", 600_000, lambda held: lost.append(held.key))
        now_s = time.monotonic()
        keys.add(Grant("ended", 1, 1, "", []), now_s - 601)
        keys.add(Grant("aging", 2, 1, "", []), now_s - 300)
        with Client(f"redis://127.0.0.1:{free_port()}", timeout=1) as client, pytest.raises(ConnectionLost):
            keys.extend(client)
        await asyncio.sleep(0)

    run(program())
    assert lost == ["ended"]


@pytest.mark.any_socket
@pytest.mark.parametrize("batch", [None, 2])
def test_a_key_that_is_lost_when_its_handler_is_about_to_begin_keeps_no_place(app, name, batch):
    """The server may take it back in the moment that it was given."""

    @app.handler(name, key="k", batch=batch)
    async def handle(message: list) -> None:
        await asyncio.sleep(60)

    async def program():
        async with app.worker(shutdown_timeout="10ms") as worker:
            runner = worker.consumers[0].runner
            runner.offer_keys([Grant("a", 1, 1, "", [Entry("1-1", ((b"data", b"[]"),), name)])], time.monotonic())
            runner.lost(runner.keys.held["a"])
            await until(lambda: runner.running == 0 and not runner.tasks)
            assert runner.counters.late == 1

    run(program())

"""The leases of keys, as the thread of a worker keeps them."""

import asyncio
import time

import pytest

from headrace import Client
from headrace.client.lane_keys import Order, Settings
from headrace.client.lane_steps import Grant
from headrace.errors import ConnectionLost
from headrace.worker.ordered_keys import HeldKeys
from support.servers import free_port
from support.worker_programs import run


def test_a_lease_that_ended_is_told_although_the_broker_cannot_be_reached():
    """Another key, which could still be extended, must not hide it."""
    lost = []

    async def program():
        keys = HeldKeys(None, Order("s", "g", Settings(("k",))), "ann", 300, lambda held: lost.append(held.key))
        now_s = time.monotonic()
        keys.add(Grant("ended", 1, 1, "", []), now_s - 1)
        keys.add(Grant("aging", 2, 1, "", []), now_s - 0.15)
        with Client(f"redis://127.0.0.1:{free_port()}", timeout=1) as client, pytest.raises(ConnectionLost):
            keys.extend(client)
        await asyncio.sleep(0)

    run(program())
    assert lost == ["ended"]

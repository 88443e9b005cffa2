"""The work of a proof for consumers that a coordinator delegates to: `headrace ordered consumer` runs `handle`.

What they do elsewhere no coordinator can undo, so the effect is fenced: it is one step with the end of the message,
sent to the broker under the fence that came with it. The acknowledgement that follows finds it done.
"""

from __future__ import annotations

import asyncio
import os
import time

from headrace import AsyncClient
from headrace.client import lane_steps
from headrace.client.lane_steps import Done
from headrace.ordered.delegated_message import OrderedMessage
from headrace.ordered.prove_plan import KEY_FIELD, plan_of_environment

plan = plan_of_environment()
clients: list[AsyncClient] = []


async def handle(message: OrderedMessage) -> None:
    assert plan is not None
    if not clients:
        clients.append(AsyncClient(os.environ["HEADRACE_WORKER_URL"], timeout="60s"))
    [client] = clients
    begin_ns = time.monotonic_ns()
    key, number = message.fields[KEY_FIELD], int(message.fields["number"])
    if message.attempt > 1:
        await client.command("RPUSH", plan.again_key, f"{key} {message.fence} {begin_ns}")
    await asyncio.sleep(plan.work_s(key, number))
    line = f"{number} {os.getpid()} {message.fence} {message.attempt} {begin_ns} {time.monotonic_ns()}"
    effect = ("RPUSH", plan.done_key(key), line)
    clause = Done(message.key, message.fence, [message.id], effects=[effect])
    [accepted] = await client.run(lane_steps.settle(client._facts, plan.order, [clause]))
    if not accepted:
        await client.command("HINCRBY", plan.late_key, "refused", 1)

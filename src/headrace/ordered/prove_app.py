"""The app that the consumers of a proof run: each message is worked on for a while, and its number is kept in order.

The effect and the acknowledgement are one step, ctx.commit. When a consumer is told that it came too late, the very
same commit is sent to the server once more, past the worker, so that it is the server's fence that refuses it.
"""

import asyncio
import os
import time

from headrace.app.app import App
from headrace.app.context import Context
from headrace.app.retries import MOST_RETRIES, Retries
from headrace.client import lane_steps
from headrace.client.lane_steps import Done
from headrace.errors import LeaseLost
from headrace.ordered.prove_plan import GROUP, KEY_FIELD, Plan, plan_of_environment

Write = tuple[str, str, str]


def make_app(plan: Plan | None) -> App:
    """Without a plan it has no handler: `headrace worker` says so."""
    app = App()
    if plan is None:
        return app

    @app.handler(
        plan.stream, group=GROUP, key=KEY_FIELD, lease=plan.lease_ms / 1000, concurrency=plan.places, prefetch=0,
        retries=Retries(MOST_RETRIES, first="10ms", longest="100ms"),
    )  # fmt: skip
    async def work(message: dict[str, str], ctx: Context) -> None:
        begin_ns = time.monotonic_ns()
        key, number = message[KEY_FIELD], int(message["number"])
        effects: list[Write] = []
        try:
            if ctx.attempt > 1:
                await app.client.command("RPUSH", plan.again_key, f"{key} {ctx.fence} {begin_ns}")
            await asyncio.sleep(plan.work_s(key, number))
            line = f"{number} {os.getpid()} {ctx.fence} {ctx.attempt} {begin_ns} {time.monotonic_ns()}"
            effects.append(("RPUSH", plan.done_key(key), line))
            await ctx.commit(effects)
        except LeaseLost:
            await commit_late(app, plan, ctx, effects)
            raise
        except asyncio.CancelledError:
            if effects:
                keep(asyncio.ensure_future(commit_late(app, plan, ctx, effects)))
            raise

    return app


async def commit_late(app: App, plan: Plan, ctx: Context, effects: list[Write]) -> None:
    """The server takes it only while nobody else was given the key: then it is not late, just not extended."""
    client = app.client
    clause = Done(ctx.key or "", ctx.fence or 0, [ctx.id], effects=effects)
    [accepted] = await client.run(lane_steps.settle(client._facts, plan.order, [clause]))
    await client.command("HINCRBY", plan.late_key, "in time" if accepted else "refused", 1)


TASKS: set[asyncio.Future[None]] = set()  # An event loop holds its tasks by a thread only.


def keep(task: asyncio.Future[None]) -> None:
    TASKS.add(task)
    task.add_done_callback(TASKS.discard)


app = make_app(plan_of_environment())

"""The session of one handler with a key: how its group is set up, and how names that are gone leave it."""

from contextlib import suppress
from dataclasses import replace

from headrace.app.handlers import Handler
from headrace.client import flows, lane_steps, lane_views, worker_steps
from headrace.client.async_client import AsyncClient
from headrace.client.lane_keys import LANES, Order, Settings
from headrace.client.requests import Request
from headrace.client.worker_keys import group_keys
from headrace.errors import Fenced
from headrace.worker import events
from headrace.worker.ordered_keys import HeldKeys


async def begin_session(client: AsyncClient, handler: Handler, keys: HeldKeys, places: int) -> None:
    """The group, its settings and our session. What another kind of program has chosen for it (names of its maps) stays
    as it is."""
    facts = client._facts
    if await client.run(flows.create_group(handler.stream, handler.group, "0")):
        events.info("group_made", stream=handler.stream, group=handler.group)
    settings = settings_of(handler)
    known = await client.run(lane_views.find_settings(facts, handler.stream, handler.group))
    if known is not None:
        settings = replace(
            settings, reader=known.reader, tickets=known.tickets, consumers=known.consumers, layout=known.layout
        )
        if known.keyfields != settings.keyfields:
            events.warning(
                "order_changed", stream=handler.stream, group=handler.group, before=known.keyfields[0], key=handler.key
            )
    keys.order = Order(handler.stream, handler.group, settings)
    await client.run(lane_steps.refuse_undone_letters(keys.order))
    await client.run(lane_steps.config(facts, keys.order))
    if known is None:  # Retries of the time without order would take messages out of their lanes.
        records = group_keys(handler.stream, handler.group)
        await client.run(Request(("UNLINK", records.due, records.attempts), int, records.due).run())
    session = await client.run(lane_steps.register(facts, keys.order, keys.consumer, places))
    keys.session = session.number


def settings_of(handler: Handler) -> Settings:
    """Attempts are counted by the server and judged by the worker, which knows the handler's retries."""
    assert handler.key is not None
    names = tuple(dict.fromkeys((handler.key, "key")))
    return Settings(names, poison=handler.poison, keyless=handler.keyless, lease_ms=handler.lease_ms)


async def sweep(client: AsyncClient, order: Order, own_name: str, idle_ms: int) -> list[str]:
    """Names of workers that were silent for so long: those registered leave, others must hold nothing."""
    facts = client._facts
    registered = await client.run(lane_views.consumers(facts, order))
    newest_ms = max([one.heartbeat_ms for one in registered], default=0)
    removed = []
    for one in registered:
        if one.name != own_name and not one.health and newest_ms - one.heartbeat_ms > idle_ms:
            with suppress(Fenced):  # It is back.
                await client.run(lane_steps.leave(facts, order, one.name, one.session))
                removed.append(one.name)
    kept = {one.name for one in registered} | {order.settings.reader, LANES}
    for name in await idle_names(client, order, idle_ms):
        if name not in kept:
            removed += await client.run(worker_steps.sweep(facts, order.stream, order.group, idle_ms, name))
    return removed


async def idle_names(client: AsyncClient, order: Order, idle_ms: int) -> list[str]:
    consumers = await client.stream(order.stream).group(order.group).consumers()
    return [one.name for one in consumers if one.idle_ms >= idle_ms and not one.pending]

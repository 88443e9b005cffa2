"""Watches handlers that must keep order: which messages of a key ran, in which order, and whether two overlapped."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from headrace import App
from headrace.client import lane_steps, lane_views
from headrace.client.lane_keys import Order


class OrderWatch:
    def __init__(self) -> None:
        self.seen: dict[Any, list[int]] = defaultdict(list)
        self.running: set[Any] = set()
        self.overlaps = 0

    @property
    def count(self) -> int:
        return sum(map(len, self.seen.values()))

    @asynccontextmanager
    async def run(self, key: Any, number: int, pause_s: float = 0.0) -> AsyncIterator[None]:
        """Around one message: counted as seen when it has ended well."""
        self.overlaps += key in self.running
        self.running.add(key)
        try:
            await asyncio.sleep(pause_s)
            yield
            self.seen[key].append(number)
        finally:
            self.running.discard(key)

    def assert_in_order(self, keys: Iterable[Any], count: int) -> None:
        assert self.overlaps == 0
        assert dict(self.seen) == {key: list(range(count)) for key in keys}


def tickets(keys: Iterable[Any], count: int) -> list[dict[str, Any]]:
    """So many messages of each key, mixed."""
    keys = list(keys)
    return [{"ticket_id": key, "number": number} for number in range(count) for key in keys]


async def order_of(app: App, stream: str, group: str) -> Order:
    settings = await app.client.run(lane_views.find_settings(app.client._facts, stream, group))
    assert settings is not None
    return Order(stream, group, settings)


async def ticket_of(app: App, stream: str, group: str, key: str) -> Any:
    """The ticket of a key; None when it has nothing undone."""
    found = await app.client.run(lane_views.info_key(app.client._facts, await order_of(app, stream, group), key))
    return None if found is None else found.ticket


async def park(app: App, stream: str, group: str, key: str) -> bool:
    """Whoever holds the key is fenced."""
    order = await order_of(app, stream, group)
    return await app.client.run(lane_steps.park(app.client._facts, order, key, "parked by hand"))


async def resume(app: App, stream: str, group: str, key: str, *, skip: bool = False) -> bool:
    order = await order_of(app, stream, group)
    return await app.client.run(lane_steps.resume(app.client._facts, order, key, skip=skip))


async def nothing_left(app: App, stream: str, group: str) -> bool:
    """No entry, nothing pending, no ticket."""
    handle = app.client.stream(stream)
    if await handle.length() or await handle.group(group).pending(limit=1):
        return False
    order = await order_of(app, stream, group)
    return await app.client.command("EXISTS", order.tickets) == 0

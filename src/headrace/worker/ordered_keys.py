"""The keys that one handler holds: of each its fence, its messages in order, and its lease.

A key is held from the step that gave it to us until all its messages are settled, it is given back, or it is lost. The
thread of the leases looks at it too.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from headrace.app.delivery import Delivery, Words
from headrace.client import lane_steps
from headrace.client.async_client import AsyncClient
from headrace.client.client import Client
from headrace.client.lane_keys import Order
from headrace.client.lane_steps import Grant
from headrace.errors import Fenced, NoLanes, NotFound


class OrderedDelivery(Delivery):
    """A message, and the key it belongs to."""

    __slots__ = ("held",)

    def __init__(self, entry_id: str, words: Words, held: "HeldKey", size_bytes: int) -> None:
        super().__init__(entry_id, words, held.stream, 0.0, size_bytes, is_again=False)
        self.held = held

    @property
    def key(self) -> str | None:
        return self.held.key

    @property
    def fence(self) -> int | None:
        return self.held.fence


class HeldKey:
    __slots__ = (
        "key", "fence", "stream", "leased_s", "waiting", "unsettled", "size_bytes", "task", "is_over", "is_lost",
        "one_by_one",
    )  # fmt: skip

    def __init__(self, grant: Grant, stream: str, leased_s: float) -> None:
        self.key = grant.key
        self.fence = grant.fence
        self.stream = stream
        self.leased_s = leased_s  # When its lease began, by the monotonic clock.
        self.waiting: deque[OrderedDelivery] = deque(self.deliveries_of(grant))  # Those that have not begun.
        self.unsettled = len(self.waiting)
        self.size_bytes = sum([delivery.size_bytes for delivery in self.waiting])
        self.task: asyncio.Task[None] | None = None  # What runs now: one message at a time.
        self.is_over = False  # Nothing more of it runs here.
        self.is_lost = False  # It is somebody else's, or nobody's.
        self.one_by_one = 0  # So many messages of a failed batch are run alone.

    def deliveries_of(self, grant: Grant) -> list[OrderedDelivery]:
        deliveries = []
        for entry in grant.entries:
            words = [word for pair in entry.pairs for word in pair]
            deliveries.append(OrderedDelivery(entry.id, words, self, sum(map(len, words))))
        if deliveries:
            first = deliveries[0]
            first.attempt, first.last_error, first.is_again = grant.attempt, grant.last_error, grant.attempt > 1
        return deliveries


class HeldKeys:
    """Of one handler. What Source is to messages without order."""

    def __init__(
        self, client: AsyncClient, order: Order, consumer: str, lease_ms: int, on_lost: Callable[[HeldKey], None]
    ) -> None:
        self.client = client
        self.order = order
        self.stream = order.stream
        self.group = order.group
        self.consumer = consumer
        self.lease_ms = lease_ms
        self.session = 0
        self.held: dict[str, HeldKey] = {}
        self.held_bytes = 0
        self.on_lost = on_lost
        self.loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self.held)

    def add(self, grant: Grant, leased_s: float) -> HeldKey:
        held = HeldKey(grant, self.stream, leased_s)
        self.held[held.key] = held
        self.held_bytes += held.size_bytes
        return held

    def drop(self, delivery: Any) -> None:
        """Settled. With the last of its messages the key goes."""
        held: HeldKey = delivery.held
        held.unsettled -= 1
        if self.held.get(held.key) is held:
            held.size_bytes -= delivery.size_bytes
            self.held_bytes -= delivery.size_bytes
            if held.unsettled <= 0:
                self.remove(held)

    def drop_all(self, deliveries: list[Any]) -> None:
        for delivery in deliveries:
            self.drop(delivery)

    def remove(self, held: HeldKey) -> None:
        """No longer ours."""
        held.is_over = True
        if self.held.get(held.key) is held:
            del self.held[held.key]
            self.held_bytes -= held.size_bytes

    # In the thread of the leases

    def extend(self, client: Client) -> None:
        """A lease that ended before it could be extended is lost, whatever the server says later: others may run."""
        now_s = time.monotonic()
        held = list(self.held.values())  # One step for the interpreter: no lock is needed.
        lease_s = self.lease_ms / 1000
        self.tell_lost([one for one in held if one.leased_s + lease_s <= now_s])  # First: asking may fail.
        aging = [one for one in held if one.leased_s + lease_s / 3 <= now_s < one.leased_s + lease_s]
        if not aging:
            return
        kept = self.ask(client, aging)
        for one, is_ours in zip(aging, kept, strict=True):
            if is_ours:
                one.leased_s = now_s
        self.tell_lost([one for one, is_ours in zip(aging, kept, strict=True) if not is_ours])

    def tell_lost(self, lost: list[HeldKey]) -> None:
        for one in lost:
            self.loop.call_soon_threadsafe(self.on_lost, one)

    def ask(self, client: Client, aging: list[HeldKey]) -> list[bool]:
        session = self.session
        pairs = [(one.key, one.fence) for one in aging]
        flow = lane_steps.extend(client._facts, self.order, self.consumer, session, self.lease_ms, pairs)
        try:
            return client.run(flow)
        except (Fenced, NoLanes, NotFound):  # Another session, or everything is gone.
            return [session != self.session] * len(aging)

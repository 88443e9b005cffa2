"""Publishing from many tasks, joined: whatever is published within a turn of the event loop travels in one pipeline.

One call costs a round trip whether it carries one message or hundreds. So while pipelines are under way, what is
published meanwhile gathers for the next one. Nothing is sent twice: when the connection breaks, each caller is told so.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from headrace.client import requests
from headrace.client.async_client import AsyncClient
from headrace.client.flow import Batch, Flow

LARGEST_BATCH: Final = 1000  # Messages in one pipeline.
LARGEST_BATCH_BYTES: Final = 4 << 20
MOST_UNDER_WAY: Final = 2  # Pipelines at once: one is prepared while the other is answered.

Pairs = Sequence[tuple[bytes, bytes]]


class Publisher:
    """Of one event loop. What waits here is limited by those who wait: each caller awaits its own message."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self.waiting: list[tuple[requests.Request[str], int, asyncio.Future[str]]] = []
        self.is_scheduled = False
        self.under_way: set[asyncio.Task[None]] = set()

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.under_way

    async def add(self, stream: str, pairs: Pairs) -> str:
        """Add one entry; its ID."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()
        size_bytes = sum([len(name) + len(value) for name, value in pairs])
        self.waiting.append((requests.add(stream, pairs, "*", ()), size_bytes, future))
        if not self.is_scheduled and len(self.under_way) < MOST_UNDER_WAY:
            self.is_scheduled = True
            loop.call_soon(self.flush)
        return await future

    def flush(self) -> None:
        self.is_scheduled = False
        while self.waiting and len(self.under_way) < MOST_UNDER_WAY:
            task = asyncio.ensure_future(self.send(self.take()))
            self.under_way.add(task)
            task.add_done_callback(self.sent)

    def take(self) -> list[tuple[requests.Request[str], int, asyncio.Future[str]]]:
        """The next pipeline: bounded by count and by size, at least one."""
        taken, size_bytes = 0, 0
        for _, size, _ in self.waiting[:LARGEST_BATCH]:
            size_bytes += size
            if taken and size_bytes > LARGEST_BATCH_BYTES:
                break
            taken += 1
        batch, self.waiting = self.waiting[:taken], self.waiting[taken:]
        return batch

    def sent(self, task: "asyncio.Task[None]") -> None:
        self.under_way.discard(task)
        if self.waiting and not self.is_scheduled:
            self.flush()

    async def send(self, batch: list[tuple[requests.Request[str], int, asyncio.Future[str]]]) -> None:
        replies: list[Any]
        try:
            replies = await self.client.run(send_all([request for request, _, _ in batch]))
        except BaseException as error:  # Whatever it is, those who wait have to know.
            replies = [error] * len(batch)
        for (_, _, future), reply in zip(batch, replies, strict=True):
            if future.done():  # Its caller was cancelled.
                continue
            if isinstance(reply, asyncio.CancelledError):
                future.cancel()
            elif isinstance(reply, BaseException):
                future.set_exception(reply)
            else:
                future.set_result(reply)


def send_all(batch: Batch) -> Flow[list[Any]]:
    replies: list[Any] = yield batch
    return replies

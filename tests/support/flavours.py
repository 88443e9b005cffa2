"""The two flavours of the client under one face, so that a test is written once.

`Waited` stands before an AsyncClient, AsyncStream or AsyncGroup: its methods run on an event loop in a thread of its
own and wait for the result; its async iterators become plain ones. Several threads may use it at once.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import threading
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from headrace import (
    AsyncChannel,
    AsyncChannels,
    AsyncClient,
    AsyncGroup,
    AsyncJob,
    AsyncLinkedList,
    AsyncQueue,
    AsyncStream,
    AsyncSubscription,
    Client,
)

END = object()
HANDLES = (AsyncClient, AsyncStream, AsyncGroup, AsyncQueue, AsyncJob, AsyncLinkedList, AsyncChannel, AsyncChannels)


class LoopThread:
    """An event loop that runs until it is closed."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="async flavour", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def close(self) -> None:
        self.run(self.loop.shutdown_asyncgens())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Waited:
    def __init__(self, target: Any, loop: LoopThread) -> None:
        self.target = target
        self._loop = loop

    def __repr__(self) -> str:
        return repr(self.target)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.target, name)
        if not callable(value):
            return self._settle(value)

        def call(*arguments: Any, **options: Any) -> Any:
            plain = [one.target if isinstance(one, Waited) else one for one in arguments]
            return self._settle(value(*plain, **options))

        return call

    def _settle(self, result: Any) -> Any:
        if isinstance(result, AsyncSubscription):
            return WaitedSubscription(result, self._loop)
        if isinstance(result, HANDLES):
            return Waited(result, self._loop)
        if isinstance(result, list) and result and isinstance(result[0], AsyncJob):
            return [Waited(job, self._loop) for job in result]
        if inspect.iscoroutine(result):
            return self._settle(self._loop.run(result))
        if isinstance(result, AsyncIterator):
            return WaitedIterator(result, self._loop)
        return result


class WaitedIterator:
    """An async generator as a plain one."""

    def __init__(self, entries: Any, loop: LoopThread) -> None:
        self._entries = entries
        self._loop = loop

    def __iter__(self) -> WaitedIterator:
        return self

    def __next__(self) -> Any:
        async def step() -> Any:
            return await anext(self._entries, END)

        entry = self._loop.run(step())
        if entry is END:
            raise StopIteration
        return entry

    def take(self, count: int) -> list[Any]:
        """So many, or all there are, without a hop between threads for each."""

        async def gather() -> list[Any]:
            taken = []
            while len(taken) < count and (entry := await anext(self._entries, END)) is not END:
                taken.append(entry)
            return taken

        taken: list[Any] = self._loop.run(gather())
        return taken

    def close(self) -> None:
        self._loop.run(self._entries.aclose())


class WaitedSubscription(WaitedIterator):
    """An async subscription as a plain one."""

    def __enter__(self) -> WaitedSubscription:
        self._loop.run(self._entries.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._loop.run(self._entries.close())


def take(entries: Any, count: int) -> list[Any]:
    """The next entries of an iterator of either flavour."""
    return entries.take(count) if isinstance(entries, WaitedIterator) else list(itertools.islice(entries, count))


def open_client(flavour: str, loop: LoopThread, url: str, **options: Any) -> Any:
    """A Client, or an AsyncClient that looks like one."""
    if flavour == "sync":
        return Client(url, **options)

    async def make() -> AsyncClient:
        return AsyncClient(url, **options)

    return Waited(loop.run(make()), loop)


class Spy:
    """Stands between a client of either flavour and its transport, and writes down what is sent."""

    def __init__(self, client: Any) -> None:
        self._client = client.target if isinstance(client, Waited) else client
        self._inner = self._client._transport
        self.url = self._inner.url
        self.sent: list[tuple[Any, ...]] = []
        self._client._transport = self

    def leave(self) -> None:
        self._client._transport = self._inner

    def call(self, request: Any, timeout_s: float) -> Any:
        self.sent.append(request.argv)
        return self._inner.call(request, timeout_s)

    def call_many(self, requests: Any, timeout_s: float) -> Any:
        self.sent += [request.argv for request in requests]
        return self._inner.call_many(requests, timeout_s)

    def close(self) -> Any:
        return self._inner.close()

    @property
    def names(self) -> list[str]:
        return [argv[0] for argv in self.sent]

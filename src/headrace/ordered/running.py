"""Runs the handler of a consumer for messages of different keys at the same time, and settles each."""

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from headrace.app.retries import Bury, Retries, Retry
from headrace.errors import ConnectionLost
from headrace.ordered.delegated_message import OrderedMessage, Source
from headrace.worker import events
from headrace.worker.decide import describe
from headrace.worker.threads import Threads

Handler = Callable[[OrderedMessage], Awaitable[Any] | Any]

FIRST_PAUSE_S: Final = 0.05  # Between two tries to settle.
LONGEST_PAUSE_S: Final = 1.0
CANCELLED_S: Final = 5.0  # For handlers that are cancelled at the end to come to one.


class Runner:
    """What is running, by fence. A consumer never holds two messages of one key, and never runs two."""

    def __init__(self, handler: Handler, source: Source, capacity: int, retries: Retries) -> None:
        self.handler = handler
        self.source = source
        self.retries = retries
        self.is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004 - an object with an async __call__ is a handler too.
        )
        self.capacity = capacity
        self.threads: Threads | None = None  # For a plain function.
        self.messages: dict[int, OrderedMessage] = {}
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.last_fences: dict[str, int] = {}  # By key: what was begun last.
        self.settling: set[int] = set()
        self.changed = asyncio.Event()  # Something was settled, or lost: there is room.
        self.done = 0
        self.failed = 0
        self.refused = 0  # Settled too late: another one has the key.
        self.is_over = False  # Handlers that go on all the same settle nothing any more.

    def begin(self, message: OrderedMessage) -> None:
        if message.fence in self.messages:
            return
        before = self.last_fences.get(message.key)
        if before is not None:  # The key was lost, and is ours again: what runs must end first.
            self.lose(before)
        earlier = None if before is None else self.tasks.get(before)
        self.messages[message.fence] = message
        self.last_fences[message.key] = message.fence
        task = self.tasks[message.fence] = asyncio.ensure_future(self.run(message, earlier))
        task.add_done_callback(partial(self.ended, message))  # Also when it is cancelled before it began.

    def lose(self, fence: int) -> None:
        """The key is not ours any more. What is being settled finds that out by itself."""
        if fence in self.tasks and fence not in self.settling:
            events.warning("key_lost", key=self.messages[fence].key, fence=fence)
            self.tasks[fence].cancel()

    def lose_all(self) -> None:
        for fence in list(self.tasks):
            self.lose(fence)

    async def run(self, message: OrderedMessage, earlier: "asyncio.Task[None] | None") -> None:
        if earlier is not None:
            await asyncio.wait({earlier})
        settle = await self.handle(message)
        if self.is_over:
            return
        self.settling.add(message.fence)
        await self.settle(message, settle)

    def ended(self, message: OrderedMessage, _: "asyncio.Task[None]") -> None:
        self.settling.discard(message.fence)
        del self.messages[message.fence], self.tasks[message.fence]
        if self.last_fences.get(message.key) == message.fence:
            del self.last_fences[message.key]
        self.changed.set()

    async def handle(self, message: OrderedMessage) -> Callable[[], Awaitable[bool]]:
        """Run the handler; how to settle it. A plain function whose key is lost goes on, and is not settled."""
        try:
            if self.is_async:
                result = self.handler(message)
            else:
                result = await self.run_in_thread(message)
            if inspect.isawaitable(result):
                await result
        except BaseException as error:  # Whatever a handler raises is a failed attempt,
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # but we have cancelled it.
            return partial(self.fail, message, error)
        return partial(self.acknowledge, message)

    async def run_in_thread(self, message: OrderedMessage) -> Any:
        if self.threads is None:
            self.threads = Threads("ordered", self.capacity, lambda: False)
        return await self.threads.submit(partial(self.handler, message))

    async def acknowledge(self, message: OrderedMessage) -> bool:
        is_done = await self.source.acknowledge(message)
        self.done += is_done
        return is_done

    async def fail(self, message: OrderedMessage, error: BaseException) -> bool:
        delay_ms = self.retries.pause_ms(message.attempt, random.random())  # noqa: S311 - only spreads pauses.
        if isinstance(error, Retry) and error.after_ms is not None:
            delay_ms = error.after_ms
        text = describe(error)
        is_failed = await self.source.fail(message, text, delay_ms, buries=isinstance(error, Bury))
        self.failed += is_failed
        events.warning("message_failed", key=message.key, id=message.id, attempt=message.attempt, error=text)
        return is_failed

    async def settle(self, message: OrderedMessage, settle: Callable[[], Awaitable[bool]]) -> None:
        """Until it is told: repeating is harmless, and when the lease is over it is refused."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                is_settled = await settle()
                break
            except ConnectionLost:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            except Exception as error:  # Whatever it is, it must be told: nobody waits for this task.
                events.error("settling_refused", key=message.key, id=message.id, error=error)
                return  # The lease ends, and the message comes again.
        if not is_settled:
            self.refused += 1
            events.warning("settled_too_late", key=message.key, id=message.id, fence=message.fence)

    async def finish(self, timeout_s: float) -> None:
        """Let handlers end; those that are late are cancelled."""
        tasks = set(self.tasks.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=timeout_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=CANCELLED_S)
        self.is_over = True
        if self.threads is not None:
            self.threads.close()

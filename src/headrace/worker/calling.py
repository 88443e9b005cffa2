"""Calling the function of a handler: with what it asks for, inside its hooks, for no longer than its time limit.

A plain function runs in a thread. A thread cannot be ended: past its time limit, or when it is broken off, the run has
failed and the thread goes on. Then it outlives its run, and its place stays taken until it is back.
"""

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

from headrace.app.context import Context
from headrace.app.handlers import Handler
from headrace.app.middleware import Hooks
from headrace.app.signature import Signature
from headrace.worker.threads import Threads


class Calls:
    """Of one handler."""

    def __init__(
        self, handler: Handler, signature: Signature, hooks: Hooks, values: dict[str, Any], pool: Threads | None,
        on_outlived: Callable[[int], None],
    ) -> None:  # fmt: skip
        self.handler = handler
        self.signature = signature
        self.hooks = hooks
        self.values = values  # Provided ones, by parameter.
        self.pool = pool
        self.on_outlived = on_outlived  # 1: a thread outlives its run; -1: it is back.
        self.has_hooks = hooks.has("before_process", "after_process")
        self.needs_contexts = self.has_hooks or signature.context is not None

    async def call(self, message: Any, contexts: list[Context]) -> Any:
        """For one message, or for a batch, which is a list of them; what the function returned."""
        arguments = dict(self.values)
        if self.signature.message is not None:
            arguments[self.signature.message] = message
        if self.signature.context is not None:
            arguments[self.signature.context] = contexts if self.handler.batch is not None else contexts[0]
        if not self.has_hooks:
            return await self.call_limited(arguments)
        for context in contexts:
            await self.hooks.run("before_process", context)
        try:
            result = await self.call_limited(arguments)
        except BaseException as error:
            await self.tell_ended(contexts, error)
            raise
        await self.tell_ended(contexts, None)
        return result

    async def tell_ended(self, contexts: list[Context], error: BaseException | None) -> None:
        for context in contexts:
            await self.hooks.run("after_process", context, error)

    async def call_limited(self, arguments: dict[str, Any]) -> Any:
        timeout_ms = self.handler.timeout_ms
        if self.pool is not None:
            return await self.call_in_thread(self.pool, arguments)
        if timeout_ms is None:
            return await self.handler.function(**arguments)
        try:
            async with asyncio.timeout(timeout_ms / 1000) as limit:
                return await self.handler.function(**arguments)
        except TimeoutError:
            if limit.expired():
                raise TimeoutError(f"ran longer than its time limit of {timeout_ms / 1000:g} s") from None
            raise

    async def call_in_thread(self, pool: Threads, arguments: dict[str, Any]) -> Any:
        handler = self.handler
        inside = contextvars.copy_context()
        future = pool.submit(lambda: inside.run(call_plain, handler.function, arguments))
        limit_s = None if handler.timeout_ms is None else handler.timeout_ms / 1000
        try:
            done, _ = await asyncio.wait({future}, timeout=limit_s)
        except asyncio.CancelledError:
            self.keep_place(future)
            raise
        if done:
            return future.result()
        self.keep_place(future)
        raise TimeoutError(f"ran longer than its time limit of {limit_s:g} s; its thread goes on")

    def keep_place(self, future: "asyncio.Future[Any]") -> None:
        self.on_outlived(1)
        future.add_done_callback(self.thread_is_back)

    def thread_is_back(self, future: "asyncio.Future[Any]") -> None:
        if not future.cancelled():
            future.exception()  # Too late for it to matter.
        self.on_outlived(-1)


def call_plain(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """A StopIteration would never come out of a future: it becomes what a coroutine makes of it."""
    try:
        return function(**arguments)
    except StopIteration as error:
        raise RuntimeError(f"{function.__name__} raised StopIteration") from error

"""Waking a task of an event loop from any thread."""

import asyncio
import contextlib
from collections.abc import Callable


def resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def waker(loop: asyncio.AbstractEventLoop, future: "asyncio.Future[None]") -> Callable[[], None]:
    """Wakes the future from any thread."""

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed, and with it the task that waited.
            loop.call_soon_threadsafe(resolve, future)

    return wake

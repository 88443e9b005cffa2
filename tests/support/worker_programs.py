"""What the worker suite shares: running a coroutine with a limit, and waiting for a condition."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

WAIT_S = 60.0  # Generous: a limit for what never comes, not a measure of speed.


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def limited() -> Any:
        async with asyncio.timeout(2 * WAIT_S):
            return await coroutine

    return asyncio.run(limited())


async def until(condition: Callable[[], Any], what: str = "the condition") -> None:
    """The condition may be a plain function or give an awaitable."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WAIT_S
    while True:
        result = condition()
        if inspect.isawaitable(result):
            result = await result
        if result:
            return
        assert loop.time() < deadline, f"waited {WAIT_S:g} s for {what}"
        await asyncio.sleep(0.01)


async def is_empty(app: Any, stream: str, group: str) -> bool:
    """Whether nothing is left of the stream, and nothing is pending."""
    handle = app.client.stream(stream)
    if await handle.length():
        return False
    return not (await handle.group(group).pending(limit=1))

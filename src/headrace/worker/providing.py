"""What providers make: one value of each type for a worker, made at its start and ended with it."""

import inspect
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from headrace.app.app import App
from headrace.app.handlers import Handler


async def make_values(app: App, stack: AsyncExitStack) -> dict[Any, Any]:
    """Type -> value, for the types that some handler asks for. Those that yield go on when the stack is closed."""
    wanted = [wanted for handler in app.handlers for wanted in handler.signature(app.providers).injected.values()]
    values: dict[Any, Any] = {}
    for wanted_type in dict.fromkeys(wanted):
        values[wanted_type] = await make_value(app.providers[wanted_type], stack)
    return values


async def make_value(provider: Any, stack: AsyncExitStack) -> Any:
    if inspect.isasyncgenfunction(provider):
        return await stack.enter_async_context(asynccontextmanager(provider)())
    if inspect.isgeneratorfunction(provider):
        return stack.enter_context(contextmanager(provider)())
    made = provider()
    return await made if inspect.isawaitable(made) else made


def values_for(handler: Handler, app: App, values: dict[Any, Any]) -> dict[str, Any]:
    """By parameter."""
    return {name: values[wanted] for name, wanted in handler.signature(app.providers).injected.items()}

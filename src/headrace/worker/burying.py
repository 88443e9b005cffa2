"""Who is told before a message is buried: middleware, and the functions of @app.on_bury."""

import asyncio
import inspect

from headrace.app.app import App
from headrace.app.context import Context
from headrace.app.handlers import Handler


class Burial:
    def __init__(self, app: App, handler: Handler) -> None:
        self.hooks = app.hooks
        self.listeners = [function for stream, function in app.bury_listeners if stream in (None, handler.stream)]

    async def tell(self, context: Context, error: str) -> None:
        """Everybody, in the order they were declared. Raises what the first one raises that fails."""
        if self.hooks.has("before_bury"):
            await self.hooks.run("before_bury", context, error)
        for function in self.listeners:
            if inspect.iscoroutinefunction(function):
                await function(context.entry, context, error)
            else:
                await asyncio.to_thread(function, context.entry, context, error)

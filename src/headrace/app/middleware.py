"""Middleware: hooks in the life of a message.

    class Timing(Middleware):
        async def before_process(self, ctx): …

    app.middleware(Timing())

`before_` hooks run in the order the middlewares were added, `after_` hooks in the reverse order. A hook that raises
before or after processing fails the attempt; one that raises around a retry or a burial is logged, for the message must
go its way. Hooks that are not overridden cost nothing.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from headrace.app.context import Context

Hook = Callable[..., Awaitable[None]]


class Outgoing:
    """A message that is about to be published. Hooks may change the headers and the payload."""

    __slots__ = ("stream", "payload", "key", "id", "headers")

    def __init__(self, stream: str, payload: Any, key: str | None, id: str | None, headers: dict[str, str]) -> None:
        self.stream = stream
        self.payload = payload
        self.key = key
        self.id = id
        self.headers = headers


class Middleware:
    """Override what you need."""

    async def before_publish(self, message: Outgoing) -> None: ...

    async def after_publish(self, message: Outgoing, entry_id: str | None) -> None:
        """entry_id is None while the message is delayed."""

    async def before_process(self, ctx: Context) -> None:
        """Right before the handler runs."""

    async def after_process(self, ctx: Context, error: BaseException | None) -> None:
        """The handler has ended, by itself (None) or by an error."""

    async def before_ack(self, ctx: Context) -> None: ...

    async def after_ack(self, ctx: Context) -> None:
        """The server has confirmed it: the message is done."""

    async def before_retry(self, ctx: Context, error: str) -> None: ...

    async def after_retry(self, ctx: Context, error: str) -> None: ...

    async def before_bury(self, ctx: Context, error: str) -> None: ...

    async def after_bury(self, ctx: Context, error: str) -> None: ...


NAMES: Final = tuple(name for name in vars(Middleware) if name.startswith(("before_", "after_")))


class Hooks:
    """The hooks of all middlewares that do something, by name and in the order they run."""

    def __init__(self) -> None:
        self.by_name: dict[str, list[Hook]] = {name: [] for name in NAMES}

    def add(self, middleware: Middleware) -> None:
        for name in NAMES:
            if getattr(type(middleware), name) is not getattr(Middleware, name):
                hooks, hook = self.by_name[name], getattr(middleware, name)
                if name.startswith("before_"):
                    hooks.append(hook)
                else:
                    hooks.insert(0, hook)

    def has(self, *names: str) -> bool:
        return any([self.by_name[name] for name in names])

    async def run(self, name: str, *arguments: Any) -> None:
        for hook in self.by_name[name]:
            await hook(*arguments)

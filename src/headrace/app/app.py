"""App: a broker's URL, the handlers of its streams, and publishing.

    app = App("embedded:./data")

    @app.handler("orders")
    async def bill(order: dict) -> None: ...

    await app.publish("orders", {"id": 17})

`headrace worker module:app` runs the handlers; so does `app.run()`, and `async with app.worker():` inside a program of
one's own. An App may be declared before there is an event loop: connections are made when first used, one client for
each loop.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from importlib import import_module
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar, get_type_hints, overload
from weakref import WeakKeyDictionary

from headrace.app import handlers
from headrace.app.context import Context
from headrace.app.dead_letters import DeadLetters
from headrace.app.handlers import LEASE, Handler, declare, read_keep
from headrace.app.middleware import Hooks, Middleware, Outgoing
from headrace.app.order_fields import is_field, order_fields
from headrace.app.publishing import Publisher
from headrace.app.retries import Retries
from headrace.client import flows, layout, publish_flows
from headrace.client.async_client import AsyncClient
from headrace.client.client import choose_url
from headrace.client.times import Duration
from headrace.errors import ConfigError, Unsupported

Function = TypeVar("Function", bound=Callable[..., Any])
OnBury = Callable[[Any, Context, str], Awaitable[None] | None]

SHUTDOWN_TIMEOUT: Final = "30s"


class App:
    """What a program does with the streams of one broker."""

    def __init__(self, url: str | None = None, *, keep: Duration | bool | None = None) -> None:
        self._url = url
        self.may_host = True  # Whether this process may host the broker of an embedded: folder.
        self.keep_ms = read_keep(keep)
        self.handlers: list[Handler] = []
        self.key_fields: dict[str, list[str]] = {}  # Stream -> names that its handlers keep order by.
        self.providers: dict[Any, Callable[..., Any]] = {}  # Type -> the function that makes one.
        self.hooks = Hooks()
        self.bury_listeners: list[tuple[str | None, Callable[..., Any]]] = []
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, Publisher] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"App({len(self.handlers)} handlers)"

    @property
    def url(self) -> str:
        """The URL given, else HEADRACE_URL, else that of headrace.toml."""
        return choose_url(self._url)

    def use_url(self, url: str) -> None:
        """Another broker than the one it was declared with, as for --url."""
        self._url = url

    # Declaring

    def handler(
        self,
        stream: str,
        *,
        group: str | None = None,
        key: str | None = None,
        retries: Retries | int | None = None,
        lease: Duration = LEASE,
        timeout: Duration | None = None,
        concurrency: int | None = None,
        prefetch: int | None = None,
        rate: str | float | None = None,
        batch: int | None = None,
        wait: Duration | None = None,
        publish_to: str | None = None,
        keep: Duration | bool | None = None,
        run: int | None = None,
        poison: str | None = None,
        keyless: str | None = None,
    ) -> Callable[[Function], Function]:
        """The function below handles the messages of a stream. It stays a plain function: call it in tests."""
        if callable(stream):
            raise ConfigError('@app.handler misses the name of its stream: write @app.handler("orders").')

        def add(function: Function) -> Function:
            declared = declare(
                function, stream, group=group, key=key, retries=retries, lease=lease, timeout=timeout,
                concurrency=concurrency, prefetch=prefetch, rate=rate, batch=batch, wait=wait, publish_to=publish_to,
                keep=keep, run=run, poison=poison, keyless=keyless,
            )  # fmt: skip
            for other in self.handlers:
                if (other.stream, other.group) == (declared.stream, declared.group):
                    raise ConfigError(
                        f"{other.name} and {declared.name} both handle {stream!r} as group {declared.group!r}: each "
                        "message would reach one of them only. Give one of them another group=."
                    )
            self.handlers.append(declared)
            if declared.key is not None and is_field(declared.key):
                names = self.key_fields.setdefault(declared.stream, [])
                if declared.key not in names:
                    names.append(declared.key)
            return function

        return add

    @overload
    def provide(self, function: Function) -> Function: ...

    @overload
    def provide(self, *, of: Any) -> Callable[[Function], Function]: ...

    def provide(self, function: Any = None, *, of: Any = None) -> Any:
        """The function below makes a value for every handler that asks for its type: once per worker, at its start.

        Its return annotation names the type, or `of=` does. One that yields the value goes on when the worker ends.
        """

        def add(function: Function) -> Function:
            provided = provided_type(function) if of is None else of
            if provided in self.providers:
                raise ConfigError(f"{provided!r} is provided already, by {self.providers[provided].__name__}.")
            self.providers[provided] = function
            return function

        return add if function is None else add(function)

    def middleware(self, middleware: Middleware) -> None:
        """Hooks around publishing and handling; see Middleware."""
        if not isinstance(middleware, Middleware):
            raise ConfigError(f"{middleware!r} is no Middleware; derive its class from headrace.Middleware.")
        self.hooks.add(middleware)

    def on_bury(self, function_or_stream: Any) -> Any:
        """The function below is told of dead letters, before they are buried: `@app.on_bury`, `@app.on_bury("orders")`.

        It gets the stored entry, the context and the error. While it fails, the message stays and it is told again.
        """
        if isinstance(function_or_stream, str):

            def add(function: Function) -> Function:
                self.bury_listeners.append((function_or_stream, function))
                return function

            return add
        self.bury_listeners.append((None, function_or_stream))
        return function_or_stream

    def keep_of(self, handler: Handler) -> int | None:
        """How long acknowledged entries of its stream stay: the longest that anybody asks for."""
        wishes = [one.keep_ms for one in self.handlers if one.stream == handler.stream] + [self.keep_ms]
        known = [wish for wish in wishes if wish is not None]
        if not known:
            return None
        return -1 if -1 in known else max(known)

    # Publishing

    @property
    def client(self) -> AsyncClient:
        """The client of this event loop; for everything that has no method here."""
        return self._publisher().client

    def _publisher(self) -> Publisher:
        loop = asyncio.get_running_loop()
        publisher = self._lines.get(loop)
        if publisher is None:
            publisher = self._lines[loop] = Publisher(AsyncClient(self.url, may_host=self.may_host))
        return publisher

    def encode_entry(
        self, stream: str, payload: Any, key: str | None = None, id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> list[tuple[bytes, bytes]]:  # fmt: skip
        """The fields of a message for a stream: headrace's layout, and the keys its handlers keep order by."""
        pairs = layout.encode_entry(payload, key=key, id=id, headers=headers)
        names = self.key_fields.get(stream)
        return pairs if names is None else pairs + order_fields(payload, names)

    async def publish(
        self,
        stream: str,
        payload: Any,
        *,
        key: str | None = None,
        id: str | None = None,
        headers: Mapping[str, str] | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        min_replicas: int = 0,
    ) -> str | None:
        """Add a message; its entry ID. With delay= or at= it gets that when it is due, and None is returned.

        With id=, twice is once: within a day the second call changes nothing and gives the first one's ID. With
        min_replicas=, so many replicas have it too when the call returns; if not, it raises Unconfirmed.
        """
        if min_replicas:
            return await self._publish_confirmed(stream, payload, key, id, headers, delay, at, min_replicas)
        due = publish_flows.parse_time(delay, at)
        if self.hooks.has("before_publish", "after_publish"):
            return await self._publish_with_hooks(Outgoing(stream, payload, key, id, dict(headers or {})), due)
        return await self._send(stream, payload, key, id, headers, due)

    async def _publish_with_hooks(self, message: Outgoing, due: publish_flows.Time | None) -> str | None:
        await self.hooks.run("before_publish", message)
        entry_id = await self._send(message.stream, message.payload, message.key, message.id, message.headers, due)
        await self.hooks.run("after_publish", message, entry_id)
        return entry_id

    async def _publish_confirmed(
        self, stream: str, payload: Any, key: str | None, id: str | None, headers: Mapping[str, str] | None,
        delay: Duration | None, at: datetime | None, min_replicas: int,
    ) -> str:  # fmt: skip
        if id is not None or delay is not None or at is not None:
            raise ConfigError("min_replicas goes neither with id= nor with delay= or at=.")
        if "+cluster" in self.client.url:
            raise Unsupported("min_replicas cannot be had in a cluster: there, WAIT knows no node of a stream.")
        pairs = self.encode_entry(stream, payload, key, None, headers)
        return await self.client.run(publish_flows.add_confirmed(stream, pairs, min_replicas))

    async def _send(
        self, stream: str, payload: Any, key: str | None, id: str | None, headers: Mapping[str, str] | None,
        due: publish_flows.Time | None,
    ) -> str | None:  # fmt: skip
        handlers.check_name("the stream", stream)
        pairs = self.encode_entry(stream, payload, key, id, headers)
        publisher = self._publisher()
        if id is None and due is None:
            return await publisher.add(stream, pairs)
        client = publisher.client
        if due is not None:
            return await client.run(publish_flows.add_later(client._facts, stream, pairs, due, id))
        return await client.run(publish_flows.add_once(client._facts, stream, pairs, id or ""))

    async def publish_many(
        self, stream: str, payloads: Iterable[Any], *, key: str | None = None, headers: Mapping[str, str] | None = None
    ) -> list[str]:
        """Add many messages in few round trips; their entry IDs."""
        handlers.check_name("the stream", stream)
        if self.hooks.has("before_publish", "after_publish"):
            flows.check_several(payloads, "the payloads to publish")
            messages = [Outgoing(stream, payload, key, None, dict(headers or {})) for payload in payloads]
            return [str(entry_id) for entry_id in await self._publish_all(messages)]
        if stream not in self.key_fields:
            return await self.client.stream(stream).publish_many(payloads, key=key, headers=headers)
        flows.check_several(payloads, "the payloads to publish")
        many = (self.encode_entry(stream, payload, key, None, headers) for payload in payloads)
        return await self.client.run(flows.add_all(stream, many))

    async def _publish_all(self, messages: list[Outgoing]) -> list[str | None]:
        return list(await asyncio.gather(*[self._publish_with_hooks(message, None) for message in messages]))

    # Dead letters

    def dead(self, stream: str, group: str | None = None) -> DeadLetters:
        """The dead letters of a group; where this app has one handler of the stream, that one's."""
        if group is None:
            groups = [handler.group for handler in self.handlers if handler.stream == stream]
            if len(groups) != 1:
                known = f"there are {', '.join(groups)}" if groups else "this app has no handler of it"
                raise ConfigError(f"say which group of {stream!r} is meant: {known}.")
            [group] = groups
        return DeadLetters(lambda: self.client, stream, group)

    # Running

    def worker(self, *, shutdown_timeout: Duration = SHUTDOWN_TIMEOUT) -> "WorkerHandle":
        """The handlers at work, inside a program of one's own: `async with app.worker(): …`."""
        worker: WorkerHandle = load_worker().Worker(self, shutdown_timeout=shutdown_timeout)
        return worker

    def run(self, *, shutdown_timeout: Duration = SHUTDOWN_TIMEOUT) -> None:
        """Run the handlers in this process until it is told to end (SIGTERM, Ctrl-C)."""
        load_worker().run_until_told(self, shutdown_timeout=shutdown_timeout)

    async def close(self) -> None:
        """Close what this event loop has opened. A later call opens it again."""
        publisher = self._lines.pop(asyncio.get_running_loop(), None)
        if publisher is not None:
            await publisher.client.close()

    async def close_if_idle(self) -> None:
        """For a worker that ends: unless somebody is just publishing."""
        publisher = self._lines.get(asyncio.get_running_loop())
        if publisher is not None and publisher.is_idle:
            await self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class WorkerHandle(Protocol):
    """What a program may do with its worker; worker/worker.py is it."""

    name: str

    @property
    def counters(self) -> Mapping[tuple[str, str], Any]:
        """What was done so far, by stream and group."""
        ...

    async def run(self) -> None: ...

    def stop(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


def load_worker() -> Any:
    """Loaded by name: an app knows no worker, and a program that only publishes needs none."""
    return import_module("headrace.worker.worker")


def provided_type(function: Callable[..., Any]) -> Any:
    """The type a provider makes, by its return annotation; of a generator, what it yields."""
    hints = get_type_hints(function)
    provided = hints.get("return")
    if provided is None:
        raise ConfigError(f"{function.__name__} does not say what it provides. Annotate what it returns.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        arguments = getattr(provided, "__args__", ())
        if not arguments:
            raise ConfigError(f"{function.__name__} yields what it provides; annotate it as Iterator[TYPE].")
        return arguments[0]
    return provided

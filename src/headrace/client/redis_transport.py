"""Transports on redis-py: standalone, TLS, socket file, Sentinel and Cluster.

Two things redis-py does are switched off. Its reply callbacks reshape answers differently per protocol, so replies stay
as they arrive. And it would send a command again after a lost connection, which may add an entry twice: here only
requests that are harmless to repeat are repeated, by `flows.py`.
"""

import asyncio
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace.client import redis_cluster
from headrace.client.kept_connections import KeptConnections
from headrace.client.requests import BLOCK_MS, Request
from headrace.client.results import encode_text
from headrace.client.transport import AsyncListening, Listening
from headrace.client.urls import Target
from headrace.errors import (
    AccessDenied,
    ClientClosed,
    CommandError,
    ConfigError,
    ConnectionLost,
    HeadraceError,
    ProtocolError,
    Unreachable,
    refusal,
)

CONNECT_S: Final = 5.0  # A server that does not accept in this time counts as unreachable.
MAX_CONNECTIONS: Final = 64  # Per client. More concurrent calls wait for a free connection.
UNLIMITED: Final = 2**31 - 1
GRACE_S: Final = 2.0  # Beyond the time a blocking call may take.

# redis-py cuts these prefixes off and tells them by the class alone.
CUT_PREFIXES: Final[dict[type[Exception], str]] = {
    redis.exceptions.NoPermissionError: "NOPERM ",
    redis.exceptions.NoScriptError: "NOSCRIPT ",
    redis.exceptions.OutOfMemoryError: "OOM ",
    redis.exceptions.ReadOnlyError: "READONLY ",
    redis.exceptions.ExecAbortError: "EXECABORT ",
}

# Nothing was done, and the same call may well succeed in a moment.
NOT_NOW: Final = (
    redis.exceptions.BusyLoadingError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.MasterDownError,
    redis.exceptions.TryAgainError,
)


def options_of(target: Target, timeout_s: float, *, is_async: bool, may_wait: bool) -> dict[str, Any]:
    """What every redis-py client is made with.

    With asyncio the time of a call is limited by us and not by redis-py: it uses wait_for, which before Python 3.12
    loses a cancellation that comes at the same moment as the result.
    """
    answer_s = timeout_s + GRACE_S
    retry: Any = AsyncRetry(NoBackoff(), 0) if is_async else Retry(NoBackoff(), 0)
    options: dict[str, Any] = {
        "username": target.username,
        "password": target.password,
        "socket_timeout": None if is_async else answer_s + BLOCK_MS / 1000 if may_wait else answer_s,
        "socket_connect_timeout": min(CONNECT_S, answer_s),
        "retry": retry,
        "health_check_interval": 0,
    }
    if target.protocol is not None:
        options["protocol"] = target.protocol
    if target.is_tls:
        options["ssl"] = True
        options.update(target.tls)
    return options


def connect(target: Target, timeout_s: float, *, is_async: bool, may_wait: bool) -> Any:
    """A redis-py client for the target. It opens connections when first used; that of a cluster asks for its nodes."""
    options = options_of(target, timeout_s, is_async=is_async, may_wait=may_wait)
    if target.kind == "cluster":
        return redis_cluster.connect(target.hosts, options, is_async=is_async)
    client = connect_one(target, timeout_s, options, is_async=is_async)
    forget_callbacks(client)
    return client


def connect_one(target: Target, timeout_s: float, options: dict[str, Any], *, is_async: bool) -> Any:
    library: Any = redis.asyncio if is_async else redis
    options["db"] = target.database
    if target.kind == "sentinel":
        sentinel_options = {
            "socket_timeout": None if is_async else CONNECT_S, "socket_connect_timeout": CONNECT_S,
            "retry": options["retry"],
        }  # fmt: skip
        module: Any = redis.asyncio.sentinel if is_async else redis.sentinel
        sentinel = module.Sentinel(target.hosts, sentinel_kwargs=sentinel_options, **options)
        return sentinel.master_for(target.service, max_connections=UNLIMITED)  # Its pool would not wait but fail.
    if target.kind == "unix":
        pool_class: Any = library.BlockingConnectionPool
        connection_class: Any = library.UnixDomainSocketConnection
        options.pop("ssl", None)
        return library.Redis.from_pool(
            pool_class(
                connection_class=connection_class,
                path=target.path,
                max_connections=MAX_CONNECTIONS,
                timeout=timeout_s,
                **options,
            )
        )
    [(host, port)] = target.hosts
    connection: Any = library.connection.SSLConnection if target.is_tls else library.Connection
    options.pop("ssl", None)
    pool = library.BlockingConnectionPool(
        connection_class=connection, host=host, port=port, max_connections=MAX_CONNECTIONS, timeout=timeout_s, **options
    )
    return library.Redis.from_pool(pool)


class RedisTransport:
    def __init__(self, target: Target, timeout_s: float, on_close: Callable[[], None] | None = None) -> None:
        self.url = target.shown
        self.target = target
        self.timeout_s = timeout_s
        self.clients: dict[bool, Any] = {}
        self.is_closed = False
        self.lock = threading.Lock()
        self.subscriptions: weakref.WeakSet[Any] = weakref.WeakSet()
        self.on_close = on_close  # Called once.

    def client_for(self, request: Request[Any]) -> Any:
        """Calls that may wait have connections of their own: more patient ones, and nobody queues behind them."""
        may_wait = request.wait_ms > 0
        with self.lock:
            if self.is_closed:
                raise ClientClosed(f"this client of {self.url} is closed. Open another one.")
            if may_wait not in self.clients:
                self.clients[may_wait] = connect(self.target, self.timeout_s, is_async=False, may_wait=may_wait)
            return self.clients[may_wait]

    def call(self, request: Request[Any], timeout_s: float) -> Any:
        try:
            client = self.client_for(request)
            if self.target.kind == "cluster":
                return redis_cluster.call(client, request, words_of(request))
            return client.execute_command(*words_of(request))
        except Exception as error:  # redis-py and the socket layer raise many kinds; translate knows them or re-raises.
            raise told(error, self.target, is_closed=self.is_closed) from error

    def call_many(self, requests: Sequence[Request[Any]], timeout_s: float) -> list[Any]:
        if not requests:
            return []
        try:
            pipeline = make_pipeline(self.client_for(requests[0]), self.target, requests)
            replies = pipeline.execute(raise_on_error=False)
        except Exception as error:  # As above.
            raise told(error, self.target, is_closed=self.is_closed) from error
        return [translate(reply, self.target) if isinstance(reply, Exception) else reply for reply in replies]

    def subscription(self) -> Listening:
        from headrace.client.redis_subscription import RedisSubscription

        if self.is_closed:
            raise ClientClosed(f"this client of {self.url} is closed. Open another one.")
        subscription = RedisSubscription(self.target, self.timeout_s)
        self.subscriptions.add(subscription)
        return subscription

    def close(self) -> None:
        with self.lock:
            self.is_closed = True
            clients, self.clients = list(self.clients.values()), {}
        for subscription in list(self.subscriptions):
            subscription.close()
        for client in clients:
            for sentinel in sentinels_of(client):
                sentinel.close()
            client.close()
        on_close, self.on_close = self.on_close, None
        if on_close is not None:
            on_close()


class AsyncRedisTransport:
    def __init__(self, target: Target, timeout_s: float, on_close: Callable[[], None] | None = None) -> None:
        self.url = target.shown
        self.target = target
        self.timeout_s = timeout_s
        self.clients: dict[bool, Any] = {}
        self.is_closed = False
        self.subscriptions: weakref.WeakSet[Any] = weakref.WeakSet()
        self.on_close = on_close  # Called once.

    def client_for(self, request: Request[Any]) -> Any:
        """As in RedisTransport."""
        may_wait = request.wait_ms > 0
        if self.is_closed:
            raise ClientClosed(f"this client of {self.url} is closed. Open another one.")
        if may_wait not in self.clients:
            client = connect(self.target, self.timeout_s, is_async=True, may_wait=may_wait)
            self.clients[may_wait] = client if self.target.kind == "cluster" else KeptConnections(client)
        return self.clients[may_wait]

    async def call(self, request: Request[Any], timeout_s: float) -> Any:
        try:
            client = self.client_for(request)
            async with asyncio.timeout(timeout_s + GRACE_S):
                if self.target.kind == "cluster":
                    return await redis_cluster.call_async(client, request, words_of(request))
                [reply] = await client.send_together([request])
        except Exception as error:  # As in RedisTransport.call.
            raise told(error, self.target, is_closed=self.is_closed) from error
        if isinstance(reply, Exception):
            raise told(reply, self.target, is_closed=self.is_closed) from reply
        return reply

    async def call_many(self, requests: Sequence[Request[Any]], timeout_s: float) -> list[Any]:
        if not requests:
            return []
        try:
            client = self.client_for(requests[0])
            async with asyncio.timeout(timeout_s + GRACE_S):
                if self.target.kind == "cluster":
                    replies = await make_pipeline(client, self.target, requests).execute(raise_on_error=False)
                else:
                    replies = await client.send_together(requests)
        except Exception as error:  # As above.
            raise told(error, self.target, is_closed=self.is_closed) from error
        return [translate(reply, self.target) if isinstance(reply, Exception) else reply for reply in replies]

    def subscription(self) -> AsyncListening:
        from headrace.client.redis_subscription import AsyncRedisSubscription

        if self.is_closed:
            raise ClientClosed(f"this client of {self.url} is closed. Open another one.")
        subscription = AsyncRedisSubscription(self.target, self.timeout_s)
        self.subscriptions.add(subscription)
        return subscription

    async def close(self) -> None:
        self.is_closed = True
        for subscription in list(self.subscriptions):
            await subscription.close()
        clients, self.clients = list(self.clients.values()), {}
        for one in clients:
            client = one.client if isinstance(one, KeptConnections) else one
            for sentinel in sentinels_of(client):
                await sentinel.aclose()
            await client.aclose()
        on_close, self.on_close = self.on_close, None
        if on_close is not None:
            await asyncio.to_thread(on_close)


def words_of(request: Request[Any]) -> list[Any]:
    """What is handed to redis-py. Its fast packer knows no surrogates, so such words go out as bytes."""
    first, *rest = request.argv
    if first == "COMMAND" and rest:
        first = f"COMMAND {rest.pop(0)!s}"  # COMMAND alone would be taken for its own question about all commands.
    return [first, *(encode_text(word) if isinstance(word, str) and not word.isascii() else word for word in rest)]


def make_pipeline(client: Any, target: Target, requests: Sequence[Request[Any]]) -> Any:
    pipeline = client.pipeline() if target.kind == "cluster" else client.pipeline(transaction=False)
    if target.kind != "cluster":
        forget_callbacks(pipeline)
    for request in requests:
        pipeline.execute_command(*words_of(request))
    return pipeline


def forget_callbacks(client: Any) -> None:
    """Replies stay as the server sent them."""
    client.response_callbacks = {}


def sentinels_of(client: Any) -> Sequence[Any]:
    """The connections to the sentinels; redis-py leaves them open."""
    manager = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
    return [] if manager is None else list(manager.sentinels)


# Errors


def told(error: Exception, target: Target, *, is_closed: bool) -> HeadraceError:
    """What the caller is told. A connection that broke because its client was closed is no riddle."""
    translated = translate(error, target)
    if is_closed and isinstance(translated, ConnectionLost):
        return ClientClosed(
            f"this client of {target.shown} was closed during the call; whether it took effect is unknown."
        )
    return translated


def translate(error: Exception, target: Target) -> HeadraceError:
    """One of ours, in words that say what to do."""
    where = target.shown
    if isinstance(error, HeadraceError):
        return error
    if isinstance(error, redis.exceptions.AuthenticationError):
        return AccessDenied(f"{where} refuses the user or password. Check the URL; redis://user:password@host:port.")
    if isinstance(error, NOT_NOW):
        return unreachable(where, "it answers, but is not ready: " + str(error).rstrip("."))
    if isinstance(error, redis.exceptions.ResponseError):
        return refusal(CUT_PREFIXES.get(type(error), "") + str(error), where)
    if isinstance(error, (redis.exceptions.TimeoutError, TimeoutError)):
        if "connecting" in str(error).lower():
            return unreachable(where, "no answer in time")
        return ConnectionLost(f"{where} did not answer in time; whether the call took effect is unknown.")
    if isinstance(error, redis.exceptions.MaxConnectionsError) or "No connection available" in str(error):
        return ConnectionLost(f"all {MAX_CONNECTIONS} connections to {where} are in use; nothing was sent.")
    if isinstance(error, redis.exceptions.InvalidResponse):
        return ProtocolError(f"{where} does not speak the Redis protocol. Check host and port.")
    if isinstance(error, redis.exceptions.DataError):
        return ConfigError(f"this command cannot be sent: {error}")
    if "command doesn't exist" in str(error):  # redis-py asks a cluster for its commands first.
        return CommandError(f"ERR unknown command: {error}")
    if isinstance(error, (redis.exceptions.ConnectionError, redis.exceptions.RedisClusterException, OSError)):
        return translate_connection(error, where)
    raise error


def translate_connection(error: Exception, where: str) -> HeadraceError:
    text = str(error)
    reasons = {
        "refused": "connection refused", "name or service": "unknown host", "nodename": "unknown host",
        "temporary failure in name resolution": "unknown host", "no such file": "no such socket file",
        "error connecting": "cannot connect", "no master found": "the sentinels know no such service",
        "cannot be connected": "no cluster node answers", "certificate": "the certificate cannot be verified",
        "wrong version number": "the server does not speak TLS", "connect call failed": "connection refused",
    }  # fmt: skip
    for sign, reason in reasons.items():
        if sign in text.lower():
            return unreachable(where, reason)
    return ConnectionLost(f"the connection to {where} broke; whether the call took effect is unknown.")


def unreachable(where: str, reason: str) -> Unreachable:
    return Unreachable(
        f'Cannot reach {where} ({reason}). Start a broker with "headrace serve" (port 7379), or check the URL.'
    )

"""Listening to a channel or a pattern of a Redis-like server, on a connection of its own.

redis-py makes the connection; messages are read from it here, with RESP2, where they are plain arrays. In a cluster it
leads to the node that has the slot of the name, and PUBLISH goes there too: so publishers and listeners of one channel
meet on one node. These are the plain commands, not the sharded ones, because patterns match only those and programs in
other languages use them; the cluster passes such messages on to its other nodes.
"""

import asyncio
import math
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import redis
import redis.asyncio

from headrace.client.raw_connection import find_node, find_place
from headrace.client.redis_transport import options_of, translate
from headrace.client.results import decode_text
from headrace.client.transport import Published
from headrace.client.urls import Target
from headrace.errors import ClientClosed, ConnectionLost

SLICE_S: Final = 1.0  # A `next` looks this often whether it was closed meanwhile.
LEAST_S: Final = 0.01  # With asyncio: what has arrived shows only after a turn of the loop.


class Subscription:
    """What both flavours share."""

    def __init__(self, target: Target, timeout_s: float) -> None:
        self.target = replace(target, protocol=2)
        self.timeout_s = timeout_s
        self.connection: Any = None
        self.is_closed = False

    def read(self, reply: Any) -> Published | None:
        """A message, or None for the server's other words."""
        if reply[0] == b"message":
            return reply[1], reply[2], None
        if reply[0] == b"pmessage":
            return reply[2], reply[3], reply[1]
        return None

    def failed(self, error: Exception) -> Exception:
        """What the caller is told. One that was closed meanwhile fails in many ways."""
        if self.is_closed:
            return ClientClosed(f"this subscription of {self.target.shown} is closed. Open another one.")
        return translate(error, self.target)

    def not_confirmed(self) -> ConnectionLost:
        return ConnectionLost(f"{self.target.shown} did not answer in time; nobody listens.")


def commands_for(channels: Iterable[bytes], patterns: Iterable[bytes]) -> list[tuple[str, bytes]]:
    return [("SUBSCRIBE", name) for name in channels] + [("PSUBSCRIBE", name) for name in patterns]


class RedisSubscription(Subscription):
    """For one thread; another one may close it."""

    def subscribe(self, channels: Iterable[bytes] = (), patterns: Iterable[bytes] = ()) -> None:
        """Returns when the server has confirmed. The first name decides on the node of a cluster."""
        commands = commands_for(channels, patterns)
        try:
            if self.connection is None:
                self.connection = find_node(self.target, decode_text(commands[0][1]), self.timeout_s)
                self.connection.connect()
            for words in commands:
                self.connection.send_command(*words)
                if not self.connection.can_read(self.timeout_s):
                    raise self.not_confirmed()
                self.connection.read_response(disable_decoding=True)
        except Exception as error:  # redis-py and the socket layer raise many kinds; translate knows them or re-raises.
            self.disconnect()
            raise self.failed(error) from error

    def next(self, timeout_s: float) -> Published | None:
        deadline = time.monotonic() + timeout_s
        try:
            while True:
                left_s = max(0.0, deadline - time.monotonic())
                if self.is_closed:
                    raise ConnectionResetError
                if self.connection.can_read(min(left_s, SLICE_S)):
                    message = self.read(self.connection.read_response(disable_decoding=True))
                    if message is not None:
                        return message
                elif not left_s:
                    return None
        except Exception as error:  # As above.
            self.disconnect()
            raise self.failed(error) from error

    def close(self) -> None:
        self.is_closed = True
        self.disconnect()

    def disconnect(self) -> None:
        if self.connection is not None:
            self.connection.disconnect()


class AsyncRedisSubscription(Subscription):
    async def subscribe(self, channels: Iterable[bytes] = (), patterns: Iterable[bytes] = ()) -> None:
        commands = commands_for(channels, patterns)
        try:
            async with asyncio.timeout(self.timeout_s):
                if self.connection is None:
                    self.connection = await self.find_node(decode_text(commands[0][1]))
                    await self.connection.connect()
                for words in commands:
                    await self.connection.send_command(*words)
                    await self.connection.read_response(disable_decoding=True, timeout=math.inf)
        except Exception as error:  # As in RedisSubscription.
            await self.disconnect()
            raise self.failed(self.not_confirmed() if isinstance(error, TimeoutError) else error) from error
        except BaseException:  # Cancelled.
            await self.disconnect()
            raise

    async def find_node(self, name: str) -> Any:
        target = self.target
        library: Any = redis.asyncio
        options = options_of(target, self.timeout_s, is_async=True, may_wait=True)
        if target.kind == "unix":
            return library.UnixDomainSocketConnection(path=target.path, db=target.database, **options)
        asking = options_of(target, self.timeout_s, is_async=False, may_wait=False)
        # Sentinels and clusters are asked by the other flavour, in a thread.
        is_known = target.kind not in ("cluster", "sentinel")
        host, port = target.hosts[0] if is_known else await asyncio.to_thread(find_place, target, name, asking)
        connection = library.SSLConnection if options.pop("ssl", False) else library.Connection
        return connection(host=host, port=port, db=target.database, **options)

    async def next(self, timeout_s: float) -> Published | None:
        """A cancelled one has taken no message: bytes are taken in and read without a pause between."""
        try:
            async with asyncio.timeout(max(timeout_s, LEAST_S)):
                while True:
                    reply = await self.connection.read_response(
                        disable_decoding=True, timeout=math.inf, disconnect_on_error=False
                    )
                    message = self.read(reply)
                    if message is not None:
                        return message
        except TimeoutError:
            return None
        except Exception as error:  # As in RedisSubscription.
            await self.disconnect()
            raise self.failed(error) from error

    async def close(self) -> None:
        self.is_closed = True
        await self.disconnect()

    async def disconnect(self) -> None:
        if self.connection is not None:
            await self.connection.disconnect()

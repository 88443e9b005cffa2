"""Calls on the connections of a redis-py client, some of which stay with us between calls.

redis-py makes and repairs the connections. But its pool counts and measures at every call, and its connections do so
with every reply, which takes longer than a small call itself (bench/worker.py). So a connection that has served a call
well is kept for the next one, and the replies of a pipeline are taken from its parser as far as they have arrived.
"""

from collections.abc import Sequence
from typing import Any, Final

import hiredis
import redis

from headrace.client.packing import pack
from headrace.client.requests import Request

MOST_KEPT: Final = 8  # The others go back to the pool.
NOTHING_YET: Final = object()
PUSHED: Final[tuple[type, ...]] = (hiredis.PushNotification,) if hasattr(hiredis, "PushNotification") else ()


class KeptConnections:
    """Of one event loop and one redis-py client, which must not be that of a cluster."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.pool = client.connection_pool
        self.kept: list[Any] = []
        self.asking = 0  # Callers that wait for the pool: for them, it must get its connections back.

    async def send_together(self, requests: Sequence[Request[Any]]) -> list[Any]:
        """All in one write on one connection; a refused one has its error in place of the reply."""
        connection = await self.take()
        try:
            await connection.send_packed_command(
                b"".join([pack(request.argv) for request in requests]), check_health=False
            )
            return await read_replies(connection, len(requests))
        except BaseException:  # Cancelled ones too: what is still to come must never meet the next caller.
            await connection.disconnect(nowait=True)
            raise
        finally:
            await self.give_back(connection)

    async def take(self) -> Any:
        """One that is ready, or not connected: then sending connects it."""
        connection = self.kept.pop() if self.kept else await self.ask_pool()
        if not is_usable(connection):  # redis-py's pool does not see that, where the server may announce maintenance.
            await connection.disconnect(nowait=True)
        return connection

    async def ask_pool(self) -> Any:
        self.asking += 1
        try:
            return await self.pool.get_connection()
        finally:
            self.asking -= 1

    async def give_back(self, connection: Any) -> None:
        if self.asking or len(self.kept) >= MOST_KEPT or not connection.is_connected:
            await self.pool.release(connection)
        else:
            self.kept.append(connection)


def is_usable(connection: Any) -> bool:
    """Whether it is connected, not closed by the server, and has nothing to read that nobody asked for."""
    stream = connection._reader  # It offers no other door to it; the client's tests would tell.
    if not connection.is_connected or stream.at_eof() or stream.exception() is not None:
        return False
    has_left = getattr(connection, "should_reconnect", None)
    return not stream._buffer and not (has_left is not None and has_left())


async def read_replies(connection: Any, count: int) -> list[Any]:
    """As redis-py reads them one by one, but those that have arrived together are taken together."""
    parser = connection._parser
    take_next = parser._reader.gets if isinstance(getattr(parser, "_reader", None), hiredis.Reader) else nothing_yet
    replies: list[Any] = []
    while len(replies) < count:
        reply = take_next()
        if type(reply) is object:  # The mark that redis-py has chosen for: more bytes are needed.
            replies.append(await read_reply(connection))
        elif isinstance(reply, redis.exceptions.ConnectionError):  # A refusal that concerns the whole connection.
            raise reply
        elif isinstance(reply, PUSHED):
            await parser.handle_push_response(reply)
        else:
            replies.append(reply)
    return replies


async def read_reply(connection: Any) -> Any:
    try:
        return await connection.read_response()
    except redis.exceptions.ResponseError as error:
        return error


def nothing_yet() -> object:
    return NOTHING_YET

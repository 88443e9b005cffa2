"""Calls over HTTP to others: of the coordinator to health URLs, of a consumer to its coordinator.

One call has one time limit, from the connection to the last byte, and a limit for what it reads. Connections are kept
and used again, unless told otherwise. Redirects are not followed: whoever is asked has to answer.
"""

import asyncio
import ssl
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

import h11

from headrace.errors import ConnectionLost, Unreachable

MOST_IDLE: Final = 8  # Connections kept per place.
READ_BYTES: Final = 64 << 10
MOST_ANSWER_BYTES: Final = 64 << 20  # A page of messages can be large.

Place = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


class Caller:
    """Keeps connections. Close it."""

    def __init__(self) -> None:
        self.idle: dict[Place, list[Connection]] = {}

    async def call(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        token: str = "",
        timeout_s: float,
        most_bytes: int = MOST_ANSWER_BYTES,
        keeps: bool = True,
    ) -> Answer:
        """Unreachable: nothing was sent. ConnectionLost: whether it took effect is unknown."""
        try:
            place, request = make_request(method, url, body, token, keeps=keeps)
        except (ValueError, h11.ProtocolError) as error:
            raise Unreachable(f"{url!r} is no address: {error}.") from error
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    connection = await self.connect(place)
                    try:
                        answer = await connection.exchange(request, body, most_bytes)
                    except StaleConnection:
                        continue  # It was closed while it lay idle: nobody has seen the request.
                    self.keep(place, connection, keeps=keeps)
                    return answer
        except TimeoutError as error:
            raise ConnectionLost(f"{url} did not answer within {timeout_s:g} s.") from error
        except (OSError, h11.ProtocolError, UnicodeError) as error:
            raise ConnectionLost(f"{url} did not answer: {error}.") from error

    async def connect(self, place: Place) -> "Connection":
        kept = self.idle.get(place)
        if kept:
            return kept.pop()
        scheme, host, port = place
        context = trust() if scheme == "https" else None
        try:
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
        except (OSError, UnicodeError) as error:
            raise Unreachable(f"Cannot reach {scheme}://{host}:{port} ({error}).") from error
        return Connection(reader, writer)

    def keep(self, place: Place, connection: "Connection", *, keeps: bool) -> None:
        idle = self.idle.setdefault(place, [])
        if keeps and connection.begin_anew() and len(idle) < MOST_IDLE:
            idle.append(connection)
        else:
            connection.close()

    async def close(self) -> None:
        idle = [connection for connections in self.idle.values() for connection in connections]
        self.idle.clear()
        for connection in idle:
            connection.close()
        await asyncio.gather(*[connection.writer.wait_closed() for connection in idle], return_exceptions=True)


@cache
def trust() -> ssl.SSLContext:
    """Reading the certificates of the machine takes a while: once is enough."""
    return ssl.create_default_context()


class StaleConnection(Exception):
    """A kept connection that the other side has closed."""


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.talk = h11.Connection(h11.CLIENT)
        self.is_used = False

    async def exchange(self, request: h11.Request, body: bytes, most_bytes: int) -> Answer:
        try:
            return await self.send_and_read(request, body, most_bytes)
        except BaseException:
            self.close()
            raise

    async def send_and_read(self, request: h11.Request, body: bytes, most_bytes: int) -> Answer:
        out = self.talk.send(request) or b""
        if body:
            out += self.talk.send(h11.Data(data=body)) or b""
        out += self.talk.send(h11.EndOfMessage()) or b""
        status, pieces, size, has_answered = 0, [], 0, False
        try:
            self.writer.write(out)
            await self.writer.drain()
            while True:
                event: Any = self.talk.next_event()
                if event is h11.NEED_DATA:
                    data = await self.reader.read(READ_BYTES)
                    if not data and not has_answered and self.is_used:
                        raise StaleConnection
                    has_answered = True
                    self.talk.receive_data(data)
                elif isinstance(event, h11.Response):
                    status = event.status_code
                elif isinstance(event, h11.Data):
                    pieces.append(bytes(event.data))
                    size += len(event.data)
                    if size > most_bytes:
                        raise OSError(f"its answer is larger than {most_bytes} bytes")
                elif isinstance(event, h11.EndOfMessage):
                    return Answer(status, b"".join(pieces))
                elif isinstance(event, h11.ConnectionClosed):
                    raise OSError("it closed the connection")
        except ConnectionError:
            if self.is_used and not has_answered:
                raise StaleConnection from None
            raise

    def begin_anew(self) -> bool:
        """Whether another request may follow."""
        if self.talk.our_state is not h11.DONE or self.talk.their_state is not h11.DONE:
            return False
        self.talk.start_next_cycle()
        self.is_used = True
        return True

    def close(self) -> None:
        self.writer.close()


def make_request(method: str, url: str, body: bytes, token: str, *, keeps: bool) -> tuple[Place, h11.Request]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = [("Host", parts.netloc.rpartition("@")[2]), ("Accept", "application/json"), ("User-Agent", "headrace")]
    if body:
        headers += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    if token:
        headers.append(("Authorization", f"Bearer {token}"))
    if not keeps:
        headers.append(("Connection", "close"))
    return (parts.scheme, host, port), h11.Request(method=method, target=target, headers=headers)

"""A raw client of the Redis protocol that shows each reply exactly as it came.

Ordinary clients fold types together: a status looks like a bulk string, a null array like a null bulk string. Here
every wire type has its own Python value:

    bulk string  bytes            status    str                array  list
    integer      int              error     ErrorReply         map    Map (ordered)
    double       float            boolean   bool               set    SetReply
    null         NULL_BULK, NULL_ARRAY (RESP2) or NULL (RESP3)        push   Push

It waits at most READ_TIMEOUT_S for a reply; that is a limit for a broken server, not a measurement.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Any

READ_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Null:
    name: str

    def __repr__(self) -> str:
        return self.name


NULL_BULK = Null("NULL_BULK")
NULL_ARRAY = Null("NULL_ARRAY")
NULL = Null("NULL")


@dataclass(frozen=True, slots=True)
class ErrorReply:
    text: str


@dataclass(frozen=True, slots=True)
class Verbatim:
    format: str
    data: bytes


class Map(dict[Any, Any]):
    """A RESP3 map. Two maps are equal only when their keys come in the same order."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and list(self.items()) == list(other.items())

    def __ne__(self, other: object) -> bool:
        return not self == other


class SetReply(list[Any]):
    """A RESP3 set, in the order sent."""


class Push(list[Any]):
    """A RESP3 push message."""


class ConnectionClosed(Exception):
    """The server closed the connection before the reply was complete."""


class Wire:
    """One connection.

    >>> wire = Wire(port)
    >>> wire("XADD orders 1-0 item tea")        # one string is split as redis-cli does
    b'1-0'
    >>> wire("SET", "key", b"any bytes")        # several arguments are sent as they are
    'OK'
    """

    def __init__(self, port: int, *, host: str = "127.0.0.1", protocol: int = 2) -> None:
        self._socket = socket.create_connection((host, port), timeout=READ_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        self.protocol = protocol
        if protocol == 3:
            greeting = self("HELLO 3")
            assert isinstance(greeting, Map), greeting

    def __call__(self, *command: str | bytes | int) -> Any:
        self.send(*command)
        return self.read()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, *command: str | bytes | int) -> None:
        self.send_bytes(encode(to_arguments(*command)))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def pipeline(self, commands: list[tuple[str | bytes | int, ...]]) -> list[Any]:
        """Send all commands at once and give their replies."""
        self.send_bytes(b"".join(encode(to_arguments(*command)) for command in commands))
        return [self.read() for _ in commands]

    def read(self, *, timeout_s: float = READ_TIMEOUT_S) -> Any:
        """The next reply. Push messages are replies too: the caller sees them in their place."""
        self._socket.settimeout(timeout_s)
        return self._read_value()

    def _read_value(self) -> Any:
        line = self._read_line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return ErrorReply(rest.decode("utf-8", "surrogateescape"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return NULL_BULK if rest == b"-1" else self._read_bulk(int(rest))
        if kind == b"*":
            return NULL_ARRAY if rest == b"-1" else [self._read_value() for _ in range(int(rest))]
        if kind == b"%":
            reply = Map()
            for _ in range(int(rest)):
                key = self._read_value()
                reply[key] = self._read_value()
            return reply
        if kind == b"~":
            return SetReply(self._read_value() for _ in range(int(rest)))
        if kind == b">":
            return Push(self._read_value() for _ in range(int(rest)))
        if kind == b"_":
            return NULL
        if kind == b"#":
            return rest == b"t"
        if kind == b",":
            return float(rest)
        if kind == b"=":
            data = self._read_bulk(int(rest))
            return Verbatim(data[:3].decode(), data[4:])
        raise AssertionError(f"not a reply: {line!r}")

    def _read_line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            self._fill()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _read_bulk(self, size: int) -> bytes:
        while len(self._buffer) < size + 2:
            self._fill()
        data = bytes(self._buffer[:size])
        assert self._buffer[size : size + 2] == b"\r\n", "a bulk string must end with CR LF"
        del self._buffer[: size + 2]
        return data

    def _fill(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionClosed
        self._buffer += data


def to_arguments(*command: str | bytes | int) -> list[bytes]:
    """One string is a command line; several arguments are taken as they are."""
    if len(command) == 1 and isinstance(command[0], str):
        return split_line(command[0])
    return [part if isinstance(part, bytes) else str(part).encode() for part in command]


def encode(arguments: list[bytes]) -> bytes:
    parts = [b"*%d\r\n" % len(arguments)]
    parts += [b"$%d\r\n%b\r\n" % (len(argument), argument) for argument in arguments]
    return b"".join(parts)


_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "a": b"\a", "b": b"\b"}


def split_line(line: str) -> list[bytes]:
    """Words between blanks; double quotes keep blanks and know \\n, \\r, \\t, \\xHH, \\\\ and \\"."""
    arguments: list[bytes] = []
    position, end = 0, len(line)
    while position < end:
        if line[position].isspace():
            position += 1
            continue
        if line[position] != '"':
            start = position
            while position < end and not line[position].isspace():
                position += 1
            arguments.append(line[start:position].encode())
            continue
        word, position = unquote(line, position)
        arguments.append(word)
    return arguments


def unquote(line: str, position: int) -> tuple[bytes, int]:
    """The quoted string that begins at position, and the position after it."""
    word = bytearray()
    position += 1
    while line[position] != '"':
        if line[position] != "\\":
            word += line[position].encode()
            position += 1
        elif line[position + 1] == "x":
            word.append(int(line[position + 2 : position + 4], 16))
            position += 4
        else:
            word += _ESCAPES.get(line[position + 1], line[position + 1].encode())
            position += 2
    return bytes(word), position + 1

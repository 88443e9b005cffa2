"""One connection to the node that owns a key, for bulk reading and transactions.

redis-py makes the connection (TLS, password, database, socket file, Sentinel, Cluster); then the plain socket is used,
with RESP2. `call` and `call_many` decode replies. `send` and `receive` hand over the bytes of a reply as they are, so
that a page of thousands of entries need not become Python objects.

The end of a raw reply is found without parsing it: behind each command goes an ECHO of 32 random characters, and the
reply ends where they begin. No entry can hold them, as they are made for this one request and read by the server after
it has answered the command. A user who may not ECHO is served the slow way: one command at a time, parsed to its end.

Nothing is repeated here. A broken connection, a moved slot or a new primary is a ConnectionLost: open another one.
"""

import os
import select
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Self

import hiredis
import redis

from headrace.client import redis_cluster
from headrace.client.packing import Word, pack
from headrace.client.redis_transport import CONNECT_S, GRACE_S, options_of, translate, unreachable
from headrace.client.results import encode_text
from headrace.client.urls import Target, parse_url
from headrace.errors import AccessDenied, ConfigError, ConnectionLost, HeadraceError, ProtocolError, refusal

FIRST_BUFFER_BYTES: Final = 256 * 1024
READ_BYTES: Final = 64 * 1024  # At least this much room before each read.
WRITE_BYTES: Final = 256 * 1024
SMALL_SHARE: Final = 4  # A reply is handed over with the buffer if it fills at least a quarter of it.
MAX_REPLY_BYTES: Final = 1 << 30  # One raw reply. Two entries of the largest value a server takes, 512 MB, do not fit.
ERROR_SIGN: Final = ord("-")
MARK_HEAD: Final = b"$32\r\n"

# The node is not, or no longer, the one to ask; nothing was done.
ELSEWHERE: Final = frozenset({"MOVED", "ASK", "READONLY"})
NOT_NOW: Final = frozenset({"LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN"})


class ReplyTooLarge(ProtocolError):
    """A raw reply beyond the limit. The connection is closed; ask for less."""


def open_raw(url: str, key: str, timeout_s: float = 10.0) -> "RawConnection":
    """A connection to the server, or the node of the cluster, that has the key."""
    target = parse_url(url, protocol=2)
    if target.kind == "embedded" and not target.path:
        raise ConfigError(
            f"{target.shown} is a broker inside one process, which other processes cannot reach. "
            'Start one with "headrace serve" and use headrace://localhost:7379, or use a redis:// URL.'
        )
    on_close: Callable[[], None] | None = None
    if target.kind == "embedded":
        from headrace.client.shared_folder import reach

        target, on_close = reach(target, timeout_s)
    if target.kind == "valkey":
        from headrace.client.valkey_process import release_valkey, start_valkey

        folder, target = target, start_valkey(target, 2)
        on_close = partial(release_valkey, folder)
    try:
        return RawConnection(connect(target, key, timeout_s), target, key, timeout_s, on_close)
    except BaseException:
        if on_close is not None:
            on_close()
        raise


class RawConnection:
    """For one thread. `shown` is the URL without user and password."""

    def __init__(
        self, connection: Any, target: Target, key: str, timeout_s: float, on_close: Callable[[], None] | None
    ) -> None:
        self.shown = target.shown
        self.target = target
        self.key = key
        self.connection = connection
        self.socket: Any = connection._sock  # redis-py offers no other door to it.
        self.timeout_s = timeout_s + GRACE_S
        self.socket.settimeout(self.timeout_s)
        self.on_close = on_close
        self.buffer = bytearray(FIRST_BUFFER_BYTES)
        self.filled = 0  # Bytes of the buffer that hold what was received.
        self.marks: deque[bytes] = deque()  # What ends each raw reply that is outstanding, in order.
        self.unsent: deque[bytes] = deque()  # Where no marks are possible: commands that wait for their turn.
        self.has_marks = True
        try:
            self.has_marks = self.can_echo()
        except BaseException:
            self.disconnect()
            raise

    def __repr__(self) -> str:
        return f"RawConnection({self.shown!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.disconnect()
        on_close, self.on_close = self.on_close, None
        if on_close is not None:
            on_close()

    # Decoded replies

    def call(self, *argv: Word) -> Any:
        """The reply to one command: bytes, int, None or a list of these. A refusal is raised."""
        [reply] = self.call_many([argv])
        if isinstance(reply, HeadraceError):
            raise reply
        return reply

    def call_many(self, argvs: Sequence[Sequence[Word]]) -> list[Any]:
        """Send all in one write; a refused one has its error in place of the reply, also inside that of EXEC."""
        if self.marks or self.unsent:
            raise RuntimeError("a raw reply is outstanding; receive it first")
        reader = hiredis.Reader(protocolError=ProtocolError, replyError=self.refused)
        self.write(b"".join(map(pack, argvs)))
        replies: list[Any] = []
        while len(replies) < len(argvs):
            reply = self.next_reply(reader)
            replies.append(reply)
        return replies

    def next_reply(self, reader: Any) -> Any:
        while True:
            reply = self.parse_next(reader)
            if reply is not False:  # False: more bytes are needed. RESP2 has no booleans.
                return reply
            if self.filled == 0:
                self.read_more()
            reader.feed(self.buffer, 0, self.filled)
            self.filled = 0

    def parse_next(self, reader: Any) -> Any:
        try:
            return reader.gets()
        except ProtocolError as error:
            self.disconnect()
            raise ProtocolError(f"{self.shown} does not speak the Redis protocol. Check host and port.") from error

    # Raw replies

    def send(self, *argv: Word) -> None:
        """Send a command and wait for nothing. Several may be outstanding."""
        self.send_many([argv])

    def send_many(self, argvs: Sequence[Sequence[Word]]) -> None:
        """Several commands in one write; each needs its own `receive`."""
        if not self.has_marks:
            self.unsent.extend(map(pack, argvs))
            return
        parts: list[bytes] = []
        for argv in argvs:
            mark = os.urandom(16).hex().encode()
            parts += (pack(argv), pack((b"ECHO", mark)))
            self.marks.append(MARK_HEAD + mark + b"\r\n")
        self.write(b"".join(parts))

    def receive(self) -> memoryview:
        """The bytes of the next reply, exactly one. They are the caller's to keep. A refusal is raised."""
        reply = self.receive_marked() if self.has_marks else self.receive_parsed()
        if reply[0] == ERROR_SIGN:
            raise self.refused(bytes(reply[1:-2]).decode("utf-8", "replace"))
        return reply

    def receive_marked(self) -> memoryview:
        mark = self.marks.popleft()
        searched = 0
        while True:
            end = self.buffer.find(mark, max(0, searched - len(mark)), self.filled)
            if end >= 0:
                return self.cut(end, end + len(mark))
            searched = self.filled
            self.read_more()

    def receive_parsed(self) -> memoryview:
        """Nothing else is outstanding, so the reply ends where the bytes do."""
        self.write(self.unsent.popleft())
        reader: Any = hiredis.Reader(protocolError=ProtocolError, replyError=self.refused)
        fed = 0
        while self.parse_next(reader) is False:
            self.read_more()
            reader.feed(self.buffer, fed, self.filled - fed)
            fed = self.filled
        return self.cut(self.filled, self.filled)

    def cut(self, end: int, next_begin: int) -> memoryview:
        """Hand over the buffer up to `end` and go on with one of the same size; a small reply is copied instead."""
        buffer, left = self.buffer, self.filled - next_begin
        is_small = end < len(buffer) // SMALL_SHARE
        reply = memoryview(bytes(buffer[:end])) if is_small else memoryview(buffer)[:end]
        if not is_small:
            self.buffer = bytearray(max(FIRST_BUFFER_BYTES, min(len(buffer), 2 * end), left))
        self.buffer[:left] = buffer[next_begin : self.filled]
        self.filled = left
        return reply

    # The socket

    def write(self, data: bytes) -> None:
        """Replies to the first commands are taken in meanwhile: a server may not listen until it is rid of them."""
        try:
            if len(data) <= READ_BYTES:
                self.socket.sendall(data)
                return
            poll = select.poll()
            poll.register(self.socket, select.POLLIN | select.POLLOUT)
            left = memoryview(data)
            while left:
                events = [event for _, event in poll.poll(self.timeout_s * 1000)]
                if not events:
                    raise TimeoutError
                if events[0] & select.POLLOUT:
                    left = left[self.socket.send(left[:WRITE_BYTES]) :]
                else:
                    self.read_more()
        except (OSError, ValueError) as error:
            raise self.lost(error) from error

    def read_more(self) -> None:
        if len(self.buffer) - self.filled < READ_BYTES:
            self.grow()
        try:
            with memoryview(self.buffer) as view:
                count = self.socket.recv_into(view[self.filled :])
        except (OSError, ValueError) as error:
            raise self.lost(error) from error
        if count == 0:
            raise self.lost(ConnectionResetError())
        self.filled += count

    def grow(self) -> None:
        if self.filled > MAX_REPLY_BYTES:
            self.disconnect()
            raise ReplyTooLarge(f"a reply of {self.shown} is larger than {MAX_REPLY_BYTES >> 30} GB; ask for less.")
        larger = bytearray(2 * len(self.buffer))
        larger[: self.filled] = memoryview(self.buffer)[: self.filled]
        self.buffer = larger

    def disconnect(self) -> None:
        self.marks.clear()
        self.unsent.clear()
        self.filled = 0
        self.connection.disconnect()

    # Errors

    def can_echo(self) -> bool:
        try:
            return bool(self.call(b"ECHO", b"headrace") == b"headrace")
        except AccessDenied as error:
            if "NOPERM" in str(error):
                return False
            raise
        except ConnectionLost:
            raise
        except HeadraceError:  # A proxy that knows no ECHO.
            return False

    def refused(self, text: str) -> HeadraceError:
        prefix = text.split(" ", 1)[0]
        if prefix in ELSEWHERE:
            return ConnectionLost(
                f"{self.shown}: another node has {self.key!r} now ({prefix}); nothing was done. Connect again."
            )
        if prefix in NOT_NOW:
            return unreachable(self.shown, "it answers, but is not ready: " + text.rstrip("."))
        return refusal(text, self.shown)

    def lost(self, error: Exception) -> HeadraceError:
        self.disconnect()
        if isinstance(error, TimeoutError):
            return ConnectionLost(f"{self.shown} did not answer in time; whether the call took effect is unknown.")
        return ConnectionLost(f"the connection to {self.shown} broke; whether the call took effect is unknown.")


# Connecting


def connect(target: Target, key: str, timeout_s: float) -> Any:
    """An open connection of redis-py."""
    try:
        connection = find_node(target, key, timeout_s)
        connection.connect()
    except Exception as error:  # redis-py and the socket layer raise many kinds; translate knows them or re-raises.
        raise translate(error, target) from error
    return connection


def find_node(target: Target, key: str, timeout_s: float) -> Any:
    options = options_of(target, timeout_s, is_async=False, may_wait=False)
    library: Any = redis
    if target.kind == "unix":
        return library.UnixDomainSocketConnection(path=target.path, db=target.database, **options)
    host, port = find_place(target, key, options)
    connection = library.SSLConnection if options.pop("ssl", False) else library.Connection
    return connection(host=host, port=port, db=target.database, **options)


def find_place(target: Target, key: str, options: dict[str, Any]) -> tuple[str, int]:
    """Where the server is, or the node of the cluster, that has the key."""
    if target.kind == "cluster":
        return find_cluster_node(target, key, dict(options))
    if target.kind == "sentinel":
        return find_primary(target, options["retry"])
    [place] = target.hosts
    return place


def find_cluster_node(target: Target, key: str, options: dict[str, Any]) -> tuple[str, int]:
    cluster = redis_cluster.connect(target.hosts, options, is_async=False)
    try:
        node = cluster.get_node_from_key(encode_text(key))
        return node.host, node.port
    finally:
        cluster.close()


def find_primary(target: Target, retry: Any) -> tuple[str, int]:
    library: Any = redis.sentinel
    sentinel = library.Sentinel(
        target.hosts,
        sentinel_kwargs={"socket_timeout": CONNECT_S, "socket_connect_timeout": CONNECT_S, "retry": retry},
    )
    try:
        host, port = sentinel.discover_master(target.service)
        return host, port
    finally:
        for one in sentinel.sentinels:
            one.close()

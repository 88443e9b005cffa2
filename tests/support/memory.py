"""A broker in memory: no socket, and a clock that is moved by hand.

    broker = MemoryBroker()
    broker("XADD orders 1-0 item tea")              # a command line, split as redis-cli does -> b"1-0"
    broker("SET", "key", b"any bytes")              # or its words
    ann = broker.client()
    ann.send("XREAD BLOCK 0 STREAMS orders $")      # a command that may have to wait
    broker("XADD orders 2-0 item milk")
    ann.replies()                                   # what has arrived since

Replies are as hiredis decodes them; an error is a Refusal. `MemoryWire` shows each wire type by its own value instead.
Moving the clock serves those who wait, each at its own time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hiredis

from headrace.commands.call import State
from headrace.engine.waiters import NO_TIME
from headrace.server.conversation import Conversations

from .wire import ConnectionClosed, Wire, encode, to_arguments

START_MS = 1_700_000_000_000  # Some day in November 2023.


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self.time_ms = start_ms
        self.watchers: list[Callable[[int], None]] = []

    def now_ms(self) -> int:
        return self.time_ms

    def advance(self, *, s: float = 0, ms: int = 0) -> None:
        target_ms = self.time_ms + round(s * 1000) + ms
        for watcher in self.watchers:
            watcher(target_ms)
        self.time_ms = target_ms


class Refusal(Exception):
    """An error reply. Equal to another one with the same text."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refusal) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class MemoryBroker:
    """The first client is the broker's own call: broker("PING")."""

    def __init__(self, clock: ManualClock | None = None, *, journaling: bool = False) -> None:
        self.clock = clock or ManualClock()
        self.clock.watchers.append(self.serve_until)
        self.state = State(self.clock.now_ms())
        self.state.journaling = journaling
        self.conversations = Conversations(self.state)
        self.clients: dict[int, MemoryClient] = {}
        self.first = self.client()

    def __call__(self, *command: str | bytes | int) -> Any:
        return self.first(*command)

    def client(self, *, protocol: int = 2) -> MemoryClient:
        """One more client."""
        client = MemoryClient(self)
        if protocol == 3:
            client("HELLO 3")
        return client

    def wire(self, *, protocol: int = 2) -> MemoryWire:
        """One more client, which shows every wire type."""
        wire = MemoryWire(self.client())
        if protocol == 3:
            wire("HELLO 3")
        return wire

    def settle(self, now_ms: int) -> None:
        """Give everybody what they were sent."""
        for conversation in self.conversations.settle(now_ms):
            client = self.clients.get(conversation.call.id)
            if client is not None:
                client.take(now_ms)

    def serve_until(self, target_ms: int) -> None:
        """Ring at every time somebody waits for, up to target_ms."""
        when = self.conversations.next_ms()
        while when != NO_TIME and when <= target_ms:
            self.conversations.tick(when)
            self.settle(when)
            following = self.conversations.next_ms()
            assert following == NO_TIME or following > when, "a timer that has rung is still set"
            when = following
        self.conversations.drop_expired(target_ms)
        self.settle(target_ms)


class MemoryClient:
    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker
        self.conversation = broker.conversations.open(broker.clock.now_ms(), "127.0.0.1:1", "127.0.0.1:2")
        self.output = bytearray()  # Every byte received, until it is read.
        self.reader = hiredis.Reader(replyError=Refusal)
        broker.clients[self.conversation.call.id] = self

    @property
    def call(self) -> Any:
        return self.conversation.call

    @property
    def is_waiting(self) -> bool:
        return bool(self.conversation.call.is_blocked)

    @property
    def is_closed(self) -> bool:
        return bool(self.conversation.call.is_closing)

    def __call__(self, *command: str | bytes | int) -> Any:
        """Send a command and give its reply, which must come at once."""
        self.send(*command)
        replies = self.replies()
        assert len(replies) == 1, f"{len(replies)} replies to {command}"
        return replies[0]

    def send(self, *command: str | bytes | int) -> None:
        self.send_bytes(encode(to_arguments(*command)))

    def send_bytes(self, data: bytes) -> None:
        now_ms = self.broker.clock.now_ms()
        self.conversation.feed(data, now_ms)
        self.take(now_ms)
        self.broker.settle(now_ms)

    def take(self, now_ms: int) -> None:
        """Receive what was sent, and let commands go on that waited for that."""
        self.output += self.conversation.take()
        while self.conversation.has_more:
            self.conversation.run(now_ms)
            self.output += self.conversation.take()

    def received(self) -> bytes:
        """The bytes that have arrived since the last look."""
        data = bytes(self.output)
        self.output.clear()
        return data

    def replies(self) -> list[Any]:
        """The replies that have arrived since the last look."""
        self.reader.feed(self.received())
        replies: list[Any] = []
        reply = self.reader.gets()
        while reply is not False:
            replies.append(reply)
            reply = self.reader.gets()
        return replies

    def close(self) -> None:
        """Hang up."""
        self.broker.clients.pop(self.conversation.call.id, None)
        self.broker.conversations.close(self.conversation)


class MemoryWire(Wire):
    """The raw client of wire.py on a conversation in memory."""

    def __init__(self, client: MemoryClient) -> None:
        self.client = client
        self._buffer = bytearray()

    def send_bytes(self, data: bytes) -> None:
        self.client.send_bytes(data)

    def read(self, *, timeout_s: float = 0) -> Any:
        self._buffer += self.client.received()
        return self._read_value()

    def close(self) -> None:
        self.client.close()

    def _fill(self) -> None:
        raise ConnectionClosed

"""Channels: a message goes to everybody who listens at that moment, and is kept nowhere.

with client.channel("news").listen() as messages:
    for message in messages: …
"""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from headrace.client.flow import LONGEST_PAUSE_S
from headrace.client.queue_flows import encode_element
from headrace.client.requests import BLOCK_MS, Request, number
from headrace.client.results import CHANNEL_GUARANTEE, Message, decode_text, encode_text
from headrace.client.times import Duration, parse_duration_ms
from headrace.client.transport import Listening
from headrace.errors import ClientClosed, ConnectionLost

if TYPE_CHECKING:
    from headrace.client.client import Client


class Channel:
    """One channel."""

    guarantee = CHANNEL_GUARANTEE

    def __init__(self, client: "Client", name: str) -> None:
        self.client = client
        self.name = name

    def __repr__(self) -> str:
        return f"Channel({self.name!r})"

    def publish(self, message: bytes | str | int | float) -> int:
        """Send a message to all who listen now; how many they were. In a cluster only those of one node are counted."""
        argv = ("PUBLISH", self.name, encode_element(message, "a message"))
        return self.client.run(Request(argv, number, self.name).run())

    def listen(self, *, wait: Duration | None = None) -> "Subscription":
        """The messages from now on. With wait=, they end when nothing came for so long; wait=0 takes what is there."""
        return Subscription(self.client, self.name, wait, is_pattern=False)


class Channels:
    """All channels whose names match a pattern: news.* or room-[12]."""

    guarantee = CHANNEL_GUARANTEE

    def __init__(self, client: "Client", pattern: str) -> None:
        self.client = client
        self.pattern = pattern

    def __repr__(self) -> str:
        return f"Channels({self.pattern!r})"

    def listen(self, *, wait: Duration | None = None) -> "Subscription":
        """As for one channel. message.channel tells to which one it was published."""
        return Subscription(self.client, self.pattern, wait, is_pattern=True)


class Subscription:
    """Messages as they come, from the beginning of the with block on, or else from the first one asked for.

    A lost connection is made again; what was published meanwhile is missed. So it is when messages come faster than
    they are taken, until the server drops the connection. Close it when you are done: the connection is its own.
    """

    def __init__(self, client: "Client", name: str, wait: Duration | None, *, is_pattern: bool) -> None:
        self.client = client
        self.name = name
        self.is_pattern = is_pattern
        self.is_closed = False
        self._wait_s = None if wait is None else parse_duration_ms(wait, "wait") / 1000
        self._line: Listening | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        quiet_since = time.monotonic()
        while not self.is_closed:
            left_s = BLOCK_MS / 1000
            if self._wait_s is not None:
                left_s = max(0.0, min(left_s, self._wait_s - (time.monotonic() - quiet_since)))
            try:
                message = self.receive(left_s)
            except (ConnectionLost, ClientClosed) as error:
                if self.is_closed:
                    break
                if not left_s or isinstance(error, ClientClosed):
                    raise
                time.sleep(LONGEST_PAUSE_S)
                continue
            if message is not None:
                return message
            if not left_s:
                break
        raise StopIteration

    def open(self) -> Listening:
        """Begin to listen. What is published after this call is not missed."""
        if self.is_closed:
            raise ClientClosed(f"this subscription of {self.client.url} is closed. Open another one.")
        if self._line is None:
            line = self.client._transport.subscription()
            names = [encode_text(self.name)]
            try:
                line.subscribe(*(((), names) if self.is_pattern else (names, ())))
            except BaseException:
                line.close()
                raise
            self._line = line
        return self._line

    def receive(self, timeout_s: float) -> Message | None:
        line = self.open()
        try:
            published = line.next(timeout_s)
        except ConnectionLost:
            self._line = None
            line.close()
            raise
        if published is None:
            return None
        channel, body, pattern = published
        return Message(decode_text(channel), body, None if pattern is None else decode_text(pattern))

    def close(self) -> None:
        """Listen no more. Harmless to repeat; whoever waits for a message is told that there are no more."""
        self.is_closed = True
        line, self._line = self._line, None
        if line is not None:
            line.close()

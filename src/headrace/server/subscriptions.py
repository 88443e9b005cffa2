"""Listening to channels of the broker in this process.

    listening = transport.subscription()                 # AsyncTransport: the same, awaited
    listening.subscribe([b"news"], [b"orders.*"])        # channels and patterns; again for more
    message = listening.next(5.0)                        # (channel, payload, pattern or None); None: nothing in 5 s
    listening.close()                                    # also ends a `next` that waits in another thread

`next` gives the messages in the order they were published. A message waits here until it is asked for, and what waits
is bounded like the output of any other client (client-output-buffer-limit): a listener that falls behind is dropped by
the broker, and its `next` raises ConnectionLost. Messages that were waiting are lost then, as are all that are
published while nobody listens: at most once, not kept.

Any number of threads may use one; each message goes to one of those who call `next`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from headrace.commands.publishing import TOO_SLOW, drop
from headrace.engine.keyspace import EXPIRED
from headrace.errors import ClientClosed, ConnectionLost, HeadraceError
from headrace.server.wakers import resolve, waker

if TYPE_CHECKING:
    from headrace.server.inprocess import Lines
    from headrace.server.inprocess_broker import Line

Message = tuple[bytes, bytes, bytes | None]  # Channel, payload, and the pattern that matched, if one did.

MESSAGES_PER_TURN: Final = 16  # So many that are there already, then other tasks of the event loop have their turn.
LOOK_S: Final = 0.1  # Who waits for events of expired keys looks for such keys this often: nobody else may.


class Inbox:
    """What both flavours share. Everything is done with the broker's lock held."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.broker = lines.broker
        self.waiting: deque[bytes] = deque()  # Encoded messages, taken from the line.
        self.wakers: list[Callable[[], None]] = []  # Of those who wait in `next`.
        self.is_closed = False
        self.calls_this_turn = 0
        self.lagging_since_ms = 0  # Since when more waits than the soft limit allows; 0: it does not.
        with self.broker.turn, self.broker.lock:
            self.line: Line = lines.open_line()
            self.broker.inboxes[self.line.call.id] = self

    def run(self, command: bytes, names: Iterable[bytes]) -> None:
        words = [command, *names]
        if len(words) == 1:
            return
        call = self.line.call
        with self.broker.turn, self.broker.lock:
            self.check_open()
            self.take_out()
            self.broker.execute(call, words)
            call.is_draining = False
            call.is_halted = call.is_closing
            if call.postponed is not None:
                call.postponed = None
                raise ConnectionLost(
                    f"{self.lines.url} is paused by CLIENT PAUSE; nothing was changed. Try again later."
                )
            reply = call.out.pop(0)  # The confirmations, in one piece. Behind them there may be messages already.
            if reply[:1] == b"-":
                raise self.line.decode(reply)

    def subscribe_to(self, channels: Iterable[bytes], patterns: Iterable[bytes]) -> None:
        self.run(b"SUBSCRIBE", channels)
        self.run(b"PSUBSCRIBE", patterns)

    def unsubscribe_from(self, channels: Iterable[bytes], patterns: Iterable[bytes]) -> None:
        self.run(b"UNSUBSCRIBE", channels)
        self.run(b"PUNSUBSCRIBE", patterns)

    def take_out(self) -> None:
        call = self.line.call
        if call.out:
            self.waiting.extend(call.out)
            call.out = []

    def take(self) -> Message | None:
        """The next message that is there."""
        self.check_open()
        if self.broker.state.event_kinds & EXPIRED:
            self.broker.run_cron_when_due()
        if not self.waiting:
            self.take_out()
            if not self.waiting:
                return None
        data = self.waiting.popleft()
        call = self.line.call
        call.pushed_bytes -= len(data)
        words = self.line.decode(data)
        if len(words) == 4:
            return words[2], words[3], words[1]
        return words[1], words[2], None

    def check_open(self) -> None:
        if self.is_closed or self.lines.is_closed:
            raise ClientClosed(f"this subscription of {self.lines.url} is closed. Open another one.")
        call = self.line.call
        if call.is_closing:
            self.waiting.clear()
            raise self.broken()

    def broken(self) -> HeadraceError:
        url = self.lines.url
        if self.line.call.killed_by == TOO_SLOW:
            return ConnectionLost(
                f"this subscription of {url} was dropped: messages came faster than they were taken, and more waited "
                "than client-output-buffer-limit allows. All that waited are lost; subscribe again."
            )
        return ConnectionLost(f"this subscription of {url} was closed; messages since then are lost.")

    def check_soft_limit(self, now_ms: int) -> None:
        """Drop a listener for whom much has waited for too long."""
        call = self.line.call
        limit = self.broker.state.settings.listener_limit
        if not limit.is_above_soft(call.pushed_bytes):
            self.lagging_since_ms = 0
            return
        self.lagging_since_ms = self.lagging_since_ms or now_ms
        if not call.is_closing and limit.is_passed(call.pushed_bytes, now_ms - self.lagging_since_ms):
            drop(self.broker.state, call)

    def wait_more(self, wake: Callable[[], None], left_s: float) -> float:
        """There is no message yet: how long to sleep before looking again, unless woken."""
        self.wakers.append(wake)
        self.line.wake = self.wake_all
        self.broker.waiting[self.line.call.id] = self.line
        return min(left_s, LOOK_S) if self.broker.state.event_kinds & EXPIRED else left_s

    def wait_no_more(self, message: Message | None) -> Message | None:
        if not self.wakers:
            self.line.wake = None
            self.broker.waiting.pop(self.line.call.id, None)
        return message

    def wake_all(self) -> None:
        for wake in list(self.wakers):  # Those who wake up leave the list without the lock.
            wake()

    def end(self) -> None:
        self.is_closed = True
        if self.lines.is_left_behind():
            return
        with self.broker.turn, self.broker.lock:
            self.lines.close_line(self.line)
            self.waiting.clear()


class Subscription(Inbox):
    """For programs that wait."""

    def subscribe(self, channels: Iterable[bytes] = (), patterns: Iterable[bytes] = ()) -> None:
        """Listen to these too, from now on."""
        self.subscribe_to(channels, patterns)

    def unsubscribe(self, channels: Iterable[bytes] = (), patterns: Iterable[bytes] = ()) -> None:
        self.unsubscribe_from(channels, patterns)

    def next(self, timeout_s: float) -> Message | None:
        """The next message, or None when there was none in time."""
        deadline_s = time.monotonic() + timeout_s
        woken = threading.Event()
        while True:
            with self.broker.turn, self.broker.lock:
                message = self.take()
                left_s = deadline_s - time.monotonic()
                if message is not None or left_s <= 0:
                    return self.wait_no_more(message)
                woken.clear()
                pause_s = self.wait_more(woken.set, left_s)
            try:
                woken.wait(pause_s)
            finally:
                self.wakers.remove(woken.set)

    def close(self) -> None:
        self.end()


class AsyncSubscription(Inbox):
    """The same for asyncio. Tasks of several event loops may use one."""

    async def subscribe(self, channels: Iterable[bytes] = (), patterns: Iterable[bytes] = ()) -> None:
        self.subscribe_to(channels, patterns)

    async def unsubscribe(self, channels: Iterable[bytes] = (), patterns: Iterable[bytes] = ()) -> None:
        self.unsubscribe_from(channels, patterns)

    async def next(self, timeout_s: float) -> Message | None:
        """The next message, or None when there was none in time. A call that is cancelled takes none."""
        loop = asyncio.get_running_loop()
        deadline_s = time.monotonic() + timeout_s
        self.calls_this_turn += 1
        if self.calls_this_turn >= MESSAGES_PER_TURN:  # Before a message is taken: a call cancelled here loses none.
            self.calls_this_turn = 0
            await asyncio.sleep(0)
        while True:
            with self.broker.turn, self.broker.lock:
                message = self.take()
                left_s = deadline_s - time.monotonic()
                if message is not None or left_s <= 0:
                    return self.wait_no_more(message)
                future = loop.create_future()
                wake = waker(loop, future)
                pause_s = self.wait_more(wake, left_s)
            timer = loop.call_later(pause_s, resolve, future)
            try:
                await future
            finally:
                timer.cancel()
                self.wakers.remove(wake)

    async def close(self) -> None:
        self.end()

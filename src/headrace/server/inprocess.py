"""The same broker without a socket: calls run on the caller's own thread (inprocess_broker.py).

`Transport` and `AsyncTransport` have the shape of client/transport.py, which loads this module by name.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any, Final, Protocol

from headrace.errors import ClientClosed, CommandError, ConfigError, ConnectionLost, HeadraceError, refusal
from headrace.server.inprocess_broker import InProcessBroker, LeftBehind, Line, is_set_apart, must_wait, shared_broker
from headrace.server.subscriptions import AsyncSubscription, Subscription
from headrace.server.wakers import resolve, waker

SPARE_LINES: Final = 64  # Per client; those of more concurrent calls are closed after use.
CALLS_PER_TURN: Final = 16  # So many calls that need not wait, then other tasks of the event loop have their turn.
ROOM_S: Final = 0.05  # How often a call that found a full disk looks whether there is room.
ADDRESS: Final = "embedded:0"


class Request(Protocol):
    @property
    def argv(self) -> Sequence[bytes | str | int | float]: ...


class Lines:
    """What both flavours share: the lines of one client, and running a command on one of them."""

    def __init__(self, url: str, broker: InProcessBroker | None = None) -> None:
        self.url = url
        self.broker = broker or shared_broker()
        self.opened: dict[int, Line] = {}
        self.spare: list[Line] = []
        self.is_closed = False

    def start(self, argv: list[bytes]) -> Line:
        """Run a command on a free line. It may have to wait."""
        broker = self.broker
        with broker.turn, broker.lock:
            line = self.spare.pop() if self.spare else self.open_line()
            if line.call.is_closing:  # Closed by CLIENT KILL while nobody used it.
                self.close_line(line)
                line = self.open_line()
            try:
                broker.execute(line.call, argv)
            except BaseException:  # Ctrl-C, or a fault of ours: the line is in no state to be used again.
                self.close_line(line)
                raise
            if broker.state.records:
                line.has_written = True
        return line

    def go_on(self, line: Line, argv: list[bytes]) -> None:
        """Run one more command on a line."""
        broker = self.broker
        with broker.turn, broker.lock:
            if line.call.is_closing:
                raise self.broken()
            broker.execute(line.call, argv)
            if broker.state.records:
                line.has_written = True

    def take_reply(self, line: Line) -> Any:
        """The reply of the command that has run. An error is given, not raised."""
        call = line.call
        out = call.out
        if not out:
            if call.is_closing:
                self.drop(line)
                raise self.broken()
            return None  # Replies are turned off.
        call.out = []
        if call.is_draining:
            call.is_draining = False
            call.is_halted = call.is_closing
        return line.decode(out[0] if len(out) == 1 else b"".join(out))

    def give_back(self, line: Line) -> None:
        """The next call begins afresh: what was set for this connection (SELECT, MULTI, HELLO, …) goes with it."""
        call = line.call
        line.has_written = False
        if (
            call.is_halted or (call.is_gated and is_set_apart(call)) or call.resp3 or call.watching or call.name
            or call.db.number != 0 or len(self.spare) >= SPARE_LINES
        ):  # fmt: skip
            with self.broker.turn, self.broker.lock:
                self.close_line(line)
        else:
            self.spare.append(line)

    def drop(self, line: Line) -> None:
        """Give up a line in the middle of a call. Whatever it may still be sent reaches nobody."""
        if self.is_left_behind():
            return
        with self.broker.turn, self.broker.lock:
            self.close_line(line)

    def open_line(self) -> Line:
        if self.is_closed:
            raise ClientClosed(f"this client of {self.url} is closed. Open another one.")
        state = self.broker.state
        if len(state.clients) >= state.settings.max_clients:
            raise CommandError("ERR max number of clients reached")
        line = Line(state.open_call(self.broker.now_ms(), ADDRESS, ADDRESS), self.refuse)
        self.opened[line.call.id] = line
        return line

    def close_line(self, line: Line) -> None:
        call = line.call
        call.is_closing = True
        call.is_halted = True
        self.opened.pop(call.id, None)
        self.broker.waiting.pop(call.id, None)
        self.broker.inboxes.pop(call.id, None)
        self.broker.state.close_call(call)
        if line.wake is not None:
            line.wake()

    def close_lines(self) -> None:
        """Blocked calls get an error. The broker stays."""
        self.is_closed = True
        if self.is_left_behind():
            return
        with self.broker.turn, self.broker.lock:
            for line in list(self.opened.values()):
                self.close_line(line)
            self.spare.clear()

    def is_left_behind(self) -> bool:
        return isinstance(self.broker.lock, LeftBehind)

    def refuse(self, text: str) -> HeadraceError:
        return refusal(text, self.url)

    def broken(self) -> HeadraceError:
        if self.is_closed:
            return ClientClosed(f"this client of {self.url} was closed during the call.")
        if self.broker.failure is not None:
            return self.broker.told()
        return ConnectionLost(f"the connection to {self.url} was closed; whether the call took effect is unknown.")

    def no_room(self, timeout_s: float) -> ConnectionLost:
        return ConnectionLost(
            f"{self.url} has no room on its disk and waited for {timeout_s:g} s; the call takes effect when there is "
            "room, unless the process ends before."
        )

    # Waiting, with the lock held. Between two looks the caller sleeps without it.

    def is_answered(self, line: Line) -> bool:
        """Whether the waiting is over, once everybody whose time has come is served."""
        if line.wake is not None and must_wait(line.call):
            self.broker.ring()
        if must_wait(line.call):
            return False
        self.broker.waiting.pop(line.call.id, None)
        line.wake = None
        if self.broker.state.records or not self.broker.has_room():
            line.has_written = True
        return True

    def pause_s(self, line: Line, timeout_s: float, deadline_s: float) -> float:
        """How long to sleep until the next look. The caller has set `line.wake`."""
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            self.close_line(line)
            raise ConnectionLost(f"{self.url} had nothing to answer within {timeout_s:g} s; the call was taken back.")
        self.broker.waiting[line.call.id] = line
        pause_s = self.broker.arm(line)
        return left_s if pause_s is None else min(left_s, pause_s)


class Transport(Lines):
    """For programs that wait. Any number of threads may use one."""

    def call(self, request: Request, timeout_s: float) -> Any:
        """Run one request; its reply, not yet decoded further."""
        line = self.start(encode_words(request.argv))
        if line.call.is_halted:
            self.wait(line, timeout_s)
        if line.has_written:
            self.keep(line, timeout_s)
        reply = self.take_reply(line)
        self.give_back(line)
        if isinstance(reply, HeadraceError):
            raise reply
        return reply

    def call_many(self, requests: Sequence[Request], timeout_s: float) -> list[Any]:
        """Run all, in order, on one line; a refused one has its error in place of the reply."""
        if not requests:
            return []
        deadline_s = time.monotonic() + timeout_s
        words = [encode_words(request.argv) for request in requests]
        line = self.start(words[0])
        try:
            replies = [self.finish(line, deadline_s)]
            for argv in words[1:]:
                self.go_on(line, argv)
                replies.append(self.finish(line, deadline_s))
            if line.has_written:
                self.keep(line, deadline_s - time.monotonic())
        except BaseException:
            self.drop(line)
            raise
        self.give_back(line)
        return replies

    def finish(self, line: Line, deadline_s: float) -> Any:
        if line.call.is_halted:
            self.wait(line, deadline_s - time.monotonic())
        return self.take_reply(line)

    def keep(self, line: Line, timeout_s: float) -> None:
        """Before the reply is given, the journal has what it is about."""
        deadline_s = time.monotonic() + timeout_s
        try:
            with self.broker.turn, self.broker.lock:
                is_kept = self.broker.keep()
            while not is_kept:
                if time.monotonic() > deadline_s:
                    raise self.no_room(timeout_s)
                time.sleep(ROOM_S)
                with self.broker.turn, self.broker.lock:
                    is_kept = self.broker.has_room()
        except BaseException:
            self.drop(line)
            raise

    def wait(self, line: Line, timeout_s: float) -> None:
        """Until the command on the line is answered. Never holds the lock while it sleeps."""
        woken = threading.Event()
        deadline_s = time.monotonic() + timeout_s
        try:
            while True:
                with self.broker.turn, self.broker.lock:
                    woken.clear()
                    if self.is_answered(line):
                        return
                    line.wake = woken.set
                    pause_s = self.pause_s(line, timeout_s, deadline_s)
                woken.wait(pause_s)
        except BaseException:
            self.drop(line)
            raise

    def subscription(self) -> Subscription:
        """Listen to channels; see server/subscriptions.py."""
        return Subscription(self)

    def close(self) -> None:
        self.close_lines()


class AsyncTransport(Lines):
    """The same for asyncio. Several event loops may use one."""

    def __init__(self, url: str, broker: InProcessBroker | None = None) -> None:
        super().__init__(url, broker)
        self.calls_this_turn = 0

    async def call(self, request: Request, timeout_s: float) -> Any:
        self.calls_this_turn += 1
        if self.calls_this_turn >= CALLS_PER_TURN:  # Asked before the command: a call cancelled here has done nothing.
            await self.yield_turn()
        line = self.start(encode_words(request.argv))
        if line.call.is_halted:
            await self.wait(line, timeout_s)
        if line.has_written:
            await self.keep(line, timeout_s)
        reply = self.take_reply(line)
        self.give_back(line)
        if isinstance(reply, HeadraceError):
            raise reply
        return reply

    async def call_many(self, requests: Sequence[Request], timeout_s: float) -> list[Any]:
        if not requests:
            return []
        deadline_s = time.monotonic() + timeout_s
        words = [encode_words(request.argv) for request in requests]
        line = self.start(words[0])
        try:
            replies = [await self.finish(line, deadline_s)]
            for argv in words[1:]:
                self.go_on(line, argv)
                replies.append(await self.finish(line, deadline_s))
            if line.has_written:
                await self.keep(line, deadline_s - time.monotonic())
        except BaseException:
            self.drop(line)
            raise
        self.give_back(line)
        return replies

    async def finish(self, line: Line, deadline_s: float) -> Any:
        if line.call.is_halted:
            await self.wait(line, deadline_s - time.monotonic())
        reply = self.take_reply(line)
        self.calls_this_turn += 1
        if self.calls_this_turn >= CALLS_PER_TURN:
            await self.yield_turn()
        return reply

    async def yield_turn(self) -> None:
        self.calls_this_turn = 0
        await asyncio.sleep(0)

    async def keep(self, line: Line, timeout_s: float) -> None:
        """As in Transport. Calls of one turn of the event loop share one write and one sync."""
        broker = self.broker
        loop = asyncio.get_running_loop()
        deadline_s = time.monotonic() + timeout_s
        future: asyncio.Future[bool] = loop.create_future()
        if loop not in broker.sharing:
            broker.sharing[loop] = []
            loop.call_soon(keep_turn, broker, loop)
        broker.sharing[loop].append(future)
        try:
            is_kept = await future
            while not is_kept:
                if time.monotonic() > deadline_s:
                    raise self.no_room(timeout_s)
                await asyncio.sleep(ROOM_S)
                with broker.turn, broker.lock:
                    is_kept = broker.has_room()
        except BaseException:
            self.drop(line)
            raise

    async def wait(self, line: Line, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        deadline_s = time.monotonic() + timeout_s
        try:
            while True:
                future = loop.create_future()
                with self.broker.turn, self.broker.lock:
                    if self.is_answered(line):
                        return
                    line.wake = waker(loop, future)
                    pause_s = self.pause_s(line, timeout_s, deadline_s)
                timer = loop.call_later(pause_s, resolve, future)
                try:
                    await future
                finally:
                    timer.cancel()
        except BaseException:
            self.drop(line)
            raise

    def subscription(self) -> AsyncSubscription:
        """Listen to channels; see server/subscriptions.py."""
        return AsyncSubscription(self)

    async def close(self) -> None:
        self.close_lines()


def keep_turn(broker: InProcessBroker, loop: asyncio.AbstractEventLoop) -> None:
    """The calls of this turn of the event loop have run: keep what they did."""
    futures = broker.sharing.pop(loop)
    error: Exception | None = None
    is_kept = False
    try:
        with broker.turn, broker.lock:
            is_kept = broker.keep()
    except Exception as problem:  # Whatever it is, every one of the calls is told.
        error = problem
    for future in futures:
        if future.done():
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(is_kept)


def encode_words(argv: Sequence[bytes | str | int | float]) -> list[bytes]:
    words = [
        word.encode("utf-8", "surrogateescape")
        if word.__class__ is str
        else word
        if word.__class__ is bytes
        else encode_word(word)
        for word in argv
    ]
    if not words:
        raise CommandError("ERR no command was given")
    return words


def encode_word(word: Any) -> bytes:
    if isinstance(word, (bytes, bytearray, memoryview)):
        return bytes(word)
    if isinstance(word, (str, int, float)) and not isinstance(word, bool):
        return str(word).encode("utf-8", "surrogateescape")
    raise ConfigError(f"a command cannot hold a {type(word).__name__}. Give text, bytes or a number.")

"""The same broker without a socket: `embedded:`, in memory, in this process.

One broker per process, shared by everybody who opens `embedded:`. A call runs on the caller's own thread: it takes the
broker's lock, runs its command on the engine and decodes the reply. A call that has to wait lets go of the lock and
sleeps until somebody else's command answers it, or until its own time has come (deadline, CLAIM, end of life of its
key): nobody else looks at the clock for it, so a loop that is stuck holds up only its own calls.

A process made by fork has no broker yet and makes its own, empty one; clients opened before the fork say so when used.

`Transport` and `AsyncTransport` have the shape of client/transport.py, which loads this module by name.
"""

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Protocol

from headrace.clock import Clock, SystemClock
from headrace.commands.call import Call, State
from headrace.commands.dispatch import execute
from headrace.engine.waiters import NO_TIME
from headrace.errors import ClientClosed, CommandError, ConfigError, ConnectionLost, HeadraceError, refusal
from headrace.server.broker import build_name
from headrace.server.conversation import Conversations
from headrace.server.subscriptions import AsyncSubscription, Inbox, Subscription
from headrace.server.wakers import resolve, waker
from headrace.wire.replies import ReplyReader

CRON_MS: Final = 100  # How often, at most, a command also looks for keys whose time has come.
SPARE_LINES: Final = 64  # Per client; those of more concurrent calls are closed after use.
CALLS_PER_TURN: Final = 16  # So many calls that need not wait, then other tasks of the event loop have their turn.
LATE_S: Final = 0.0005  # Timers ring this much later, never a moment too early.
ADDRESS: Final = "embedded:0"


class Request(Protocol):
    @property
    def argv(self) -> Sequence[bytes | str | int | float]: ...


class Line:
    """One caller's line to the broker: used by one call at a time."""

    __slots__ = ("call", "decode", "wake", "armed_ms")

    def __init__(self, call: Call, refuse: Callable[[str], Exception]) -> None:
        self.call = call
        self.decode = ReplyReader(refuse).decode
        self.wake: Callable[[], None] | None = None  # Not None while somebody waits here.
        self.armed_ms = NO_TIME  # When the one who waits looks again by itself.


class InProcessBroker:
    """The engine, its lock, and who waits. Every method is called with the lock held."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.lock: threading.Lock | LeftBehind = threading.Lock()
        self.now_ms = (clock or SystemClock()).now_ms
        self.state = State(self.now_ms())
        self.state.build = build_name()
        self.conversations = Conversations(self.state)
        self.waiting: dict[int, Line] = {}
        self.inboxes: dict[int, Inbox] = {}  # Of those who listen to channels.
        self.cron_ms = 0
        BROKERS.add(self)

    def execute(self, call: Call, argv: list[bytes]) -> None:
        """Run one command, and let those go on whom it unblocks."""
        now_ms = self.now_ms()
        call.now_ms = now_ms
        call.active_ms = now_ms
        execute(call, argv)
        state = self.state
        if state.resumed or state.speaking:
            self.settle(now_ms)
        if self.waiting:
            self.wake_early(call, argv)
        if now_ms >= self.cron_ms:
            self.run_cron(now_ms)

    def run_cron_when_due(self) -> None:
        now_ms = self.now_ms()
        if now_ms >= self.cron_ms:
            self.run_cron(now_ms)

    def settle(self, now_ms: int) -> None:
        """Wake those who got their reply."""
        state = self.state
        while state.resumed or state.speaking:
            calls = state.resumed + state.speaking
            state.resumed = []
            state.speaking = []
            for call in calls:
                if call.postponed is not None and not call.is_halted:
                    argv = call.postponed
                    call.postponed = None
                    call.now_ms = now_ms
                    execute(call, argv)
                if not must_wait(call):
                    self.nudge(call.id)

    def nudge(self, client_id: int) -> None:
        line = self.waiting.get(client_id)
        if line is not None and line.wake is not None:
            line.wake()

    def wake_early(self, call: Call, argv: list[bytes]) -> None:
        """A command may bring somebody's time forward: that one sets its clock anew."""
        waiters = self.state.waiters
        if waiters.next_ms() != NO_TIME:
            when, client_id = waiters.times[0]
            self.nudge_before(client_id, when)
        expires_ms = call.db.expires_ms
        if expires_ms:
            # Commands that set a time to live name their key in the first two words. EXEC names none.
            for key in argv[1:3] or waiters.keys_in(call.db.number):
                if key in expires_ms:
                    for waiter in waiters.on_key(call.db.number, key):
                        self.nudge_before(waiter.client_id, expires_ms[key])

    def nudge_before(self, client_id: int, when_ms: int) -> None:
        line = self.waiting.get(client_id)
        if line is not None and line.wake is not None and (line.armed_ms == NO_TIME or when_ms < line.armed_ms):
            line.wake()

    def ring(self) -> None:
        """Serve those whose time has come."""
        now_ms = self.now_ms()
        self.conversations.tick(now_ms)
        for line in self.waiting.values():
            waiter = self.state.waiters.by_client.get(line.call.id)
            if waiter is not None and line.call.db.expires_ms:
                for key in waiter.keys:
                    line.call.db.drop_if_expired(key, now_ms)
        self.run_cron(now_ms)

    def run_cron(self, now_ms: int) -> None:
        self.cron_ms = now_ms + CRON_MS
        self.conversations.drop_expired(now_ms)
        self.state.records = []
        for inbox in self.inboxes.values():
            inbox.check_soft_limit(now_ms)
        self.settle(now_ms)

    def arm(self, line: Line) -> float | None:
        """How long the line may sleep before it has to look at the clock; None: until it is woken."""
        state = self.state
        call = line.call
        waiter = state.waiters.by_client.get(call.id)
        when = NO_TIME
        if waiter is not None:
            when = waiter.next_ms()
            expires_ms = call.db.expires_ms
            if expires_ms:
                for key in waiter.keys:
                    due_ms = expires_ms.get(key, NO_TIME)
                    if due_ms != NO_TIME and (when == NO_TIME or due_ms < when):
                        when = due_ms
        if state.pause_until_ms > 0 and (call.postponed is not None or when != NO_TIME):
            when = max(when, state.pause_until_ms)  # Nobody's time comes during CLIENT PAUSE.
        line.armed_ms = when
        if when == NO_TIME:
            return None
        return max(0, when - self.now_ms()) / 1000 + LATE_S


BROKERS: Final[weakref.WeakSet[InProcessBroker]] = weakref.WeakSet()


def must_wait(call: Call) -> bool:
    return (call.is_blocked or call.postponed is not None) and not call.is_closing


def is_set_apart(call: Call) -> bool:
    """Whether a call is gated by itself; CLIENT PAUSE and maxmemory gate all."""
    return call.queue is not None or call.reply_mode != b"ON" or call.skips_next or call.is_listening


# Transports


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
        with broker.lock:
            line = self.spare.pop() if self.spare else self.open_line()
            if line.call.is_closing:  # Closed by CLIENT KILL while nobody used it.
                self.close_line(line)
                line = self.open_line()
            try:
                broker.execute(line.call, argv)
            except BaseException:  # Ctrl-C, or a fault of ours: the line is in no state to be used again.
                self.close_line(line)
                raise
        return line

    def go_on(self, line: Line, argv: list[bytes]) -> None:
        """Run one more command on a line."""
        with self.broker.lock:
            if line.call.is_closing:
                raise self.broken()
            self.broker.execute(line.call, argv)

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
        if (
            call.is_halted or (call.is_gated and is_set_apart(call)) or call.resp3 or call.watching or call.name
            or call.db.number != 0 or len(self.spare) >= SPARE_LINES
        ):  # fmt: skip
            with self.broker.lock:
                self.close_line(line)
        else:
            self.spare.append(line)

    def drop(self, line: Line) -> None:
        """Give up a line in the middle of a call. Whatever it may still be sent reaches nobody."""
        if self.is_left_behind():
            return
        with self.broker.lock:
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
        with self.broker.lock:
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
        return ConnectionLost(f"the connection to {self.url} was closed; whether the call took effect is unknown.")

    # Waiting, with the lock held. Between two looks the caller sleeps without it.

    def is_answered(self, line: Line) -> bool:
        """Whether the waiting is over, once everybody whose time has come is served."""
        if line.wake is not None and must_wait(line.call):
            self.broker.ring()
        if must_wait(line.call):
            return False
        self.broker.waiting.pop(line.call.id, None)
        line.wake = None
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
        except BaseException:
            self.drop(line)
            raise
        self.give_back(line)
        return replies

    def finish(self, line: Line, deadline_s: float) -> Any:
        if line.call.is_halted:
            self.wait(line, deadline_s - time.monotonic())
        return self.take_reply(line)

    def wait(self, line: Line, timeout_s: float) -> None:
        """Until the command on the line is answered. Never holds the lock while it sleeps."""
        woken = threading.Event()
        deadline_s = time.monotonic() + timeout_s
        try:
            while True:
                with self.broker.lock:
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

    async def wait(self, line: Line, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        deadline_s = time.monotonic() + timeout_s
        try:
            while True:
                future = loop.create_future()
                with self.broker.lock:
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


# One broker per process


class LeftBehind:
    """Stands in for the lock in a forked process: the data stayed with the parent. So no call has to check for it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def __enter__(self) -> None:
        raise ConfigError(
            f"embedded: lives in process {self.pid}, and this client was opened there, before the fork. Open a client "
            "in this process, which has a broker of its own, or let both use a server: headrace serve."
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


SHARED: Final[list[InProcessBroker]] = []  # Empty until somebody opens embedded:.
SHARED_LOCK = threading.Lock()


def shared_broker() -> InProcessBroker:
    """The broker of this process."""
    with SHARED_LOCK:
        if not SHARED:
            SHARED.append(InProcessBroker())
        return SHARED[0]


def leave_behind() -> None:
    """In the child after a fork: another thread may have held any lock, and its data is only a copy."""
    global SHARED_LOCK
    SHARED_LOCK = threading.Lock()
    SHARED.clear()
    for broker in list(BROKERS):
        if not isinstance(broker.lock, LeftBehind):
            broker.lock = LeftBehind(os.getppid())


os.register_at_fork(after_in_child=leave_behind)

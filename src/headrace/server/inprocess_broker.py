"""The engine, its lock, and who waits: what calls in this process run on.

A call takes the broker's lock, runs its command on the engine and decodes the reply. One that has to wait lets go of
the lock and sleeps until somebody else's command answers it, or until its own time has come (deadline, CLAIM, end of
life of its key): nobody else looks at the clock for it, so a loop that is stuck holds up only its own calls.

`embedded:` is one broker per process, in memory. A process made by fork has no broker yet and makes its own, empty one;
clients opened before the fork say so when used. hosting.py has the broker of a folder.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final

from headrace.clock import Clock, SystemClock
from headrace.commands.call import Call, State
from headrace.commands.dispatch import execute
from headrace.engine.waiters import NO_TIME
from headrace.errors import ConfigError, HeadraceError
from headrace.server.broker import build_name
from headrace.server.conversation import Conversations
from headrace.server.subscriptions import Inbox
from headrace.server.turns import NoTurn, Turn
from headrace.wire.replies import ReplyReader

if TYPE_CHECKING:
    import asyncio

CRON_MS: Final = 100  # How often, at most, a command also looks for keys whose time has come.
LATE_S: Final = 0.0005  # Timers ring this much later, never a moment too early.


class Line:
    """One caller's line to the broker: used by one call at a time."""

    __slots__ = ("call", "decode", "wake", "armed_ms", "has_written")

    def __init__(self, call: Call, refuse: Callable[[str], Exception]) -> None:
        self.call = call
        self.decode = ReplyReader(refuse).decode
        self.wake: Callable[[], None] | None = None  # Not None while somebody waits here.
        self.armed_ms = NO_TIME  # When the one who waits looks again by itself.
        self.has_written = False  # The reply is about something the journal may not have yet.


class InProcessBroker:
    """The engine, its lock, and who waits. Every method is called with the lock held."""

    def __init__(self, clock: Clock | None = None, state: State | None = None) -> None:
        self.lock: threading.Lock | LeftBehind = threading.Lock()
        self.now_ms = (clock or SystemClock()).now_ms
        self.state = state or State(self.now_ms())
        self.state.build = build_name()
        self.state.clock_ns = time.perf_counter_ns
        self.conversations = Conversations(self.state)
        self.conversations.on_other = self.let_go_on
        self.turn: NoTurn | Turn = NoTurn()  # To be entered before the lock.
        self.failure: HeadraceError | None = None  # Why nothing runs here any more.
        self.sharing: dict[asyncio.AbstractEventLoop, list[asyncio.Future[bool]]] = {}  # Calls that share a commit.
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
        """Let those go on who were unblocked."""
        self.conversations.settle(now_ms)

    def let_go_on(self, call: Call) -> None:
        """One of this process was unblocked, or got its reply."""
        if call.postponed is not None and not call.is_halted:
            argv = call.postponed
            call.postponed = None
            call.now_ms = self.now_ms()
            execute(call, argv)
        if not must_wait(call):
            self.nudge(call.id)

    def keep(self) -> bool:
        """Hand what was done to the journal. Whether replies about it may be given."""
        self.state.records = []
        return True

    def told(self) -> HeadraceError:
        """The failure, for one more who is told of it."""
        assert self.failure is not None
        return type(self.failure)(*self.failure.args)

    def has_room(self) -> bool:
        """Whether the journal has everything it was handed."""
        return True

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
        self.keep()
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

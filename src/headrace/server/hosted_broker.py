"""The broker of a folder, for callers in this process and for others that are attached by a socket.

Both sides take turns (turns.py). What one side does may be about the other: a reader over there is unblocked, a timer
has to ring earlier, a turn could not be kept. Calls in this process never touch the loop for that: they leave it an
errand, which it runs before anything else.
"""

import asyncio
import threading
from typing import Any, Final

from headrace.commands.call import Call, State
from headrace.engine.waiters import NO_TIME
from headrace.errors import ConnectionLost, HeadraceError, JournalError, Unreachable
from headrace.server.durability import Durability
from headrace.server.inprocess_broker import CRON_MS, InProcessBroker
from headrace.server.keeper import Keeper
from headrace.server.listener import Listener
from headrace.server.turns import Turn, TurnSelector

LOOK_S: Final = 0.5  # How often the loop looks after listeners of this process.


class HostedBroker(InProcessBroker):
    """Every method is called with the lock held. `open` comes first, in the loop."""

    listener: Listener
    keeper: Keeper

    def __init__(self, state: State, durability: Durability, name: str) -> None:
        super().__init__(state=state)
        self.name = name
        self.durability = durability
        assert isinstance(self.lock, threading.Lock().__class__)
        self.selector = TurnSelector(self.lock)
        self.turn = Turn(self.selector)
        self.loop: Any = None
        self.is_loop_called = False

    def open(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.listener = Listener(self.conversations, self.now_ms)
        self.keeper = Keeper(self.durability, self.listener)
        self.keeper.failed.add_done_callback(self.after_failure)
        self.state.on_half_done = self.after_fault
        self.check_inboxes()

    # Calls in this process

    def execute(self, call: Call, argv: list[bytes]) -> None:
        if self.failure is not None:
            raise self.refusal()
        try:
            super().execute(call, argv)
        except BaseException as error:  # Ctrl-C, or a fault of ours: the data in memory may be half changed.
            self.give_up(error)
            raise
        state = self.state
        if state.waiters.by_client or state.pause_until_ms > 0:
            when = self.conversations.next_ms()
            if when != NO_TIME and (self.listener.timer is None or when < self.listener.timer_ms):
                self.call_loop()

    def ring(self) -> None:
        if self.failure is not None:
            raise self.told()
        try:
            super().ring()
        except BaseException as error:  # As above.
            self.give_up(error)
            raise

    def run_cron(self, now_ms: int) -> None:
        """The loop does what there is to do from time to time."""
        self.cron_ms = now_ms + CRON_MS
        self.settle(now_ms)

    def settle(self, now_ms: int) -> None:
        for conversation in self.conversations.settle(now_ms):
            connection = self.listener.connections.get(conversation.call.id)
            if connection is not None and not connection.is_marked:
                connection.is_marked = True
                self.listener.speaking.append(connection)
                self.call_loop()

    def keep(self) -> bool:
        if self.failure is not None:
            raise self.told()
        records = self.state.records
        self.state.records = []
        if not records:
            return self.has_room()
        try:
            is_kept = self.durability.commit(records)
        except Exception as error:  # Whatever it is, it is about data that was promised to be kept.
            self.give_up(error if isinstance(error, JournalError) else JournalError(f"{self.name}: {error!r}"))
            raise self.told() from error
        except BaseException as error:  # Ctrl-C.
            self.give_up(error)
            raise
        if not is_kept:
            self.selector.send(self.loop, self.hold)
        return is_kept

    def has_room(self) -> bool:
        if self.failure is not None:
            raise self.told()
        return not self.durability.waiting

    # The loop

    def check_inboxes(self) -> None:
        """Drop those in this process for whom much has waited for too long."""
        self.loop.call_later(LOOK_S, self.check_inboxes)
        if self.inboxes:
            now_ms = self.listener.start_turn()
            for inbox in list(self.inboxes.values()):
                inbox.check_soft_limit(now_ms)
            self.listener.after_feed(now_ms)

    def call_loop(self) -> None:
        """Somebody who is attached can go on, or the time of one has come nearer."""
        if not self.is_loop_called:
            self.is_loop_called = True
            self.selector.send(self.loop, self.catch_up)

    def catch_up(self) -> None:
        self.is_loop_called = False
        if self.failure is None:
            self.listener.after_feed(self.listener.start_turn())

    def hold(self) -> None:
        """A call of this process found no room for the turn. Replies of the attached may be about the same turn."""
        self.listener.hold()
        self.keeper.watch_room()

    # The end

    def give_up(self, error: BaseException) -> None:
        """What is in memory may not be what is in the journal: nobody may see it any more.

        A JournalError is final. Otherwise the folder is as good as ever, and is opened again by the next call.
        """
        if self.failure is None:
            lost = ConnectionLost(f"a call of {self.name} was interrupted; whether it took effect is unknown.")
            self.end(error if isinstance(error, JournalError) else lost)
            self.selector.send(self.loop, self.fail_keeper)

    def after_fault(self, error: Exception) -> None:
        """A command of either side met a fault of ours."""
        self.give_up(error)
        try:
            is_in_loop = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            is_in_loop = False
        if is_in_loop:
            self.fail_keeper()  # At once: the attached must not be answered before the errand runs.

    def fail_keeper(self) -> None:
        error = self.failure if isinstance(self.failure, JournalError) else JournalError(str(self.failure))
        self.keeper.fail(error)

    def after_failure(self, failed: "asyncio.Future[None]") -> None:
        """In the loop: the keeper has failed."""
        error = failed.exception()
        assert isinstance(error, JournalError)
        if self.failure is None:
            self.end(error)

    def refusal(self) -> HeadraceError:
        """For a call that has not begun: another host may run it."""
        if isinstance(self.failure, JournalError):
            return self.told()
        return Unreachable(f"{self.name} is not hosted here any more; nothing was done.")

    def end(self, reason: HeadraceError) -> None:
        """Nothing runs here any more: calls raise the reason, those that wait too."""
        self.failure = reason
        for line in list(self.waiting.values()):
            line.call.is_closing = True
            line.call.is_halted = True
            if line.wake is not None:
                line.wake()

"""Durability in the event loop: when to sync, when to try a full disk again, when to write a piece of a checkpoint.

Everything happens in the loop, between turns, but for what takes long and runs in a thread: the syncs of a checkpoint,
and those of the policy `everysec`.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Final

from headrace.commands.dispatch import unblock
from headrace.commands.persistence import FULL
from headrace.errors import JournalError
from headrace.server.durability import Durability
from headrace.server.listener import Listener
from headrace.wire.encoder import OK, encode_error

LOOK_S: Final = 0.1  # How often to look whether a checkpoint is due or wanted.
RETRY_S: Final = 0.2  # How often a full disk is tried again.
SYNC_S: Final = 1.0  # The policy `everysec`.
PIECE_S: Final = 0.002  # A piece of a checkpoint takes about so long,
PAUSE: Final = 2.0  # and so many times that long it is the clients' turn;
LEAST_PAUSE: Final = 0.5  # only so many when meanwhile the log has grown enough to be worth the next one.
AFTER_FAILURE_S: Final = 10.0  # Until a checkpoint is tried again for which there was no room.


class Keeper:
    """Drives one Durability in the running loop. `failed` ends with an error when nothing can be promised any more."""

    def __init__(self, durability: Durability, listener: Listener) -> None:
        self.durability = durability
        self.listener = listener
        self.loop: Any = asyncio.get_running_loop()
        self.failed: asyncio.Future[None] = self.loop.create_future()
        self.syncing: asyncio.Future[None] | None = None  # A checkpoint.
        self.syncing_log: asyncio.Future[None] | None = None
        self.not_before_s = 0.0
        listener.commit = self.commit
        listener.state.on_half_done = self.fail_after
        self.timers: dict[str, Any] = {}
        self.set_timer("look", LOOK_S, self.look)
        self.set_timer("sync", SYNC_S, self.sync)

    def set_timer(self, name: str, delay_s: float, callback: Any) -> None:
        self.timers[name] = self.loop.call_later(delay_s, self.run, callback)

    def run(self, callback: Any) -> None:
        try:
            if not self.failed.done():
                callback()
        except Exception as error:  # Whatever it is, it is about data that was promised to be kept.
            self.fail(error)

    def commit(self, records: list[bytes]) -> bool:
        """Keep a turn. Whether its replies may leave."""
        if self.failed.done():
            return False
        try:
            is_kept = self.durability.commit(records)
        except Exception as error:  # As above.
            self.fail(error)
            return False
        self.watch_room()
        return is_kept

    def watch_room(self) -> None:
        """If something found no room, try again in a moment."""
        if self.durability.waiting and "retry" not in self.timers:
            self.set_timer("retry", RETRY_S, self.retry)

    def fail(self, error: Exception) -> None:
        """Nobody is answered any more: it might be a promise that cannot be kept."""
        if not self.failed.done():
            if not isinstance(error, JournalError):
                error = JournalError(f"the data cannot be kept: {error!r}")
            self.failed.set_exception(error)
        for connection in list(self.listener.connections.values()):
            connection.transport.abort()

    def fail_after(self, error: Exception) -> None:
        """A command met a fault of ours, perhaps in the midst of a change, of which the journal knows nothing."""
        text = f"a command failed as none should ({error!r}), and what it left in memory cannot be trusted"
        advice = "Nothing that was answered is lost: start the broker again, and please report this"
        self.fail(error if isinstance(error, JournalError) else JournalError(f"{text}. {advice}"))

    def retry(self) -> None:
        del self.timers["retry"]
        if self.durability.try_again():
            self.listener.release()
        else:
            self.set_timer("retry", RETRY_S, self.retry)

    def sync(self) -> None:
        """Have on the disk what was written a second ago. Clients wait only for a disk that is slower than that."""
        self.set_timer("sync", SYNC_S, self.sync)
        log = self.durability.folder.log
        if self.listener.state.settings.fsync == "no" or log.is_synced:
            return  # Also with `always` there may be something from before it was chosen.
        if self.syncing_log is not None:
            self.durability.sync()
            return
        self.syncing_log = run_in_thread(self.loop, log.sync)
        self.syncing_log.add_done_callback(self.after_sync_of_log)

    def after_sync_of_log(self, syncing: "asyncio.Future[None]") -> None:
        self.syncing_log = None
        self.fail_with(syncing)

    def fail_with(self, syncing: "asyncio.Future[None]") -> bool:
        """Whether a thread failed: then that is the end."""
        error = None if syncing.cancelled() else syncing.exception()
        if error is not None:
            self.fail(error if isinstance(error, Exception) else JournalError(str(error)))
        return error is not None

    # Checkpoints

    def look(self) -> None:
        self.set_timer("look", LOOK_S, self.look)
        self.begin_if_due()

    def begin_if_due(self) -> None:
        durability = self.durability
        if durability.unreadable is not None:
            raise durability.unreadable
        durability.tell()
        keeping = self.listener.state.keeping
        if durability.checkpoint is not None or durability.waiting:
            return
        if keeping.reloads:
            self.reload()
            return
        is_due = durability.is_checkpoint_due() and self.loop.time() >= self.not_before_s
        if keeping.is_wanted or is_due:
            self.keep_turn()
            if durability.waiting:
                return
            keeping.is_wanted = False
            if durability.begin_checkpoint():
                self.write()
            else:
                self.end()

    def keep_turn(self) -> None:
        """A key is saved when the journal has all that was done to it, and nothing is done in between.

        So no replies are sent here: sending them lets clients go on whose commands wait for that.
        """
        self.listener.keep()

    def write(self) -> None:
        """Write pieces until the time is up."""
        durability = self.durability
        self.keep_turn()
        start_s = perf_counter()
        while durability.checkpoint is not None and not durability.write_checkpoint():
            if durability.waiting or perf_counter() - start_s >= PIECE_S:
                self.set_timer("write", self.pause_s(), self.write)
                return
        checkpoint = durability.checkpoint
        if checkpoint is None:  # There was no room.
            self.end()
            return
        self.syncing = run_in_thread(self.loop, checkpoint.sync)
        self.syncing.add_done_callback(self.after_sync)

    def pause_s(self) -> float:
        """Until the next piece. The more the clients write meanwhile, the shorter: a start has to replay all of it."""
        grown = self.durability.folder.log.size / self.durability.log_bytes
        return PIECE_S * max(LEAST_PAUSE, PAUSE * (1.0 - grown))

    def after_sync(self, syncing: "asyncio.Future[None]") -> None:
        self.syncing = None
        if not self.fail_with(syncing) and not syncing.cancelled():
            self.run(self.finish)

    def finish(self) -> None:
        self.durability.finish_checkpoint()
        self.end()
        self.begin_if_due()  # Much may have been written meanwhile.

    def end(self) -> None:
        """A checkpoint came to its end, good or bad: tell those who wait for it."""
        keeping = self.listener.state.keeping
        if keeping.is_last_good:
            keeping.last_save_s = self.listener.now_ms() // 1000
        else:
            self.not_before_s = self.loop.time() + AFTER_FAILURE_S
        savers = keeping.savers
        keeping.savers = []
        self.answer(savers, is_good=keeping.is_last_good)

    def reload(self) -> None:
        """Load everything again, for those who asked for it."""
        self.keep_turn()
        if self.durability.waiting:
            return
        keeping = self.listener.state.keeping
        asked = keeping.reloads
        keeping.reloads = []
        saves = any([saves for _, saves in asked])
        is_good = self.durability.reload(saves=saves)
        if saves and is_good:
            keeping.last_save_s = self.listener.now_ms() // 1000
        self.answer([number for number, _ in asked], is_good=is_good)

    def answer(self, numbers: list[int], *, is_good: bool) -> None:
        """Let clients go on that waited for something on the disk."""
        state = self.listener.state
        for number in numbers:
            call = state.clients.get(number)
            waiter = state.waiters.by_client.get(number)
            if call is not None and waiter is not None and not waiter.keys:  # Otherwise it waits for something else.
                unblock(state, call, OK if is_good else encode_error(FULL))
        self.listener.after_feed(self.listener.start_turn())

    async def stop(self, *, log_bytes: int = 0) -> None:
        """Write everything, and leave a fresh checkpoint behind where the log is longer than this."""
        for timer in self.timers.values():
            timer.cancel()
        for syncing in (self.syncing, self.syncing_log):
            if syncing is not None:
                await asyncio.wait([syncing])
        if not self.failed.done():
            self.run(partial(self.save, log_bytes))
        self.durability.close()
        if self.failed.done():
            self.failed.result()  # Raises what went wrong.
        if self.durability.waiting:
            raise JournalError(
                "there was no room on the disk for the last writes; they were never confirmed, and are gone"
            )

    def save(self, log_bytes: int) -> None:
        durability = self.durability
        self.keep_turn()
        if durability.waiting and not durability.try_again():
            return
        durability.sync()
        folder = durability.folder
        if durability.checkpoint is not None or (folder.has_frames and folder.log_bytes >= log_bytes):
            durability.save()


def run_in_thread(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> "asyncio.Future[None]":
    """In a thread made for it: the loop's own ones are gone when a program's main thread has ended and others go on."""
    future: asyncio.Future[None] = loop.create_future()

    def run() -> None:
        error: Exception | None = None
        try:
            work()
        except Exception as problem:  # For the one who waits.
            error = problem
        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits.
            loop.call_soon_threadsafe(finish, future, error)

    threading.Thread(target=run, name="headrace sync", daemon=True).start()
    return future


def finish(future: "asyncio.Future[None]", error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)

"""The broker's data on a fake disk, through crashes: everything follows from one seed.

A simulation plays random commands in turns, as the loop would: the turn's records are committed, and what follows from
that counts as promised. Now and then a checkpoint is written, a piece at a time, and synced while turns go on. At some
step the power fails or the process is killed, also during the start that follows; the clock may go back meanwhile. What
is there afterwards must be what was promised, and a turn that was under way is there as a whole or not at all.
"""

from __future__ import annotations

from random import Random

from headrace.errors import DiskFull, JournalError
from headrace.server.durability import Durability

from . import replay
from .fake_disk import Crash, FakeDisk
from .memory import START_MS, ManualClock, MemoryBroker
from .random_commands import Command, Symbols
from .random_list_commands import may_wait
from .random_sessions import any_command_of

SEGMENT_BYTES = 600
MOST_STEPS = 200  # Of the disk, between two crashes.
MOST_WAITING = 3  # Clients.

OTHERS: list[Command] = [
    line.split()
    for line in [
        b"SELECT 1", b"SELECT 0", b"SELECT 15", b"SWAPDB 0 15", b"MOVE s 9", b"COPY s t DB 15", b"RENAME s t",
        b"FLUSHDB", b"SET w text PX 5000", b"GETDEL w", b"HSET h a 1 b 2", b"HDEL h b", b"PEXPIRE s 5000",
        b"XGROUP CREATE e g 0 MKSTREAM", b"XGROUP DESTROY e g", b"RQ.PUSH q a b",
        b"RQ.PUSHX q DELAY 2000 TTL 9000 ELEMENTS 2 x y", b"RQ.POP COUNT 2 q",
        b"LMOVE l l LEFT RIGHT", b"HR.TRIM s MAXLEN 2", b"SET big " + b"0123456789" * 300, b"MULTI", b"EXEC",
    ]
]  # fmt: skip
ADD: Command = [b"XADD", b"s", b"*", b"f", b"some words that repeat, some words that repeat"]
WAIT: list[Command] = [
    line.split()
    for line in [
        b"BLPOP l m 0", b"BLMOVE m l LEFT RIGHT 0", b"BZPOPMIN z 0", b"RQ.POP BLOCK 0 q", b"BLMPOP 3 2 l m LEFT",
        b"XREADGROUP GROUP g ann BLOCK 0 STREAMS s >", b"XREADGROUP GROUP g bob BLOCK 3000 CLAIM 1000 STREAMS s >",
    ]
]  # fmt: skip

Contents = dict[tuple[int, bytes], tuple[bytes, int]]


def contents_of(broker: MemoryBroker) -> Contents:
    """Every value as a payload, and when it expires. When consumers were seen last is not promised."""
    return replay.contents_of(broker.state)


class Promises:
    """What may be found after a crash: the last state that was promised, and those since."""

    def __init__(self) -> None:
        self.states: list[Contents] = [{}]
        self.written = 0  # The one from which on they may be found when only the process was killed.

    def add(self, contents: Contents) -> None:
        self.states.append(contents)

    def keep(self, contents: Contents) -> None:
        """This one is promised: none before it may be found again."""
        index = next((index for index, state in enumerate(self.states) if state is contents), 0)
        del self.states[:index]
        self.written = max(0, self.written - index)

    def check(self, found: Contents) -> None:
        """After a start."""
        assert found in self.states[self.written :], difference(found, self.states[-1])
        self.states = [found]
        self.written = 0


class Simulation:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.policy = self.random.choice(["always", "always", "everysec", "no"])
        self.disk = FakeDisk(self.random)
        self.now_ms = START_MS
        self.promises = Promises()
        self.starts = self.crashes = self.kills = self.checkpoints = self.refusals = 0

    def run(self, crashes: int) -> None:
        """So many lives, each ended by a crash at any step, and one more."""
        for _ in range(crashes):
            self.plan_faults()
            self.run_until(self.random.randint(1, MOST_STEPS))
        self.run_until(-1)
        self.start()

    def run_until(self, step: int, *, kills: bool | None = None) -> None:
        """One life that ends at this step of the disk, by a kill or a power failure; None: whichever."""
        self.disk.crash_at = step
        try:
            self.start()
            self.live()
        except Crash:
            self.crashes += 1
        except DiskFull:  # Only the first start writes something; later a full disk is an ordinary state.
            assert self.promises.states == [{}]
        except JournalError:  # Only a sync that failed may do that; what then counts is on the disk.
            assert self.disk.sync_has_failed
        if kills is None:
            kills = not self.disk.sync_has_failed and self.random.random() < 0.5
        self.end_life(kills=kills)

    def plan_faults(self) -> None:
        if self.random.random() < 0.3:
            self.disk.full_from = self.random.randint(1, MOST_STEPS)
            self.disk.full_until = self.disk.full_from + self.random.randint(1, 20)
            self.disk.room = self.random.randint(0, 200)
        if self.random.random() < 0.1:
            self.disk.sync_fails_at = self.random.randint(1, MOST_STEPS)

    def end_life(self, *, kills: bool) -> None:
        """The process was killed: the system still has everything. Or the power failed."""
        if kills:
            self.kills += 1
            self.disk = self.disk.after_kill()
        else:
            self.disk = self.disk.after_crash()
            self.promises.written = 0
        self.now_ms -= self.random.choice([0, 0, 1, 60_000])

    def start(self) -> None:
        """Load, and compare."""
        self.starts += 1
        self.broker = MemoryBroker(ManualClock(self.now_ms))
        settings = f"stream-node-max-entries {replay.NODE_ENTRIES} appendfsync {self.policy}"
        assert self.broker(f"CONFIG SET {settings}") == b"OK"
        self.durability = Durability(self.broker.state, self.disk, segment_bytes=SEGMENT_BYTES, step_bytes=100)
        self.client = self.broker.client()
        self.waiting = 0
        self.symbols = Symbols(self.now_ms)
        self.promises.check(contents_of(self.broker))

    def live(self) -> None:
        """Turns, until the machine goes down or this is enough."""
        for _ in range(self.random.randint(5, 40)):
            self.turn()
            self.go_on_with_checkpoint()
            if self.policy == "everysec" and self.random.random() < 0.2 and not self.durability.waiting:
                self.durability.sync()
                self.promises.keep(self.promises.states[-1])

    def turn(self) -> None:
        if self.random.random() < 0.2:
            self.broker.clock.advance(ms=self.random.choice([1, 2500]))
            self.now_ms = self.broker.clock.now_ms()
        if self.random.random() < 0.1 and self.waiting < MOST_WAITING:
            self.waiting += 1
            self.broker.client().send(*self.random.choice(WAIT))
        for _ in range(self.random.randint(1, 6)):
            command = self.symbols.resolve(self.choose())
            if self.client.call.queue is not None or not may_wait(command):
                self.client(*command)
        if self.client.call.queue is not None:
            self.client("EXEC")
        self.keep_turn()

    def turn_meanwhile(self) -> None:
        """A turn while a checkpoint is synced. One that has to sync the log waits while that is being synced."""
        if self.policy != "always" or not self.durability.folder.log.syncing.locked():
            self.turn()

    def choose(self) -> Command:
        way = self.random.randrange(10)
        if way < 2:
            return ADD
        return self.random.choice(OTHERS) if way < 4 else any_command_of(self.random.getrandbits(32))

    def keep_turn(self) -> None:
        state = self.broker.state
        state.note_expired()  # Also what a refused command met.
        records = state.records
        if records:
            state.records = []
            self.promises.add(contents_of(self.broker))
            self.durability.commit(records)
        if self.durability.waiting:
            self.refusals += 1
            assert state.write_refusal.startswith("MISCONF")
            self.durability.try_again()
        if not self.durability.waiting:
            self.promises.written = len(self.promises.states) - 1
            if self.policy == "always":
                self.promises.keep(self.promises.states[-1])

    def go_on_with_checkpoint(self) -> None:
        durability = self.durability
        if durability.waiting:
            return
        if durability.checkpoint is None:
            if self.random.random() < 0.2:
                durability.begin_checkpoint()
            return
        for _ in range(self.random.randint(1, 4)):
            if durability.checkpoint is not None and durability.write_checkpoint():
                self.finish_checkpoint()

    def finish_checkpoint(self) -> None:
        assert self.durability.checkpoint is not None
        saved = self.promises.states[-1]
        self.disk.meanwhile = self.turn_meanwhile
        self.durability.checkpoint.sync()
        self.disk.meanwhile = None
        self.durability.finish_checkpoint()
        if self.broker.state.keeping.is_last_good:
            self.promises.keep(saved)
            self.checkpoints += 1


def difference(found: Contents, expected: Contents) -> str:
    return "\n".join(
        f"{place}: found {found.get(place)}, promised {expected.get(place)}"
        for place in sorted({*found, *expected})
        if found.get(place) != expected.get(place)
    )

"""The broker's data on a fake disk, through crashes: everything follows from one seed.

A simulation plays random commands in turns, as the loop would: the turn's records are committed, and what follows from
that counts as promised. Now and then a checkpoint is written, a piece at a time. At some step the machine goes down, or
the process is killed, also during the start that follows. What is there afterwards must be what was promised, and a
turn that was under way is there as a whole or not at all.
"""

from __future__ import annotations

from random import Random

from headrace.engine.dump import dump_value
from headrace.engine.stream import Stream
from headrace.errors import DiskFull, JournalError
from headrace.server.durability import Durability

from .fake_disk import Crash, FakeDisk
from .memory import START_MS, ManualClock, MemoryBroker
from .random_commands import Alphabet, Command, Symbols
from .random_list_commands import ListAlphabet, may_wait

STREAMS = Alphabet((8, 6), nonsense=2)
LISTS = ListAlphabet((8, 6), nonsense=2)
NODE_ENTRIES = 3
SEGMENT_BYTES = 600
MOST_STEPS = 300  # Of the disk, between two crashes.

OTHERS: list[Command] = [
    line.split()
    for line in [
        b"DEL s", b"UNLINK t u", b"RENAME s t", b"RENAMENX t s", b"COPY s t", b"COPY s t DB 1", b"MOVE s 1",
        b"SWAPDB 0 1", b"SELECT 1", b"SELECT 0", b"FLUSHDB", b"FLUSHALL", b"SET t text", b"SET w text PX 5000",
        b"GETDEL w", b"INCR n", b"APPEND w more", b"SADD m x y", b"SREM m x", b"ZADD z 1 a 2.5 b", b"ZREM z a",
        b"HSET h a 1 b 2", b"HDEL h b", b"PEXPIRE s 5000", b"PEXPIRE l 5000", b"PERSIST s", b"RQ.PUSH q a b",
        b"RQ.PUSH q c", b"RQ.POP q", b"RQ.POP q COUNT 2", b"RQ.ACK q 0", b"RQ.ACK q 1", b"LMOVE l l LEFT RIGHT",
        b"HR.ADD s ID 1 WINDOW 3000 MAX 2 FIELDS 2 f v", b"HR.TRIM s MAXLEN 2", b"MULTI", b"EXEC",
    ]
]  # fmt: skip
ADD: Command = [b"XADD", b"s", b"*", b"f", b"some words that repeat, some words that repeat"]

Contents = dict[tuple[int, bytes], tuple[bytes, int]]


def contents_of(broker: MemoryBroker) -> Contents:
    """Every value as a payload, and when it expires. When consumers were seen last is not promised."""
    contents: Contents = {}
    for database in broker.state.databases:
        for key, value in database.values.items():
            if isinstance(value, Stream):
                forget_sightings(value)
            contents[(database.number, key)] = (dump_value(value), database.expires_ms.get(key, 0))
    return contents


def forget_sightings(stream: Stream) -> None:
    for group in stream.groups.values():
        for consumer in group.consumers.values():
            consumer.seen_ms = 0
            consumer.active_ms = 0
    if stream.idempotence is not None:
        stream.idempotence.duplicates = 0


class Simulation:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.policy = self.random.choice(["always", "always", "everysec", "no"])
        self.disk = FakeDisk(self.random)
        self.now_ms = START_MS
        self.allowed: list[Contents] = [{}]  # What may be found after a crash: the last one promised, and those since.
        self.was_killed = False  # And only that: the system still had everything.
        self.starts = 0
        self.checkpoints = 0
        self.refusals = 0

    def run(self, crashes: int, first_crash: int = 0) -> None:
        """So many lives, each ended by a crash; the first one at this step, if told."""
        for number in range(crashes + 1):
            self.disk.crash_at = self.random.randint(1, MOST_STEPS) if number < crashes else -1
            self.plan_faults()
            if number == 0 and first_crash:
                self.disk.crash_at = first_crash
            was_killed = False
            try:
                self.start()
                was_killed = self.live()
            except Crash:
                pass
            except DiskFull:  # Only the first start writes something; later a full disk is an ordinary state.
                assert self.allowed == [{}]
            except JournalError:  # Only a sync that failed may do that; what then counts is on the disk.
                assert self.disk.sync_has_failed
            self.disk = self.disk.after_kill() if was_killed else self.disk.after_crash()
            self.was_killed = was_killed
        self.start()

    def plan_faults(self) -> None:
        if self.random.random() < 0.3:
            self.disk.full_from = self.random.randint(1, MOST_STEPS)
            self.disk.full_until = self.disk.full_from + self.random.randint(1, 20)
            self.disk.room = self.random.randint(0, 200)
        if self.random.random() < 0.1:
            self.disk.sync_fails_at = self.random.randint(1, MOST_STEPS)

    def start(self) -> None:
        """Load, and compare."""
        self.starts += 1
        self.broker = MemoryBroker(ManualClock(self.now_ms))
        settings = f"stream-node-max-entries {NODE_ENTRIES} appendfsync {self.policy}"
        assert self.broker(f"CONFIG SET {settings}") == b"OK"
        self.durability = Durability(self.broker.state, self.disk, segment_bytes=SEGMENT_BYTES, step_bytes=100)
        self.client = self.broker.client()
        self.symbols = Symbols(self.now_ms)
        found = contents_of(self.broker)
        allowed = self.allowed[-1:] if self.was_killed else self.allowed
        assert found in allowed, difference(found, allowed[-1])
        self.allowed = [found]

    def live(self) -> bool:
        """Turns until the machine goes down; True when only the process is killed."""
        for _ in range(self.random.randint(5, 40)):
            self.turn()
            self.go_on_with_checkpoint()
            if self.policy == "everysec" and self.random.random() < 0.2 and not self.durability.waiting:
                self.durability.sync()
                self.allowed = self.allowed[-1:]
        return not self.durability.waiting and self.random.random() < 0.5

    def turn(self) -> None:
        if self.random.random() < 0.2:
            self.broker.clock.advance(ms=self.random.choice([1, 2500]))
            self.now_ms = self.broker.clock.now_ms()
        for _ in range(self.random.randint(1, 6)):
            command = self.symbols.resolve(self.choose())
            if self.client.call.queue is not None or not may_wait(command):
                self.client(*command)
        if self.client.call.queue is not None:
            self.client("EXEC")
        state = self.broker.state
        records = state.records
        if records:
            state.records = []
            self.allowed.append(contents_of(self.broker))
            if self.durability.commit(records) and self.policy == "always" and not self.durability.waiting:
                self.allowed = self.allowed[-1:]
        if self.durability.waiting:
            self.refusals += 1
            assert state.write_refusal.startswith("MISCONF")
            if self.durability.try_again() and self.policy == "always":
                self.allowed = self.allowed[-1:]

    def choose(self) -> Command:
        way = self.random.randrange(10)
        if way < 2:
            return ADD
        if way < 5:
            return self.random.choice(OTHERS)
        return LISTS.command(self.random) if way < 7 else STREAMS.command(self.random)

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
                durability.checkpoint.sync()
                if self.random.random() < 0.5:
                    self.turn()
                durability.finish_checkpoint()
                self.checkpoints += 1


def difference(found: Contents, expected: Contents) -> str:
    return "\n".join(
        f"{place}: found {found.get(place)}, promised {expected.get(place)}"
        for place in sorted({*found, *expected})
        if found.get(place) != expected.get(place)
    )

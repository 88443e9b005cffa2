"""Random sessions with commands of every kind, as those of the journal and of snapshots need them.

A command is made from a number, so that a failing session can be told by its numbers.
"""

from __future__ import annotations

from random import Random
from typing import Any

from .memory import MemoryBroker
from .random_commands import Alphabet, Command, Symbols
from .random_list_commands import ListAlphabet, may_wait
from .random_sets import SetAlphabet
from .random_values import ValueAlphabet
from .random_worker_steps import worker_command_of
from .replay import NODE_ENTRIES

ALPHABET = Alphabet((8, 6), nonsense=2)
SETS = SetAlphabet((8, 6), nonsense=2)
CHOSEN: list[Command] = [[b"SPOP", b"s"], [b"SPOP", b"s", b"2"], [b"ZRANDMEMBER", b"z"], [b"SRANDMEMBER", b"s", b"-3"]]
LISTS = ListAlphabet((8, 6), nonsense=2)
VALUES = ValueAlphabet((8, 6), nonsense=2)


def xnack(random: Random) -> Command:
    ids = ALPHABET.entry_ids(random)
    words = [b"XNACK", *ALPHABET.place(random), random.choice([b"SILENT", b"FAIL", b"FATAL"])]
    words += [b"IDS", b"%d" % len(ids), *ids]
    return words + [b"FORCE"] if random.randrange(4) == 0 else words


QUEUES = [
    b"RQ.PUSH q a b",
    b"RQ.PUSH s a",
    b"RQ.PUSHX q DELAY 1000 TTL 2000 RETRY 1000 MAXDELIVERIES 1 DEADLETTER t ELEMENTS 1 x",
    b"RQ.PUSHX q RETRY 1000 MAXDELIVERIES 1 DEADLETTER t ELEMENTS 2 x y",
    b"RQ.POP COUNT 2 q s",
    b"RQ.POP q t",
    b"RQ.RECOVER q 2 0",
    b"RQ.RECOVER t 9 1",
    b"RQ.NACK q 1700000000000-1 1700000000000-2",
    b"RQ.NACK q DELAY 500 1700000000000-1 1700000000001-2",
    b"RQ.ACK q 1700000000000-2 1700000002500-1",
    b"RQ.EXTEND q 1700000000000-1",
    b"RQ.PAUSE q IN",
    b"RQ.PAUSE q NONE",
    b"RQ.INFO q",
    b"RENAME q t",
    b"COPY q s REPLACE",
    b"MOVE q 1",
]

OTHERS: list[Command] = [
    [b"DEL", b"s"],
    [b"UNLINK", b"t", b"u"],
    [b"RENAME", b"s", b"t"],
    [b"RENAMENX", b"t", b"s"],
    [b"COPY", b"s", b"t"],
    [b"COPY", b"s", b"t", b"DB", b"1"],
    [b"MOVE", b"s", b"1"],
    [b"SWAPDB", b"0", b"1"],
    [b"SELECT", b"1"],
    [b"SELECT", b"0"],
    [b"FLUSHDB"],
    [b"FLUSHALL"],
    [b"SET", b"t", b"text"],
    [b"SET", b"a", b"text", b"PX", b"5000"],
    [b"SADD", b"m", b"x", b"y"],
    [b"SREM", b"m", b"x"],
    [b"PEXPIRE", b"s", b"5000"],
    [b"PEXPIRE", b"l", b"5000"],
    [b"PERSIST", b"s"],
    [b"XADD", b"s", b"*", b"f", b"v"],
    *[(b"HR.ADD s ID %d WINDOW 3000 MAX 2 FIELDS 2 f v" % number).split() for number in range(3)],
    [b"HR.TRIM", b"s", b"MAXLEN", b"2"],
    *[line.split() for line in QUEUES],
    [b"SET", b"a", b"token", b"PX", b"3000"],
    [b"EVALSHA", b"c3f8721cbb97f72bc19e972846bd7aaf91901658", b"1", b"a", b"token"],
    [b"EVALSHA", b"a4e8783852e6b949f9ef3a97212805108459a890", b"1", b"a", b"token", b"900", b"0"],
    [b"EVALSHA", b"ef7a9e205fbaf46bf959e1522ff796622fc676c7", b"2", b"m", b"z", b"member", b"m", b"1000"],
    [b"EVALSHA", b"9a2b966a0a2d2d0e36ec32bc30fc89342b94a4bf", b"1", b"z", b"", b"permanent", b"10"],
    [b"MULTI"],
    [b"EXEC"],
    [b"EXEC"],
]


def command_of(number: int) -> Command:
    random = Random(number)
    way = random.randrange(10)
    if way == 0:
        return random.choice(OTHERS)
    if way in (2, 3):
        return LISTS.command(random)
    if way in (4, 5):
        return VALUES.command(random)
    return xnack(random) if way == 1 else ALPHABET.command(random)


def set_command_of(number: int) -> Command:
    random = Random(number)
    return random.choice(CHOSEN) if random.randrange(12) == 0 else SETS.command(random)


def stream_command_of(number: int) -> Command:
    random = Random(number)
    return xnack(random) if random.randrange(10) == 0 else ALPHABET.command(random)


def any_command_of(number: int) -> Command:
    if number % 4 == 1:
        return worker_command_of(number)
    return set_command_of(number) if number % 4 == 0 else command_of(number)


class RandomSession:
    """A broker with a journal and small nodes, to be sent commands by their numbers."""

    def __init__(self, broker: MemoryBroker | None = None) -> None:
        self.broker = broker or MemoryBroker(journaling=True)
        assert self.broker("CONFIG", "SET", "stream-node-max-entries", NODE_ENTRIES) == b"OK"
        self.symbols = Symbols(self.broker.clock.now_ms())
        self.sent: list[Command] = []

    def wait(self, wait_ms: int) -> None:
        """Let time pass. Below 0: without the timer that drops expired keys; it may be late."""
        if wait_ms < 0:
            self.broker.clock.time_ms -= wait_ms
        else:
            self.broker.clock.advance(ms=wait_ms)

    def send(self, words: Command) -> Any:
        """The reply; None for a command that might have to wait and is not sent."""
        command = self.symbols.resolve(words)
        if self.broker.first.call.queue is None and may_wait(command):
            return None
        self.sent.append(command)
        return self.broker(*command)

    def finish(self) -> None:
        """Leave no transaction open."""
        if self.broker.first.call.queue is not None:
            self.broker("EXEC")
            assert self.broker.first.call.queue is None

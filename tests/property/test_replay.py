"""Memory can be made again from the records alone.

Random commands run with a journal; the records, read back as the journal would, are applied to an empty state. Both
must then hold the same, byte by byte. Only when a consumer was last seen, and how often a repeated message was
answered, are not worth a record.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.memory import MemoryBroker, Refusal
from support.random_commands import Alphabet, Command, Symbols
from support.random_list_commands import ListAlphabet, may_wait
from support.random_sets import SetAlphabet
from support.random_values import ValueAlphabet
from support.replay import NODE_ENTRIES, contents_of, state_of

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


def check(parts: list[tuple[int, list[int]]], maker: Callable[[int], Command] = command_of) -> None:
    broker = MemoryBroker(journaling=True)
    assert broker("CONFIG", "SET", "stream-node-max-entries", NODE_ENTRIES) == b"OK"
    symbols = Symbols(broker.clock.now_ms())
    sent: list[Command] = []
    for wait_ms, numbers in parts:
        broker.clock.advance(ms=wait_ms)
        for number in numbers:
            command = symbols.resolve(maker(number))
            if broker.first.call.queue is not None or not may_wait(command):
                sent.append(command)
                broker(*command)
    if broker.first.call.queue is not None:
        assert not isinstance(broker("EXEC"), Refusal) or broker.first.call.queue is None
    assert contents_of(state_of(broker.state.records)) == contents_of(broker.state), sent


PARTS = st.lists(
    st.tuples(st.sampled_from([0, 0, 1, 2500]), st.lists(st.integers(0, 2**32 - 1), max_size=12)), max_size=12
)


@settings(max_examples=400)
@given(PARTS)
def test_the_records_alone_make_the_same_memory(parts: list[tuple[int, list[int]]]) -> None:
    check(parts)


@settings(max_examples=200)
@given(PARTS)
def test_the_records_of_sets_and_sorted_sets_make_the_same_memory(parts: list[tuple[int, list[int]]]) -> None:
    check(parts, set_command_of)


@pytest.mark.long
@settings(max_examples=20_000)
@given(PARTS)
def test_the_records_of_sets_and_sorted_sets_make_the_same_memory_in_many_sessions(
    parts: list[tuple[int, list[int]]],
) -> None:
    check(parts, set_command_of)


@pytest.mark.long
@settings(max_examples=20_000)
@given(PARTS)
def test_the_records_alone_make_the_same_memory_in_many_sessions(parts: list[tuple[int, list[int]]]) -> None:
    check(parts)

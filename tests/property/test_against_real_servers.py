"""The same random commands, given to ours and to a real server, get the same replies.

A command is made from a number, so a failing session shrinks to the few commands that matter and is printed as such.
Servers are the Valkey of the wheel, and each Redis that is present. 8.6 is compared in full, nonsense and error texts
included; older ones with commands they know, without lag and what else was counted differently. Keyspace events are
compared too, event by event, in their order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.memory import ManualClock, MemoryBroker
from support.random_commands import NEWEST, Alphabet, Command, Symbols, normalise
from support.random_list_commands import ListAlphabet, may_wait
from support.random_sets import SetAlphabet, normalise_sets
from support.random_values import ValueAlphabet, normalise_value
from support.servers import Kind, Server, present_kinds
from support.wire import Wire, encode

OLDEST = (7, 2)  # Redis 7.0 makes consumers at other times and checks less.
RIVALS = [kind for kind in present_kinds() if not kind.ours and kind.dialect >= OLDEST]
NODE_ENTRIES = 3  # Small nodes on both sides, so that approximate trimming has something to do.

ALPHABETS: dict[str, type[Alphabet] | type[ListAlphabet] | type[SetAlphabet] | type[ValueAlphabet]] = {
    "streams": Alphabet,
    "lists": ListAlphabet,
    "sets": SetAlphabet,
    "values": ValueAlphabet,
}

NUMBERS = st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=12), max_size=12)
SESSIONS = st.tuples(NUMBERS, st.sampled_from([2, 2, 3]), st.booleans())
Session = tuple[list[list[int]], int, bool]

EVENTS = [b"CONFIG", b"SET", b"notify-keyspace-events"]
LISTEN = [b"PSUBSCRIBE", b"__key*"]
END = [b"PUBLISH", b"__key", b"that is all"]


class Rival:
    """A real server with a connection for each protocol."""

    def __init__(self, server: Server) -> None:
        self.version = server.kind.dialect
        nonsense = 8 if self.version >= NEWEST else 0
        self.alphabets = {area: alphabet(self.version, nonsense=nonsense) for area, alphabet in ALPHABETS.items()}
        self.wires: dict[int, Wire] = {2: server.connect(), 3: server.connect(protocol=3)}
        self.ear = server.connect()
        assert server.control("CONFIG", "SET", "stream-node-max-entries", NODE_ENTRIES) == "OK"

    def close(self) -> None:
        for wire in [*self.wires.values(), self.ear]:
            wire.close()

    def play(self, commands: list[Command], protocol: int) -> list[Any]:
        wire = self.wires[protocol]
        first = [[b"SELECT", b"0"], [b"FLUSHALL"]]
        wire.send_bytes(b"".join(encode(command) for command in [*first, *commands]))
        return [wire.read() for _ in range(len(commands) + len(first))][len(first) :]


@pytest.fixture(scope="session", params=RIVALS, ids=[kind.name for kind in RIVALS])
def rival(request: pytest.FixtureRequest) -> Iterator[Rival]:
    kind: Kind = request.param
    with kind.start() as server, closing(Rival(server)) as rival:
        yield rival


def play_ours(commands: list[Command], protocol: int, now_ms: int) -> list[Any]:
    broker = MemoryBroker(ManualClock(now_ms))
    assert broker("CONFIG", "SET", "stream-node-max-entries", NODE_ENTRIES) == b"OK"
    wire = broker.wire(protocol=protocol)
    return [wire(*command) for command in commands]


def compare(rival: Rival, area: str, session: Session) -> None:
    parts, protocol, in_transaction = session
    numbers = [number for part in parts for number in part]
    start_ms = time.time_ns() // 1_000_000
    symbols = Symbols(start_ms)
    commands = [symbols.resolve(rival.alphabets[area].command(Random(number))) for number in numbers]
    if not in_transaction:
        commands = [command for command in commands if not may_wait(command)]
    sent = [[b"MULTI"], *commands, [b"EXEC"]] if in_transaction else commands
    theirs = rival.play(sent, protocol)
    end_ms = time.time_ns() // 1_000_000
    ours = play_ours(sent, protocol, start_ms)
    if in_transaction and isinstance(ours[-1], list) and isinstance(theirs[-1], list):
        assert ours[:-1] == theirs[:-1]
        ours, theirs = ours[-1], theirs[-1]
    for index, command in enumerate(commands):
        expected = normalise(command, theirs[index], end_ms, rival.version)
        got = normalise(command, ours[index], start_ms, rival.version)
        assert without_order(command, got) == without_order(command, expected), shown(commands[: index + 1])


def without_order(command: Command, reply: Any) -> Any:
    return normalise_sets(command, normalise_value(command, reply))


def shown(commands: list[Command]) -> str:
    return "\n".join(str(b" ".join(word or b'""' for word in command))[2:-1] for command in commands)


@pytest.mark.parametrize("area", ALPHABETS)
@settings(max_examples=500)
@given(session=SESSIONS)
def test_replies_are_those_of_the_real_server(rival: Rival, area: str, session: Session) -> None:
    compare(rival, area, session)


def compare_events(rival: Rival, area: str, session: Session) -> None:
    parts, protocol, in_transaction = session
    start_ms = time.time_ns() // 1_000_000
    symbols = Symbols(start_ms)
    drawn = [rival.alphabets[area].command(Random(number)) for part in parts for number in part]
    commands = [symbols.resolve(command) for command in drawn]
    if not in_transaction:
        commands = [command for command in commands if not may_wait(command)]
    sent = [[b"MULTI"], *commands, [b"EXEC"]] if in_transaction else commands
    rival.ear(*LISTEN)
    asked = [*EVENTS, b"EAnoc" if rival.version >= NEWEST else b"EAn"]
    rival.play([asked, *sent, END, [*EVENTS, b""]], protocol)
    theirs = heard(rival.ear)
    rival.ear(b"PUNSUBSCRIBE")
    broker = MemoryBroker(ManualClock(start_ms))
    ear = broker.wire()
    ear(*LISTEN)
    broker("CONFIG", "SET", "stream-node-max-entries", NODE_ENTRIES)
    wire = broker.wire(protocol=protocol)
    for command in [asked, *sent, END]:
        wire(*command)
    assert heard(ear) == theirs, shown(commands)


def heard(ear: Wire) -> list[tuple[bytes, bytes]]:
    """The events up to the end, as channel and key."""
    events: list[tuple[bytes, bytes]] = []
    while not events or events[-1][1] != END[2]:
        _, _, channel, message = ear.read()
        events.append((channel.replace(b":expired", b":del"), message))  # Valkey's EXPIRE 0 says expired.
    return events


@pytest.mark.parametrize("area", ALPHABETS)
@settings(max_examples=100)
@given(session=SESSIONS)
def test_events_are_those_of_the_real_server(rival: Rival, area: str, session: Session) -> None:
    compare_events(rival, area, session)


@pytest.mark.long
@pytest.mark.parametrize("area", ALPHABETS)
@settings(max_examples=20_000)
@given(session=SESSIONS)
def test_replies_are_those_of_the_real_server_in_many_sessions(rival: Rival, area: str, session: Session) -> None:
    compare(rival, area, session)

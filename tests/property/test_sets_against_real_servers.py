"""The same random commands on sets and sorted sets, given to ours and to a real server, get the same replies.

The members of a set come in no order, so there only what they are is compared. 8.6 is compared in full, nonsense and
error texts included; other servers with what is well formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.memory import MemoryBroker
from support.random_commands import NEWEST, Command
from support.random_sets import SetAlphabet, normalise_sets
from support.servers import Kind, Server, present_kinds
from support.wire import Wire, encode

OLDEST = (7, 2)  # Redis 7.0 writes scores with 17 digits, and knows no ZRANK WITHSCORE.
RIVALS = [kind for kind in present_kinds() if not kind.ours and kind.dialect >= OLDEST]
NUMBERS = st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=12), max_size=12)
SESSIONS = st.tuples(NUMBERS, st.sampled_from([2, 2, 3]))
Session = tuple[list[list[int]], int]


class Rival:
    """A real server with a connection for each protocol."""

    def __init__(self, server: Server) -> None:
        version = server.kind.dialect
        self.alphabet = SetAlphabet(version, nonsense=8 if version >= NEWEST else 0)
        self.wires: dict[int, Wire] = {2: server.connect(), 3: server.connect(protocol=3)}

    def close(self) -> None:
        for wire in self.wires.values():
            wire.close()

    def play(self, commands: list[Command], protocol: int) -> list[Any]:
        wire = self.wires[protocol]
        wire.send_bytes(b"".join(encode(command) for command in [[b"FLUSHALL"], *commands]))
        return [wire.read() for _ in range(len(commands) + 1)][1:]


@pytest.fixture(scope="session", params=RIVALS, ids=[kind.name for kind in RIVALS])
def rival(request: pytest.FixtureRequest) -> Iterator[Rival]:
    kind: Kind = request.param
    with kind.start() as server, closing(Rival(server)) as rival:
        yield rival


def compare(rival: Rival, session: Session) -> None:
    parts, protocol = session
    commands = [rival.alphabet.command(Random(number)) for part in parts for number in part]
    theirs = rival.play(commands, protocol)
    wire = MemoryBroker().wire(protocol=protocol)
    for index, command in enumerate(commands):
        got = normalise_sets(command, wire(*command))
        assert got == normalise_sets(command, theirs[index]), shown(commands[: index + 1])


def shown(commands: list[Command]) -> str:
    return "\n".join(str(b" ".join(word or b'""' for word in command))[2:-1] for command in commands)


@settings(max_examples=300)
@given(session=SESSIONS)
def test_replies_are_those_of_the_real_server(rival: Rival, session: Session) -> None:
    compare(rival, session)


@pytest.mark.long
@settings(max_examples=20_000)
@given(session=SESSIONS)
def test_replies_are_those_of_the_real_server_in_many_sessions(rival: Rival, session: Session) -> None:
    compare(rival, session)

"""Several clients push, pop and wait at the same time; each gets what a real server would have given it, in that order.

Ours plays in memory and tells after every step who has been answered. The real server must answer the same clients with
the same, and then count as many blocked ones. A step is made from a number, so a failing session shrinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.memory import MemoryBroker, MemoryWire
from support.random_commands import Command
from support.servers import Kind, Server, present_kinds
from support.wire import ConnectionClosed, encode

OLDEST = (7, 2)  # Before it, waiting commands were served without running again as a whole.
RIVALS = [kind for kind in present_kinds() if not kind.ours and kind.dialect >= OLDEST]
CLIENTS = 5
PATIENCE_S = 3.0  # For a reply that ours has given; a failing session is tried many times.
KEYS = [b"a", b"a", b"b", b"c"]
SIDES = [b"LEFT", b"RIGHT"]

SESSIONS = st.lists(st.tuples(st.integers(0, CLIENTS - 1), st.integers(0, 2**32 - 1)), max_size=25)


def waiting(random: Random) -> Command:
    keys = random.choices(KEYS, k=random.choice([1, 2, 3]))
    way = random.randrange(6)
    if way < 2:
        return [random.choice([b"BLPOP", b"BRPOP"]), *keys, b"0"]
    if way == 2:
        return [b"BLMPOP", b"0", b"%d" % len(keys), *keys, random.choice(SIDES), b"COUNT", random.choice([b"1", b"2"])]
    if way == 3:
        return [b"BZPOPMIN", *keys, b"0"]
    if way == 4:
        return [b"BRPOPLPUSH", random.choice(KEYS), random.choice(KEYS), b"0"]
    return [b"BLMOVE", random.choice(KEYS), random.choice(KEYS), random.choice(SIDES), random.choice(SIDES), b"0"]


def changing(random: Random) -> Command:
    """No SORT STORE: over a key of another type it makes a list that Redis does not give to those who wait."""
    key, other = random.choice(KEYS), random.choice(KEYS)
    element = b"%d" % random.randrange(100)
    return random.choice(
        [
            [b"RPUSH", key, element],
            [b"RPUSH", key, element, b"x"],
            [b"LPUSH", key, element, b"y", b"z"],
            [b"LPOP", key],
            [b"LMOVE", key, other, b"LEFT", b"RIGHT"],
            [b"RENAME", key, other],
            [b"COPY", key, other],
            [b"DEL", key],
            [b"SET", key, element],
            [b"ZADD", key, b"1", element],
        ]
    )


def commands_of(random: Random) -> list[Command]:
    """What a client sends in one write."""
    way = random.randrange(10)
    if way < 4:
        return [waiting(random)]
    if way == 4:
        return [changing(random), waiting(random)]
    if way == 5:
        inside = [random.choice([changing, changing, waiting])(random) for _ in range(random.choice([2, 3, 4]))]
        return [[b"MULTI"], *inside, [b"EXEC"]]
    return [changing(random)]


@pytest.fixture(scope="session", params=RIVALS, ids=[kind.name for kind in RIVALS])
def rival(request: pytest.FixtureRequest) -> Iterator[Server]:
    kind: Kind = request.param
    with kind.start() as server:
        yield server


def compare(rival: Server, session: list[tuple[int, int]]) -> None:
    broker = MemoryBroker()
    ours = [broker.wire() for _ in range(CLIENTS)]
    rival.clean()
    with ExitStack() as stack:
        theirs = [stack.enter_context(rival.connect()) for _ in range(CLIENTS)]
        told: list[str] = []
        for number, chance in session:
            if ours[number].client.is_waiting:
                continue
            commands = commands_of(Random(chance))
            told.append(f"{number}> " + "; ".join(str(b" ".join(words))[2:-1] for words in commands))
            data = b"".join(encode(words) for words in commands)
            ours[number].send_bytes(data)
            theirs[number].send_bytes(data)
            for one, other in zip(ours, theirs, strict=True):
                for reply in arrived(one):
                    assert reply == other.read(timeout_s=PATIENCE_S), "\n".join(told)
            rival.wait_until_blocked(sum(wire.client.is_waiting for wire in ours))
        looking = broker.wire()
        for command in [[b"LRANGE", key, b"0", b"-1"] for key in set(KEYS)]:
            assert looking(*command) == rival.control(*command), "\n".join(told)


def arrived(wire: MemoryWire) -> Iterator[Any]:
    """All replies that are there."""
    while True:
        try:
            yield wire.read()
        except ConnectionClosed:
            return


@settings(max_examples=150)
@given(session=SESSIONS)
def test_waiting_clients_are_served_as_by_the_real_server(rival: Server, session: list[tuple[int, int]]) -> None:
    compare(rival, session)


@pytest.mark.long
@settings(max_examples=5_000)
@given(session=SESSIONS)
def test_waiting_clients_are_served_as_by_the_real_server_in_many_sessions(
    rival: Server, session: list[tuple[int, int]]
) -> None:
    compare(rival, session)

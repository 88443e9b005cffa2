"""What was saved as parts goes on like the original.

A random session is saved key by key, and loaded into a second broker. Both hold the same, byte by byte, and are then
sent the same commands: their replies and what they hold stay the same.
"""

from __future__ import annotations

from random import Random

import pytest

from headrace.commands.call import State
from headrace.engine.dump import dump_value
from headrace.engine.snapshot import dump_part, load_part
from headrace.engine.stream import Stream
from support.memory import ManualClock, MemoryBroker
from support.random_sessions import RandomSession, any_command_of, stream_command_of
from support.shelf import Shelf

COMMANDS = 200


def save(state: State, shelf: Shelf) -> list[bytes]:
    return [
        dump_part(database.number, key, value, database.expires_ms.get(key, 0), 1, shelf)
        for database in state.databases
        for key, value in database.values.items()
    ]


def load(state: State, parts: list[bytes]) -> None:
    for payload in parts:
        part = load_part(payload, state.settings.limits)
        state.databases[part.database].put(part.key, part.value, part.expires_ms)


def contents_of(state: State) -> dict[tuple[int, bytes], tuple[bytes, int]]:
    return {
        (database.number, key): (dump_value(value), database.expires_ms.get(key, 0))
        for database in state.databases
        for key, value in database.values.items()
    }


def check(seed: int) -> None:
    random = Random(seed)
    session = RandomSession()
    for _ in range(random.randrange(COMMANDS)):
        session.send(any_command_of(random.getrandbits(32)))
    session.finish()
    session.broker("SELECT", "0")
    state = session.broker.state
    shelf = Shelf(state.settings.limits)
    twin = RandomSession(MemoryBroker(ManualClock(session.broker.clock.now_ms()), journaling=True))
    twin.broker.state.settings.limits.fetch_from(shelf.fetch)
    load(twin.broker.state, save(state, shelf))
    assert contents_of(twin.broker.state) == contents_of(state), (seed, session.sent)
    for value in state.databases[0].values.values():
        if isinstance(value, Stream):
            value.release()
    wait_ms = random.choice([0, 2500])
    for one in (session, twin):
        one.wait(wait_ms)
    for _ in range(COMMANDS // 2):
        words = session.symbols.resolve(stream_command_of(random.getrandbits(32)))
        assert twin.send(words) == session.send(words), (seed, session.sent)
    assert contents_of(twin.broker.state) == contents_of(state), (seed, session.sent)


def test_what_was_saved_and_loaded_goes_on_like_the_original() -> None:
    for seed in range(80):
        check(seed)


@pytest.mark.long
def test_what_was_saved_and_loaded_goes_on_like_the_original_in_many_sessions() -> None:
    for seed in range(10_000):
        check(seed)

"""Where the entries of a stream lie changes no reply.

Two brokers are sent the same random commands. One puts all its nodes but the last on a shelf now and then, and forgets
what it fetched; the other one keeps everything in memory.
"""

from __future__ import annotations

from random import Random

import pytest

from headrace.engine.snapshot import place_nodes
from headrace.engine.stream import Stream
from support.memory import MemoryBroker
from support.random_sessions import RandomSession, stream_command_of
from support.replay import contents_of
from support.shelf import Shelf

COMMANDS = 150


def put_away(broker: MemoryBroker, shelf: Shelf) -> None:
    """As many nodes as can be, also those that readers are at."""
    limits = broker.state.settings.limits
    for database in broker.state.databases:
        for value in database.values.values():
            if isinstance(value, Stream):
                place_nodes(value, shelf)
                for node in value.nodes:
                    node.release(limits)
    limits.kept.clear()


def check(seed: int) -> None:
    random = Random(seed)
    plain = RandomSession()
    stored = RandomSession()
    shelf = Shelf(stored.broker.state.settings.limits)
    for _ in range(COMMANDS):
        if random.randrange(5) == 0:
            put_away(stored.broker, shelf)
            for session in (plain, stored):
                session.wait(1)
        words = stream_command_of(random.getrandbits(32))
        assert stored.send(words) == plain.send(words), (seed, plain.sent)
    assert contents_of(stored.broker.state) == contents_of(plain.broker.state), (seed, plain.sent)


def test_a_stream_on_disk_answers_like_one_in_memory() -> None:
    for seed in range(60):
        check(seed)


@pytest.mark.long
def test_a_stream_on_disk_answers_like_one_in_memory_in_many_sessions() -> None:
    for seed in range(10_000):
        check(seed)

"""Order per key against a naive model (support/lane_model.py), as commands of our broker.

Each command leaves its records in one piece, so that the journal keeps all of them or none; at the end they alone must
make the same memory.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.lane_model import play_session
from support.memory import MemoryBroker
from support.replay import NODE_ENTRIES, contents_of, state_of


def check(seed: int, length: int) -> None:
    broker = MemoryBroker(journaling=True)
    assert broker("CONFIG", "SET", "stream-node-max-entries", NODE_ENTRIES) == b"OK"

    def run(*argv: str | bytes | int) -> Any:
        pieces = len(broker.state.records)
        reply = broker(*argv)
        assert len(broker.state.records) <= pieces + 1, argv
        return reply

    play_session(seed, length, run, "s")
    assert contents_of(state_of(broker.state.records)) == contents_of(broker.state)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_keys_are_held_in_order_by_one_at_a_time_and_nothing_is_lost(seed: int) -> None:
    check(seed, 60)


@pytest.mark.long
@settings(max_examples=5_000, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_keys_are_held_in_order_by_one_at_a_time_and_nothing_is_lost_in_many_sessions(seed: int) -> None:
    check(seed, 150)

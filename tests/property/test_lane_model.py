"""Order per key against a naive model (support/lane_model.py), as commands of our broker.

Each command leaves its records in one piece, so that the journal keeps all of them or none; at the end they alone must
make the same memory.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.lane_model import play_session
from support.replay import RecordingBroker


def check(seed: int, length: int) -> None:
    recording = RecordingBroker()
    play_session(seed, length, recording.run, "s")
    recording.check()


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_keys_are_held_in_order_by_one_at_a_time_and_nothing_is_lost(seed: int) -> None:
    check(seed, 60)


@pytest.mark.long
@settings(max_examples=5_000, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_keys_are_held_in_order_by_one_at_a_time_and_nothing_is_lost_in_many_sessions(seed: int) -> None:
    check(seed, 150)

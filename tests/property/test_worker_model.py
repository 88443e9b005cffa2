"""The steps of workers against a naive model (support/worker_model.py), as commands of our broker.

Each command leaves its records in one piece, so that the journal keeps all of them or none; at the end they alone must
make the same memory. The same sessions run with the functions on real servers in
tests/contract/functions/test_worker_model.py.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.replay import RecordingBroker
from support.worker_model import Server, play_session


def check(seed: int, length: int) -> None:
    recording = RecordingBroker()
    play_session(seed, length, Server(recording.run, "s"))
    recording.check()


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_replies_and_memory_are_those_of_the_model(seed: int) -> None:
    check(seed, 60)


@pytest.mark.long
@settings(max_examples=5_000, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_replies_and_memory_are_those_of_the_model_in_many_sessions(seed: int) -> None:
    check(seed, 150)

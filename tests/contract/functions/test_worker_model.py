"""Random sessions of worker steps, by functions on real servers, against the model that our broker is checked with."""

from __future__ import annotations

import pytest

from support.steps import Steps
from support.worker_model import Server, play_session

from .test_worker_rows import StepWords


@pytest.mark.parametrize("seed", range(5))
def test_replies_and_what_is_left_are_those_of_the_model(steps: Steps, seed: int) -> None:
    play_session(seed, 200, Server(StepWords(steps), "s"))


@pytest.mark.long
def test_replies_and_what_is_left_are_those_of_the_model_in_many_sessions(steps: Steps) -> None:
    for seed in range(1000, 1300):
        steps.wire("FLUSHDB")
        play_session(seed, 200, Server(StepWords(steps), "s"))

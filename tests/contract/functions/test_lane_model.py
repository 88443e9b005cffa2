"""Random sessions of order per key, by functions on real servers, against the model that our broker is checked with."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.client.lane_keys import Order, Settings
from support.lane_model import play_session
from support.steps import Steps
from support.worker_rows.row import named_keys

from .test_worker_rows import plain

LAYOUTS = ("list", "set")


class LaneWords:
    """LANE commands as steps, on a connection of their own."""

    def __init__(self, steps: Steps, layout: str) -> None:
        self.steps = steps
        self.layout = layout

    def __call__(self, *argv: str | bytes | int) -> Any:
        name, *words = argv
        if not str(name).startswith("LANE."):
            return plain(self.steps.wire(*argv))
        stream, group, *rest = words
        order = Order(str(stream), str(group), Settings(keyfields=("k",)))
        if name == "LANE.CONFIG":
            rest += ["LAYOUT", self.layout]
        step = str(name).lower().replace(".", "_")
        return plain(self.steps(step, [*order.keys, *named_keys(rest)], group, *rest))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(3))
def test_replies_and_what_is_left_are_those_of_the_model(steps: Steps, seed: int, layout: str) -> None:
    play_session(seed, 60, LaneWords(steps, layout), "s")


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
def test_replies_and_what_is_left_are_those_of_the_model_in_many_sessions(steps: Steps, layout: str) -> None:
    for seed in range(1000, 1100):
        steps.wire("FLUSHDB")
        play_session(seed, 100, LaneWords(steps, layout), "s")

"""Every promise of the steps of workers (support/worker_rows/), kept by worker_*.lua and delay.lua elsewhere."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from support.steps import Steps
from support.wire import NULL_ARRAY, NULL_BULK
from support.worker_rows import ROWS, Row, words_to_step

KEYS = itertools.count(1)


class StepWords:
    """HR commands as steps, on a connection of their own."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps

    def __call__(self, *argv: str | bytes | int) -> Any:
        if not str(argv[0]).startswith("HR."):
            return plain(self.steps.wire(*argv))
        step, keys, arguments = words_to_step(argv)
        return plain(self.steps(step, keys, *arguments))


def plain(reply: Any) -> Any:
    """Nulls and statuses as the rows expect them."""
    if reply in (NULL_ARRAY, NULL_BULK):
        return None
    if isinstance(reply, str):
        return reply.encode()
    return [plain(item) for item in reply] if isinstance(reply, list) else reply


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_row(steps: Steps, row: Row) -> None:
    row(StepWords(steps), f"w{next(KEYS)}")

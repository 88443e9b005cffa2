"""Every promise of the steps of workers (support/worker_rows/), on every server that has them as commands."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.servers import Kind, Server, present_kinds
from support.wire import NULL, NULL_ARRAY, NULL_BULK, Wire
from support.worker_rows import ROWS, Row

KEYS = itertools.count(1)
KINDS = [kind for kind in present_kinds() if kind.ours]


class NativeSteps:
    """HR commands on a connection of their own."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def __call__(self, *argv: str | bytes | int) -> Any:
        return plain(self.wire(*argv))


def plain(reply: Any) -> Any:
    """Nulls and statuses as the rows expect them."""
    if reply in (NULL, NULL_ARRAY, NULL_BULK):
        return None
    if isinstance(reply, str):
        return reply.encode()
    if isinstance(reply, dict):
        return [plain(item) for pair in reply.items() for item in pair]
    return [plain(item) for item in reply] if isinstance(reply, list) else reply


@pytest.fixture(params=KINDS, ids=[kind.name for kind in KINDS])
def steps(request: pytest.FixtureRequest, fleet: Callable[[Kind], Server]) -> Iterator[NativeSteps]:
    with fleet(request.param).connect() as wire:
        yield NativeSteps(wire)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_row(steps: NativeSteps, row: Row) -> None:
    row(steps, f"w{next(KEYS)}")

"""Every promise of a reliable queue (support/queue_rows.py), on every server that has queues."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from support.queue_rows import EXTENSION_ROWS, ROWS, Dialect, Row
from support.servers import Kind, Server, present_kinds
from support.wire import NULL, NULL_ARRAY, NULL_BULK, Wire

KEYS = itertools.count(1)


class NativeQueues:
    """RQ commands on a connection of their own."""

    dialect = Dialect()

    def __init__(self, server: Server, stack: ExitStack) -> None:
        self.server = server
        self.stack = stack
        self.wire: Wire = stack.enter_context(server.connect())

    def __call__(self, *argv: str | bytes | int) -> Any:
        return plain(self.wire(*argv))

    def connect(self) -> NativeQueues:
        return NativeQueues(self.server, self.stack)


def plain(reply: Any) -> Any:
    """Nulls and statuses as the rows expect them."""
    if reply in (NULL, NULL_ARRAY, NULL_BULK):
        return None
    if isinstance(reply, str):
        return reply.encode()
    return [plain(item) for item in reply] if isinstance(reply, list) else reply


KINDS = [kind for kind in present_kinds() if kind.ours]


@pytest.fixture(params=KINDS, ids=[kind.name for kind in KINDS])
def queues(request: pytest.FixtureRequest, fleet: Callable[[Kind], Server]) -> Iterator[NativeQueues]:
    with ExitStack() as stack:
        yield NativeQueues(fleet(request.param), stack)


@pytest.mark.parametrize("row", ROWS + EXTENSION_ROWS, ids=lambda row: row.__name__)
def test_row(queues: NativeQueues, row: Row) -> None:
    row(queues, f"q{next(KEYS)}")

"""A broker in memory for every test here: no sockets, no waiting, a clock moved by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `support`, whatever the import mode

from support.memory import ManualClock, MemoryBroker


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(clock: ManualClock) -> MemoryBroker:
    """broker("XADD orders * item tea") gives the decoded reply; broker.client() is one more client."""
    return MemoryBroker(clock)

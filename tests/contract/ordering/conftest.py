"""The breaks of the master-consumers pattern: each is shown on the naive pattern, and does not happen with lanes.

Both halves run the same scenario on the same server: ours and the wheel's Valkey always, every other one, clusters and
sentinels in the long run. A test drives the steps of all processes itself, in the order that breaks it; a process that
dies makes no further step. Where an idle time is needed it is set (XCLAIM … IDLE), not waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.ordering_scene import Scene


@pytest.fixture
def scene(url: str, kept_clients: Callable[[str, str], Any], name: str) -> Scene:
    return Scene(kept_clients(url, "sync"), name)

"""Our steps on real servers, called by name on a raw connection, as functions or as scripts."""

from __future__ import annotations

from typing import Any

from headrace.client import functions
from headrace.client.capabilities import Capabilities

from .wire import ErrorReply, Wire

WAYS = ("functions", "scripts")
NO_NATIVES = Capabilities(
    "redis",
    (7, 0),
    has_claim=False,
    has_ack_and_delete=False,
    has_native_steps=False,
    has_queues=False,
    has_lanes=False,
)


class Steps:
    """steps("claim", ["orders"], "billing", "ann", 0, 0, 0)"""

    def __init__(self, wire: Wire, way: str) -> None:
        self.wire = wire
        self.way = way
        if way == "functions":
            loaded = wire("FUNCTION", "LOAD", "REPLACE", functions.library_source())
            assert not isinstance(loaded, ErrorReply), loaded

    def __call__(self, step: str, keys: list[str], *arguments: str | bytes | int) -> Any:
        if self.way == "functions":
            return self.wire("FCALL", f"{functions.LIBRARY}_{step}", len(keys), *keys, *arguments)
        return self.wire("EVAL", functions.body_of(step), len(keys), *keys, *arguments)


def use_steps(client: Any, way: str = "functions") -> None:
    """Make a client of either flavour believe that its server lacks what our steps are for."""
    facts = getattr(client, "target", client)._facts
    facts.capabilities = NO_NATIVES
    facts.scripts.uses_functions = way == "functions"

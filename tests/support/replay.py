"""Memory made again from the records of a journal, and how to compare it with the memory that wrote them."""

from __future__ import annotations

from typing import Any

from headrace.commands.call import State
from headrace.commands.recovery import Recovery
from headrace.engine.dump import dump_value
from headrace.engine.stream import Stream

from .memory import MemoryBroker

NODE_ENTRIES = 3  # Small, so that a short session fills several nodes.
FRAME_RECORDS = 5  # Enough for all kinds of neighbours.


class RecordingBroker:
    """Runs commands in memory. Each must leave its records in one piece; in the end they alone make the same memory."""

    def __init__(self) -> None:
        self.broker = MemoryBroker(journaling=True)
        assert self.broker("CONFIG", "SET", "stream-node-max-entries", NODE_ENTRIES) == b"OK"

    def run(self, *argv: str | bytes | int) -> Any:
        pieces = len(self.broker.state.records)
        reply = self.broker(*argv)
        assert len(self.broker.state.records) <= pieces + 1, argv
        return reply

    def check(self) -> None:
        assert contents_of(state_of(self.broker.state.records)) == contents_of(self.broker.state)


def state_of(records: list[bytes]) -> State:
    """What the records make of nothing."""
    state = State(0)
    state.settings.limits.max_entries = NODE_ENTRIES
    recovery = Recovery(state)
    for sequence, start in enumerate(range(0, len(records), FRAME_RECORDS), 1):
        recovery.frame(sequence, b"".join(records[start : start + FRAME_RECORDS]))
    return state


def contents_of(state: State) -> dict[tuple[int, bytes], tuple[bytes, int]]:
    """Every value as a payload, and when it expires."""
    contents = {}
    for database in state.databases:
        for key, value in database.values.items():
            if isinstance(value, Stream):
                forget_sightings(value)
            contents[(database.number, key)] = (dump_value(value), database.expires_ms.get(key, 0))
    return contents


def forget_sightings(stream: Stream) -> None:
    for group in stream.groups.values():
        for consumer in group.consumers.values():
            consumer.seen_ms = 0
            consumer.active_ms = 0
    if stream.idempotence is not None:
        stream.idempotence.duplicates = 0

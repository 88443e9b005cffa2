"""A shelf in memory: where the tests place nodes and fetch them."""

from __future__ import annotations

from headrace.engine.shelf import NodeLimits, Place


class Shelf:
    """Give it as `place`; with `limits`, those fetch from it. A few nodes fill a segment."""

    def __init__(self, limits: NodeLimits | None = None, *, nodes_per_segment: int = 3) -> None:
        self.nodes_per_segment = nodes_per_segment
        self.written: list[bytes] = []
        self.fetches = 0
        if limits is not None:
            limits.fetch_from(self.fetch)

    def __call__(self, data: bytes) -> Place:
        segment, offset = divmod(len(self.written), self.nodes_per_segment)
        self.written.append(data)
        return segment + 1, offset, len(data)

    def fetch(self, segment: int, offset: int, size: int) -> bytes:
        data = self.written[(segment - 1) * self.nodes_per_segment + offset]
        assert len(data) == size, "fetched with another size than it was placed with"
        self.fetches += 1
        return data

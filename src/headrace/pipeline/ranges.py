"""Spans of a stream cut into slices, one for each task. Pure.

Servers cannot say how many entries lie between two IDs without reading them. So spans are cut evenly by time, the first
half of the ID; where all IDs share one millisecond, or count in the second half (`0-1`, `0-2`, …), by the second half.
How many slices there are follows from an estimate: the length of the stream, spread evenly over its IDs.

Inside a slice entries are in the order of their IDs, and slices follow each other without gap or overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Final

from headrace.pipeline.entry_ids import MAX_PART, ms_of, seq_of, text_of

ENTRIES_PER_SLICE: Final = 50_000  # About a tenth of a second of reading: less is not worth a task.
SLICES_PER_CORE: Final = 4  # More than one evens out bursts; research on a bursty stream saw no gain beyond.


@dataclass(frozen=True, slots=True)
class Slice:
    """What one task reads: entries behind `after`, up to and including `through`; IDs as servers write them.

    `first` and `deleted` are what planning saw, so that the task notices what went since. `first`: the lowest entry
    behind `after`, or `after` itself in the middle of a span; None: unknown. If the stream begins above it before it
    was read, entries were trimmed. `deleted`: the stream's highest single deletion; one above it, within the slice, is
    an entry that was not read.
    """

    stream: str
    after: str
    through: str
    first: str | None = None
    deleted: str = "0-0"


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a stream reaches: its lowest entry, its highest ID, and how many entries there are."""

    first_id: int
    last_id: int
    length: int


@dataclass(frozen=True, slots=True)
class Span:
    """What is to be read of one stream, IDs as numbers: behind `after`, up to and including `through`."""

    stream: str
    after: int
    through: int
    extent: Extent
    first_id: int | None = None  # As in Slice.
    deleted_id: int = 0

    @property
    def begin(self) -> int:
        """Nothing of the span lies below."""
        return max(self.after + 1, self.extent.first_id, self.first_id or 0)

    @property
    def estimate(self) -> int:
        return estimate_entries(self.extent, self.begin, self.through)


def cut_spans(spans: Sequence[Span], cores: int, min_partitions: int | None = None) -> list[Slice]:
    """Slices of all spans, stream by stream and in the order of IDs: at least one of each."""
    counts = share_slices([span.estimate for span in spans], cores, min_partitions)
    return [piece for span, count in zip(spans, counts, strict=True) for piece in cut_span(span, count)]


def share_slices(estimates: Sequence[int], cores: int, min_partitions: int | None = None) -> list[int]:
    """How many slices each span gets: at least one, by its size, and in all no more than the cores can use."""
    counts = [max(1, ceil(estimate / ENTRIES_PER_SLICE)) for estimate in estimates]
    most = SLICES_PER_CORE * cores
    total = sum(counts)
    if total > most:
        counts = [max(1, count * most // total) for count in counts]
    total = sum(estimates)
    if min_partitions is not None and sum(counts) < min_partitions and total:
        counts = [
            max(count, ceil(min_partitions * estimate / total))
            for count, estimate in zip(counts, estimates, strict=True)
        ]
    return counts


def cut_span(span: Span, count: int) -> list[Slice]:
    """At most `count` slices; fewer where there are not so many milliseconds, or IDs, to cut at."""
    edges = [span.after, *cut_points(span.begin, span.through, count), span.through]
    slices = []
    first_id = span.first_id
    for after, through in pairwise(edges):
        first = None if first_id is None else text_of(first_id)
        slices.append(Slice(span.stream, text_of(after), text_of(through), first, text_of(span.deleted_id)))
        first_id = through
    return slices


def cut_points(begin: int, through: int, count: int) -> list[int]:
    """The last ID of each slice but the last one, growing, from `begin` on and below `through`."""
    if ms_of(begin) == ms_of(through):
        width = seq_of(through) - seq_of(begin) + 1
        points = [begin + width * place // count - 1 for place in range(1, count)]
    else:
        width = ms_of(through) - ms_of(begin) + 1
        points = [(ms_of(begin) + width * place // count - 1) << 64 | MAX_PART for place in range(1, count)]
    return sorted({point for point in points if begin <= point < through})


def estimate_entries(extent: Extent, begin: int, through: int) -> int:
    """How many entries lie from `begin` to `through`, if they are spread evenly. 0 only where there can be none."""
    begin, through = max(begin, extent.first_id), min(through, extent.last_id)
    if begin > through or not extent.length:
        return 0
    if ms_of(begin) == ms_of(through):
        return min(extent.length, seq_of(through) - seq_of(begin) + 1)
    width = ms_of(extent.last_id) - ms_of(extent.first_id) + 1
    return max(1, min(extent.length, extent.length * (ms_of(through) - ms_of(begin) + 1) // width))


def place_end(extent: Extent, begin: int, probed_id: int, probed: int, count: int) -> int:
    """About the ID of the entry number `count` from `begin` on, where `begin` is an entry.

    `probed_id` is the entry number `probed` from there, found by reading: the end is never below. Beyond it entries are
    taken to come as densely as up to it, or as in the whole rest of the stream, whichever is denser: so a burst makes
    a batch smaller rather than larger.
    """
    last = extent.last_id
    backlog = max(estimate_entries(extent, begin, last), probed)
    if backlog <= count:
        return last
    if ms_of(begin) == ms_of(last):
        by_rest = begin + (last - begin) * count // backlog
        return max(probed_id, min(by_rest, place_end_by_sequence(begin, probed_id, probed, count), last))
    by_rest_ms = ms_of(begin) + (ms_of(last) - ms_of(begin)) * count // backlog
    by_probe_ms = ms_of(begin) + (ms_of(probed_id) - ms_of(begin) + 1) * count // probed
    return max(probed_id, min(min(by_rest_ms, by_probe_ms) << 64 | MAX_PART, last))


def place_end_by_sequence(begin: int, probed_id: int, probed: int, count: int) -> int:
    """The same for a millisecond with more entries than are wanted: counted by the second half of the ID."""
    return min(begin + (probed_id - begin) * count // probed, ms_of(begin) << 64 | MAX_PART)

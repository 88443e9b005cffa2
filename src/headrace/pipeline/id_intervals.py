"""Which entry IDs are done: a short sorted list of intervals, both ends included, that never touch. Pure.

Intervals().add(0, 17).add(30, 40)      # ((0, 17), (30, 40))
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from headrace.pipeline.entry_ids import MAX_ID, id_of, text_of

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Intervals:
    items: tuple[Interval, ...] = ()

    def covers(self, entry_id: int) -> bool:
        place = bisect_right(self.items, (entry_id, MAX_ID))
        return place > 0 and entry_id <= self.items[place - 1][1]

    def add(self, first: int, last: int) -> "Intervals":
        """With one more, joined with those it meets."""
        apart = []
        for begin, end in self.items:
            if end + 1 < first or last + 1 < begin:
                apart.append((begin, end))
            else:
                first, last = min(first, begin), max(last, end)
        return Intervals(tuple(sorted([*apart, (first, last)])))

    def to_texts(self) -> list[list[str]]:
        return [[text_of(first), text_of(last)] for first, last in self.items]


def intervals_of(texts: Iterable[tuple[str, str]]) -> Intervals:
    found = Intervals()
    for first, last in texts:
        found = found.add(id_of(first), id_of(last))
    return found

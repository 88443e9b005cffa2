"""Filters that Spark pushes down -> the IDs that can match, so that only these are read. Batch reads only. Pure.

Exact, so that Spark need not look again: `stream`, `id_ms` and `timestamp` against constants. Narrowed and then looked
at by Spark: `id`, which is text and compared as text. The order of texts is that of IDs only where all milliseconds
have the same number of digits, which `Narrowing.bound` checks by the ends of the stream.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil, floor
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from headrace.client.results import LAST_TIME_MS
from headrace.client.times import ENTRY_ID
from headrace.pipeline.entry_ids import FIRST_TIME_MS, MAX_PART, id_of, ms_of, text_of
from headrace.pipeline.ranges import Extent

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
NEVER_NULL: Final = frozenset({"stream", "id", "id_ms", "id_seq", "pairs", "fields"})


@dataclass
class Narrowing:
    """What can match: streams, milliseconds from low_ms to high_ms, and IDs."""

    streams: set[str] | None = None  # None: all.
    low_ms: int = 0
    high_ms: int = MAX_PART
    ids: tuple[int, int] | None = None  # None: all.
    text_low_ms: int = 0  # Where texts and IDs have the same order.
    text_high_ms: int = MAX_PART
    text_digits: set[int] = field(default_factory=set)

    def has(self, stream: str) -> bool:
        return self.streams is None or stream in self.streams

    def bound(self, extent: Extent, after: int, through: int) -> tuple[int, int]:
        """The span without what cannot match."""
        low_ms, high_ms = self.low_ms, self.high_ms
        digits = {len(str(ms_of(extent.first_id))), len(str(ms_of(extent.last_id)))}
        if len(digits) == 1 and digits == self.text_digits:
            low_ms, high_ms = max(low_ms, self.text_low_ms), min(high_ms, self.text_high_ms)
        low, high = low_ms << 64, max(0, high_ms) << 64 | MAX_PART
        if high_ms < low_ms or high_ms < 0:
            return after, after
        if self.ids is not None:
            low, high = max(low, self.ids[0]), min(high, self.ids[1])
        return max(after, low - 1), min(through, high)


def push(filters: Sequence[Filter], columns: Collection[str]) -> tuple[Narrowing, list[Filter]]:
    """What the filters leave, and those that Spark still has to look at. `columns` are the standard ones there are."""
    narrowing = Narrowing()
    left = []
    for one in filters:
        path = getattr(one, "attribute", None)
        column = path[0] if path is not None and len(path) == 1 and path[0] in columns else None
        is_exact = False
        if isinstance(one, IsNotNull):
            is_exact = column in NEVER_NULL
        elif column in PUSHERS and isinstance(one, COMPARISONS):
            is_exact = PUSHERS[column](narrowing, one)
        if not is_exact:
            left.append(one)
    return narrowing, left


COMPARISONS: Final = (EqualTo, EqualNullSafe, In, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)


def values_of(one: Any) -> list[Any] | None:
    """What the column may be equal to; None for a filter that is not about equality."""
    if isinstance(one, In):
        return [value for value in one.value if value is not None]
    if isinstance(one, (EqualTo, EqualNullSafe)) and one.value is not None:
        return [one.value]
    return None


def push_stream(narrowing: Narrowing, one: Any) -> bool:
    values = values_of(one)
    if values is None or not all(isinstance(value, str) for value in values):
        return False
    narrowing.streams = set(values) if narrowing.streams is None else narrowing.streams & set(values)
    return True


def push_id(narrowing: Narrowing, one: Any) -> bool:
    values = values_of(one)
    if values is not None:
        ids = [id_of(text) for text in values if is_id(text)]
        low, high = (min(ids), max(ids)) if ids else (1, 0)
        old_low, old_high = narrowing.ids or (low, high)
        narrowing.ids = (max(low, old_low), min(high, old_high))
    elif (ms := find_ms(one.value)) is not None:
        narrowing.text_digits.add(len(str(ms)))
        if isinstance(one, (GreaterThan, GreaterThanOrEqual)):
            narrowing.text_low_ms = max(narrowing.text_low_ms, ms)
        else:
            narrowing.text_high_ms = min(narrowing.text_high_ms, ms)
    return False


def find_ms(text: Any) -> int | None:
    """The milliseconds with which a text begins, where it has the form of an ID or of the first half of one."""
    if not isinstance(text, str) or not text.isascii() or not ENTRY_ID.fullmatch(text):
        return None
    ms = text.partition("-")[0]
    return int(ms) if ms == str(int(ms)) else None


def is_id(text: Any) -> bool:
    """Whether a server could have written it: any other text equals no ID."""
    try:
        return isinstance(text, str) and text_of(id_of(text)) == text
    except ValueError:
        return False


def push_id_ms(narrowing: Narrowing, one: Any) -> bool:
    return push_number(narrowing, one, lambda value: value if isinstance(value, (int, Decimal)) else None)


def push_timestamp(narrowing: Narrowing, one: Any) -> bool:
    """Timestamps have whole milliseconds here; IDs that are no times have none, and match nothing."""
    if not push_number(narrowing, one, to_ms):
        return False
    narrowing.low_ms = max(narrowing.low_ms, FIRST_TIME_MS)
    narrowing.high_ms = min(narrowing.high_ms, LAST_TIME_MS)
    return True


def to_ms(value: Any) -> Decimal | None:
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return Decimal((value - EPOCH) // timedelta(microseconds=1)) / 1000


def push_number(narrowing: Narrowing, one: Any, number: Callable[[Any], Any]) -> bool:
    """Narrow the milliseconds by a comparison with whole numbers or fractions. Whether it is exact."""
    values = values_of(one)
    if values is None and one.value is None:
        return False
    numbers = [number(value) for value in (values if values is not None else [one.value])]
    if any(value is None or isinstance(value, bool) for value in numbers):
        return False
    low, high = 0, MAX_PART
    if values is not None:
        whole = [int(value) for value in numbers if value == int(value)]
        low, high = (min(whole), max(whole)) if whole else (1, 0)
    elif isinstance(one, GreaterThan):
        low = floor(numbers[0]) + 1
    elif isinstance(one, GreaterThanOrEqual):
        low = ceil(numbers[0])
    elif isinstance(one, LessThan):
        high = ceil(numbers[0]) - 1
    else:
        high = floor(numbers[0])
    narrowing.low_ms, narrowing.high_ms = max(narrowing.low_ms, low), min(narrowing.high_ms, high)
    return values is None or len(numbers) == 1


PUSHERS: Final[dict[Any, Callable[[Narrowing, Any], bool]]] = {
    "stream": push_stream,
    "id": push_id,
    "id_ms": push_id_ms,
    "timestamp": push_timestamp,
}

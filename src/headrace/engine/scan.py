"""A walk over names in pages, while names come and go (SCAN, HSCAN, SSCAN, ZSCAN).

Whoever walks meets every name that is there from the first page to the last, however many walk at once, and comes to an
end. A page costs as much as COUNT says; in between, the names are copied or sorted once.

**Names of a dict** are walked from the newest to the oldest. A dict keeps its order, and a new name comes last, so a
name never has more names before it than it once had. A cursor says how many of the oldest names are still to come:
whatever was there at the start is among them. The first page is read from the dict itself; the second one copies all
names (7 ms for a million), and later pages use that copy. Any copy that is younger than the walk will do, also one that
another walk made; so a cursor also holds how many copies there were when its walk began.

**Members of a set** have no order that lasts. They are sorted by their CRC-32 when a walk begins (50 ms for 100,000);
the cursor is the CRC from which to go on, and members with the same CRC stand in one page.

A copy that was lost is made again, which costs time and nothing else. Names gone since are left out by the caller.
"""

from bisect import bisect_left
from collections.abc import Collection
from itertools import islice
from typing import Any, Final, final
from zlib import crc32

MAX_ORDERS: Final = 16  # Copies per database. More walks at once than this copy or sort again and again.
COPY_BITS: Final = 20
COPY_MASK: Final = 2**COPY_BITS - 1  # Copies are numbered modulo this; a walk is over long before one is seen again.


@final
class Order:
    """The names of one dict or set, as they are walked."""

    __slots__ = ("names", "number")

    def __init__(self, names: list[bytes], number: int) -> None:
        self.names = names
        self.number = number

    def older_page(self, left: int, count: int) -> tuple[int, list[bytes]]:
        """Of the `left` oldest names the newest `count`, and how many are left behind them."""
        end = min(left, len(self.names))
        start = max(end - count, 0)
        return start, self.names[start:end]

    def sorted_page(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """The names from the CRC on, about `count`, and the CRC behind them; 0 when there are no more."""
        names = self.names
        start = bisect_left(names, cursor, key=crc32)
        end = start + count
        while end < len(names) and crc32(names[end]) == crc32(names[end - 1]):
            end += 1
        return (crc32(names[end]) if end < len(names) else 0), names[start:end]


@final
class Orders:
    """The orders of one database: of its keys (None), and of the members of some values (by key)."""

    __slots__ = ("by_key", "copies")

    def __init__(self) -> None:
        self.by_key: dict[bytes | None, Order] = {}
        self.copies = 0  # Ever made.

    def page(self, key: bytes | None, names: Collection[bytes], cursor: int, count: int) -> tuple[int, list[bytes]]:
        """About `count` names from the cursor on, and the cursor behind them; 0 when there are no more."""
        if cursor == 0 and len(names) <= count:
            return 0, list(names)
        if isinstance(names, dict):
            return self.dict_page(key, names, cursor, count)
        order = self.by_key.pop(key, None)
        if order is None or cursor == 0:
            order = self.make_order(sorted(names, key=crc32))
        following, found = order.sorted_page(cursor, count)
        if following:
            self.by_key[key] = order
        return following, found

    def dict_page(
        self, key: bytes | None, names: dict[bytes, Any], cursor: int, count: int
    ) -> tuple[int, list[bytes]]:  # fmt: skip
        if cursor == 0:
            return ((len(names) - count) << COPY_BITS) | (self.copies & COPY_MASK), list(islice(reversed(names), count))
        began = cursor & COPY_MASK
        order = self.by_key.pop(key, None)
        if order is None or not is_younger(order.number, began):
            order = self.make_order(list(names))
        left, found = order.older_page(cursor >> COPY_BITS, count)
        if left:
            self.by_key[key] = order
            return (left << COPY_BITS) | began, found
        return 0, found

    def make_order(self, names: list[bytes]) -> Order:
        if len(self.by_key) >= MAX_ORDERS:
            del self.by_key[next(iter(self.by_key))]
        self.copies += 1
        return Order(names, self.copies & COPY_MASK)


def is_younger(number: int, began: int) -> bool:
    """Whether a copy was made after the walk began, when there were `began` copies."""
    return 0 < (number - began) & COPY_MASK <= COPY_MASK // 2

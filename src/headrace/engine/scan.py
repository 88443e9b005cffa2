"""A walk over names in pages, while names come and go (SCAN, HSCAN, SSCAN).

Names are walked by their CRC-32; a cursor is the CRC from which to go on. That order never changes, so whoever goes on
with a cursor misses no name that was there all the time, however many walk at once and whenever the order was made.
Names with the same CRC stand in one page.

An Order is a sorted copy of the names, made when a walk begins (cursor 0) and used by the later pages; names gone since
are left out by the caller. Making it is the costly part: 50 ms for 100,000 names. A lost one is made again, which costs
time and nothing else.
"""

from bisect import bisect_left
from collections.abc import Collection
from typing import Final
from zlib import crc32

MAX_ORDERS: Final = 16  # Per database. More walks at once than this sort again and again.


class Order:
    __slots__ = ("names",)

    def __init__(self, names: Collection[bytes]) -> None:
        self.names = sorted(names, key=crc32)

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """The names from the cursor on, about `count`, and the cursor behind them; 0 when there are no more."""
        names = self.names
        start = bisect_left(names, cursor, key=crc32)
        end = start + count
        while end < len(names) and crc32(names[end]) == crc32(names[end - 1]):
            end += 1
        return (crc32(names[end]) if end < len(names) else 0), names[start:end]


class Orders:
    """The orders of one database: of its keys (None), and of the members of some values (by key)."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[bytes | None, Order] = {}

    def page(self, key: bytes | None, names: Collection[bytes], cursor: int, count: int) -> tuple[int, list[bytes]]:
        """As Order.page, over these names, which belong to the key."""
        if cursor == 0 and len(names) <= count:
            return 0, list(names)
        order = self.by_key.pop(key, None)
        if order is None or cursor == 0:
            order = Order(names)
            if len(self.by_key) >= MAX_ORDERS:
                del self.by_key[next(iter(self.by_key))]
        following, found = order.page(cursor, count)
        if following:
            self.by_key[key] = order
        return following, found

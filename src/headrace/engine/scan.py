"""A walk over names in pages, while names come and go (SCAN, HSCAN, SSCAN, ZSCAN).

Whoever walks meets every name that is there from the first page to the last, however many walk at once, and comes to an
end. A page costs as much as COUNT says; in between, the names are copied once.

**Names of a dict** are walked from the newest to the oldest. A dict keeps its order, and a new name comes last, so a
name never has more names before it than it once had. A cursor says how many of the oldest names are still to come:
whatever was there at the start is among them. The first page is read from the dict itself; the second one copies all
names (7 ms for a million), and later pages use that copy. Any copy that is younger than the walk will do, also one that
another walk made; so a cursor also holds how many copies there were when its walk began.

**Members of a set** have no order that lasts. They are put into one when a walk begins (set_order.py), in steps: until
that is done, pages are empty. The cursor is the checksum from which to go on, and how many copies there were when the
walk began: an order that was begun later will do.

A copy or an order that was lost is made again, which costs time and nothing else. Names gone since are left out by the
caller.
"""

from collections.abc import Collection
from itertools import islice
from typing import Any, Final, final

from headrace.engine.set_order import STEP, SetOrder

MAX_ORDERS: Final = 16  # Copies per database. More walks at once than this copy again and again.
COPY_BITS: Final = 20
COPY_MASK: Final = 2**COPY_BITS - 1  # Copies are numbered modulo this; a walk is over long before one is seen again.


@final
class Order:
    """The names of one dict, from the oldest to the newest."""

    __slots__ = ("names", "number")

    def __init__(self, names: list[bytes], number: int) -> None:
        self.names = names
        self.number = number

    def older_page(self, left: int, count: int) -> tuple[int, list[bytes]]:
        """Of the `left` oldest names the newest `count`, and how many are left behind them."""
        end = min(left, len(self.names))
        start = max(end - count, 0)
        return start, self.names[start:end]


@final
class Orders:
    """The orders of one database: of its keys (None), and of the members of some values (by key)."""

    __slots__ = ("by_key", "ready", "preparing", "step", "copies")

    def __init__(self) -> None:
        self.by_key: dict[bytes | None, Order] = {}
        self.ready: dict[bytes | None, SetOrder] = {}
        self.preparing: dict[bytes | None, SetOrder] = {}
        self.step = STEP
        self.copies = 0  # Ever made.

    def clear(self) -> None:
        self.by_key.clear()
        self.ready.clear()
        self.preparing.clear()

    def page(self, key: bytes | None, names: Collection[bytes], cursor: int, count: int) -> tuple[int, list[bytes]]:
        """About `count` names from the cursor on, and the cursor behind them; 0 when there are no more."""
        if cursor == 0 and len(names) <= count:
            return 0, list(names)
        if isinstance(names, dict):
            return self.dict_page(key, names, cursor, count)
        return self.set_page(key, names, cursor, count)

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

    def set_page(
        self, key: bytes | None, names: Collection[bytes], cursor: int, count: int
    ) -> tuple[int, list[bytes]]:  # fmt: skip
        """A cursor is a checksum + 1, so that the lowest one is not the end, and the number of copies."""
        began = cursor & COPY_MASK if cursor else self.copies & COPY_MASK
        start = (cursor >> COPY_BITS) - 1 if cursor else 0
        order = self.ready.pop(key, None)
        if order is None or not is_younger(order.number, began):
            if order is not None:
                self.ready[key] = order  # For others.
            order = self.prepare(key, names, began, count, is_lost=start > 0)
            if order is None:
                return cursor or (1 << COPY_BITS) | began, []
        following, found = order.page(start, count)
        if following:
            self.ready[key] = order
            return ((following + 1) << COPY_BITS) | began, found
        return 0, found

    def prepare(
        self, key: bytes | None, names: Collection[bytes], began: int, count: int, *, is_lost: bool
    ) -> SetOrder | None:  # fmt: skip
        """An order that was begun after the walk; None when that takes some more calls."""
        order = self.preparing.pop(key, None)
        is_crowded = order is None and len(self.preparing) >= MAX_ORDERS
        if order is None:
            if is_crowded:
                del self.preparing[next(iter(self.preparing))]  # Its walk may have been given up.
            self.copies += 1
            order = SetOrder(names, self.copies & COPY_MASK)
        if not order.prepare(len(order.names) if is_lost or is_crowded else max(self.step, count)):
            self.preparing[key] = order
            return None
        self.ready.pop(key, None)
        if len(self.ready) >= MAX_ORDERS:
            del self.ready[next(iter(self.ready))]
        self.ready[key] = order
        return order if is_younger(order.number, began) else None


def is_younger(number: int, began: int) -> bool:
    """Whether a copy was made after the walk began, when there were `began` copies."""
    return 0 < (number - began) & COPY_MASK <= COPY_MASK // 2

"""Which entries of a group are pending, and with which delivery each.

A dict from names to deliveries, 98 bytes an entry. Work that is done is acked soon; what is pending for long piles up
behind a consumer that is slow or gone. So when there are many, whole deliveries that were made long ago are *folded*:
their names leave the dict and are kept packed, in the order of their IDs, 8 bytes an entry in batches of 100
(bench/durability.py). Folded entries can be read as they are; before anything else happens to one of them, its
delivery is unfolded.

Folded deliveries lie one behind the other: every name of one is below every name of the next.
"""

import zlib
from collections import deque
from typing import Any, Final

from headrace.engine.delivery import Consumer, Delivery
from headrace.engine.ids import MAX_NAME, id_of
from headrace.engine.shelf import ZLIB_LEVEL

try:
    import lz4.block as _lz4

    compress_fast: Any = _lz4.compress
    decompress_fast: Any = _lz4.decompress
except ImportError:
    compress_fast = None
    decompress_fast = None

UNFOLDED: Final = 20_000  # So many entries are never folded: a group that keeps up has fewer.
LEAST: Final = 8  # Smaller deliveries are not worth it.
SWEEP_AT: Final = 32  # Fewer than this are not worth a sweep.


class Fold:
    """The names of a folded delivery."""

    __slots__ = ("delivery", "first", "last", "packed")

    def __init__(self, delivery: Delivery, first: int, last: int, packed: bytes) -> None:
        self.delivery = delivery
        self.first = first
        self.last = last
        self.packed = packed

    def names(self) -> list[bytes]:
        joined: bytes = decompress_fast(self.packed) if decompress_fast is not None else zlib.decompress(self.packed)
        return joined.split(b",")


class PendingEntries:
    __slots__ = ("unfolded", "most", "recent", "folds", "folded", "read_fold", "read_names")

    def __init__(self) -> None:
        self.unfolded: dict[bytes, Delivery] = {}
        self.most = UNFOLDED
        self.recent: deque[Delivery] = deque()  # Those that may be folded one day, in the order they are tried.
        self.folds: list[Fold] = []
        self.folded = 0  # Entries in them.
        self.read_fold: Fold | None = None  # The one that was read last, and what is in it.
        self.read_names: set[bytes] = set()

    # Reading

    def __len__(self) -> int:
        return len(self.unfolded) + self.folded

    def __bool__(self) -> bool:
        return self.folded > 0 or len(self.unfolded) > 0

    def __contains__(self, name: bytes) -> bool:
        return self.get(name) is not None

    def __getitem__(self, name: bytes) -> Delivery:
        delivery = self.get(name)
        if delivery is None:
            raise KeyError(name)
        return delivery

    def get(self, name: bytes) -> Delivery | None:
        """The delivery of an entry, by its name; any other text is no name of a pending entry."""
        delivery = self.unfolded.get(name)
        if delivery is None and self.folds:
            fold = self.find_fold(name)
            return fold.delivery if fold is not None else None
        return delivery

    def find_fold(self, name: bytes) -> Fold | None:
        """Where a name is folded."""
        milliseconds, _, sequence = name.partition(b"-")
        if len(name) > len(MAX_NAME) or not milliseconds.isdigit() or not sequence.isdigit():
            return None
        entry_id = int(milliseconds) << 64 | int(sequence)
        index = self.fold_index(entry_id)
        if index == len(self.folds) or self.folds[index].first > entry_id:
            return None
        fold = self.folds[index]
        if self.read_fold is not fold:
            self.read_fold = fold
            self.read_names = set(fold.names())
        return fold if name in self.read_names else None

    def fold_index(self, entry_id: int) -> int:
        """Index of the first fold that does not end before an ID."""
        low = 0
        high = len(self.folds)
        while low < high:
            middle = (low + high) >> 1
            if self.folds[middle].last < entry_id:
                low = middle + 1
            else:
                high = middle
        return low

    def names_of(self, delivery: Delivery) -> list[bytes]:
        """What is left of a delivery."""
        if delivery.is_folded:
            return self.folds[self.fold_index(delivery.first_id)].names()
        if delivery.left == len(delivery.names):
            return delivery.names
        unfolded = self.unfolded
        return [name for name in delivery.names if unfolded.get(name) is delivery]

    def folded_between(self, start: int, end: int, count: int, consumer: Consumer | None) -> list[bytes]:
        """Folded names with start <= ID <= end, by ID, at most count (0: all), of one consumer or of all."""
        found: list[bytes] = []
        for index in range(self.fold_index(start), len(self.folds)):
            fold = self.folds[index]
            if fold.first > end:
                break
            if consumer is not None and fold.delivery.consumer is not consumer:
                continue
            names = fold.names()
            if fold.first < start or fold.last > end:
                names = [name for name in names if start <= id_of(name) <= end]
            found += names
            if 0 < count <= len(found):
                return found[:count]
        return found

    # Changing

    def give(self, delivery: Delivery) -> None:
        """All names of a new delivery are pending with it."""
        self.unfolded.update(dict.fromkeys(delivery.names, delivery))
        self.note(delivery)

    def extend(self, delivery: Delivery, names: list[bytes]) -> None:
        """More names are pending with a delivery."""
        before = len(delivery.names)
        delivery.names = delivery.names + names  # A new list: whoever gave the old one may still hold it.
        delivery.left += len(names)
        self.unfolded.update(dict.fromkeys(names, delivery))
        if before < LEAST:
            self.note(delivery)

    def note(self, delivery: Delivery) -> None:
        """A delivery may be folded one day; older ones perhaps now."""
        if len(delivery.names) < LEAST:
            return
        recent = self.recent
        recent.append(delivery)
        while len(self.unfolded) > self.most and recent:
            self.fold(recent.popleft())
        if len(recent) > 2 * len(self.unfolded) // LEAST + SWEEP_AT:  # More than can be whole.
            self.recent = deque([one for one in recent if one.left == len(one.names)])

    def unfold(self, delivery: Delivery) -> list[bytes]:
        """Put the names of a delivery back into the dict. Those that were folded."""
        if not delivery.is_folded:
            return []
        fold = self.folds.pop(self.fold_index(delivery.first_id))
        assert fold.delivery is delivery
        names = fold.names()
        delivery.is_folded = False
        delivery.names = names
        self.unfolded.update(dict.fromkeys(names, delivery))
        self.folded -= len(names)
        self.read_fold = None
        self.recent.append(delivery)
        return names

    def edges(self) -> tuple[bytes, bytes]:
        """The lowest and the highest folded name. There must be one."""
        return self.folds[0].names()[0], self.folds[-1].names()[-1]

    def fold(self, delivery: Delivery) -> None:
        """Keep the names of a delivery packed, if all are there and their place among the others is free."""
        names = delivery.names
        if delivery.is_folded or delivery.left != len(names) or len(names) < LEAST:
            return
        ids = [id_of(name) for name in names]
        first, last = ids[0], ids[-1]
        index = self.fold_index(first)
        if sorted(ids) != ids or (index < len(self.folds) and self.folds[index].first <= last):
            return
        joined = b",".join(names)
        packed: bytes = compress_fast(joined) if compress_fast is not None else zlib.compress(joined, ZLIB_LEVEL)
        self.folds.insert(index, Fold(delivery, first, last, packed))
        self.folded += len(names)
        delivery.is_folded = True
        delivery.first_id = first
        delivery.names = []
        for name in names:
            del self.unfolded[name]

"""Which entries of a group are pending, and with which delivery each.

A dict from names to deliveries: 98 bytes an entry, and 220 more for each delivery. Work that is done is acked soon;
what is pending for long piles up behind a consumer that is slow or gone. So when there are many, deliveries that were
made long ago are *folded* (fold.py): their names leave the dict and are kept packed, small deliveries together, 8 bytes
an entry in batches of 100 and 16 one by one (bench/durability.py). Folded entries can be read as they are; before
anything else happens to one of them, all of its fold are unfolded. Old entries that are worked on in no order would be
folded and unfolded again and again; so what was unfolded may stay until as many entries have been delivered.

Folds lie one behind the other: every name in one is below every name in the next.
"""

from collections import deque
from typing import Final

from headrace.engine.delivery import Consumer, Delivery
from headrace.engine.fold import Fold
from headrace.engine.ids import MAX_ID, MAX_NAME, id_of

UNFOLDED: Final = 20_000  # So many entries are never folded: a group that keeps up has fewer.
LEAST: Final = 8  # Fewer names together are not worth it.
TOGETHER: Final = 128  # Small deliveries are folded together up to so many names: all are unfolded for one of them.
SWEEP_AT: Final = 32  # Fewer than this are not worth a sweep.


class PendingEntries:
    __slots__ = (
        "unfolded",
        "most",
        "spare",
        "recent",
        "noted",
        "folds",
        "folded",
        "read_fold",
        "read_parts",
        "read_names",
    )

    def __init__(self) -> None:
        self.unfolded: dict[bytes, Delivery] = {}
        self.most = UNFOLDED
        self.spare = 0  # So many more need not be folded yet.
        self.recent: deque[Delivery] = deque()  # Those that may be folded one day, in the order they are tried.
        self.noted = 0  # How many names they had, at most: those that are settled must not pile up there.
        self.folds: list[Fold] = []
        self.folded = 0  # Entries in them.
        self.read_fold: Fold | None = None  # The one that was read last, and what is in it.
        self.read_parts: list[Delivery] = []
        self.read_names: dict[bytes, Delivery] = {}

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
        if delivery is None and self.folds and self.find_fold(name) is not None:
            return self.read_names[name]
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
            self.read_parts = fold.parts()
            self.read_names = {found: part for part in self.read_parts for found in part.names}
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

    def fold_of(self, delivery: Delivery) -> Fold:
        """Where a folded delivery is, and perhaps others with it."""
        return self.folds[self.fold_index(delivery.first_id)]

    def parts_of(self, delivery: Delivery) -> list[Delivery]:
        """A delivery as it was before it was folded; all that are folded together, for the first of them."""
        if not delivery.is_folded:
            return [delivery]
        fold = self.fold_of(delivery)
        return fold.parts() if fold.deliveries[0] is delivery else []

    def names_of(self, delivery: Delivery) -> list[bytes]:
        """What is left of a delivery."""
        if delivery.is_folded:
            return self.fold_of(delivery).names_of(delivery.consumer)
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
            names = fold.names() if consumer is None else fold.names_of(consumer)
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
        delivery.names = delivery.names + names  # A new list: whoever gave the old one may still hold it.
        delivery.left += len(names)
        self.noted += len(names)
        self.unfolded.update(dict.fromkeys(names, delivery))
        if self.spare:
            self.spare = max(0, self.spare - len(names))

    def note(self, delivery: Delivery) -> None:
        """A delivery may be folded one day."""
        self.recent.append(delivery)
        self.noted += len(delivery.names)
        if self.spare:
            self.spare = max(0, self.spare - len(delivery.names))
        if self.noted > 2 * len(self.unfolded) + SWEEP_AT:  # Most are settled, or folded.
            self.recent = deque([one for one in self.recent if one.left == len(one.names)])
            self.noted = sum([one.left for one in self.recent])

    def unfold(self, fold: Fold) -> list[Delivery]:
        """Put the names in a fold back into the dict. The deliveries that have them now."""
        del self.folds[self.fold_index(fold.first)]
        self.folded -= fold.size
        self.spare += fold.size
        is_read = self.read_fold is fold
        deliveries = fold.unfold(self.read_parts if is_read else fold.parts())
        if is_read and fold.is_joined:
            self.unfolded.update(self.read_names)
        else:
            for delivery in deliveries:
                self.unfolded.update(dict.fromkeys(delivery.names, delivery))
        self.read_fold = None
        self.read_parts = []
        self.read_names = {}
        self.recent.extend(deliveries)
        self.noted += fold.size
        return deliveries

    def edges(self) -> tuple[bytes, bytes]:
        """The lowest and the highest folded name. There must be one."""
        return self.folds[0].names()[0], self.folds[-1].names()[-1]

    # Folding

    def fold_old(self) -> list[Delivery]:
        """Fold until few are left that are not. The deliveries that now have nothing left: others stand for them."""
        emptied: list[Delivery] = []
        while len(self.unfolded) > self.most + self.spare and self.recent:
            run, first, last = self.take_run()
            names = [name for delivery in run for name in delivery.names]
            if len(names) >= LEAST:
                for name in names:
                    del self.unfolded[name]
                fold = Fold(run, first, last)
                self.folds.insert(self.fold_index(first), fold)
                self.folded += fold.size
                emptied += [delivery for delivery in run if not delivery.is_folded]
        return emptied

    def take_run(self) -> tuple[list[Delivery], int, int]:
        """The oldest delivery, with those behind it that can be folded together, and their lowest and highest ID."""
        recent = self.recent
        run: list[Delivery] = []
        first = last = limit = size = 0
        while recent:
            delivery = recent[0]
            names = delivery.names
            if run and (size + len(names) > TOGETHER or not follows(delivery, run[-1])):
                break
            if names and delivery.left == len(names):
                ids = [id_of(name) for name in names]
                if not run:
                    first, limit, last = ids[0], self.limit_behind(ids[0]), -1
                if sorted(ids) == ids and last < ids[0] and ids[-1] < limit:
                    run.append(delivery)
                    size += len(names)
                    last = ids[-1]
                elif run:
                    break
            recent.popleft()
        return run, first, last

    def limit_behind(self, first: int) -> int:
        """Where the next fold begins: a new one that begins with this ID must end before."""
        index = self.fold_index(first)
        return self.folds[index].first if index < len(self.folds) else MAX_ID + 1


def follows(delivery: Delivery, last: Delivery) -> bool:
    """Whether a delivery may be folded together with the one before. What is gone is told of single deliveries."""
    return delivery.time_ms >= last.time_ms and not delivery.is_gone and not last.is_gone

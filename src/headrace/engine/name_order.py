"""Names of entries in the order of their IDs, for ranges of what is pending."""

from headrace.engine.ids import id_of


class NameOrder:
    """Names in ID order, some of them stale. Sorted again when asked after an insertion out of order."""

    __slots__ = ("names", "is_sorted", "passed")

    def __init__(self, names: list[bytes]) -> None:
        self.names = names
        self.is_sorted = False
        self.passed = 0  # Stale names passed over since they were last swept; as many as there are names pay for it.

    def add(self, names: list[bytes]) -> None:
        """More names, themselves in ID order."""
        if self.is_sorted and self.names and id_of(names[0]) <= id_of(self.names[-1]):
            self.is_sorted = False
        self.names += names

    def sort(self) -> None:
        if not self.is_sorted:
            self.names = sorted(set(self.names), key=id_of)
            self.is_sorted = True

    def find(self, start: int) -> int:
        """Index of the first name whose ID is not below start."""
        low = 0
        high = len(self.names)
        while low < high:
            middle = (low + high) >> 1
            if id_of(self.names[middle]) < start:
                low = middle + 1
            else:
                high = middle
        return low

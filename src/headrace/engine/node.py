"""A run of entries of a stream, in one of four forms.

open     two lists, names and entries: the tail that XADD appends to, and nodes that entries are deleted from
sealed   one blob, the entries' replies joined, and where each begins: reading a range is a slice
packed   the entries' sizes and the blob, compressed together, for nodes that readers at the tail have left behind
stored   nothing but its place on disk (shelf.py), for such nodes once they have one

Bytes per entry with one short field: open about 190, sealed 50, packed 9 (bench/broker.py), stored 2. A node never
mixes forms. It keeps its place until it is changed, in whatever form it is. `edits` grows whenever indexes move, so
that a reader who remembers an index knows when to look again.
"""

from array import array
from itertools import accumulate
from typing import Final

from headrace.engine.compression import compress, decompress
from headrace.engine.ids import id_of
from headrace.engine.shelf import NOWHERE, Entries, NodeLimits

SIZE_BYTES: Final = array("I").itemsize


class Node:
    __slots__ = (
        "first", "sealed_count", "names", "entries", "blob", "offsets", "is_packed", "edits", "deleted_tail", "place",
        "shelf",
    )  # fmt: skip

    def __init__(self, first: int) -> None:
        self.first = first  # No entry has a lower ID. The key for searching.
        self.sealed_count = 0
        self.names: list[bytes] | None = []
        self.entries: list[bytes] | None = []
        self.blob = b""
        self.offsets: array[int] | None = None  # count + 1 of them: the last is the blob's size. None when packed.
        self.is_packed = False
        self.edits = 0
        self.deleted_tail = 0  # The highest ID deleted from the end of the node.
        self.place = NOWHERE  # Where the entries, as they are now, lie on disk.
        self.shelf: NodeLimits | None = None  # Who fetches them. None: they are here.

    @property
    def count(self) -> int:
        return len(self.names) if self.names is not None else self.sealed_count

    def size_bytes(self) -> int:
        """What the entries take in memory, as they are kept now."""
        if self.entries is not None:
            return sum([len(entry) for entry in self.entries])
        return len(self.blob)

    # Forms

    def seal(self) -> None:
        if self.entries is None:
            return
        self.sealed_count = len(self.entries)
        self.blob = b"".join(self.entries)
        self.offsets = array("I", accumulate(map(len, self.entries), initial=0))
        self.names = None
        self.entries = None

    def pack(self) -> None:
        """Compress the blob, unless that gains nothing."""
        self.seal()
        if self.is_packed or self.shelf is not None:
            return
        offsets = self.offsets
        assert offsets is not None
        # Sizes are much alike, so they pack well: as offsets they would take a third of a packed node.
        sizes = array("I", [offsets[index] - offsets[index - 1] for index in range(1, len(offsets))])
        plain = sizes.tobytes() + self.blob
        packed = compress(plain)
        if len(packed) < len(self.blob):
            self.blob = packed
            self.offsets = None
            self.is_packed = True

    def release(self, shelf: NodeLimits) -> None:
        """Keep the entries no longer in memory, if they have a place."""
        if self.place != NOWHERE and self.shelf is None:
            self.shelf = shelf
            self.blob = b""
            self.offsets = None
            self.is_packed = False

    def plain(self) -> Entries:
        """The entries of a node that is not open, joined, and where each begins."""
        if self.shelf is not None:
            return self.shelf.fetch_entries(self.place, self.sealed_count)
        if not self.is_packed:
            assert self.offsets is not None
            return self.blob, self.offsets
        plain = self.unpacked()
        sizes = array("I")
        sizes.frombytes(plain[: self.sealed_count * SIZE_BYTES])
        return plain[self.sealed_count * SIZE_BYTES :], array("I", accumulate(sizes, initial=0))

    def joined(self) -> bytes:
        """All entries as one piece of reply."""
        if self.entries is not None:
            return b"".join(self.entries)
        if self.shelf is not None:
            return self.plain()[0]
        if not self.is_packed:
            return self.blob
        return self.unpacked()[self.sealed_count * SIZE_BYTES :]

    def unpacked(self) -> bytes:
        return decompress(self.blob)

    def listed(self) -> tuple[list[bytes], list[bytes]]:
        """Names and entries. The node's own lists when it is open, else new ones; not to be changed by the caller."""
        if self.names is not None and self.entries is not None:
            return self.names, self.entries
        blob, offsets = self.plain()
        names: list[bytes] = []
        entries: list[bytes] = []
        start = 0
        for index in range(1, self.count + 1):
            end = offsets[index]
            entry = blob[start:end]
            entries.append(entry)
            names.append(name_in(entry))
            start = end
        return names, entries

    def entries_among(self, wanted: set[bytes]) -> dict[bytes, bytes]:
        """Entries by name, of those names that are here."""
        names, entries = self.listed()
        return {name: entry for name, entry in zip(names, entries, strict=True) if name in wanted}

    def open(self) -> None:
        """Make the node changeable again."""
        if self.names is None:
            self.open_as(*self.listed())

    def open_as(self, names: list[bytes], entries: list[bytes]) -> None:
        """The same with what `listed` gave."""
        self.names = names
        self.entries = entries
        self.blob = b""
        self.offsets = None
        self.is_packed = False
        self.place = NOWHERE
        self.shelf = None

    # Looking up

    def find(self, entry_id: int) -> int:
        """Index of the first entry whose ID is not below entry_id; `count` when there is none."""
        names = self.names
        blob, offsets = self.plain() if names is None else NO_ENTRIES
        low = 0
        high = self.count
        while low < high:
            middle = (low + high) >> 1
            found = id_of(names[middle]) if names is not None else id_in(blob, offsets[middle])
            if found < entry_id:
                low = middle + 1
            else:
                high = middle
        return low

    def id_at(self, index: int) -> int:
        if self.names is not None:
            return id_of(self.names[index])
        blob, offsets = self.plain()
        return id_in(blob, offsets[index])

    def first_id(self) -> int:
        return self.id_at(0)

    def last_id(self) -> int:
        return self.id_at(self.count - 1)

    def highest_id(self) -> int:
        """The highest ID the node ever held. Redis judges nodes by it when it trims approximately."""
        return max(self.last_id(), self.deleted_tail)

    def sliced(self, low: int, high: int) -> bytes:
        """Entries low to high - 1 as one piece of reply."""
        if self.entries is not None:
            return b"".join(self.entries[low:high])
        blob, offsets = self.plain()
        return blob[offsets[low] : offsets[high]]

    def entry_at(self, index: int) -> bytes:
        return self.sliced(index, index + 1)

    # Deleting

    def delete(self, low: int, high: int) -> None:
        """Remove entries low to high - 1."""
        self.open()
        assert self.names is not None and self.entries is not None
        if high == self.count:
            self.deleted_tail = max(self.deleted_tail, id_of(self.names[-1]))
        # New lists: a reader may still hold the old ones.
        self.names = self.names[:low] + self.names[high:]
        self.entries = self.entries[:low] + self.entries[high:]
        self.edits += 1

    def delete_names(self, gone: set[bytes]) -> None:
        """Remove these entries. One at least must stay."""
        names, entries = self.listed()
        self.open()
        if names[-1] in gone:
            self.deleted_tail = max(self.deleted_tail, id_of(names[-1]))
        places = [place for place, name in enumerate(names) if name not in gone]
        self.names = [names[place] for place in places]
        self.entries = [entries[place] for place in places]
        self.edits += 1


# "*2\r\n$NN\r\n" and the longest ID fit in this.
LONGEST_HEAD: Final = 9 + 41 + 2
NAME_START: Final = 4  # An entry begins "*2\r\n", then its ID as a bulk string.
NO_ENTRIES: Final[Entries] = (b"", array("I"))


def id_in(blob: bytes, offset: int) -> int:
    """The ID of the entry that begins there."""
    return id_of(name_in(blob[offset : offset + LONGEST_HEAD]))


def name_in(entry: bytes) -> bytes:
    """The ID text inside a stored entry."""
    start = entry.index(b"\n", NAME_START) + 1
    return entry[start : entry.index(b"\r", start)]


def words_in(entry: bytes) -> list[bytes]:
    """Fields and values of a stored entry, one after the other."""
    place = entry.index(b"*", NAME_START) + 1
    end = entry.index(b"\r", place)
    count = int(entry[place:end])
    words: list[bytes] = []
    place = end + 2
    for _ in range(count):
        end = entry.index(b"\r", place)
        start = end + 2
        place = start + int(entry[place + 1 : end])
        words.append(entry[start:place])
        place += 2
    return words

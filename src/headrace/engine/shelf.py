"""Nodes on disk: what is written of a node, and how it comes back.

The engine writes nothing itself. Whoever saves a stream (snapshot.py) is handed `place`, which writes bytes somewhere
and says where: a *place* is segment, offset and size. `NodeLimits.fetch` gives the bytes of a place again. Segments are
numbered from 1. A place never gets other bytes, unless `fetch_from` is called again.

What is written of a node, with numbers of 4 bytes, little-endian:

    codec    p: what follows as it is; z: compressed by zlib
    count    how many entries
    sizes    of each entry
    entries  joined, each the bytes of its reply

    e.g. two entries of 30 and 31 bytes:   p 2 30 31 and 61 bytes

Only what is fetched again and again stays in memory: the last few nodes, unless they are large.
"""

import struct
import zlib
from array import array
from collections.abc import Callable
from itertools import accumulate
from typing import Final

from headrace.errors import HeadraceError

PLAIN: Final = b"p"
ZLIB: Final = b"z"
ZLIB_LEVEL: Final = 1  # Higher levels cost twice the time for a tenth of the size.
KEPT_NODES: Final = 16  # Fetched nodes that stay in memory,
KEPT_BYTES: Final = 256 * 1024  # none of them larger than this.
LARGEST_NODE: Final = 2**32 - 1  # Entries of one node, and their sizes, are counted in 4 bytes.

# A place as one integer: 40 bytes where a tuple takes 150.
SIZE_BITS: Final = 32
OFFSET_BITS: Final = 48
SEGMENT_BITS: Final = 32
NOWHERE: Final = 0

Place = tuple[int, int, int]  # Segment, offset, size.
Entries = tuple[bytes, "array[int]"]  # Joined, and where each begins; the last offset is the end.


def no_shelf(segment: int, offset: int, size: int) -> bytes:
    raise HeadraceError(f"nothing lies on disk, also not at segment {segment}, offset {offset}, size {size}")


class NodeLimits:
    """How large a node may grow, and where stored nodes are fetched. One object, shared by all streams."""

    __slots__ = ("max_entries", "max_bytes", "fetch", "kept")

    def __init__(self) -> None:
        self.max_entries = 100  # Redis's default, so that approximate trimming removes the same entries.
        self.max_bytes = 16384  # Four times Redis's: our entries are stored as replies, about that much longer.
        self.fetch: Callable[[int, int, int], bytes] = no_shelf
        self.kept: dict[int, Entries] = {}  # By place, the longest kept first.

    def fetch_from(self, fetch: Callable[[int, int, int], bytes]) -> None:
        """Where nodes lie from now on. What was fetched is forgotten: its places may hold other bytes there."""
        self.fetch = fetch
        self.kept.clear()

    def fetch_entries(self, place: int, count: int) -> Entries:
        """The entries of a stored node."""
        entries = self.kept.get(place)
        if entries is None:
            segment, offset, size = split_place(place)
            entries = decode_node(self.fetch(segment, offset, size))
            if len(entries[0]) <= KEPT_BYTES:
                if len(self.kept) >= KEPT_NODES:
                    del self.kept[next(iter(self.kept))]
                self.kept[place] = entries
        if len(entries[1]) != count + 1:
            raise ValueError(f"a node of {count} entries is stored with {len(entries[1]) - 1}")
        return entries


def join_place(segment: int, offset: int, size: int) -> int:
    """A place as one integer, never NOWHERE. ValueError when it cannot be one."""
    if not 0 < segment < 1 << SEGMENT_BITS or not 0 <= offset < 1 << OFFSET_BITS or not 0 < size < 1 << SIZE_BITS:
        raise ValueError(f"segment {segment}, offset {offset}, size {size} is no place")
    return segment << (OFFSET_BITS + SIZE_BITS) | offset << SIZE_BITS | size


def split_place(place: int) -> Place:
    offset = (place >> SIZE_BITS) & ((1 << OFFSET_BITS) - 1)
    return segment_of(place), offset, place & ((1 << SIZE_BITS) - 1)


def segment_of(place: int) -> int:
    return place >> (OFFSET_BITS + SIZE_BITS)


def encode_node(entries: Entries) -> bytes:
    """What is written of a node."""
    joined, offsets = entries
    sizes = [offsets[index] - offsets[index - 1] for index in range(1, len(offsets))]
    plain = struct.pack(f"<I{len(sizes)}I", len(sizes), *sizes) + joined
    packed = zlib.compress(plain, ZLIB_LEVEL)
    return ZLIB + packed if len(packed) < len(plain) else PLAIN + plain


def decode_node(data: bytes) -> Entries:
    """The entries of a node, from what was written of it. ValueError when it is not that."""
    codec = data[:1]
    if codec == ZLIB:
        try:
            plain = zlib.decompress(data[1:])
        except zlib.error as error:
            raise ValueError(f"a stored node cannot be decompressed: {error}") from None
    elif codec == PLAIN:
        plain = data[1:]
    else:
        raise ValueError(f"a stored node of unknown codec {codec!r}")
    if len(plain) < 4:
        raise ValueError("a stored node without a count")
    count = int.from_bytes(plain[:4], "little")
    start = 4 + 4 * count
    if len(plain) < start:
        raise ValueError("a stored node is too short for its sizes")
    offsets = array("I", accumulate(struct.unpack_from(f"<{count}I", plain, 4), initial=0))
    if offsets[-1] != len(plain) - start:
        raise ValueError("the sizes of a stored node do not add up")
    return plain[start:], offsets

"""The members of a set, in an order that lasts: that of their CRC-32.

They lie in boxes, each for a range of checksums, about forty in a box. To put a million members there takes up to a
second, a stall for every client; so it is done in steps, on a copy of the members.
"""

from bisect import bisect_left
from collections.abc import Collection
from typing import Final, final
from zlib import crc32

STEP: Final = 10_000  # Members put into boxes together: some milliseconds.
IN_A_BOX: Final = 32  # To 64.
CRC_BITS: Final = 32


@final
class SetOrder:
    __slots__ = ("number", "names", "boxes", "shift", "done")

    def __init__(self, names: Collection[bytes], number: int) -> None:
        self.number = number
        self.names = list(names)
        bits = max(0, (len(self.names) // IN_A_BOX).bit_length() - 1)
        self.shift = CRC_BITS - bits
        self.boxes: list[list[bytes] | None] = [None] * (1 << bits)  # None: an empty one.
        self.done = 0

    def prepare(self, count: int) -> bool:
        """Put some more members where they belong. Whether all are there."""
        boxes = self.boxes
        shift = self.shift
        for name in self.names[self.done : self.done + count]:
            index = crc32(name) >> shift
            box = boxes[index]
            if box is None:
                boxes[index] = [name]
            else:
                box.append(name)
        self.done += count
        if self.done < len(self.names):
            return False
        self.names = []
        return True

    def page(self, start: int, count: int) -> tuple[int, list[bytes]]:
        """`count` members from a checksum on, and the checksum to go on with; 0 when there are no more.

        Those that share a checksum stand in one page, which is longer then.
        """
        found: list[bytes] = []
        for index in range(start >> self.shift, len(self.boxes)):
            box = sorted(self.boxes[index] or (), key=crc32)
            if index == start >> self.shift:
                box = box[bisect_left(box, start, key=crc32) :]
            end = count - len(found)
            if end < len(box):
                while 0 < end < len(box) and crc32(box[end]) == crc32(box[end - 1]):
                    end += 1
                found += box[:end]
                if end < len(box):
                    return crc32(box[end]), found
            else:
                found += box
        return 0, found

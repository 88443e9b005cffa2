"""A large list, hash, set or sorted set, as a part of a checkpoint (snapshot.py) that is made a piece at a time.

Its elements are copied at once: that is a copy of references, since they never change, and takes a twentieth of the
time that their bytes take. From then on the value may change; the part is of the moment of the copy. Streams have their
own way, and reliable queues are saved in one go.
"""

from array import array
from collections import deque

from headrace.engine.keyspace import Stored
from headrace.engine.payload import put_fields, put_numbers
from headrace.engine.snapshot import put_head
from headrace.engine.sorted_set import SortedSet


def is_large(value: Stored, elements: int) -> bool:
    """Whether a value has so many elements that it should be saved bit by bit."""
    return isinstance(value, (deque, dict, set, SortedSet)) and len(value) > elements


class LargePart:
    __slots__ = ("head", "names", "values", "scores", "next")

    def __init__(self, database: int, key: bytes, value: Stored, expires_ms: int, sequence: int) -> None:
        self.values: list[bytes] = []  # Of a hash.
        self.scores: array[float] = array("d")  # Of a sorted set.
        self.next = 0  # The element that is encoded next.
        kind = b"list"
        if isinstance(value, SortedSet):
            kind = b"zset"
            self.names: list[bytes] = []
            for chunk in value.chunks:
                self.names += chunk.members
                self.scores += chunk.scores
        else:
            self.names = list(value)
            if isinstance(value, dict):
                kind = b"hash"
                self.values = list(value.values())
            elif isinstance(value, set):
                kind = b"set"
        self.head: list[bytes] = []  # Until it is part of a piece.
        put_head(self.head, database, key, sequence)
        put_numbers(self.head, [expires_ms])
        put_fields(self.head, [kind, b"%d" % len(self.names)])

    def has_more(self) -> bool:
        return self.next < len(self.names)

    def encode_some(self, elements: int, size_bytes: int) -> bytes:
        """The next elements, at most so many and about so many bytes. At least one."""
        words = self.words(self.next, min(self.next + max(elements, 1), len(self.names)))
        width = 2 if self.values or self.scores else 1
        while len(words) > width and sum([len(word) for word in words]) > size_bytes:
            words = words[: len(words) // width // 2 * width or width]
        self.next += len(words) // width
        parts = self.head
        self.head = []
        put_fields(parts, words)
        return b"".join(parts)

    def words(self, start: int, end: int) -> list[bytes]:
        """Elements as they are written: alone, or with value or score in turn."""
        names = self.names[start:end]
        if not self.values and not self.scores:
            return names
        words = names + names
        words[::2] = names
        words[1::2] = self.values[start:end] or [repr(score).encode() for score in self.scores[start:end]]
        return words

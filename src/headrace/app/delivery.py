"""One message on its way through a worker.

Made for every message, so it is plain: the ID and the fields as they arrived, and where it stands. Users see it as
Context.
"""

from typing import Any

from headrace.client.results import Entry

Words = list[bytes]  # The fields of an entry as they arrive: name, value, name, value.


class Delivery:
    __slots__ = (
        "id",
        "words",
        "stream",
        "attempt",
        "last_error",
        "is_again",
        "is_settled",
        "leased_s",
        "size_bytes",
        "task",
    )

    def __init__(self, id: str, words: Words, stream: str, leased_s: float, size_bytes: int, is_again: bool) -> None:
        self.id = id
        self.words = words
        self.stream = stream
        self.attempt = 1
        self.last_error = ""
        self.is_again = is_again  # Delivered before, to whomever: which attempt this is has to be asked for.
        self.is_settled = False  # By ctx.commit, before the handler ended.
        self.leased_s = leased_s  # When its lease began, by the monotonic clock. 0: no longer ours.
        self.size_bytes = size_bytes
        self.task: Any = None

    def find(self, name: bytes) -> bytes | None:
        """The value of a field; the last one when there are several."""
        words = self.words
        for index in range(len(words) - 2, -1, -2):
            if words[index] == name:
                return words[index + 1]
        return None

    @property
    def key(self) -> str | None:
        return self.entry().key

    @property
    def fence(self) -> int | None:
        return None

    def entry(self) -> Entry:
        words = self.words
        pairs = tuple((words[index], words[index + 1]) for index in range(0, len(words) - 1, 2))
        return Entry(self.id, pairs, self.stream)

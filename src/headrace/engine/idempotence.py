"""Which messages a stream has already seen, by producer and message ID (XADD IDMP).

Per producer the newest `max_size` message IDs are remembered for `duration_s`. A message seen before is answered with
the ID of its first entry, even when that entry is gone.
"""

import hashlib
from typing import Final

DEFAULT_DURATION_S: Final = 100
DEFAULT_MAX_SIZE: Final = 100
DIGEST_BYTES: Final = 16


class Idempotence:
    __slots__ = ("duration_s", "max_size", "producers", "added", "duplicates")

    def __init__(self, duration_s: int, max_size: int) -> None:
        self.duration_s = duration_s
        self.max_size = max_size
        # producer -> message ID -> entry ID, oldest first. The age of a record is its entry ID's.
        self.producers: dict[bytes, dict[bytes, int]] = {}
        self.added = 0
        self.duplicates = 0

    def find(self, producer: bytes, message: bytes, now_ms: int) -> int:
        """The entry ID of a message seen before, or 0."""
        records = self.producers.get(producer)
        if records is None:
            return 0
        self.expire_producer(producer, records, now_ms)
        return records.get(message, 0)

    def record(self, producer: bytes, message: bytes, entry_id: int) -> None:
        records = self.producers.setdefault(producer, {})
        while len(records) >= self.max_size:
            del records[next(iter(records))]
        records[message] = entry_id
        self.added += 1

    def expire(self, now_ms: int) -> None:
        for producer, records in list(self.producers.items()):
            self.expire_producer(producer, records, now_ms)

    def expire_producer(self, producer: bytes, records: dict[bytes, int], now_ms: int) -> None:
        oldest_ms = now_ms - self.duration_s * 1000
        while records:
            message = next(iter(records))
            if records[message] >> 64 > oldest_ms:
                return
            del records[message]
        self.producers.pop(producer, None)

    def configure(self, duration_s: int, max_size: int) -> None:
        """New limits. A changed value forgets all records, as Redis does."""
        if (duration_s, max_size) != (self.duration_s, self.max_size):
            self.producers.clear()
        self.duration_s = duration_s
        self.max_size = max_size

    def count_records(self) -> int:
        return sum([len(records) for records in self.producers.values()])


def digest_fields(words: list[bytes], start: int) -> bytes:
    """A message ID made of the fields; their order does not matter, so the pairs' digests are added up."""
    total = 0
    for index in range(start, len(words) - 1, 2):
        field, value = words[index], words[index + 1]
        pair = b"%d:%b%b" % (len(field), field, value)
        total += int.from_bytes(hashlib.blake2b(pair, digest_size=DIGEST_BYTES).digest(), "big")
    return (total % (1 << (8 * DIGEST_BYTES))).to_bytes(DIGEST_BYTES, "big")

"""Keys of one database: what each holds, and when it expires.

A value is a Stream, a SortedSet, or plain Python: bytes (string), deque (list), dict (hash), set. A key whose time has
come counts as missing from then on; whoever meets it first removes it.

What happens to a key as such is also an event, for those who asked for its kind: `event_kinds` says which, and is 0
while nobody did.
"""

from collections import deque
from typing import Any, Final

from headrace.engine.reliable_queue import ReliableQueue
from headrace.engine.scan import Orders
from headrace.engine.sorted_set import SortedSet
from headrace.engine.stream import Stream

# Kinds of keyspace events that happen here. All the others are in commands/notifications.py.
EXPIRED: Final = 256
NEW: Final = 8192  # A key that did not exist before.
OVERWRITTEN: Final = 16384  # Its value gave way to another one.
TYPE_CHANGED: Final = 32768

Event = tuple[int, int, bytes, bytes]  # Kind, database, event, key.

QUEUE_TYPE: Final = "RELIABLEQ"  # As the RedisRQ module calls it.
WRONG_TYPE: Final = "WRONGTYPE Operation against a key holding the wrong kind of value"

# Stream, SortedSet, bytes, deque[bytes], dict[bytes, bytes] or set[bytes]. A union would be checked at every look-up.
Stored = Any


class Keyspace:
    __slots__ = ("number", "values", "expires_ms", "dropped", "unchecked", "orders", "event_kinds", "events")

    def __init__(
        self, number: int, events: list[Event] | None = None, dropped: list[tuple[int, bytes]] | None = None
    ) -> None:
        self.number = number
        self.event_kinds = 0  # Those somebody asked for.
        self.events: list[Event] = events if events is not None else []  # Not published yet.
        self.values: dict[bytes, Stored] = {}
        self.expires_ms: dict[bytes, int] = {}
        self.unchecked: list[bytes] = []  # Keys with an expiry that drop_expired has not looked at yet.
        self.orders = Orders()  # Of scans under way.
        # Database and key of those whose time came, for the journal and for those who wait. Shared by all databases.
        self.dropped: list[tuple[int, bytes]] = dropped if dropped is not None else []

    def find(self, key: bytes, now_ms: int) -> Stored | None:
        if self.expires_ms:
            self.drop_if_expired(key, now_ms)
        return self.values.get(key)

    def put(self, key: bytes, value: Stored, expires_ms: int = 0) -> None:
        """Store a value in place of whatever the key held. 0: never expires."""
        if self.event_kinds:
            old = self.values.get(key)
            if old is not None:
                self.tell(OVERWRITTEN, b"overwritten", key)
                if type_name(old) != type_name(value):
                    self.tell(TYPE_CHANGED, b"type_changed", key)
        self.change(key, value, expires_ms)

    def change(self, key: bytes, value: Stored, expires_ms: int = 0) -> None:
        """As put, for a value that was made from the one before: a number that grew is not overwritten."""
        if self.event_kinds and key not in self.values:
            self.tell(NEW, b"new", key)
        self.store(key, value, expires_ms)

    def replace(self, key: bytes, value: Stored, expires_ms: int) -> None:
        """As put, for a name that counts as new also when it had a value. It keeps its place among the names: who
        scans meets every key that exists all the time."""
        self.tell(NEW, b"new", key)
        self.store(key, value, expires_ms)

    def store(self, key: bytes, value: Stored, expires_ms: int) -> None:
        self.values[key] = value
        if expires_ms:
            self.expires_ms[key] = expires_ms
        else:
            self.expires_ms.pop(key, None)

    def tell(self, kind: int, event: bytes, key: bytes) -> None:
        """Something happened to a key: an event for those who asked for its kind."""
        if self.event_kinds & kind:
            self.events.append((kind, self.number, event, key))

    def delete(self, key: bytes) -> bool:
        self.expires_ms.pop(key, None)
        return self.values.pop(key, None) is not None

    def clear(self) -> None:
        self.values.clear()
        self.expires_ms.clear()
        self.orders.clear()

    def drop_if_expired(self, key: bytes, now_ms: int) -> None:
        when = self.expires_ms.get(key)
        if when is not None and when <= now_ms:
            self.delete(key)
            self.dropped.append((self.number, key))
            self.tell(EXPIRED, b"expired", key)

    def drop_expired(self, now_ms: int, limit: int) -> None:
        """Remove keys whose time has come, looking at no more than `limit`; the next call goes on from there."""
        if not self.unchecked:
            self.unchecked = list(self.expires_ms)
        for key in self.unchecked[-limit:]:
            self.drop_if_expired(key, now_ms)
        del self.unchecked[-limit:]


def type_name(value: Stored) -> str:
    if isinstance(value, Stream):
        return "stream"
    if isinstance(value, bytes):
        return "string"
    if isinstance(value, deque):
        return "list"
    if isinstance(value, dict):
        return "hash"
    if isinstance(value, ReliableQueue):
        return QUEUE_TYPE
    if isinstance(value, SortedSet):
        return "zset"
    return "set"

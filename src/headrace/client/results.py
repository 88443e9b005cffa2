"""What calls give back: small frozen values, with times as numbers and names as text."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from headrace.client import layout

Pairs = tuple[tuple[bytes, bytes], ...]

LAST_TIME_MS = 253_402_300_799_999  # The end of the year 9999: IDs beyond are counters, not times.


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored entry, or one that was delivered.

    `pairs` are the fields as stored: bytes, in order, duplicates kept. `fields` is the comfortable view of them.
    """

    id: str
    pairs: Pairs
    stream: str = ""
    idle_ms: int | None = None  # Since the delivery before this one; None when the read did not ask for it.
    deliveries: int | None = None  # Deliveries before this one; None when the read did not ask for it.
    is_deleted: bool = False  # Still pending, but no longer in the stream: there is nothing to process.

    @property
    def fields(self) -> dict[str, str]:
        """As text; the last of duplicate fields wins; bytes that are not UTF-8 survive a round trip."""
        return {decode_text(name): decode_text(value) for name, value in self.pairs}

    @property
    def id_ms(self) -> int:
        return int(self.id.split("-")[0])

    @property
    def time(self) -> datetime | None:
        """When the entry was added, by its ID; None when the ID is no time."""
        return datetime.fromtimestamp(self.id_ms / 1000, UTC) if self.id_ms <= LAST_TIME_MS else None

    def find(self, name: bytes) -> bytes | None:
        """The value of a field as bytes; the last one when there are several."""
        for field, value in reversed(self.pairs):
            if field == name:
                return value
        return None

    @property
    def key(self) -> str | None:
        """The ordering key it was published with."""
        value = self.find(layout.KEY)
        return None if value is None else decode_text(value)

    @property
    def publish_id(self) -> str | None:
        """What was given as `id=` when it was published."""
        value = self.find(layout.ID)
        return None if value is None else decode_text(value)

    @property
    def headers(self) -> dict[str, str]:
        start = len(layout.HEADER)
        return {
            decode_text(name[start:]): decode_text(value) for name, value in self.pairs if name[:start] == layout.HEADER
        }

    @property
    def payload(self) -> Any:
        """What was published: JSON decoded, text as str, other bytes as they are.

        An entry that somebody else wrote, without the field `data`, is its fields.
        """
        data = self.find(layout.DATA)
        if data is None:
            return {name: value for name, value in self.fields.items() if not name.startswith("hr:")}
        return layout.decode_payload(data, self.find(layout.TYPE), self.id)


@dataclass(frozen=True, slots=True)
class PendingEntry:
    """An entry that was delivered and not acknowledged."""

    id: str
    consumer: str  # Empty: given back, owned by nobody.
    idle_ms: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class PendingSummary:
    total: int
    lowest_id: str | None
    highest_id: str | None
    by_consumer: dict[str, int]


@dataclass(frozen=True, slots=True)
class StreamInfo:
    name: str
    length: int
    last_id: str
    first_entry: Entry | None
    last_entry: Entry | None
    groups: int
    entries_added: int | None  # None: the server is too old to tell.
    max_deleted_id: str | None
    facts: dict[str, Any]  # Everything the server said, by its own names.


@dataclass(frozen=True, slots=True)
class GroupInfo:
    name: str
    consumers: int
    pending: int
    last_delivered_id: str
    entries_read: int | None  # None: unknown.
    lag: int | None  # None: unknown.


@dataclass(frozen=True, slots=True)
class ConsumerInfo:
    name: str
    pending: int
    idle_ms: int  # Since it last tried anything.
    inactive_ms: int | None  # Since it was last given something; None: never, or the server cannot tell.


@dataclass(frozen=True, slots=True)
class TrimReport:
    """What a trim did, or would do."""

    removed: int  # In a dry run that names a group in held_by: what would go with partly; without, it is refused.
    kept_from_id: str  # Nothing with a lower ID is left by this trim. Empty: nothing is left, or it was not looked up.
    held_by: str | None  # The group that needs older entries than were asked to go.
    is_dry_run: bool


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a claim brought."""

    entries: list[Entry]
    deleted_ids: list[str]  # Were pending and are gone from the stream; now no longer pending.


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a queue, looked at. What is None does not apply to it, or was not asked for."""

    id: str
    body: bytes
    delivered_ms: int | None = None  # When last, in unix time.
    idle_ms: int | None = None  # Since then.
    deliveries: int | None = None
    due_ms: int | None = None  # When a delayed one is to be had, in unix time.


@dataclass(frozen=True, slots=True)
class QueueInfo:
    undelivered: int
    delivered: int  # And not acknowledged.


@dataclass(frozen=True, slots=True)
class QueueStats:
    undelivered: int
    delivered: int
    delayed: int
    nacks: int  # Elements that were given back, since the queue was made.
    redeliveries: int  # Deliveries of an element after its first.
    dead: int  # Elements that were delivered too often.
    expired: int  # Elements that were not delivered in time.
    paused: str  # none, in, out or all
    last_id: str  # Of the last element that was ever pushed.


@dataclass(frozen=True, slots=True)
class Message:
    """What was published to a channel."""

    channel: str
    body: bytes
    pattern: str | None = None  # The one that matched, where a pattern was listened to.

    @property
    def text(self) -> str:
        return decode_text(self.body)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a transport promises."""

    delivery: str
    fan_out: bool
    persisted: bool


STREAM_GUARANTEE: Final = Guarantee(delivery="at least once", fan_out=True, persisted=True)
QUEUE_GUARANTEE: Final = Guarantee(delivery="at least once", fan_out=False, persisted=True)
LIST_GUARANTEE: Final = Guarantee(delivery="at most once", fan_out=False, persisted=True)
CHANNEL_GUARANTEE: Final = Guarantee(delivery="at most once", fan_out=True, persisted=False)


def decode_text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def encode_text(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")

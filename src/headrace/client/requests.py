"""One function per call: the argument vector to send and how to read its reply. Pure, shared by both flavours.

Replies come in RESP2 or RESP3 form (flat lists or maps) and from servers of any age (shorter lists): pairs are always
read by name, and whatever is unknown is passed over.
"""

from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, Generic, TypeVar

from headrace.client.results import (
    Claimed,
    ConsumerInfo,
    Entry,
    GroupInfo,
    PendingEntry,
    PendingSummary,
    StreamInfo,
    decode_text,
)

T = TypeVar("T")
Word = bytes | str | int

BLOCK_MS: Final = 5000  # One blocking call takes no longer; a longer wait is several calls.


class Request(Generic[T]):
    """A call to be made: what to send, how to read the answer, and what may be done when the answer is lost."""

    __slots__ = ("argv", "decode", "key", "is_repeatable", "wait_ms", "kind")

    def __init__(
        self, argv: tuple[Word, ...], decode: Callable[[Any], T], key: str | None = None,
        is_repeatable: bool = False, wait_ms: int = 0, kind: str = "stream",
    ) -> None:  # fmt: skip
        self.argv = argv
        self.decode = decode
        self.key = key  # Which key decides where it goes in a cluster.
        self.is_repeatable = is_repeatable  # Sending it twice does no harm.
        self.wait_ms = wait_ms  # How long the server may keep us waiting.
        self.kind = kind  # What the key is taken for.

    def __repr__(self) -> str:
        return f"Request({self.argv!r})"

    def run(self) -> Generator["Request[Any]", Any, T]:
        """As a step of a flow: `reply = yield from request.run()`."""
        reply: T = yield self
        return reply


# Reading replies


def text(value: Any) -> str:
    return decode_text(value) if isinstance(value, bytes) else str(value)


def number(value: Any) -> int:
    """Integers come as integers or as text, depending on command and age."""
    return int(value)


def maybe_number(value: Any) -> int | None:
    return None if value is None else int(value)


def named(reply: Any) -> dict[str, Any]:
    """A map by name, from a RESP3 map or a RESP2 flat list."""
    if isinstance(reply, dict):
        return {text(name): value for name, value in reply.items()}
    return {text(reply[index]): reply[index + 1] for index in range(0, len(reply) - 1, 2)}


def read_entry(reply: Any, stream: str) -> Entry:
    """An entry of two elements, or of four when CLAIM was asked for; fields may be null when it is gone."""
    words = reply[1]
    if words is None:
        pairs: tuple[tuple[bytes, bytes], ...] = ()
    else:
        pairs = tuple((words[index], words[index + 1]) for index in range(0, len(words) - 1, 2))
    if len(reply) >= 4:
        return Entry(text(reply[0]), pairs, stream, number(reply[2]), number(reply[3]), words is None)
    return Entry(text(reply[0]), pairs, stream, is_deleted=words is None)


def read_entries(reply: Any, stream: str) -> list[Entry]:
    return [read_entry(item, stream) for item in reply or () if item is not None]


def read_streams(reply: Any) -> list[Entry]:
    """XREAD and XREADGROUP: null, a list of [stream, entries], or a map of them."""
    if reply is None:
        return []
    items: Iterable[Any] = reply.items() if isinstance(reply, dict) else reply
    return [entry for name, entries in items for entry in read_entries(entries, text(name))]


def read_stream_info(reply: Any, name: str) -> StreamInfo:
    facts = named(reply)
    first, last = facts.get("first-entry"), facts.get("last-entry")
    return StreamInfo(
        name=name,
        length=number(facts["length"]),
        last_id=text(facts["last-generated-id"]),
        first_entry=None if first is None else read_entry(first, name),
        last_entry=None if last is None else read_entry(last, name),
        groups=number(facts["groups"]),
        entries_added=maybe_number(facts.get("entries-added")),
        max_deleted_id=text(facts["max-deleted-entry-id"]) if "max-deleted-entry-id" in facts else None,
        facts={
            key: text(value) if isinstance(value, bytes) else value
            for key, value in facts.items()
            if "-entry" not in key[-6:]
        },
    )


def read_group_info(reply: Any) -> GroupInfo:
    facts = named(reply)
    return GroupInfo(
        name=text(facts["name"]),
        consumers=number(facts["consumers"]),
        pending=number(facts["pending"]),
        last_delivered_id=text(facts["last-delivered-id"]),
        entries_read=maybe_number(facts.get("entries-read")),
        lag=maybe_number(facts.get("lag")),
    )


def read_consumer_info(reply: Any) -> ConsumerInfo:
    facts = named(reply)
    inactive = maybe_number(facts.get("inactive"))
    return ConsumerInfo(
        name=text(facts["name"]),
        pending=number(facts["pending"]),
        idle_ms=number(facts["idle"]),
        inactive_ms=None if inactive is None or inactive < 0 else inactive,
    )


def read_pending_summary(reply: Any) -> PendingSummary:
    total, lowest, highest, consumers = reply
    return PendingSummary(
        total=number(total),
        lowest_id=None if lowest is None else text(lowest),
        highest_id=None if highest is None else text(highest),
        by_consumer={text(name): number(count) for name, count in consumers or ()},
    )


# Entries


def add(stream: str, pairs: Iterable[tuple[bytes, bytes]], entry_id: str, trim: tuple[Word, ...]) -> Request[str]:
    words: list[Word] = ["XADD", stream, *trim, entry_id]
    for pair in pairs:
        words += pair
    return Request(tuple(words), text, stream)


def length(stream: str) -> Request[int]:
    return Request(("XLEN", stream), number, stream, is_repeatable=True)


def range_(stream: str, start: str, end: str, count: int | None, *, newest_first: bool) -> Request[list[Entry]]:
    limit: tuple[Word, ...] = () if count is None else ("COUNT", count)
    words = ("XREVRANGE", stream, end, start) if newest_first else ("XRANGE", stream, start, end)
    return Request((*words, *limit), lambda reply: read_entries(reply, stream), stream, is_repeatable=True)


def read(stream: str, after: str, count: int | None, wait_ms: int | None) -> Request[list[Entry]]:
    words: list[Word] = ["XREAD"]
    if count is not None:
        words += ["COUNT", count]
    if wait_ms is not None:
        words += ["BLOCK", wait_ms]
    argv = (*words, "STREAMS", stream, after)
    return Request(argv, read_streams, stream, is_repeatable=True, wait_ms=wait_ms or 0)


def delete(stream: str, ids: Iterable[str]) -> Request[int]:
    return Request(("XDEL", stream, *ids), number, stream, is_repeatable=True)


def trim(stream: str, words: tuple[Word, ...]) -> Request[int]:
    return Request(("XTRIM", stream, *words), number, stream, is_repeatable=True)


def stream_info(stream: str) -> Request[StreamInfo]:
    return Request(
        ("XINFO", "STREAM", stream), lambda reply: read_stream_info(reply, stream), stream, is_repeatable=True
    )


def key_type(name: str) -> Request[str]:
    return Request(("TYPE", name), text, name, is_repeatable=True)


# Groups


def groups(stream: str) -> Request[list[GroupInfo]]:
    argv = ("XINFO", "GROUPS", stream)
    return Request(argv, lambda reply: [read_group_info(item) for item in reply], stream, is_repeatable=True)


def create_group(stream: str, group: str, start: str, *, makes_stream: bool) -> Request[str]:
    more = ("MKSTREAM",) if makes_stream else ()
    return Request(("XGROUP", "CREATE", stream, group, start, *more), text, stream)


def seek_group(stream: str, group: str, place: str) -> Request[str]:
    return Request(("XGROUP", "SETID", stream, group, place), text, stream, is_repeatable=True)


def destroy_group(stream: str, group: str) -> Request[bool]:
    return Request(("XGROUP", "DESTROY", stream, group), bool, stream)


def consumers(stream: str, group: str) -> Request[list[ConsumerInfo]]:
    argv = ("XINFO", "CONSUMERS", stream, group)
    return Request(argv, lambda reply: [read_consumer_info(item) for item in reply], stream, is_repeatable=True)


def delete_consumer(stream: str, group: str, consumer: str) -> Request[int]:
    return Request(("XGROUP", "DELCONSUMER", stream, group, consumer), number, stream)


def read_group(
    stream: str, group: str, consumer: str, after: str, *, count: int | None = None, wait_ms: int | None = None,
    claim_idle_ms: int | None = None, acks_at_once: bool = False,
) -> Request[list[Entry]]:  # fmt: skip
    words: list[Word] = ["XREADGROUP", "GROUP", group, consumer]
    if count is not None:
        words += ["COUNT", count]
    if wait_ms is not None:
        words += ["BLOCK", wait_ms]
    if claim_idle_ms is not None:
        words += ["CLAIM", claim_idle_ms]
    if acks_at_once:
        words.append("NOACK")
    return Request((*words, "STREAMS", stream, after), read_streams, stream, wait_ms=wait_ms or 0)


def pending_summary(stream: str, group: str) -> Request[PendingSummary]:
    return Request(("XPENDING", stream, group), read_pending_summary, stream, is_repeatable=True)


def pending(
    stream: str, group: str, *, start: str, end: str, count: int, min_idle_ms: int, consumer: str | None
) -> Request[list[PendingEntry]]:
    words: list[Word] = ["XPENDING", stream, group]
    if min_idle_ms:
        words += ["IDLE", min_idle_ms]
    words += [start, end, count]
    if consumer is not None:
        words.append(consumer)

    def decode(reply: Any) -> list[PendingEntry]:
        return [PendingEntry(text(row[0]), text(row[1]), number(row[2]), number(row[3])) for row in reply]

    return Request(tuple(words), decode, stream, is_repeatable=True)


def claim(stream: str, group: str, consumer: str, min_idle_ms: int, ids: Iterable[str]) -> Request[list[Entry]]:
    argv: tuple[Word, ...] = ("XCLAIM", stream, group, consumer, min_idle_ms, *ids)
    return Request(argv, lambda reply: read_entries(reply, stream), stream)


def claim_ids(stream: str, group: str, consumer: str, min_idle_ms: int, ids: Iterable[str]) -> Request[list[str]]:
    """Only ownership moves: the delivery count stays."""
    argv: tuple[Word, ...] = ("XCLAIM", stream, group, consumer, min_idle_ms, *ids, "JUSTID")
    return Request(argv, lambda reply: [text(item) for item in reply], stream)


def auto_claim(
    stream: str, group: str, consumer: str, min_idle_ms: int, start: str, count: int
) -> Request[tuple[str, Claimed]]:
    argv = ("XAUTOCLAIM", stream, group, consumer, min_idle_ms, start, "COUNT", count)

    def decode(reply: Any) -> tuple[str, Claimed]:
        deleted = [text(item) for item in reply[2]] if len(reply) > 2 else []
        return text(reply[0]), Claimed(read_entries(reply[1], stream), deleted)

    return Request(argv, decode, stream)


def ack(stream: str, group: str, ids: Iterable[str]) -> Request[int]:
    return Request(("XACK", stream, group, *ids), number, stream, is_repeatable=True)


def ack_and_delete(stream: str, group: str, ids: list[str]) -> Request[list[int]]:
    argv: tuple[Word, ...] = ("XACKDEL", stream, group, "ACKED", "IDS", len(ids), *ids)
    return Request(argv, lambda reply: [number(item) for item in reply], stream)


# The server


def raw(*argv: Word, key: str | None = None) -> Request[Any]:
    return Request(argv, lambda reply: reply, key)


def ping() -> Request[str]:
    return Request(("PING",), text, is_repeatable=True)


def server_info() -> Request[dict[str, str]]:
    def decode(reply: Any) -> dict[str, str]:
        lines = [line.split(":", 1) for line in text(reply).splitlines() if ":" in line]
        return {line[0]: line[1] for line in lines}

    return Request(("INFO", "server"), decode, is_repeatable=True)


def known_commands(pattern: str) -> Request[set[str]]:
    """The names of the server's commands that match, in upper case."""
    argv = ("COMMAND", "LIST", "FILTERBY", "PATTERN", pattern)
    return Request(argv, lambda reply: {text(name).upper() for name in reply}, is_repeatable=True)


def scan(cursor: int, pattern: str, key_type: str) -> Request[tuple[int, list[str]]]:
    argv = ("SCAN", cursor, "MATCH", pattern, "COUNT", 1000, "TYPE", key_type)
    return Request(argv, lambda reply: (number(reply[0]), [text(key) for key in reply[1]]), is_repeatable=True)

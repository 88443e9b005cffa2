"""What the client does in several steps, or differently on different servers. Written once for both flavours."""

import os
import secrets
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from headrace.client import requests
from headrace.client.capabilities import Capabilities, probe
from headrace.client.explain import no_group, not_a_stream
from headrace.client.flow import Flow
from headrace.client.functions import Scripts, run_step
from headrace.client.layout import a_type
from headrace.client.requests import BLOCK_MS, Request, Word
from headrace.client.results import Claimed, Entry, GroupInfo, PendingEntry, StreamInfo, TrimReport, encode_text
from headrace.errors import CommandError, ConfigError, HeadraceError, NotFound, Refused, Unsupported

PAGE: Final = 500  # Entries fetched per call by everything that pages.
BATCH: Final = 1000  # Requests sent in one go.
CLAIM_POLL_MS: Final = 1000  # How often idle entries are looked for on a server without CLAIM.
QUEUE_MARK: Final = "hr:queue"  # The group that makes a stream a queue, on servers without RQ.*.

# Values are text, bytes or numbers, checked when added; said to mypy, {"id": "17", "cups": 2} would not pass.
Fields = Mapping[str, Any] | Iterable[tuple[str | bytes, str | bytes]]
Pairs = Sequence[tuple[bytes, bytes]]


class Facts:
    """What a client has learnt about its server."""

    def __init__(self) -> None:
        self.capabilities: Capabilities | None = None
        self.scripts = Scripts()


def capabilities(facts: Facts) -> Flow[Capabilities]:
    if facts.capabilities is None:
        facts.capabilities = yield from probe()
    return facts.capabilities


def tag_of(stream: str) -> str:
    """The part of a key that decides its slot: its hash tag, or all of it."""
    start = stream.find("{")
    end = stream.find("}", start + 1)
    return stream[start + 1 : end] if start >= 0 and end > start + 1 else stream


def beside(stream: str, name: str) -> str:
    """A key of ours that lies in the stream's slot: hr:{orders}:ids."""
    tag = tag_of(stream)
    own = "" if tag == stream else f"{stream}:"
    return f"hr:{{{tag}}}:{own}{name}"


def unique_consumer_name() -> str:
    """A name no other process has: host, process, chance."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


# Adding


def encode_pairs(fields: Fields) -> list[tuple[bytes, bytes]]:
    """The fields of an entry as bytes, in the order given."""
    items = list(fields.items() if isinstance(fields, Mapping) else pairs_of(fields))
    pairs = [(encode_word(name), encode_word(value)) for name, value in items]
    if not pairs:
        raise ConfigError("an entry needs at least one field.")
    return pairs


def pairs_of(fields: Any) -> Iterable[tuple[Any, Any]]:
    """Fields given as pairs. Text is iterable too, and would be taken apart letter by letter."""
    if isinstance(fields, (str, bytes)) or not isinstance(fields, Iterable):
        raise not_fields(fields)
    for pair in fields:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise not_fields(fields)
        yield pair[0], pair[1]


def not_fields(given: Any) -> ConfigError:
    return ConfigError(
        f"the fields of an entry are {a_type(given)}; give a dict, or pairs of name and value. publish() takes any "
        "payload."
    )


def check_several(given: Any, what: str) -> None:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise ConfigError(f"{what} are {a_type(given)}; give a list of them, or another iterable.")


def encode_word(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return encode_text(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value).encode()
    raise ConfigError(
        f"a field cannot hold {a_type(value)}. Give text, bytes or a number, or use publish() for objects."
    )


def trim_words(max_length: int | None, *, exact: bool) -> tuple[Word, ...]:
    if max_length is None:
        return ()
    if max_length < 0:
        raise ConfigError(f"max_length is {max_length}; it cannot be negative.")
    return ("MAXLEN", "=" if exact else "~", max_length)


def add_many(stream: str, many: Iterable[Fields], trim: tuple[Word, ...]) -> Flow[list[str]]:
    check_several(many, "the entries to add")
    return (yield from add_all(stream, map(encode_pairs, many), trim))


def add_all(stream: str, many: Iterable[Pairs], trim: tuple[Word, ...] = ()) -> Flow[list[str]]:
    """Entries whose fields are bytes already."""
    ids: list[str] = []
    batch: list[Request[Any]] = []
    for pairs in many:
        batch.append(requests.add(stream, pairs, "*", trim))
        if len(batch) == BATCH:
            ids += yield from send_batch(batch)
            batch = []
    if batch:
        ids += yield from send_batch(batch)
    return ids


def send_batch(batch: list[Request[Any]]) -> Flow[list[Any]]:
    """All replies, or the first error among them."""
    replies = yield batch
    for reply in replies:
        if isinstance(reply, HeadraceError):
            raise reply
    return list(replies)


# Trimming


def trim(
    facts: Facts, stream: str, *, keep: int | None, before: str | None, force: bool, dry_run: bool, partly: bool
) -> Flow[TrimReport]:
    """Remove the oldest entries, never those a group still needs unless forced."""
    if (keep is None) == (before is None):
        raise ConfigError("say what to trim: either keep=NUMBER or before=PLACE.")
    if keep is not None and keep < 0:
        raise ConfigError(f"keep is {keep}; it cannot be negative.")
    if before == "$":
        raise ConfigError("before is 'now'; give an ID or a time back, or keep=0 to remove everything.")
    if force and dry_run:
        return (yield from forced_trim_report(stream, keep, before))
    strategy: tuple[Word, ...] = ("MAXLEN", keep) if keep is not None else ("MINID", str(before))
    if force:
        removed = yield from requests.trim(stream, (strategy[0], "=", strategy[1])).run()
        first = yield from requests.range_(stream, "-", "+", 1, newest_first=False).run()
        return TrimReport(removed, first[0].id if first else "", None, is_dry_run=False)
    report = yield from trim_step(facts, stream, strategy, dry_run=dry_run or not partly)
    if dry_run or partly:
        return report
    if report.held_by is not None:
        raise Refused(
            f"group {report.held_by!r} of {stream!r} still needs entries from {report.kept_from_id} on; nothing was "
            "trimmed. Let it catch up, trim only what no group needs (partly), or insist (force)."
        )
    return (yield from trim_step(facts, stream, strategy, dry_run=False))


def forced_trim_report(stream: str, keep: int | None, place: str | None) -> Flow[TrimReport]:
    """What a forced trim would remove. By place no command tells, so the entries are counted page by page."""
    if keep is not None:
        total = yield from requests.length(stream).run()
        return TrimReport(max(0, total - keep), "", None, is_dry_run=True)
    assert place is not None
    removed = 0
    start = "-"
    while True:
        page = yield from requests.range_(stream, start, before(place), PAGE, newest_first=False).run()
        removed += len(page)
        if len(page) < PAGE:
            return TrimReport(removed, place, None, is_dry_run=True)
        start = "(" + page[-1].id


def trim_step(facts: Facts, stream: str, strategy: tuple[Word, ...], *, dry_run: bool) -> Flow[TrimReport]:
    """In one step on the server: find what the slowest group needs, and trim up to there at most."""
    known = yield from capabilities(facts)
    words: tuple[Word, ...] = ("DRYRUN",) if dry_run else ()

    def decode(reply: Any) -> TrimReport:
        held_by = None if reply[2] is None or reply[2] == b"" else requests.text(reply[2])
        return TrimReport(requests.number(reply[0]), requests.text(reply[1]), held_by, dry_run)

    if known.has_native_steps:
        request = Request(("HR.TRIM", stream, *strategy, *words), decode, stream, is_repeatable=True)
        return (yield from request.run())
    return (yield from run_step(facts.scripts, "trim", (stream,), (*strategy, *words), decode, is_repeatable=True))


# Groups


def create_group(stream: str, group: str, start: str) -> Flow[bool]:
    """Make sure the group exists; whether it is new. Makes the stream too when that is missing."""
    try:
        yield from requests.create_group(stream, group, start, makes_stream=True).run()
    except CommandError as error:
        if error.prefix != "BUSYGROUP":
            raise
        return False
    return True


def groups(stream: str) -> Flow[list[GroupInfo]]:
    """The groups of a stream, which is no queue."""
    found = yield from requests.groups(stream).run()
    if any(group.name == QUEUE_MARK for group in found):
        raise not_a_stream(stream, "a queue")
    return found


def find_group(stream: str, group: str) -> Flow[GroupInfo]:
    found = yield from groups(stream)
    for info in found:
        if info.name == group:
            return info
    raise no_group(stream, group)


def read_group(
    facts: Facts, stream: str, group: str, consumer: str, *, count: int | None, wait_ms: int, claim_idle_ms: int | None,
    acks_at_once: bool,
) -> Flow[list[Entry]]:  # fmt: skip
    """New entries, and idle ones when asked for; waits up to wait_ms for the first. An empty list: nothing came."""
    steps = claim_idle_ms is not None and not (yield from capabilities(facts)).has_claim
    block_ms, native_claim_ms = (CLAIM_POLL_MS, None) if steps else (BLOCK_MS, claim_idle_ms)
    deadline = time.monotonic() + wait_ms / 1000
    while True:
        left_ms = max(0, round((deadline - time.monotonic()) * 1000))
        if steps:
            words: tuple[Word, ...] = (group, consumer, claim_idle_ms or 0, count or 0, 1 if acks_at_once else 0)
            entries = yield from claim_step(facts, stream, words)
            if entries or not left_ms:
                return entries
        request = requests.read_group(
            stream, group, consumer, ">", count=count, wait_ms=min(left_ms, block_ms) or None,
            claim_idle_ms=native_claim_ms, acks_at_once=acks_at_once,
        )  # fmt: skip
        entries = yield from request.run()
        if entries or not left_ms:
            return [replace(entry, idle_ms=0, deliveries=0) for entry in entries] if steps else entries


def claim_step(facts: Facts, stream: str, words: tuple[Word, ...]) -> Flow[list[Entry]]:
    """Idle entries first, then new ones, at once, where the server has no CLAIM."""

    def decode(reply: Any) -> list[Entry]:
        return requests.read_entries(reply, stream)

    return (yield from run_step(facts.scripts, "claim", (stream,), words, decode))


def check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit}; it must be at least 1.")


def claim_idle(stream: str, group: str, consumer: str, min_idle_ms: int, limit: int | None) -> Flow[Claimed]:
    """Everything idle for so long, over as many calls as it takes; every entry once."""
    check_limit(limit)
    cursor = "0-0"
    entries: list[Entry] = []
    deleted: list[str] = []
    while True:
        count = PAGE if limit is None else min(PAGE, limit - len(entries))
        if count <= 0:
            break
        cursor, claimed = yield from requests.auto_claim(stream, group, consumer, min_idle_ms, cursor, count).run()
        entries += claimed.entries
        deleted += claimed.deleted_ids
        if cursor == "0-0":
            break
    return Claimed(entries, deleted)


def pending(
    stream: str, group: str, *, min_idle_ms: int, consumer: str | None, limit: int | None
) -> Flow[list[PendingEntry]]:
    """Pending entries by ID, over as many calls as it takes."""
    check_limit(limit)
    found: list[PendingEntry] = []
    start = "-"
    while limit is None or len(found) < limit:
        count = PAGE if limit is None else min(PAGE, limit - len(found))
        page = yield from requests.pending(
            stream, group, start=start, end="+", count=count, min_idle_ms=min_idle_ms, consumer=consumer
        ).run()
        found += page
        if len(page) < count:
            break
        start = "(" + page[-1].id
    return found


def ack(facts: Facts, stream: str, group: str, ids: Sequence[str], *, delete: bool) -> Flow[int]:
    """How many were pending. With delete, an entry also goes once every group has acknowledged it."""
    if not ids:
        return 0
    if not delete:
        return (yield from requests.ack(stream, group, ids).run())
    known = yield from capabilities(facts)
    if known.has_ack_and_delete:
        results = yield from requests.ack_and_delete(stream, group, list(ids)).run()
    else:
        results = yield from run_step(
            facts.scripts, "ackdel", (stream,), (group, *ids), lambda reply: [requests.number(item) for item in reply]
        )
    return sum(1 for result in results if result > 0)


def delete_consumer(stream: str, group: str, consumer: str, *, hand_over_to: str | None, force: bool) -> Flow[int]:
    """Remove a consumer; how many pending entries were handed over or, if forced, dropped."""
    if hand_over_to == consumer:
        raise ConfigError(f"consumer {consumer!r} cannot take over its own entries. Name another one (hand_over_to).")
    held = yield from pending(stream, group, min_idle_ms=0, consumer=consumer, limit=None)
    if held and hand_over_to is None and not force:
        held_words = "1 pending entry" if len(held) == 1 else f"{len(held)} pending entries"
        raise Refused(
            f"consumer {consumer!r} of group {group!r} has {held_words}, which would be lost with it. "
            "Name who takes them over (hand_over_to), or insist (force)."
        )
    moved = 0
    while held and hand_over_to is not None:
        for start in range(0, len(held), PAGE):
            ids = [item.id for item in held[start : start + PAGE]]
            moved += len((yield from requests.claim_ids(stream, group, hand_over_to, 0, ids).run()))
        held = yield from pending(stream, group, min_idle_ms=0, consumer=consumer, limit=None)
    dropped = yield from requests.delete_consumer(stream, group, consumer).run()
    return moved or dropped


# Streams


def list_streams(pattern: str) -> Flow[list[str]]:
    return (yield from scan_names(pattern, "stream"))


def scan_names(pattern: str, key_type: str) -> Flow[list[str]]:
    names: set[str] = set()
    cursor = 0
    while True:
        cursor, page = yield from requests.scan(cursor, pattern, key_type).run()
        names.update(page)
        if cursor == 0:
            return sorted(names)


def stream_info(stream: str) -> Flow[StreamInfo]:
    return (yield from requests.stream_info(stream).run())


def resolve_start(stream: str, start: str, bookmark: str | None) -> Flow[str]:
    """The ID behind which to follow. "$" becomes the last ID there is now: asking for $ again would lose entries."""
    if bookmark is not None:
        stored = yield from load_bookmark(stream, bookmark)
        if stored is not None:
            return stored
    if start != "$":
        return before(start)
    try:
        info = yield from requests.stream_info(stream).run()
    except NotFound:
        return "0-0"
    return info.last_id


def before(entry_id: str) -> str:
    """The highest ID below, so that reading behind it begins with entry_id itself."""
    milliseconds, _, sequence = entry_id.partition("-")
    if int(sequence or 0) > 0:
        return f"{milliseconds}-{int(sequence) - 1}"
    return f"{int(milliseconds) - 1}-{2**64 - 1}" if int(milliseconds) > 0 else "0-0"


def load_bookmark(stream: str, name: str) -> Flow[str | None]:
    def decode(reply: Any) -> str | None:
        return None if reply is None else requests.text(reply)

    request = Request(("HGET", beside(stream, "bookmarks"), name), decode, stream, is_repeatable=True)
    try:
        return (yield from request.run())
    except CommandError as error:
        if "unknown command" not in str(error):
            raise
        raise Unsupported("this server has no hashes, and that is where bookmarks are kept.") from error


def save_bookmark(stream: str, name: str, entry_id: str) -> Flow[int]:
    argv = ("HSET", beside(stream, "bookmarks"), name, entry_id)
    return (yield from Request(argv, requests.number, stream, is_repeatable=True).run())

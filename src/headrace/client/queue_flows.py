"""Reliable queues, written once for both flavours: RQ.* on our broker, the steps of functions/queue_*.lua elsewhere.

Whatever names or brings more than 1,000 elements, or pushes more than 16 MB, is several calls. Nothing that delivers,
returns or removes elements is repeated by itself when its answer is lost: a recover finds what was delivered then.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from headrace.client import requests
from headrace.client.flow import Flow
from headrace.client.flows import BATCH, QUEUE_MARK, Facts, capabilities, scan_names
from headrace.client.functions import run_step
from headrace.client.layout import a_type
from headrace.client.requests import BLOCK_MS, Request, Word, named, number, text
from headrace.client.results import Element, QueueInfo, QueueStats, encode_text
from headrace.errors import CommandError, ConfigError, HeadraceError, NotFound, Unsupported, WrongType

T = TypeVar("T")
Row = tuple[str, str, bytes]  # Queue, ID and body of an element that was popped.
Recovered = tuple[str, bytes, int | None]  # ID, body, and how often it has been delivered.

MOST: Final = 1000  # Elements in one call. functions/queue.lua has the same number.
MOST_BYTES: Final = 1 << 24  # And so many bytes, unless a single element has more.
COUNTS: Final = ("undelivered", "delivered", "delayed", "nacks", "redeliveries", "dead", "expired")
PAUSE_MODES: Final = ("in", "out", "all", "none")
POLL_MS: Final = 1000  # How often a waiting pop looks again where RQ.POP cannot wait.


@dataclass(frozen=True, slots=True)
class PushOptions:
    """What a push asks for besides appending. None: nothing."""

    delay_ms: int | None = None
    ttl_ms: int | None = None
    retry_ms: int | None = None
    max_deliveries: int | None = None
    dead_letter: str | None = None

    def given(self) -> list[tuple[str, str, Word]]:
        """Each option that was given: as users write it, as the broker reads it, its value."""
        every: list[tuple[str, str, Word | None]] = [
            ("delay", "DELAY", self.delay_ms),
            ("ttl", "TTL", self.ttl_ms),
            ("retry", "RETRY", self.retry_ms),
            ("max_deliveries", "MAXDELIVERIES", self.max_deliveries),
            ("dead_letter", "DEADLETTER", self.dead_letter),
        ]
        return [(name, word, value) for name, word, value in every if value is not None]

    def check(self, queue: str) -> None:
        """In words of Python. The broker checks again, in its own."""
        for name, milliseconds in (("ttl", self.ttl_ms), ("retry", self.retry_ms)):
            if milliseconds == 0:
                raise ConfigError(f"{name} is 0; it must be at least a millisecond.")
        most = self.max_deliveries
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or not 1 <= most < 2**31):
            raise ConfigError(f"max_deliveries is {most!r}; it must be a whole number, at least 1.")
        if self.dead_letter is not None and most is None:
            raise ConfigError("dead_letter needs max_deliveries: after how many deliveries elements go there.")
        if self.dead_letter == queue:
            raise ConfigError(f"dead_letter is {queue!r}, the queue itself; name another one.")


def call(
    facts: Facts, command: str, queues: Sequence[str], arguments: Sequence[Word], decode: Callable[[Any], T], *,
    is_repeatable: bool = False,
) -> Flow[T]:  # fmt: skip
    """RQ.PUSH queue argument… where the server has it, else the step queue_push."""
    known = yield from capabilities(facts)
    if known.has_queues:
        argv = (command, *queues, *arguments)
        return (yield from Request(argv, decode, queues[0], is_repeatable, kind="queue").run())
    step = command.lower().replace("rq.", "queue_")
    return (
        yield from run_step(
            facts.scripts, step, tuple(queues), tuple(arguments), decode, is_repeatable=is_repeatable, kind="queue"
        )
    )


def parts_of(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """What goes into one call each."""
    for start in range(0, len(items), MOST):
        yield items[start : start + MOST]


def sized_parts_of(elements: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The same for elements, which may be large."""
    part: list[bytes] = []
    size = 0
    for element in elements:
        if part and (len(part) == MOST or size + len(element) > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(element)
        size += len(element)
    if part:
        yield part


def encode_element(value: Any, what: str = "an element") -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        return encode_text(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value).encode()
    raise ConfigError(f"{what} cannot be {a_type(value)}. Give bytes, text or a number; objects for instance as JSON.")


def check_count(count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ConfigError(f"count is {count!r}; it must be a whole number, at least 1.")


def read_ids(reply: Any) -> list[str]:
    """Null: there is no such queue, and so there are no such elements."""
    return [text(item) for item in reply or ()]


# In


def push(facts: Facts, queue: str, elements: Sequence[Any], options: PushOptions) -> Flow[list[str]]:
    words = [encode_element(element) for element in elements]
    options.check(queue)
    given = options.given()
    if given and not (yield from capabilities(facts)).has_queues:
        raise Unsupported(
            f"{given[0][0]} of a push is not possible on this server: there a queue is a stream, which keeps no time "
            "or limit for a single element. Our own broker can: headrace serve."
        )
    asked = [item for _, word, value in given for item in (word, value)]
    ids: list[str] = []
    for part in sized_parts_of(words):
        if given:
            argv = ("RQ.PUSHX", queue, *asked, "ELEMENTS", len(part), *part)
            ids += yield from Request(argv, read_ids, queue, kind="queue").run()
        else:
            ids += yield from call(facts, "RQ.PUSH", (queue,), part, read_ids)
    return ids


# Out


def pop(facts: Facts, queues: Sequence[str], count: int, wait_ms: int) -> Flow[list[Row]]:
    """Up to count elements: all that can be had from the first queue, then from the next. Waits for the first one."""
    check_count(count)
    if not queues:
        raise ConfigError("name at least one queue to pop from.")
    known = yield from capabilities(facts)
    deadline = time.monotonic() + wait_ms / 1000
    rows: list[Row] = []
    while True:
        left_ms = max(0, round((deadline - time.monotonic()) * 1000))
        take = min(MOST, count - len(rows))
        if known.has_queues:
            found = yield from pop_native(queues, take, 0 if rows else min(left_ms, BLOCK_MS))
        else:
            found = yield from pop_step(facts, queues, take)
        rows += found
        if len(rows) == count or (len(found) < take and (rows or not left_ms)):
            return rows
        if not rows and not known.has_queues:
            yield from wait_for_push(facts, queues, min(left_ms, POLL_MS))


def read_rows(reply: Any) -> list[Row]:
    return [(text(row[0]), text(row[1]), row[2]) for row in reply or ()]


def pop_native(queues: Sequence[str], count: int, wait_ms: int) -> Flow[list[Row]]:
    if queues[0].upper() == "BLOCK":
        wait_ms = max(1, wait_ms)  # An option that was given once is a queue's name the second time.
    block: tuple[Word, ...] = ("BLOCK", wait_ms) if wait_ms else ()
    argv = ("RQ.POP", "COUNT", count, *block, *queues)
    return (yield from Request(argv, read_rows, queues[0], wait_ms=wait_ms, kind="queue").run())


def pop_step(facts: Facts, queues: Sequence[str], count: int) -> Flow[list[Row]]:
    try:
        return (
            yield from run_step(facts.scripts, "queue_pop", tuple(queues), ("COUNT", count), read_rows, kind="queue")
        )
    except CommandError as error:
        if "same slot" in str(error):
            raise ConfigError(
                "in a cluster, queues that are popped together must lie in one slot. Give their names a common part in "
                "braces: {jobs}:urgent and {jobs}:later."
            ) from error
        raise


def wait_for_push(facts: Facts, queues: Sequence[str], wait_ms: int) -> Flow[None]:
    """Until one of the queues has a new element, or the time is up. It is a signal only: nothing is taken."""
    ids = yield from run_step(
        facts.scripts, "queue_wait", tuple(queues), (), read_ids, is_repeatable=True, kind="queue"
    )
    argv: tuple[Word, ...] = ("XREAD", "COUNT", 1, "BLOCK", max(1, wait_ms), "STREAMS", *queues, *ids)
    yield from Request(argv, lambda _: None, queues[0], is_repeatable=True, wait_ms=wait_ms, kind="queue").run()


def recover(facts: Facts, queue: str, idle_ms: int, count: int) -> Flow[list[Recovered]]:
    """Delivered elements that were not acknowledged for so long, the oldest delivery first; each once."""
    check_count(count)
    found: dict[str, bytes] = {}
    while len(found) < count:
        ask = min(MOST, count - len(found))
        if found:  # What was just recovered is behind all others; do not come round to it.
            delivered = (yield from info(facts, queue)).delivered
            ask = min(ask, delivered - len(found))
        rows = (yield from call(facts, "RQ.RECOVER", (queue,), (ask, idle_ms), read_recovered)) if ask > 0 else []
        found.update(rows)
        if len(rows) < MOST:
            break
    deliveries = yield from count_deliveries(facts, queue, list(found))
    return [(element_id, body, deliveries.get(element_id)) for element_id, body in found.items()]


def read_recovered(reply: Any) -> list[tuple[str, bytes]]:
    return [(text(row[0]), row[1]) for row in reply or ()]


def count_deliveries(facts: Facts, queue: str, ids: list[str]) -> Flow[dict[str, int]]:
    """How often each of these, which were delivered last of all, has been delivered. Left out: nobody can tell."""
    known = yield from capabilities(facts)
    found: dict[str, int] = {}
    try:
        if known.has_queues and ids:
            last = yield from inspect(facts, queue, pending=True, delayed=False, start=-len(ids), count=len(ids))
            return {element.id: element.deliveries for element in last if element.deliveries is not None}
        for part in parts_of(ids):
            batch: list[Request[Any]] = [
                requests.pending(queue, QUEUE_MARK, start=one, end=one, count=1, min_idle_ms=0, consumer=None)
                for one in part
            ]
            replies = yield batch
            for reply in replies:
                if not isinstance(reply, HeadraceError):
                    found.update((entry.id, entry.deliveries) for entry in reply)
    except HeadraceError:  # The elements are what counts: they have been recovered.
        return found
    return found


def change(facts: Facts, command: str, queue: str, ids: Sequence[str], words: tuple[Word, ...] = ()) -> Flow[list[str]]:
    """RQ.ACK, RQ.NACK or RQ.EXTEND; the IDs for which it was true."""
    if words and not (yield from capabilities(facts)).has_queues:
        raise Unsupported(
            "a delay is not possible on this server: there a queue is a stream, which keeps no due time for a single "
            "element. Give the element back without delay, or use our own broker: headrace serve."
        )
    changed: list[str] = []
    for part in parts_of(ids):
        changed += yield from call(
            facts, command, (queue,), (*words, *part), read_ids, is_repeatable=command == "RQ.EXTEND"
        )
    return changed


# Looking


def inspect(facts: Facts, queue: str, *, pending: bool, delayed: bool, start: int, count: int) -> Flow[list[Element]]:
    check_count(count)
    if pending and delayed:
        raise ConfigError("look at pending elements or at delayed ones, not at both in one call.")
    view: tuple[Word, ...] = ("PENDING",) if pending else ("DELAYED",) if delayed else ()
    decode = read_delayed if delayed else read_elements
    found: list[Element] = []
    while len(found) < count:
        ask = min(MOST, count - len(found))
        page = yield from call(facts, "RQ.INSPECT", (queue,), (*view, start, ask), decode, is_repeatable=True)
        found += page
        is_at_end = start < 0 <= start + ask
        if len(page) < ask or is_at_end:
            break
        start += ask
    return found


def read_elements(reply: Any) -> list[Element]:
    return [Element(text(row[0]), row[1], *(number(item) for item in row[2:5])) for row in reply]


def read_delayed(reply: Any) -> list[Element]:
    return [Element(text(row[0]), row[1], deliveries=number(row[4]), due_ms=number(row[2])) for row in reply]


def info(facts: Facts, queue: str) -> Flow[QueueInfo]:
    def decode(reply: Any) -> QueueInfo:
        facts = named(reply)
        return QueueInfo(number(facts["undelivered"]), number(facts["delivered"]))

    return (yield from call(facts, "RQ.INFO", (queue,), (), decode, is_repeatable=True))


def stats(facts: Facts, queue: str) -> Flow[QueueStats]:
    def decode(reply: Any) -> QueueStats:
        said = {name: text(value) if isinstance(value, bytes) else value for name, value in named(reply).items()}
        undelivered, delivered, delayed, nacks, redeliveries, dead, expired = (number(said[name]) for name in COUNTS)
        paused, last_id = said["paused"].lower(), said["last-id"]
        return QueueStats(undelivered, delivered, delayed, nacks, redeliveries, dead, expired, paused, last_id)

    if (yield from capabilities(facts)).has_queues:
        return (yield from Request(("RQ.STATS", queue), decode, queue, is_repeatable=True, kind="queue").run())
    return (
        yield from run_step(facts.scripts, "queue_info", (queue,), ("STATS",), decode, is_repeatable=True, kind="queue")
    )


def pause(facts: Facts, queue: str, mode: str) -> Flow[str]:
    if mode not in PAUSE_MODES:
        raise ConfigError(f"the mode of a pause is {mode!r}; write 'in', 'out' or 'all'.")
    return (yield from call(facts, "RQ.PAUSE", (queue,), (mode.upper(),), text, is_repeatable=True))


def delete(facts: Facts, queue: str) -> Flow[bool]:
    """Whether there was one. A key that is something else is left alone."""
    try:
        yield from info(facts, queue)
    except NotFound:
        return False
    return (yield from Request(("DEL", queue), bool, queue, kind="queue").run())


def list_queues(facts: Facts, pattern: str) -> Flow[list[str]]:
    """By their type, or, where that is stream, those streams that have our group."""
    if (yield from capabilities(facts)).has_queues:
        return (yield from scan_names(pattern, "RELIABLEQ"))
    names = yield from scan_names(pattern, "stream")
    queues: list[str] = []
    for start in range(0, len(names), BATCH):
        batch: list[Request[Any]] = [requests.groups(name) for name in names[start : start + BATCH]]
        replies = yield batch
        for request, reply in zip(batch, replies, strict=True):
            if isinstance(reply, (NotFound, WrongType)):  # Gone meanwhile.
                continue
            if isinstance(reply, HeadraceError):
                raise reply
            if any(group.name == QUEUE_MARK for group in reply):
                queues.append(str(request.key))
    return queues

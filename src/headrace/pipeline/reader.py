"""One slice of a stream -> its pages, in order, each entry once.

XRANGE by ID, never a consumer group, so a task that runs again reads the same. The next request leaves before the
current reply is decoded: server and client work at the same time. Behind each XRANGE, in the same write, goes an XINFO
STREAM: it tells whether entries of the slice were deleted before they were read. In this order, so that a deletion
between the two is noticed as well.

A broken connection is opened again, and reading goes on behind the last entry; after RETRIES attempts in a row that
brought nothing it is given up.
"""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import hiredis

from headrace.client.explain import not_a_stream
from headrace.client.raw_connection import RawConnection, ReplyTooLarge, open_raw
from headrace.errors import ConnectionLost, DataLoss, HeadraceError, NotFound, WrongType
from headrace.pipeline.entry_ids import id_of, text_of
from headrace.pipeline.pages import Page, parse_page

RETRIES: Final = 5
FIRST_WAIT_S: Final = 0.25  # Doubled at each retry: 8 seconds in all, about what a failover takes.
FIRST_ENTRIES: Final = 100  # Until the size of the entries is known.
GROWTH: Final = 8  # From one page to the next: the entries behind may be much larger.
PAGE_BYTES: Final = 2 << 20
MAX_ENTRIES: Final = 5000  # Larger pages are not faster.
INFO_SHARE: Final = 8  # XINFO brings two whole entries: a page is at least so many times as large as that,
MAX_PAGE_BYTES: Final = 64 << 20  # but no larger than this.

# How an entry begins, up to the number of its words. A page without such bytes in its last part is decoded first.
ENTRY_SIGN: Final = b"*2\r\n$"
ENTRY_HEAD: Final = re.compile(rb"\*2\r\n\$\d+\r\n(\d+-\d+)\r\n\*\d+\r\n")
TAIL_BYTES: Final = 16 * 1024
TAIL_SIGNS: Final = 3  # An entry of one pair has the sign twice; values may hold it too.


class Span(Protocol):
    """What is read: entries behind `after`, up to and including `through`; IDs as servers write them."""

    @property
    def stream(self) -> str: ...
    @property
    def after(self) -> str: ...
    @property
    def through(self) -> str: ...


@dataclass(frozen=True, slots=True)
class LossCheck:
    """What is done about entries that were deleted before they were read.

    `known_deleted` is the stream's max-deleted-entry-id when the slice was planned: what was gone by then is judged by
    whoever planned it. Losses are a DataLoss, or one call of `on_loss` per slice with the sentence.
    """

    fails: bool = True
    on_loss: Callable[[str], None] | None = None
    known_deleted: str = "0-0"


def read_slice(
    url: str,
    span: Span,
    page_entries: int = MAX_ENTRIES,
    checks: LossCheck = LossCheck(),  # noqa: B008 - it is frozen.
    timeout_s: float = 10.0,
) -> Iterator[Page]:
    """The entries of the slice, in pages of at most `page_entries`; none of them is empty."""
    reading = Reading(url, span, page_entries, checks, timeout_s)
    try:
        while (page := reading.next_page()) is not None:
            if page.count:
                yield page
    finally:
        reading.close()


class Reading:
    """How far one slice has been read."""

    def __init__(self, url: str, span: Span, page_entries: int, checks: LossCheck, timeout_s: float) -> None:
        self.url = url
        self.stream = span.stream
        self.after = span.after  # All up to here has been handed over.
        self.through = span.through
        self.page_entries = page_entries
        self.count = 0  # How many entries to ask for; 0: not known yet.
        self.checks = checks
        self.has_told = False  # Of a loss.
        self.timeout_s = timeout_s
        self.connection: RawConnection | None = None
        self.asked: str | None = None  # The ID behind which the outstanding request begins,
        self.asked_count = 0  # and how many entries it asks for.
        self.failures = 0  # In a row.
        self.is_done = id_of(self.after) >= id_of(self.through)

    def close(self) -> None:
        connection, self.connection, self.asked = self.connection, None, None
        if connection is not None:
            connection.close()

    def next_page(self) -> Page | None:
        """None when the slice is read. Goes on where a connection broke."""
        while not self.is_done:
            try:
                page = self.read_page()
            except ReplyTooLarge:
                self.close()
                if self.count == 1:
                    raise
                self.count = 1
            except ConnectionLost:
                self.close()
                self.failures += 1
                if self.failures > RETRIES:
                    raise
                time.sleep(FIRST_WAIT_S * 2 ** (self.failures - 1))
            else:
                self.failures = 0
                return page
        return None

    def read_page(self) -> Page:
        connection = self.open()
        if self.asked is None:
            self.ask(connection, self.after)
        begin, count = self.after, self.asked_count
        reply, info, info_bytes = self.receive(connection)
        self.check_loss(begin, info)
        entries = parse_length(reply)
        guess = guess_last_id(reply) if entries == count else None
        if guess is not None and guess != self.through:
            self.adapt(len(reply) / entries, info_bytes)
            self.ask(connection, guess)
        page = parse_page(reply)
        if page.count:
            self.after = page.last_id
        self.is_done = entries < count or self.after == self.through
        if self.asked is not None and self.asked != self.after:  # A value looked like the beginning of an entry.
            self.receive(connection)
        return page

    def open(self) -> RawConnection:
        if self.connection is None:
            self.connection = open_raw(self.url, self.stream, self.timeout_s)
            if self.count == 0:
                self.connection.send("XINFO", "STREAM", self.stream)
                _, info_bytes = self.receive_info(self.connection)
                self.count = max(1, min(FIRST_ENTRIES, self.page_entries, PAGE_BYTES // (info_bytes // 2 + 1)))
        return self.connection

    def adapt(self, entry_bytes: float, info_bytes: int) -> None:
        page_bytes = max(PAGE_BYTES, min(MAX_PAGE_BYTES, INFO_SHARE * info_bytes))
        self.count = max(1, min(int(page_bytes / entry_bytes), GROWTH * self.count, self.page_entries))

    # Requests and replies

    def ask(self, connection: RawConnection, after: str) -> None:
        connection.send_many(
            [
                ("XRANGE", self.stream, "(" + after, self.through, "COUNT", self.count),
                ("XINFO", "STREAM", self.stream),
            ]
        )
        self.asked, self.asked_count = after, self.count

    def receive(self, connection: RawConnection) -> tuple[memoryview, dict[bytes, Any] | None, int]:
        """The reply to XRANGE; what XINFO tells, None where there is no stream; and how many bytes it took."""
        self.asked = None
        try:
            reply = connection.receive()
        except WrongType as error:
            raise not_a_stream(self.stream, "something else by now") from error
        return reply, *self.receive_info(connection)

    def receive_info(self, connection: RawConnection) -> tuple[dict[bytes, Any] | None, int]:
        try:
            reply = connection.receive()
        except NotFound:
            return None, 0
        except WrongType as error:
            raise not_a_stream(self.stream, "something else by now") from error
        reader: Any = hiredis.Reader()
        reader.feed(reply)
        facts = reader.gets()
        return dict(zip(facts[0::2], facts[1::2], strict=True)), len(reply)

    # Data loss

    def check_loss(self, after: str, info: dict[bytes, Any] | None) -> None:
        lost = find_loss(id_of(after), id_of(self.through), info, id_of(self.checks.known_deleted))
        if lost is None:
            return
        sentence = f"entries of stream {self.stream!r} behind {after} are gone before they were read: {lost}."
        if self.checks.fails:
            raise DataLoss(
                f"{sentence} Read on with the option failOnDataLoss=false, and trim only what has been read."
            )
        if self.checks.on_loss is not None and not self.has_told:
            self.checks.on_loss(sentence)
        self.has_told = True


def find_loss(after: int, through: int, info: dict[bytes, Any] | None, known_deleted: int) -> str | None:
    """How entries behind `after` up to `through` were lost, in words; None if nothing tells so.

    Servers keep the highest deleted ID only: a single deletion inside the slice is not seen if a later entry, behind
    the slice, was deleted too. Before Redis 7 not even that is kept, and only a slice that is wholly gone is noticed.
    """
    if info is None:
        return "the stream is no longer there"
    first_entry = info[b"first-entry"]
    first = id_of(first_entry[0].decode()) if first_entry else None
    if b"max-deleted-entry-id" not in info:
        last = id_of(info[b"last-generated-id"].decode())
        if (first is None and last > after) or (first is not None and first > through):
            return "the stream begins behind them"
        return None
    deleted = id_of(info[b"max-deleted-entry-id"].decode())
    if deleted <= max(known_deleted, after):
        return None
    if deleted <= through:
        return f"they were deleted up to {text_of(deleted)}"
    if first is None or first > through:
        return "the stream was trimmed beyond them"
    return None


def parse_length(reply: memoryview) -> int:
    """The number in `*12\\r\\n`, with which a list begins."""
    head = bytes(reply[:24])
    if head[:1] != b"*":
        raise HeadraceError("the server's answer to XRANGE is no list of entries.")
    return int(head[1 : head.index(b"\r\n")])


def guess_last_id(reply: memoryview) -> str | None:
    """The ID of the last entry, from the last bytes of the page. May be wrong; the decoded page tells."""
    tail = bytes(reply[-TAIL_BYTES:])
    end = len(tail)
    for _ in range(TAIL_SIGNS):
        end = tail.rfind(ENTRY_SIGN, 0, end)
        if end < 0:
            return None
        if head := ENTRY_HEAD.match(tail, end):
            return head[1].decode("ascii")
    return None

"""One slice of a stream -> its pages, in order, each entry once.

XRANGE by ID, never a consumer group, so a task that runs again reads the same. The next request leaves before the
current reply is decoded: server and client work at the same time.

Entries may be trimmed or deleted while they are read. Trimming leaves no trace but the first entry that is left. So the
last entry of a full page is not handed over yet: the next request begins with it, and behind each XRANGE, in the same
write, goes an XINFO STREAM. If the stream begins above the entry that was to come next, entries are lost. A single
deletion is told by the highest deleted ID; one below it cannot be seen.

A broken connection is opened again, and reading goes on where it was; after RETRIES attempts in a row that brought
nothing it is given up.
"""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import hiredis

from headrace.client.explain import not_a_stream
from headrace.client.raw_connection import RawConnection, ReplyTooLarge, open_raw
from headrace.errors import ConnectionLost, DataLoss, NotFound, ProtocolError, WrongType
from headrace.pipeline.entry_ids import id_of, text_of
from headrace.pipeline.pages import Page, parse_page
from headrace.pipeline.ranges import Slice

RETRIES: Final = 5
FIRST_WAIT_S: Final = 0.25  # Doubled at each retry: 8 seconds in all, about what a failover takes.
FIRST_ENTRIES: Final = 100  # Until the size of the entries is known.
MIN_ENTRIES: Final = 2  # One to hand over, one to begin with the next time.
MAX_ENTRIES: Final = 5000  # Larger pages are not faster.
GROWTH: Final = 8  # From one page to the next: the entries behind may be much larger.
PAGE_BYTES: Final = 2 << 20
INFO_SHARE: Final = 8  # XINFO brings two whole entries: a page is at least so many times as large as that,
MAX_PAGE_BYTES: Final = 64 << 20  # but no larger than this.

# How an entry begins, up to the number of its words. A page without such bytes in its last part is decoded first.
ENTRY_SIGN: Final = b"*2\r\n$"
ENTRY_HEAD: Final = re.compile(rb"\*2\r\n\$\d+\r\n(\d+-\d+)\r\n\*\d+\r\n")
TAIL_BYTES: Final = 16 * 1024
TAIL_SIGNS: Final = 3  # An entry of one pair has the sign twice; values may hold it too.

Info = dict[bytes, Any]


@dataclass(frozen=True, slots=True)
class LossCheck:
    """What is done about entries that went before they were read: a DataLoss, or one call of `on_loss` per slice."""

    fails: bool = True
    on_loss: Callable[[str], None] | None = None  # Is given the sentence.


def read_slice(
    url: str,
    piece: Slice,
    page_entries: int = MAX_ENTRIES,
    checks: LossCheck = LossCheck(),  # noqa: B008 - it is frozen.
    timeout_s: float = 10.0,
) -> Iterator[Page]:
    """The entries of the slice, in pages of at most `page_entries`; none of them is empty."""
    reading = Reading(url, piece, page_entries, checks, timeout_s)
    try:
        while (page := reading.next_page()) is not None:
            if page.count:
                yield page
    finally:
        reading.close()


class Reading:
    """How far one slice has been read."""

    def __init__(self, url: str, piece: Slice, page_entries: int, checks: LossCheck, timeout_s: float) -> None:
        self.url = url
        self.stream = piece.stream
        self.piece = piece
        self.begin = "(" + piece.after  # Where to go on, as XRANGE takes it.
        self.after = piece.after  # All up to here has been handed over.
        self.next_id = piece.first  # The entry to come next, where it is known.
        self.page_entries = max(MIN_ENTRIES, page_entries)
        self.count = 0  # How many entries to ask for; 0: not known yet.
        self.checks = checks
        self.has_told = False  # Of a loss.
        self.timeout_s = timeout_s
        self.connection: RawConnection | None = None
        self.asked: str | None = None  # Where the outstanding request begins,
        self.asked_count = 0  # and how many entries it asks for.
        self.failures = 0  # In a row.
        self.is_done = id_of(piece.after) >= id_of(piece.through)

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
                if self.count == MIN_ENTRIES:
                    raise
                self.count = MIN_ENTRIES
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
            self.ask(connection, self.begin)
        count = self.asked_count
        reply, info, info_bytes = self.receive(connection)
        self.check_loss(info)
        entries = parse_length(reply)
        is_full = entries >= count
        guess = guess_last_id(reply) if is_full else None
        if guess is not None and guess != self.piece.through:
            self.adapt(len(reply) / entries, info_bytes)
            self.ask(connection, guess)
        page = self.hand_over(parse_page(reply), is_full=is_full)
        if self.asked is not None and self.asked != self.begin:  # A value looked like the beginning of an entry.
            self.receive(connection)
        return page

    def hand_over(self, page: Page, *, is_full: bool) -> Page:
        """The page, without its last entry if there are more to come."""
        last_id = page.last_id if page.count else self.after
        self.is_done = not is_full or last_id == self.piece.through
        if not self.is_done:
            page = page.head(page.count - 1)
            self.begin = self.next_id = last_id
        if page.count:
            self.after = page.last_id
        return page

    def open(self) -> RawConnection:
        if self.connection is None:
            self.connection = open_raw(self.url, self.stream, self.timeout_s)
        if self.count == 0:
            self.connection.send("XINFO", "STREAM", self.stream)
            _, info_bytes = self.receive_info(self.connection)
            self.adapt(info_bytes / 2 + 1, info_bytes)
            self.count = min(self.count, FIRST_ENTRIES)
        return self.connection

    def adapt(self, entry_bytes: float, info_bytes: int) -> None:
        """How many entries to ask for, if they are about as large as this."""
        page_bytes = max(PAGE_BYTES, min(MAX_PAGE_BYTES, INFO_SHARE * info_bytes))
        most = GROWTH * self.count if self.count else FIRST_ENTRIES
        self.count = max(MIN_ENTRIES, min(int(page_bytes / entry_bytes), most, self.page_entries))

    # Requests and replies

    def ask(self, connection: RawConnection, begin: str) -> None:
        page = ("XRANGE", self.stream, begin, self.piece.through, "COUNT", self.count)
        connection.send_many([page, ("XINFO", "STREAM", self.stream)])
        self.asked, self.asked_count = begin, self.count

    def receive(self, connection: RawConnection) -> tuple[memoryview, Info | None, int]:
        """The reply to XRANGE; what XINFO tells, None where there is no stream; and how many bytes that took."""
        self.asked = None
        try:
            reply = connection.receive()
        except WrongType as error:
            raise not_a_stream(self.stream, "something else by now") from error
        return reply, *self.receive_info(connection)

    def receive_info(self, connection: RawConnection) -> tuple[Info | None, int]:
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

    # Lost entries

    def check_loss(self, info: Info | None) -> None:
        lost = find_loss(self.piece, self.after, self.next_id, info)
        if lost is None:
            return
        sentence = f"entries of stream {self.stream!r} behind {self.after} went before they were read: {lost}"
        if self.checks.fails:
            raise DataLoss(f"{sentence}; set the option failOnDataLoss to false to go on with what is left.")
        if self.checks.on_loss is not None and not self.has_told:
            self.checks.on_loss(sentence + ".")
        self.has_told = True


def find_loss(piece: Slice, after: str, next_id: str | None, info: Info | None) -> str | None:
    """How entries of the slice behind `after` were lost, in words; None if nothing tells so."""
    if info is None:
        return "the stream is gone, it was deleted"
    first = id_of(info[b"first-entry"][0].decode()) if info[b"first-entry"] else None
    if next_id is not None and id_of(next_id) <= id_of(piece.through) and (first is None or first > id_of(next_id)):
        return "the stream is empty now" if first is None else f"it begins with {text_of(first)} now"
    deleted_text = info.get(b"max-deleted-entry-id", b"0-0").decode()  # Servers before Redis 7 do not keep it.
    if max(id_of(after), id_of(piece.deleted)) < id_of(deleted_text) <= id_of(piece.through):
        return f"{deleted_text} was deleted, perhaps others"
    return None


# Raw replies


def parse_length(reply: memoryview) -> int:
    """The number in `*12\\r\\n`, with which a list begins."""
    head = bytes(reply[:24])
    if head[:1] != b"*":
        raise ProtocolError("the server's answer to XRANGE is no list of entries.")
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

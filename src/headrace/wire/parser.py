"""Received bytes -> argument vectors.

`feed` takes bytes cut anywhere; `next` gives one complete command at a time as a list of bytes, or None when more bytes
are needed. Two parsers stand behind it. hiredis reads arrays of bulk strings ten times faster than Python can, but it
is made for replies: it accepts what no command may hold, and tells neither limits nor Redis's error texts. So whenever
something is out of the ordinary (an inline command, a broken or oversized frame, a foreign type), `StrictReader` reads
the same bytes again from the last clean point, skipping the commands already given.

A ProtocolError is final: the connection must be closed after the reply.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import hiredis

from headrace.errors import ProtocolError

MAX_ARGUMENTS: Final = 1024 * 1024  # Redis's old multibulk limit: no honest command is longer.
MAX_BULK_BYTES: Final = 512 * 1024 * 1024  # proto-max-bulk-len of Redis.
MAX_INLINE_BYTES: Final = 64 * 1024  # Redis's limit for an inline request and for any header line.
MAX_HELD_BYTES: Final = 1024 * 1024 * 1024  # client-query-buffer-limit of Redis: one unfinished command.
TOO_MUCH_HELD: Final = "Protocol error: the unfinished command exceeds the query buffer limit"
CHEAP_BYTES: Final = 4096  # So much can be looked at again with each chunk.
GUESSES: Final = 4  # Borders tried before the slow reader looks for it.
PROBE: Final = b"*1\r\n$5\r\nprobe\r\n"
PROBE_WORDS: Final = [b"probe"]

# hiredis would allocate the whole array before its elements arrive. 35 ns a command (bench/broker.py).
HUGE_ARRAY: Final = re.compile(rb"\*[0-9]{7}")
SEAM_BYTES: Final = 7  # One less than the pattern.


class Parser:
    """One connection's input."""

    __slots__ = (
        "feed_reader", "has_data", "get_command", "strict", "held", "held_bytes", "seam", "given", "is_partial",
        "has_odd", "odd", "next_check", "max_bulk_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.use_new_reader()
        self.strict: StrictReader | None = None  # In charge when not None.
        self.held: list[bytes] = []  # What hiredis was fed since it was last between two commands.
        self.held_bytes = 0
        self.seam = b""  # The end of what is held: a header may go on in the next bytes.
        self.given = 0  # Commands given out of `held`.
        self.is_partial = False  # hiredis is inside a command and has used up what it was fed.
        self.has_odd = False  # next_batch met something out of the ordinary and left it to next.
        self.odd: Any = None
        self.next_check = 0
        self.max_bulk_bytes = MAX_BULK_BYTES

    def feed(self, data: bytes) -> None:
        if self.strict is not None:
            self.strict.feed(data)
            return
        if not self.held and data[:1] != b"*":
            self.start_strict(data, 0)
            return
        is_huge = HUGE_ARRAY.search(data) is not None
        if self.held and not is_huge:
            seam = self.seam + data[:SEAM_BYTES]
            self.seam = data[-SEAM_BYTES:] if len(data) >= SEAM_BYTES else seam[-SEAM_BYTES:]
            is_huge = HUGE_ARRAY.search(seam) is not None
        else:
            self.seam = data[-SEAM_BYTES:]
        self.held.append(data)
        self.held_bytes += len(data)
        if is_huge:
            self.start_strict(b"".join(self.held), self.given)
            return
        self.feed_reader(data)
        self.is_partial = False

    def next_batch(self, limit: int) -> list[list[bytes]]:
        """The complete commands there are, at most limit. None at all: more bytes are needed.

        The fast road, without a call per command; at the first thing out of the ordinary it leaves the rest to `next`.
        """
        batch: list[list[bytes]] = []
        if self.strict is None and not self.is_partial and not self.has_odd:
            has_data, get_command = self.has_data, self.get_command
            argv: Any = None
            try:
                for _ in range(limit):
                    if not has_data():
                        self.forget_held()
                        return batch
                    argv = None
                    argv = get_command()
                    if not isinstance(argv, list):
                        raise TypeError
                    if IS_PLAIN:
                        b"".join(argv)  # A TypeError unless all are bytes; half the price of looking at each.
                    elif not has_only_bytes(argv):
                        raise TypeError
                    batch.append(argv)
            except (hiredis.ProtocolError, TypeError):
                self.has_odd = True
                self.odd = argv
            self.given += len(batch)
        if not batch:
            following = self.next()
            if following is not None:
                batch.append(following)
        return batch

    def next(self) -> list[bytes] | None:
        """The next complete command, or None. An empty list is an empty command: no reply."""
        if self.strict is not None:
            return self.next_strict()
        if self.is_partial:
            return None
        if self.has_odd:
            argv = self.odd
            self.has_odd = False
            self.odd = None
        elif not self.has_data():
            self.forget_held()
            return None
        else:
            try:
                argv = self.get_command()
            except hiredis.ProtocolError:
                argv = None
        if argv is False:
            self.is_partial = True
            self.check_unfinished()
            return self.next_strict() if self.strict is not None else None
        if isinstance(argv, list) and has_only_bytes(argv):
            self.given += 1
            return argv
        self.start_strict(b"".join(self.held), self.given)
        return self.next_strict()

    def use_new_reader(self) -> None:
        # Bound once: looking the methods up for every command costs 30 ns of 600.
        reader = hiredis.Reader()
        self.feed_reader: Callable[[bytes], None] = reader.feed
        self.has_data: Callable[[], bool] = reader.has_data
        self.get_command: Callable[[], Any] = reader.gets

    def has_bytes(self) -> bool:
        """Whether anything was fed that is not done with."""
        return bool(self.held) or self.strict is not None

    def waiting_bytes(self) -> int:
        """How much is kept that is not done with yet."""
        return self.held_bytes if self.strict is None else self.strict.waiting_bytes()

    def next_strict(self) -> list[bytes] | None:
        strict = self.strict
        assert strict is not None
        argv = strict.next()
        if argv is None and strict.is_empty():
            self.strict = None
        return argv

    def start_strict(self, data: bytes, skip: int) -> None:
        """Hand over to the strict reader for as long as it has bytes."""
        self.use_new_reader()
        self.forget_held()
        self.is_partial = False
        self.strict = StrictReader(self.max_bulk_bytes)
        self.strict.feed(data)
        for _ in range(skip):
            self.strict.next()

    def check_unfinished(self) -> None:
        """hiredis is inside a command. Hold on to that one only, and refuse early what can never become valid.

        A large value arrives in many chunks, so from CHEAP_BYTES on it is looked at again only when what is held has
        doubled.
        """
        if self.given:
            rest = find_unfinished(b"".join(self.held), self.given)
            self.held = [rest]
            self.held_bytes = len(rest)
            self.given = 0
            self.next_check = 0
        if self.held_bytes < self.next_check:
            return
        if self.held_bytes > MAX_HELD_BYTES:
            raise ProtocolError(TOO_MUCH_HELD)
        rest = b"".join(self.held)
        strict = StrictReader(self.max_bulk_bytes)
        strict.feed(rest)
        strict.next()  # Raises when the beginning is already wrong.
        self.held = [rest]
        self.next_check = 2 * self.held_bytes if self.held_bytes > CHEAP_BYTES else 0

    def forget_held(self) -> None:
        self.held = []
        self.held_bytes = 0
        self.seam = b""
        self.given = 0
        self.next_check = 0


def has_only_bytes(argv: list[Any]) -> bool:
    for item in argv:
        if not isinstance(item, bytes):
            return False
    return True


# Compiled functions are of another type.
IS_PLAIN: Final = type(has_only_bytes).__name__ == "function"


def find_unfinished(data: bytes, given: int) -> bytes:
    """The unfinished command at the end of data, behind `given` complete ones.

    A command begins with '*' behind a line end, but so may a value. Proof: at a true border a command put there is read
    as itself. Values that defeat a few guesses are read the slow way.
    """
    end = len(data)
    for _ in range(GUESSES):
        border = data.rfind(b"\r\n*", 0, end) + 2
        if border < 2:
            break
        if is_border(data, border, given):
            return data[border:]
        end = border - 1
    strict = StrictReader()
    strict.feed(data)
    for _ in range(given):
        strict.next()
    return strict.rest()


def is_border(data: bytes, border: int, given: int) -> bool:
    """Whether `given` commands end where the border is. Inside a value the probe is part of it, or makes no sense."""
    reader = hiredis.Reader()
    reader.feed(data[:border] + PROBE)
    count = 0
    last: list[bytes] = []
    try:
        argv = reader.gets()
        while argv.__class__ is list:
            last = argv
            count += 1
            argv = reader.gets()
    except hiredis.ProtocolError:
        return False
    return count == given + 1 and last == PROBE_WORDS


class StrictReader:
    """Reads by Redis's rules, with Redis's texts. Slow and exact. An unfinished array is gone on with, never reread."""

    __slots__ = (
        "data", "position", "more", "more_bytes", "wanted_bytes", "max_bulk_bytes", "words", "word_bytes", "missing",
    )  # fmt: skip

    def __init__(self, max_bulk_bytes: int = MAX_BULK_BYTES) -> None:
        self.data = b""
        self.position = 0
        self.more: list[bytes] = []  # Fed since, not yet joined to data.
        self.more_bytes = 0
        self.wanted_bytes = 0  # No use to look again with fewer: the value at hand is that long.
        self.max_bulk_bytes = max_bulk_bytes
        self.words: list[bytes] = []  # Of an unfinished array.
        self.word_bytes = 0
        self.missing = 0  # Words it still lacks; 0: there is none.

    def feed(self, data: bytes) -> None:
        self.more.append(data)
        self.more_bytes += len(data)

    def waiting_bytes(self) -> int:
        """How much is kept that is not done with yet."""
        return self.unread_bytes() + self.word_bytes

    def unread_bytes(self) -> int:
        return len(self.data) - self.position + self.more_bytes

    def is_empty(self) -> bool:
        return self.unread_bytes() == 0 and self.missing == 0

    def at_array(self) -> bool:
        return self.data[self.position : self.position + 1] in (b"*", b"")

    def rest(self) -> bytes:
        self.join()
        return self.data[self.position :]

    def join(self) -> None:
        if self.more:
            self.data = self.data[self.position :] + b"".join(self.more)
            self.position = 0
            self.more = []
            self.more_bytes = 0

    def next(self) -> list[bytes] | None:
        unread = self.unread_bytes()
        if unread == 0 or unread < self.wanted_bytes:
            return None
        self.wanted_bytes = 0
        self.join()
        if self.missing or self.at_array():
            return self.next_array()
        return self.next_inline()

    def next_inline(self) -> list[bytes] | None:
        end = self.data.find(b"\n", self.position)
        if end < 0:
            if len(self.data) - self.position > MAX_INLINE_BYTES:
                raise ProtocolError("Protocol error: too big inline request")
            return None
        line = self.data[self.position : end]
        self.position = end + 1
        if line.endswith(b"\r"):
            line = line[:-1]
        words = split_inline(line)
        if words is None:
            raise ProtocolError("Protocol error: unbalanced quotes in request")
        return words

    def next_array(self) -> list[bytes] | None:
        if not self.missing:
            end = self.find_line(self.position, "too big mbulk count string")
            if end < 0:
                return None
            count = parse_length(self.data[self.position + 1 : end])
            if count > MAX_ARGUMENTS or count == NOT_A_LENGTH:
                raise ProtocolError("Protocol error: invalid multibulk length")
            self.position = end + 2
            self.missing = max(0, count)
        while self.missing:
            position = self.position
            end = self.find_line(position, "too big bulk count string")
            if end < 0:
                return None
            if self.data[position] != 36:
                got = self.data[position : position + 1].decode("latin-1")
                raise ProtocolError(f"Protocol error: expected '$', got '{got}'")
            size = parse_length(self.data[position + 1 : end])
            if size < 0 or size > self.max_bulk_bytes:
                raise ProtocolError("Protocol error: invalid bulk length")
            position = end + 2
            if position + size + 2 > len(self.data):
                self.wanted_bytes = position + size + 2 - self.position
                return None
            self.words.append(self.data[position : position + size])
            self.word_bytes += size
            if self.word_bytes > MAX_HELD_BYTES:
                raise ProtocolError(TOO_MUCH_HELD)
            self.position = position + size + 2
            self.missing -= 1
        argv = self.words
        self.words = []
        self.word_bytes = 0
        return argv

    def find_line(self, position: int, too_long: str) -> int:
        """Where the header line at `position` ends, or -1. Its first byte is judged before its end arrives."""
        if position >= len(self.data):
            return -1
        end = self.data.find(b"\r\n", position)
        if end < 0 and len(self.data) - position > MAX_INLINE_BYTES:
            raise ProtocolError(f"Protocol error: {too_long}")
        return end


NOT_A_LENGTH: Final = -(2**62)


def parse_length(text: bytes) -> int:
    digits = text[1:] if text[:1] == b"-" else text
    if not digits.isdigit() or len(digits) > 19:
        return NOT_A_LENGTH
    return int(text)


ESCAPES: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}
HEX_DIGITS: Final = b"0123456789abcdefABCDEF"


def split_inline(line: bytes) -> list[bytes] | None:
    """Words separated by blanks; "…" with escapes and '…' keep blanks. None when quotes are not balanced."""
    words: list[bytes] = []
    position = 0
    size = len(line)
    while True:
        while position < size and line[position : position + 1].isspace():
            position += 1
        if position >= size:
            return words
        word: list[bytes] = []
        while position < size and not line[position : position + 1].isspace():
            char = line[position : position + 1]
            if char in (b'"', b"'"):
                position = read_quoted(line, position + 1, char, word)
                if position < 0 or (position < size and not line[position : position + 1].isspace()):
                    return None
                break
            word.append(char)
            position += 1
        words.append(b"".join(word))


def read_quoted(line: bytes, position: int, quote: bytes, word: list[bytes]) -> int:
    """Append the quoted text to `word`; the position behind its closing quote, or -1 when there is none."""
    while position < len(line):
        char = line[position : position + 1]
        following = line[position + 1 : position + 2]
        if char == quote:
            return position + 1
        if char == b"\\" and quote == b'"' and following:
            pair = line[position + 2 : position + 4]
            if following == b"x" and len(pair) == 2 and pair[0] in HEX_DIGITS and pair[1] in HEX_DIGITS:
                word.append(bytes([int(pair, 16)]))
                position += 4
                continue
            word.append(ESCAPES.get(following, following))
            position += 2
        elif char == b"\\" and following == b"'":
            word.append(b"'")
            position += 2
        else:
            word.append(char)
            position += 1
    return -1

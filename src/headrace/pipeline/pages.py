"""The bytes of one XRANGE reply -> a Page: where each ID, name and value lies in them. Pure.

    *1 *2 $3 1-0 *4 $1 a $1 7 $1 b $1 8      one entry, each part on a line of its own: 4 lines, and 4 per pair

The fast way finds all line ends at once, and with them the lines that begin with a star. If there are exactly as many
as the entries have, no word has such a line, so these are the heads of the entries. If then each entry has exactly as
many lines as its words need, no word holds a line end, and every line is what its place says. Where a word does begin
with a star, the entries are walked one by one, and every length is checked. Whatever does not agree is parsed by
hiredis: slower, same result.

A Page makes its columns when they are asked for, so what nobody reads costs nothing.
"""

from functools import cached_property
from itertools import chain
from typing import Any, Final

import hiredis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import ProtocolError

CR, LF, STAR, DOLLAR, ZERO = b"\r\n*$0"
DASH: Final = ord("-")
MAX_BYTES: Final = 2**31 - 1  # Offsets in Arrow's binary columns have 32 bits. Connections hand over less.
MAX_WIDTH: Final = 11  # Of a line with a sign and a number.


class Page:
    """Some entries of a stream, in order. Spans are int32 (begin, end, begin, end, …) in the buffer."""

    def __init__(self, buffer: Any, pair_offsets: Any, id_spans: Any, name_spans: Any, value_spans: Any) -> None:
        self.count: int = len(pair_offsets) - 1
        self.buffer = buffer
        self.pair_offsets = pair_offsets  # int32: entry i has the pairs from pair_offsets[i] to pair_offsets[i + 1].
        self.id_spans = id_spans
        self.name_spans = name_spans
        self.value_spans = value_spans

    @cached_property
    def ids(self) -> Any:
        """Binary array, one per entry."""
        return gather(self.buffer, self.id_spans)

    @property
    def ms(self) -> Any:
        """uint64, one per entry."""
        return self.id_halves[0]

    @property
    def seq(self) -> Any:
        """uint64, one per entry."""
        return self.id_halves[1]

    @cached_property
    def names(self) -> Any:
        """Binary array, one per pair."""
        return gather(self.buffer, self.name_spans)

    @cached_property
    def values(self) -> Any:
        """Binary array, one per pair."""
        return gather(self.buffer, self.value_spans)

    @property
    def last_id(self) -> str:
        """Of a page that has entries."""
        begin, end = self.id_spans[-2:].tolist()
        return bytes(self.buffer[begin:end]).decode("ascii")

    def head(self, count: int) -> "Page":
        """The first entries only."""
        pairs = 2 * int(self.pair_offsets[count])
        return Page(
            self.buffer,
            self.pair_offsets[: count + 1],
            self.id_spans[: 2 * count],
            self.name_spans[:pairs],
            self.value_spans[:pairs],
        )

    def last_values(self, name: bytes) -> Any:
        """Binary array: for each entry the value of its last pair of that name, null where there is none."""
        if self.shared_names is None:
            return gather(self.buffer, self.value_spans, to_indices(self.find_last(name)))
        if name not in self.shared_names:
            return pa.nulls(self.count, pa.binary())
        width = len(self.shared_names)
        place = width - 1 - self.shared_names[::-1].index(name)
        return gather(self.buffer, self.value_spans.reshape(-1, width, 2)[:, place].reshape(-1))

    def find_last(self, name: bytes) -> Any:
        """For each entry its last pair of that name, as int32 among all pairs; -1 where there is none."""
        found: Any = np.full(self.count, -1, np.int32)
        names, codes = self.name_codes
        if name in names:
            pairs: Any = np.flatnonzero(codes == names.index(name)).astype(np.int32)
            # Where an entry comes several times, the last assignment holds.
            found[np.searchsorted(self.pair_offsets, pairs, "right") - 1] = pairs
        return found

    @cached_property
    def shared_names(self) -> list[bytes] | None:
        """The names of every entry, if all have the same in the same order, as most streams do."""
        width = len(self.names) // max(self.count, 1)
        if not np.array_equal(self.pair_offsets, np.arange(self.count + 1) * width):
            return None
        first: list[bytes] = self.names[:width].to_pylist()
        if width == 0:
            return first
        _, offsets_buffer, data_buffer = self.names.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int32)[: len(self.names) + 1]
        size = int(offsets[width])
        lengths = np.diff(offsets).reshape(-1, width)
        if not (lengths == lengths[0]).all():
            return None
        data: Any = np.frombuffer(data_buffer or b"", np.uint8)[: size * self.count].reshape(self.count, size)
        return first if (data == data[0]).all() else None

    @cached_property
    def name_codes(self) -> tuple[list[bytes], Any]:
        """The names that occur, each once, and for each pair the place of its name among them."""
        encoded = self.names.dictionary_encode()
        return encoded.dictionary.to_pylist(), as_numpy(encoded.indices, np.int32)

    @cached_property
    def id_halves(self) -> tuple[Any, Any]:
        _, offsets_buffer, data_buffer = self.ids.buffers()
        if self.count == 0:
            return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        offsets = np.frombuffer(offsets_buffer, np.int32)[: self.count + 1]
        dashes = np.flatnonzero(np.frombuffer(data_buffer, np.uint8)[: offsets[-1]] == DASH)
        if len(dashes) != self.count:
            raise ProtocolError("the server sent an entry ID that is none.")
        spans: Any = np.empty((self.count, 2, 2), np.int32)
        spans[:, 0, 0], spans[:, 0, 1] = offsets[:-1], dashes
        spans[:, 1, 0], spans[:, 1, 1] = dashes + 1, offsets[1:]
        ms, seq = (gather(data_buffer, spans[:, half].reshape(-1)).view(pa.string()) for half in (0, 1))
        return as_numpy(ms.cast(pa.uint64()), np.uint64), as_numpy(seq.cast(pa.uint64()), np.uint64)


def parse_page(reply: Any) -> Page:
    """A Page of the whole reply to XRANGE."""
    if len(reply) > MAX_BYTES:
        raise ProtocolError(f"a page of {len(reply)} bytes is too large for a column; ask for fewer entries.")
    return parse_lines(reply) or parse_objects(reply)


def gather(buffer: Any, spans: Any, indices: Any = None) -> Any:
    """The bytes of the spans as one binary array; all, or those at `indices` (an Arrow array; null gives null)."""
    if len(spans) == 0:
        return pa.nulls(0 if indices is None else len(indices), pa.binary())
    # Every second element is the gap between two spans; it may be of negative length and is never looked at.
    spans = pa.py_buffer(np.ascontiguousarray(spans, np.int32))
    everything = pa.Array.from_buffers(pa.binary(), spans.size // 4 - 1, [None, spans, buffer])
    if indices is None:
        return everything.take(as_arrow(np.arange(0, len(everything), 2, dtype=np.int32), pa.int32()))
    return everything.take(pc.multiply(indices, 2))


def to_indices(found: Any) -> Any:
    """int32 as an Arrow array, with null for -1."""
    indices = as_arrow(found, pa.int32())
    return pc.if_else(pc.greater_equal(indices, 0), indices, pa.NULL)


def as_arrow(numbers: Any, kind: Any) -> Any:
    """An array of numpy as one of Arrow, with the same memory. pa.array would load pandas, which takes a second."""
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def as_numpy(numbers: Any, kind: Any) -> Any:
    """The other way, for an array of Arrow that has no nulls."""
    return np.frombuffer(numbers.buffers()[1] or b"", kind)[numbers.offset : numbers.offset + len(numbers)]


# The fast way


def parse_lines(reply: Any) -> Page | None:
    """None where a word holds a line end, or anything else is not as expected."""
    text: Any = np.frombuffer(reply, np.uint8)
    ends = np.flatnonzero((text[:-1] == CR) & (text[1:] == LF))
    if len(ends) == 0 or ends[-1] + 2 != len(text):
        return None
    lines = Lines(text, ends)
    stars = np.flatnonzero(lines.firsts == STAR)
    if len(stars) == 0 or stars[0] != 0:
        return None
    [count] = lines.numbers(stars[:1]).tolist()
    if count < 0:
        return None
    heads = stars[1::2] if len(stars) == 2 * count + 1 else walk_entries(lines, stars, count)
    if heads is None or (count and heads[-1] + 3 >= lines.count):
        return None
    word_counts = lines.numbers(heads + 3)
    word_ends = np.cumsum(word_counts)
    if not is_whole(lines, heads, word_counts):
        return None
    # The line with the length of each word: two lines per word, behind four at the head of each entry.
    words: Any = np.repeat(heads + 4 + 2 * (word_counts - word_ends), word_counts)
    words += 2 * np.arange(len(words))
    if not (lines.firsts.take(words) == DOLLAR).all():
        return None
    if len(stars) != 2 * count + 1 and not (lines.are_lengths(heads + 1) and lines.are_lengths(words)):
        return None
    pair_offsets: Any = np.zeros(count + 1, np.int32)
    pair_offsets[1:] = word_ends >> 1
    words += 1
    ids = lines.spans(heads + 2)
    return Page(pa.py_buffer(reply), pair_offsets, ids, lines.spans(words[0::2]), lines.spans(words[1::2]))


def is_whole(lines: "Lines", heads: Any, word_counts: Any) -> bool:
    """Whether the entries lie without gaps from the second line to the last one, and have whole pairs."""
    borders: Any = np.append(heads, lines.count)
    return bool(
        borders[0] == 1
        and (lines.firsts.take(heads + 3) == STAR).all()
        and not (word_counts & 1).any()
        and np.array_equal(borders[1:] - borders[:-1], 4 + 2 * word_counts)
    )


def walk_entries(lines: "Lines", stars: Any, count: int) -> Any:
    """The line with which each entry begins, one by one; None where one begins with something else than a star."""
    numbers: Any = np.full(lines.count + 4, -1)
    numbers[stars] = lines.numbers(stars)
    word_counts = numbers.tolist()
    heads, line = [], 1
    for _ in range(count):
        if line >= lines.count or word_counts[line + 3] < 0:
            return None
        heads.append(line)
        line += 4 + 2 * word_counts[line + 3]
    return np.array(heads, np.int64)


class Lines:
    """The lines of a reply. Numbers of lines are int64 arrays: with these numpy looks up fastest."""

    def __init__(self, text: Any, ends: Any) -> None:
        self.text = text
        self.count = len(ends)
        self.ends = ends
        self.begins: Any = np.empty_like(ends)
        self.begins[0] = 0
        np.add(ends[:-1], 2, out=self.begins[1:])
        self.edges = (ends << 32) + self.begins  # Both in one number, so that a span is looked up once.
        self.firsts = text.take(self.begins)  # The first byte of each line, or the CR of an empty one.

    def spans(self, lines: Any) -> Any:
        return self.edges.take(lines).view(np.int32)

    def numbers(self, lines: Any) -> Any:
        """The numbers behind the sign of these lines; -1 for what cannot be one."""
        begins = self.begins.take(lines)
        widths = self.ends.take(lines) - begins
        most = min(MAX_WIDTH, int(widths.max(initial=0)))
        result = np.where((widths > 1) & (widths <= MAX_WIDTH), self.digits(begins + 1), -1)
        least = int(widths.min(initial=most))
        for place in range(2, most):
            longer = result * 10 + self.digits(begins + place)
            result = longer if place < least else np.where((widths > place) & (result >= 0), longer, result)
        return result

    def digits(self, places: Any) -> Any:
        return self.text.take(places, mode="clip").astype(np.int64) - ZERO

    def are_lengths(self, lines: Any) -> bool:
        """Whether each of these lines tells the length of the next one: `$5` before `hello`."""
        after = lines + 1
        lengths = self.ends.take(after) - self.begins.take(after)
        return bool((self.firsts.take(lines) == DOLLAR).all() and (self.numbers(lines) == lengths).all())


# The slow way


def parse_objects(reply: Any) -> Page:
    reader: Any = hiredis.Reader(protocolError=ProtocolError)
    reader.feed(reply)
    entries = reader.gets()
    if not isinstance(entries, list):
        raise ProtocolError("the server's answer to XRANGE is no list of entries.")
    words = [entry[0] for entry in entries]
    fields = [entry[1] or [] for entry in entries]
    words += chain.from_iterable(fields)
    spans: Any = np.repeat(cumulate(words), 2)[1:-1]
    id_spans, word_spans = spans[: 2 * len(entries)], spans[2 * len(entries) :].reshape(-1, 4)
    return Page(
        pa.py_buffer(b"".join(words)),
        cumulate(fields) >> 1,
        id_spans,
        word_spans[:, :2].reshape(-1),
        word_spans[:, 2:].reshape(-1),
    )


def cumulate(items: list[Any]) -> Any:
    """0, and the lengths up to each item."""
    sums: Any = np.zeros(len(items) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, items), np.int32, len(items)), out=sums[1:])
    return sums

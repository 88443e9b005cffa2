"""The bytes of one XRANGE reply -> a Page: where each ID, name and value lies in them. Pure.

    *2 $3 1-0 *4 $1 a $1 1 $1 b $1 2      an entry, each part on a line of its own (CRLF): 4 + 4 lines per pair

The fast way finds all line ends at once, tells from the counts which line is what, and then checks every `*` and `$`
line against what it announces. If all agree, this is the only way to read the reply. If one does not (a value holds a
line end), the page is parsed by hiredis: slower, same result.

A Page makes its columns when they are asked for, so what nobody reads costs nothing. Offsets have 32 bits; a reply too
large for them goes by 64 bits and comes back to 32 when its columns fit.
"""

from functools import cached_property
from itertools import chain
from typing import Any, Final

import hiredis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import ProtocolError

SMALL_BYTES: Final = 2**31 - 1  # The largest buffer whose offsets have 32 bits.


class Page:
    """Some entries of a stream, in order. Spans are (begin, end, begin, end, …) in the buffer."""

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

    @cached_property
    def ms(self) -> Any:
        """uint64, one per entry."""
        return self.id_parts[0]

    @cached_property
    def seq(self) -> Any:
        """uint64, one per entry."""
        return self.id_parts[1]

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
        begin, end = self.id_spans[-2:]
        return bytes(self.buffer[int(begin) : int(end)]).decode("ascii")

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

    @cached_property
    def name_codes(self) -> tuple[list[bytes], Any]:
        """The names that occur, each once, and for each pair the place of its name among them."""
        encoded = self.names.dictionary_encode()
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()

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
    def id_parts(self) -> tuple[Any, Any]:
        texts = self.ids.cast(pa.string())
        parts = pc.split_pattern(texts, "-")
        flat = parts.flatten()
        if len(flat) != 2 * self.count:
            raise ProtocolError("the server sent an entry ID that is none.")
        numbers = flat.cast(pa.uint64()).to_numpy(zero_copy_only=False)
        return numbers[0::2].copy(), numbers[1::2].copy()


def parse_page(reply: Any) -> Page:
    """A Page of the whole reply, which begins with `*`."""
    return parse_objects(reply)


def gather(buffer: Any, spans: Any, indices: Any = None) -> Any:
    """The bytes of the spans as one binary array; all, or those at `indices` (an Arrow array; null gives null)."""
    if len(spans) == 0:
        return pa.nulls(0 if indices is None else len(indices), pa.binary())
    is_small = buffer.size <= SMALL_BYTES
    offsets = pa.py_buffer(np.ascontiguousarray(spans, np.int32 if is_small else np.int64))
    kind = pa.binary() if is_small else pa.large_binary()
    # Every second element is the gap between two spans; it may be of negative length and is never looked at.
    everything = pa.Array.from_buffers(kind, len(spans) - 1, [None, offsets, buffer])
    if indices is None:
        indices = pa.array(np.arange(0, len(spans), 2, dtype=np.int32))
    else:
        indices = pc.multiply(indices, 2)
    taken = everything.take(indices)
    return taken if is_small else taken.cast(pa.binary())


# The slow way


def parse_objects(reply: Any) -> Page:
    reader = hiredis.Reader(protocolError=ProtocolError)
    reader.feed(reply)
    entries = reader.gets()
    if not isinstance(entries, list):
        raise ProtocolError("the server's answer to XRANGE is no list of entries.")
    fields = [entry[1] or [] for entry in entries]
    pair_offsets: Any = np.zeros(len(entries) + 1, np.int32)
    np.cumsum([len(words) // 2 for words in fields], out=pair_offsets[1:])
    ids = [entry[0] for entry in entries]
    words = list(chain.from_iterable(fields))
    ends: Any = np.zeros(len(ids) + len(words) + 1, np.int64)
    np.cumsum([len(word) for word in chain(ids, words)], out=ends[1:])
    spans: Any = np.repeat(ends, 2)[1:-1]
    id_spans, word_spans = spans[: 2 * len(ids)], spans[2 * len(ids) :].reshape(-1, 4)
    buffer = pa.py_buffer(b"".join(chain(ids, words)))
    return Page(buffer, pair_offsets, id_spans, word_spans[:, :2].ravel(), word_spans[:, 2:].ravel())

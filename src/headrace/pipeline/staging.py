"""Where the rows of a task wait in the broker until the driver publishes them.

    hr:{orders}:staged:QUERY:PARTITION:RANDOM     a list of chunks

in the slot of the target. A chunk is a MessagePack array of entries, each an array of words: name, value, name, value.
Every attempt of a task has a key of its own, so a retried task cannot add to what its first attempt left. A key goes
when its last chunk is published, and by itself a day after the last chunk was added if nobody takes it.

A task with few rows stages nothing: its chunks travel in the commit message.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from headrace.client.flows import beside
from headrace.client.raw_connection import RawConnection
from headrace.errors import HeadraceError
from headrace.pipeline.entries_from_rows import Words
from headrace.pipeline.transactions import Steps, check, execute

STAGED_S: Final = 24 * 3600  # Longer than a driver is away between the tasks of a batch and its commit.
CHUNK_ENTRIES: Final = 500  # One transaction each: others wait a few milliseconds for it.
CHUNK_BYTES: Final = 1 << 20
CARRIED_ENTRIES: Final = 1000  # Per task. Beyond, rows are staged, so that the driver never holds them all.
CARRIED_BYTES: Final = 1 << 20

DECODER: Final = msgspec.msgpack.Decoder(list[list[bytes]])


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some entries, packed."""

    entries: int
    packed: bytes


@dataclass(frozen=True, slots=True)
class Part:
    """What one task left in the broker."""

    name: str
    chunks: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What one task did with its rows: staged them, or gives them along."""

    part: Part | None
    carried: tuple[Chunk, ...]


def staged_key(stream: str, name: str) -> str:
    return beside(stream, f"staged:{name}")


def take_rows(entries: Iterable[Words], url: str, stream: str, name: str) -> Taken:
    """Stage the entries of a task; few of them are handed back instead."""
    carried: list[Chunk] = []
    chunks = pack_chunks(entries)
    for chunk in chunks:
        carried.append(chunk)
        if is_too_much(carried, CARRIED_ENTRIES, CARRIED_BYTES):
            return Taken(stage(joined(carried, chunks), url, stream, name), ())
    return Taken(None, tuple(carried))


def joined(first: list[Chunk], rest: Iterator[Chunk]) -> Iterator[Chunk]:
    while first:
        yield first.pop(0)
    yield from rest


def is_too_much(chunks: Sequence[Chunk], most_entries: int, most_bytes: int) -> bool:
    return sum(chunk.entries for chunk in chunks) > most_entries or sum(len(c.packed) for c in chunks) > most_bytes


def pack_chunks(entries: Iterable[Words]) -> Iterator[Chunk]:
    """A chunk has at most CHUNK_ENTRIES, and more than CHUNK_BYTES only where a single entry has."""
    pending: list[Words] = []
    size = 0
    for words in entries:
        size_of_entry = sum(map(len, words))
        if pending and (len(pending) == CHUNK_ENTRIES or size + size_of_entry > CHUNK_BYTES):
            yield pack_chunk(pending)
            pending, size = [], 0
        pending.append(words)
        size += size_of_entry
    if pending:
        yield pack_chunk(pending)


def pack_chunk(entries: list[Words]) -> Chunk:
    return Chunk(len(entries), msgspec.msgpack.encode(entries))


def unpack_chunk(packed: bytes) -> list[Words]:
    return DECODER.decode(packed)


def stage(chunks: Iterable[Chunk], url: str, stream: str, name: str) -> Part:
    """Put the chunks into the list of this name, which must be new, one after the other."""
    key = staged_key(stream, name)
    count = 0
    with Steps(url, stream) as steps:
        for chunk in chunks:
            push_chunk(steps, key, count, chunk.packed)
            count += 1
    return Part(name, count)


def push_chunk(steps: Steps, key: str, index: int, packed: bytes) -> None:
    def step(connection: RawConnection) -> None:
        length = connection.call("LLEN", key)
        if length == index + 1:
            return  # The connection broke before the answer came.
        if length != index:
            raise HeadraceError(
                f"the rows staged in {key!r} are gone before the batch was written: the broker evicts keys, or "
                "somebody deleted it. Nothing of this task was published; start again."
            )
        check(execute(connection, [("RPUSH", key, packed), ("EXPIRE", key, STAGED_S)]))

    steps.run(step)

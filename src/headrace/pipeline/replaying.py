"""What the task of a replay does: archived entries, in the order of their IDs, go to a stream, each once.

    hr:{orders}:replay:NAME     {"of":"9f2c…","added":1200,"done":[["0-0","1690275391705-3"]]}

The record says which IDs of the source are done. It changes in the transaction that adds entries, so a task that is
killed, retried, or run twice at once adds each entry once; and a later run with a wider range adds only the rest.

An entry keeps its pairs byte for byte and gets `hr:stream` and `hr:id`, its first stream and ID; where it has them
already, it was replayed or buried before, and they stay.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Self

import msgspec
import pyarrow as pa

from headrace.client.flows import beside
from headrace.client.raw_connection import RawConnection
from headrace.client.results import encode_text
from headrace.errors import HeadraceError, Refused
from headrace.pipeline.entries_from_rows import Words, from_pairs
from headrace.pipeline.entry_ids import id_of
from headrace.pipeline.id_intervals import Intervals, intervals_of
from headrace.pipeline.pace import Pace
from headrace.pipeline.staging import CHUNK_BYTES, CHUNK_ENTRIES
from headrace.pipeline.transactions import Command, Steps, check_type, execute, explained, watch

MOST_INTERVALS: Final = 1000  # The record is written with every chunk.
STREAM_FIELD: Final = b"hr:stream"
ID_FIELD: Final = b"hr:id"

Numbered = tuple[int, Words]


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """All that the task needs to know; the URL is not shown. `first` and `last` are IDs as numbers, both included."""

    url: str = field(repr=False)
    source: str
    target: str
    name: str
    subject: str  # A digest of what is replayed: the same name must mean the same.
    first: int
    last: int
    rate: float | None = None

    @property
    def record_key(self) -> str:
        return beside(self.target, f"replay:{self.name}")


@dataclass(frozen=True, slots=True)
class Record:
    """What is done under one name."""

    subject: str
    added: int = 0
    done: Intervals = field(default_factory=Intervals)

    def encode(self) -> bytes:
        return msgspec.json.encode({"of": self.subject, "added": self.added, "done": self.done.to_texts()})


class StoredRecord(msgspec.Struct):
    of: str
    added: int
    done: list[tuple[str, str]]


def decode_record(stored: bytes | None, plan: ReplayPlan) -> Record:
    """Raises Refused where the name stands for another replay."""
    if stored is None:
        return Record(plan.subject)
    try:
        found = msgspec.json.decode(stored, type=StoredRecord)
        record = Record(found.of, found.added, intervals_of(found.done))
    except (msgspec.DecodeError, ValueError) as error:
        raise HeadraceError(
            f"{plan.record_key!r} does not hold what a replay left there. Give another name, and what was replayed "
            "under this one is replayed again."
        ) from error
    if record.subject != plan.subject:
        raise Refused(
            f"the replay {plan.name!r} to {plan.target!r} was one of another stream or with another where. Give "
            "another name."
        )
    return record


class Replayer:
    def __init__(self, plan: ReplayPlan) -> None:
        self.plan = plan
        self.steps = Steps(plan.url, plan.target)
        self.pace = Pace(plan.rate)
        self.most = self.pace.step_size(CHUNK_ENTRIES)
        self.known = Record(plan.subject)  # As it was when last seen; it only grows.
        self.pending: list[Numbered] = []
        self.pending_bytes = 0

    def __enter__(self) -> Self:
        self.known = self.steps.run(self.load)
        return self

    def __exit__(self, *_: object) -> None:
        self.steps.close()

    def load(self, connection: RawConnection) -> Record:
        return decode_record(connection.call("GET", self.plan.record_key), self.plan)

    def take(self, batch: pa.RecordBatch) -> None:
        """Rows with `id` and `pairs`, sorted by ID over all batches."""
        for text, words in zip(batch.column("id").to_pylist(), from_pairs(batch), strict=True):
            entry_id = id_of(text)
            if self.known.done.covers(entry_id):
                continue
            marked = mark(words, self.plan.source, text)
            size = sum(map(len, marked))
            if self.pending and (len(self.pending) >= self.most or self.pending_bytes + size > CHUNK_BYTES):
                self.flush()
            self.pending.append((entry_id, marked))
            self.pending_bytes += size

    def finish(self) -> None:
        """Add the rest; then all of the range is done, also where it had no entries."""
        self.flush()
        self.advance([], self.plan.last)

    def flush(self) -> None:
        entries, self.pending, self.pending_bytes = self.pending, [], 0
        if entries:
            self.pace.wait(len(entries))
            self.advance(entries, entries[-1][0])

    def advance(self, entries: list[Numbered], last: int) -> None:
        """Add entries, and note in the same step that all up to `last` is done."""
        key, target = self.plan.record_key, self.plan.target

        def step(connection: RawConnection) -> Record:
            stored, kind = watch(connection, key, ("TYPE", target))
            record = decode_record(stored, self.plan)
            fresh = [words for entry_id, words in entries if not record.done.covers(entry_id)]
            done = record.done.add(self.plan.first, last)
            if not fresh and done == record.done:
                return record
            if fresh:
                check_type(target, kind)
            check_intervals(done, self.plan)
            following = Record(record.subject, record.added + len(fresh), done)
            adds: list[Command] = [("XADD", target, "*", *words) for words in fresh]
            results = execute(connection, [*adds, ("SET", key, following.encode())])
            failed = [result for result in results if isinstance(result, HeadraceError)]
            if failed:  # Somebody replaced the target in this very moment; a transaction is not undone.
                connection.call(*(("UNLINK", key) if stored is None else ("SET", key, stored)))
                raise explained(failed[0])
            return following

        self.known = self.steps.run(step)


def check_intervals(done: Intervals, plan: ReplayPlan) -> None:
    if len(done.items) > MOST_INTERVALS:
        raise Refused(
            f"the replay {plan.name!r} consists of more than {MOST_INTERVALS} separate ranges. Replay what lies "
            "between them too, or give another name."
        )


def mark(words: Words, stream: str, entry_id: str) -> Words:
    if ID_FIELD in words[::2]:
        return words
    return [*words, STREAM_FIELD, encode_text(stream), ID_FIELD, entry_id.encode()]


def replay_rows(plan: ReplayPlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The task, for mapInArrow: one row with the number of entries it was given."""
    matched = 0
    with Replayer(plan) as replayer:
        for batch in batches:
            matched += batch.num_rows
            replayer.take(batch)
        replayer.finish()
    yield pa.record_batch({"matched": pa.array([matched], pa.int64())})

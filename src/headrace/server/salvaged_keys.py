"""Keys of a damaged folder: which can be trusted, and which records of the log may be applied to them.

Part of salvage.py, which has the rules. A key is *broken* when it is lost, or not as new as it was; then its records do
not count, until one gives it a whole new value. What moves a key about takes that with it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.commands.apply import apply
from headrace.commands.call import State
from headrace.engine.snapshot import Part
from headrace.engine.stream import Stream
from headrace.journal.record import CLEAR, CREATE_STREAM, DELIVER, MOVE, PUT, REMOVE, STRUCTURAL, SWAP

WHOLE: Final = (PUT, REMOVE, CREATE_STREAM)  # Whatever the key held before does not matter.

Record = list[Any]
Place = tuple[int, bytes]  # Database and key.
KeepRecord = Callable[[int, Record], None]  # Frame and record.


@dataclass(slots=True)
class Marks:
    """Of one database: which keys can be trusted."""

    broken: set[bytes] = field(default_factory=set)
    dropped: dict[bytes, int] = field(default_factory=dict)  # How many records of broken keys do not count.
    known: set[bytes] = field(default_factory=set)  # Where parts are lost: keys that surely are none of them.
    may_lack: bool = False  # Parts are lost, and nobody knows whose they were.

    def is_broken(self, key: bytes) -> bool:
        if self.may_lack and key not in self.known:
            self.broken.add(key)
        return key in self.broken

    def heal(self, key: bytes) -> None:
        self.broken.discard(key)
        self.dropped.pop(key, None)
        self.known.add(key)


class SalvagedKeys:
    def __init__(self, state: State, holes: dict[Stream, int], misfits: set[tuple[int, int]]) -> None:
        self.state = state
        self.holes = holes  # Streams that lost entries; all of these have IDs below.
        self.misfits = misfits  # Records that do not fit what is there, by frame and place in it.
        self.marks = [Marks() for _ in state.databases]
        self.sequences: dict[Place, int] = {}  # Of the part of each key.
        self.start = 0  # The checkpoint has everything up to this sequence,
        self.newest = 0  # and nothing behind this one.
        self.keep_record: KeepRecord = forget_record

    def take_part(self, part: Part) -> None:
        self.sequences[part.database, part.key] = part.sequence
        self.newest = max(self.newest, part.sequence)
        self.marks[part.database].heal(part.key)
        if part.value is not None:
            self.state.databases[part.database].put(part.key, part.value, part.expires_ms)

    def take_record(self, sequence: int, index: int, record: Record) -> None:
        """Apply a record, unless a part has it already or its key is broken."""
        if record[0] in STRUCTURAL:
            if sequence > self.newest:  # Otherwise the parts have it.
                self.take_structural(record)
            return
        database, key = place_of(record)
        if sequence <= self.sequences.get((database, key), self.start):
            return
        marks = self.marks[database]
        if record[0] in WHOLE:
            marks.heal(key)
        if (sequence, index) in self.misfits or self.is_delivered_from_a_hole(record):
            marks.broken.add(key)
        if marks.is_broken(key):
            marks.dropped[key] = marks.dropped.get(key, 0) + 1
            self.keep_record(sequence, record)
            return
        try:
            apply(self.state, record)
        except Exception:  # A verb trusts its record; one that does not fit can fail in any way.
            self.misfits.add((sequence, index))  # The next reading leaves it out.
            marks.broken.add(key)

    def is_delivered_from_a_hole(self, record: Record) -> bool:
        """Whether a delivery may have taken entries that are lost: the log tells only how many there were."""
        if record[0] != DELIVER or not self.holes:
            return False
        stream = self.state.databases[int(record[1])].values.get(record[2])
        if not isinstance(stream, Stream) or stream not in self.holes or record[3] not in stream.groups:
            return False
        return stream.groups[record[3]].last_id < self.holes[stream] - 1

    def take_structural(self, record: Record) -> None:
        number = int(record[1])
        if record[0] == CLEAR:
            apply(self.state, record)
            self.marks[number] = Marks()
        elif record[0] == SWAP:
            other = int(record[2])
            apply(self.state, record)
            self.marks[number], self.marks[other] = self.marks[other], self.marks[number]
        else:
            target = int(record[3]) if record[0] == MOVE else number
            self.move_key(number, record[2], target, record[2] if record[0] == MOVE else record[3])

    def move_key(self, number: int, key: bytes, other: int, new_key: bytes) -> None:
        """RENAME and MOVE: what is wrong with a key goes with it."""
        source, target = self.state.databases[number], self.state.databases[other]
        is_broken = self.marks[number].is_broken(key) or key not in source.values
        count = self.marks[number].dropped.get(key, 0)
        expires_ms = source.expires_ms.get(key, 0)
        value = source.values.get(key)
        source.delete(key)
        target.delete(new_key)
        if value is not None:
            target.put(new_key, value, expires_ms)
        self.marks[number].heal(key)
        self.marks[other].heal(new_key)
        if is_broken:
            self.marks[other].broken.add(new_key)
            self.marks[other].dropped[new_key] = count

    def broken(self) -> list[tuple[Place, int]]:
        """Broken keys, and how many records of each do not count."""
        return [
            ((number, key), marks.dropped.get(key, 0))
            for number, marks in enumerate(self.marks)
            for key in sorted(marks.broken)
        ]


def place_of(record: Record) -> Place:
    key = record[2] if len(record) > 2 and record[0] != SWAP else b""
    return int(record[1]), key


def forget_record(sequence: int, record: Record) -> None:
    """Nobody wants it."""

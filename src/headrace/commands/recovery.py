"""A checkpoint and the journal behind it -> memory. No file, no clock: bytes come in, the state is filled.

    recovery = Recovery(state, start)
    recovery.part(payload)             # every part of the checkpoint (engine/snapshot.py), in any order
    recovery.frame(sequence, payload)  # then every frame of the journal in order: the joined records of one turn

The checkpoint was written while commands went on: each part holds one key as it was after the frame whose sequence it
names. So a record is skipped when its frame is not behind the part of its key: the part has its effect already. This
works because a record is about one key (journal/record.py). `start` is the last frame before the first part was taken:
up to there every frame is in the parts, also what it did to keys that have none. Between `start` and the last part
there is no structural record: when one comes, the checkpoint has to start over.

Whatever does not fit is a ValueError that names the frame or the part. Then the state is of no use.
"""

from headrace.commands.apply import append_entry, apply, get_stream
from headrace.commands.call import State
from headrace.engine.snapshot import Part, load_part
from headrace.engine.stream import Stream
from headrace.journal.record import (
    ENTRY_HEADER_BYTES,
    NOWHERE,
    STRUCTURAL,
    RecordReader,
    end_of_append_head,
    end_of_bulk,
    end_of_entry,
    entry_name,
)
from headrace.wire.encoder import encode_bulk

NO_ENTRY = encode_bulk(b"")


class Recovery:
    __slots__ = ("state", "start", "sequences", "newest", "last", "reader", "head", "grown")

    def __init__(self, state: State, start: int = 0) -> None:
        self.state = state  # Empty, but for its settings.
        self.start = start
        self.sequences: dict[tuple[int, bytes], int] = {}  # Of the part of each key.
        self.newest = start  # The highest of them.
        self.last = 0  # Of the frames so far.
        self.reader = RecordReader()
        self.head = b""  # Of the append record read last,
        self.grown = (0, b"")  # and the database and key it names.

    def part(self, payload: bytes) -> Part:
        """Take one key over. The part comes back, for those who want to know the places it uses."""
        part = load_part(payload, self.state.settings.limits)
        place = (part.database, part.key)
        if place in self.sequences:
            raise ValueError(f"key {part.key!r} of database {part.database} is in the checkpoint twice")
        if part.sequence < self.start:
            raise ValueError(f"key {part.key!r} of database {part.database} was saved before the checkpoint began")
        self.sequences[place] = part.sequence
        self.newest = max(self.newest, part.sequence)
        if part.value is not None:
            self.state.databases[part.database].put(part.key, part.value, part.expires_ms)
        return part

    def frame(self, sequence: int, payload: bytes) -> int:
        """Do again what a frame says was done, but for what the parts have already. How many records that were."""
        if sequence <= self.last:
            raise ValueError(f"frame {sequence} comes after frame {self.last}")
        self.last = sequence
        if sequence <= self.start:
            return 0
        try:
            applied, position = self.take_appends(sequence, payload)
        except Exception as error:  # As below.
            raise ValueError(f"an entry of frame {sequence} does not fit what is there: {error!r}") from error
        if position == len(payload):
            return applied
        for record in self.reader.read(payload[position:]):
            if sequence <= self.newest and self.has(sequence, record):
                continue
            try:
                apply(self.state, record)
            except Exception as error:  # A verb trusts its record; one that does not fit can fail in any way.
                raise ValueError(f"{record[0]!r} of frame {sequence} does not fit what is there: {error!r}") from error
            applied += 1
        return applied

    def take_appends(self, sequence: int, payload: bytes) -> tuple[int, int]:
        """Add the entries again with which a frame begins: often that is all. How many, and where the last one ends."""
        applied = 0
        position = 0
        head = b""
        stream: Stream | None = None
        while position < len(payload):
            # Slices are compared: bytes.startswith, find and index cost twice as much (bench/durability.py).
            if head and payload[position : position + len(head)] == head:
                start = position + len(head)
            else:
                start = end_of_append_head(payload, position)
                if start == NOWHERE:
                    break
                head = payload[position:start]
                stream = self.find_grown(sequence, head)
            end_of_name = end_of_bulk(payload, start + ENTRY_HEADER_BYTES)
            end = end_of_entry(payload, end_of_name)
            if end == NOWHERE:
                break
            if stream is not None:
                append_entry(stream, entry_name(payload, start, end_of_name), payload[start:end])
                applied += 1
            position = end
        return applied, position

    def find_grown(self, sequence: int, head: bytes) -> Stream | None:
        """The stream to which an append record adds. None: its part has the effect already."""
        if head != self.head:
            [record] = self.reader.read(head + NO_ENTRY)
            self.head, self.grown = head, (int(record[1]), record[2])
        number, key = self.grown
        if sequence <= self.newest and sequence <= self.sequences.get(self.grown, self.start):
            return None
        return get_stream(self.state, self.state.databases[number], key)

    def has(self, sequence: int, record: list[object]) -> bool:
        """Whether the part of the record's key holds the effect already."""
        if record[0] in STRUCTURAL:
            raise ValueError(f"{record[0]!r} in frame {sequence} while the checkpoint was written")
        database, key = record[1], record[2]
        assert isinstance(database, bytes) and isinstance(key, bytes)
        return sequence <= self.sequences.get((int(database), key), self.start)

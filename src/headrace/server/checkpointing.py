"""A checkpoint in the making: the keys are saved a few at a time, between the turns of the loop.

Clients go on meanwhile. Each part names the frame up to which it holds its key, and commands/recovery.py leaves out of
the journal what a part has already; that is why a checkpoint taken bit by bit is as good as one of a single moment.
What moves keys about as a whole (RENAME, MOVE, SWAPDB, FLUSHDB, FLUSHALL) does not fit that, so it makes the checkpoint
begin again; the third time it is written to its end in one go.
"""

from typing import Final

from headrace.commands.call import State
from headrace.engine.keyspace import Stored
from headrace.engine.large_part import LargePart, is_large
from headrace.engine.snapshot import absent_part, dump_part, place_nodes, places_of
from headrace.engine.stream import Stream
from headrace.journal.folder import Folder
from headrace.journal.frame_file import SlowFrame
from headrace.journal.segments import Place

STEP_BYTES: Final = 128 * 1024  # Of the entries of a stream, written between two looks at the clock.
ELEMENT_BYTES: Final = 64  # An element of another type costs as much time as so many bytes, at least.
PATIENCE: Final = 2  # So often it begins again.
NODES_PER_STEP: Final = 2  # A stream that grows faster than this is placed is saved in one go after so many steps.


class Checkpoint:
    def __init__(self, state: State, folder: Folder, step_bytes: int) -> None:
        self.state = state
        self.folder = folder
        self.step_bytes = step_bytes
        self.restarts = 0
        self.leaving = folder.segments.sparse()  # Segments that hold too little to stay.
        self.writer = folder.begin_checkpoint()
        self.keys = self.list_keys()
        self.is_written = False
        self.steps = 0  # Spent on the stream that is being saved.
        self.large: LargePart | None = None  # The large value that is being saved,
        self.frame: SlowFrame | None = None  # and what becomes of it.

    def list_keys(self) -> list[tuple[int, bytes]]:
        return [(database.number, key) for database in self.state.databases for key in database.values]

    @property
    def is_impatient(self) -> bool:
        """Begun again too often: it is to be written to its end now."""
        return self.restarts > PATIENCE

    def begin_again(self) -> None:
        """Something moved keys about as a whole. What was placed in segments stays there."""
        self.restarts += 1
        self.writer = self.folder.begin_again(self.writer)
        self.keys = self.list_keys()
        self.steps = 0
        self.large = None

    def write_some(self) -> None:
        """Save the next key, or a piece of a large one. To be called when the journal has everything."""
        if self.large is not None:
            self.write_large(self.large)
            return
        if not self.keys:
            self.writer.close()
            self.is_written = True
            return
        number, key = self.keys[-1]
        database = self.state.databases[number]
        value = database.values.get(key)
        sequence = self.folder.sequence
        if value is None:
            self.writer.add(absent_part(number, key, sequence), [])
        elif self.has_more_to_place(value):
            return
        elif is_large(value, self.step_bytes // ELEMENT_BYTES):
            self.large = LargePart(number, key, value, database.expires_ms.get(key, 0), sequence)
            self.frame = SlowFrame(self.writer.file)
        else:
            expires_ms = database.expires_ms.get(key, 0)
            part = dump_part(number, key, value, expires_ms, sequence, self.place, self.leaving)
            self.writer.add(part, places_of(value))
            if isinstance(value, Stream):
                value.release()
        self.keys.pop()
        self.steps = 0

    def write_large(self, large: LargePart) -> None:
        """A piece of a large value. It was copied at one moment, so it may change meanwhile."""
        frame = self.frame
        assert frame is not None
        if large.has_more():
            frame.add(large.encode_some(self.step_bytes // ELEMENT_BYTES, self.step_bytes))
        elif frame.write():
            self.large = self.frame = None

    def has_more_to_place(self, value: Stored) -> bool:
        """Place some nodes of a stream. Whether more are left, and there is patience for them."""
        self.steps += 1
        is_placed = place_nodes(value, self.place, self.leaving, self.step_bytes)
        return not is_placed and self.steps * NODES_PER_STEP <= len(value.nodes)

    def write_all(self) -> None:
        while not self.is_written:
            self.write_some()

    def place(self, data: bytes) -> Place:
        return self.folder.segments.place(data)

    def sync(self) -> None:
        """May run in a thread of its own."""
        self.folder.sync_checkpoint(self.writer)

    def finish(self) -> None:
        self.folder.finish_checkpoint(self.writer)

    def abandon(self) -> None:
        self.writer.abandon()

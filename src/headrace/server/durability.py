"""The broker's data on disk: loaded at the start, kept turn by turn, saved as a whole now and then.

The one promise: when `commit` has said True, the effects of the turn are in the journal, and with the policy `always`
on the disk, so the replies may leave. Neither a loop nor a clock is known here; keeper.py calls at the right times.

A full disk is an ordinary state. The records for which there is no room are kept in memory, their replies held back,
and further writes refused, until `try_again` has written them. A JournalError is the end: nothing may be promised any
more.
"""

from dataclasses import dataclass
from typing import Final

from headrace.commands.call import State
from headrace.commands.recovery import Recovery
from headrace.errors import DiskFull, JournalError
from headrace.journal.disk import Disk
from headrace.journal.folder import Folder, open_folder
from headrace.journal.record import QUEUE_ADVANCE, REMOVE, is_structural
from headrace.journal.segments import SEGMENT_BYTES, Segments
from headrace.server.checkpointing import STEP_BYTES, Checkpoint
from headrace.wire.encoder import encode_array_header, encode_bulk

LOG_BYTES: Final = 32 * 1024 * 1024  # A longer log is worth a checkpoint, unless the last checkpoint was longer still.
# What time does by itself, whoever asks: lost, it happens again.
BY_TIME: Final = (
    encode_array_header(3) + encode_bulk(REMOVE),
    encode_array_header(4) + encode_bulk(QUEUE_ADVANCE),
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was found at the start."""

    keys: int
    parts: int
    frames: int
    notes: list[str]


class Loader:
    """Takes what the journal reads back."""

    def __init__(self, state: State, segments: Segments) -> None:
        self.state = state
        self.segments = segments
        self.recovery = Recovery(state)

    def begin(self, sequence: int) -> None:
        self.recovery = Recovery(self.state, sequence)

    def part(self, payload: bytes) -> None:
        self.segments.count_live(self.recovery.part(payload).places)

    def frame(self, sequence: int, payload: bytes) -> None:
        self.recovery.frame(sequence, payload)


class Durability:
    def __init__(
        self, state: State, disk: Disk, *, segment_bytes: int = SEGMENT_BYTES, step_bytes: int = STEP_BYTES
    ) -> None:
        """Load what the folder holds. JournalError when it cannot be trusted."""
        self.state = state
        self.disk = disk
        self.segment_bytes = segment_bytes
        self.step_bytes = step_bytes
        self.log_bytes = LOG_BYTES
        self.unreadable: JournalError | None = None
        self.segments: Segments
        self.folder: Folder
        self.loaded: Loaded
        self.load()
        self.waiting: list[bytes] = []  # Records for which there was no room.
        self.checkpoint: Checkpoint | None = None
        self.is_checkpoint_spoiled = False  # It has to begin again.
        self.changes_before = 0  # state.changes when it began.
        state.journaling = True
        state.keeping.is_durable = True
        self.tell()

    def load(self) -> None:
        """Read the folder back into the empty state."""
        state = self.state
        self.segments = Segments(self.disk, self.segment_bytes)
        state.settings.limits.fetch_from(self.fetch)
        self.folder, found = open_folder(self.disk, self.segments, Loader(state, self.segments))
        keys = sum([len(database.values) for database in state.databases])
        self.loaded = Loaded(keys, found.parts, found.frames, found.notes)

    def fetch(self, segment: int, offset: int, size: int) -> bytes:
        """What lies at a place. When it cannot be read that is the end: the command that wanted it is half done."""
        try:
            return self.segments.fetch(segment, offset, size)
        except JournalError as error:
            self.unreadable = error
            raise

    # Turns

    def commit(self, records: list[bytes]) -> bool:
        """Keep the effects of one turn. Whether its replies may leave."""
        if self.unreadable is not None:
            raise self.unreadable
        if self.checkpoint is not None and any([is_structural(record) for record in records]):
            self.is_checkpoint_spoiled = True
        if self.waiting:
            self.waiting += records
            return all([record.startswith(BY_TIME) for record in records])
        try:
            self.folder.append(b"".join(records))
        except DiskFull as error:
            self.waiting = records
            if self.checkpoint is not None and not self.checkpoint.is_written:
                self.abandon_checkpoint()  # The journal needs the room more.
            self.state.keeping.is_full = True
            self.state.refuse_writes(
                f"MISCONF there is no room for the journal ({error}): writes are refused until there is"
            )
            return False
        if self.state.settings.fsync == "always":
            self.folder.sync()
        return True

    def try_again(self) -> bool:
        """Write what found no room before. Whether all is well again."""
        try:
            self.folder.append(b"".join(self.waiting))
        except DiskFull:
            return False
        if self.state.settings.fsync == "always":
            self.folder.sync()
        self.waiting = []
        self.state.keeping.is_full = False
        self.state.refuse_writes("")
        return True

    def sync(self) -> None:
        """Have on the disk what was written. For the policy `everysec`."""
        self.folder.sync()

    # Checkpoints

    def is_checkpoint_due(self) -> bool:
        """Whether the log has grown long enough to be worth one."""
        return self.folder.log_bytes >= max(self.log_bytes, self.folder.manifest.checkpoint_bytes)

    def begin_checkpoint(self) -> bool:
        """Whether there was room for it."""
        assert self.checkpoint is None and not self.waiting
        try:
            self.checkpoint = Checkpoint(self.state, self.folder, self.step_bytes)
        except DiskFull:
            self.end_checkpoint(is_good=False)
            return False
        self.is_checkpoint_spoiled = False
        self.changes_before = self.state.changes
        self.state.keeping.is_saving = True
        return True

    def write_checkpoint(self) -> bool:
        """Write a piece. Whether it is ready to be synced; when there is no room, there is no checkpoint any more.

        To be called between turns, when the journal has everything.
        """
        checkpoint = self.checkpoint
        assert checkpoint is not None
        assert not self.state.records, "a key would be saved with what the journal does not have yet"
        if self.waiting or checkpoint.is_written:
            return checkpoint.is_written
        try:
            if self.is_checkpoint_spoiled:
                self.is_checkpoint_spoiled = False
                checkpoint.begin_again()
            if checkpoint.is_impatient:
                checkpoint.write_all()
            else:
                checkpoint.write_some()
        except DiskFull:
            self.abandon_checkpoint()
            return False
        return checkpoint.is_written

    def finish_checkpoint(self) -> None:
        """It has been synced: let it count."""
        checkpoint = self.checkpoint
        assert checkpoint is not None
        try:
            checkpoint.finish()
        except DiskFull:
            self.abandon_checkpoint()
            return
        self.end_checkpoint(is_good=True)

    def abandon_checkpoint(self) -> None:
        """There is no room for it."""
        assert self.checkpoint is not None
        self.checkpoint.abandon()
        self.end_checkpoint(is_good=False)

    def end_checkpoint(self, *, is_good: bool) -> None:
        self.checkpoint = None
        self.state.keeping.is_saving = False
        self.state.keeping.is_last_good = is_good
        if is_good:
            self.state.changes -= self.changes_before
        self.tell()

    def save(self) -> bool:
        """A checkpoint from beginning to end, at once. Whether there was room."""
        if self.waiting or (self.checkpoint is None and not self.begin_checkpoint()):
            return False
        while self.checkpoint is not None and not self.write_checkpoint():
            pass
        checkpoint = self.checkpoint
        if checkpoint is not None:
            checkpoint.sync()
            self.finish_checkpoint()
        return self.state.keeping.is_last_good

    def reload(self, *, saves: bool) -> bool:
        """Forget everything in memory and load it from the folder, after a checkpoint if so wanted.

        Whether there was room for that; otherwise nothing was forgotten.
        """
        assert self.checkpoint is None and not self.waiting and not self.state.records
        if saves and not self.save():
            return False
        self.folder.sync()
        self.folder.close()
        for database in self.state.databases:
            database.clear()
            database.event_kinds = 0  # What is loaded is no event.
        self.load()
        self.state.changes = 0
        self.state.apply_settings()
        self.tell()
        return True

    def tell(self) -> None:
        """Facts for INFO."""
        keeping = self.state.keeping
        keeping.log_bytes = self.folder.log_bytes
        keeping.base_bytes = self.folder.manifest.checkpoint_bytes

    def close(self) -> None:
        self.folder.close()

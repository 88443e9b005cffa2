"""The folder of one broker: its log, its segments and its newest checkpoint, kept in step.

    manifest             which of the others count (manifest.py)
    log-00000012         frames: the effects of one loop turn each
    checkpoint-00000012  parts: every key as it was
    segment-00000003     bytes that parts refer to, written once
    confirmed            how much of the log is on the disk for sure (confirmed.py)
    lock                 held by the process that uses the folder

The order of steps is what makes it safe. A new log exists before the old one is closed. A checkpoint, its segments and
the log up to its last part are synced before the manifest names them. Nothing is removed before that.
"""

import contextlib

from headrace.errors import DiskFull
from headrace.journal import checkpoint
from headrace.journal.checkpoint import CheckpointWriter, Taker
from headrace.journal.confirmed import Confirmed
from headrace.journal.disk import Disk
from headrace.journal.frame_file import FrameFile, create_file, name_of, sync_names
from headrace.journal.frames import FRAME_BYTES, Opening
from headrace.journal.manifest import Manifest, write_manifest
from headrace.journal.recovery import LOG, Recovered, Recovery
from headrace.journal.segments import Segments


class Folder:
    """One that was recovered, and is now written to."""

    def __init__(self, disk: Disk, found: Segments, recovered: Recovered) -> None:
        self.disk = disk
        self.segments = found
        self.manifest = recovered.manifest
        self.log: FrameFile = recovered.log
        self.log_number = recovered.log_number
        self.confirmed = Confirmed(disk)
        self.confirm()
        self.closed_bytes = recovered.log_bytes - recovered.log.size  # Of logs that the next checkpoint removes.

    @property
    def sequence(self) -> int:
        """Of the last frame of the log."""
        return self.log.sequence

    @property
    def log_bytes(self) -> int:
        """What a start would have to replay, at most."""
        return self.closed_bytes + self.log.size

    @property
    def has_frames(self) -> bool:
        """Whether the log holds more than its beginning."""
        opening = Opening(LOG, self.log_number, self.log.sequence)
        return self.closed_bytes > 0 or self.log.size > FRAME_BYTES + len(opening.encode())

    def append(self, payload: bytes) -> None:
        """Write the effects of one turn. DiskFull: nothing was written, try again later."""
        self.log.append(payload)

    def sync(self) -> None:
        self.log.sync()
        self.confirm()

    def confirm(self) -> None:
        """Note how far the log was synced: for the next start, which cannot see what is missing at its end."""
        with contextlib.suppress(OSError):  # Then it is behind, as it may be.
            self.confirmed.write(self.log_number, self.log.synced)

    def begin_checkpoint(self) -> CheckpointWriter:
        """Change to a new log, and start a checkpoint of what is there from now on. DiskFull: all is as before."""
        self.change_log()
        return CheckpointWriter(self.disk, self.manifest.checkpoint + 1, self.sequence)

    def begin_again(self, writer: CheckpointWriter) -> CheckpointWriter:
        """Give up what the checkpoint has so far; a new one of what is there from now on."""
        writer.abandon()
        return CheckpointWriter(self.disk, writer.number, self.sequence)

    def change_log(self) -> None:
        old = self.log
        if not self.has_frames:
            return
        old.sync()
        number = self.log_number + 1
        new = create_file(self.disk, Opening(LOG, number, old.sequence + 1), old.sequence + 1)
        try:
            new.sync()
            sync_names(self.disk)
            old.append(b"")
            old.sync()
        except DiskFull:
            new.close()
            self.disk.remove(new.name)
            raise
        old.close()
        self.log = new
        self.log_number = number
        self.closed_bytes += old.size

    def sync_checkpoint(self, writer: CheckpointWriter) -> None:
        """Have all on the disk that the manifest is going to name. May run in a thread beside `append`."""
        writer.file.sync()
        self.segments.sync()
        self.log.sync()
        sync_names(self.disk)

    def finish_checkpoint(self, writer: CheckpointWriter) -> None:
        """Make the synced checkpoint the one that counts, and remove what nobody needs. DiskFull: all is as before."""
        lengths = {number: size for number, size in self.segments.lengths().items() if writer.live_bytes.get(number)}
        old = self.manifest
        new = Manifest(writer.number, writer.file.size, self.log_number, self.log.synced, lengths)
        write_manifest(self.disk, new)
        self.manifest = new
        self.closed_bytes = 0
        writer.file.close()
        gone = [name_of(LOG, number) for number in range(old.log, new.log)]
        gone += [name_of(checkpoint.KIND, old.checkpoint)] if old.checkpoint else []
        gone += self.segments.keep(writer.live_bytes)
        for name in gone:
            with contextlib.suppress(OSError):  # The next start removes it.
                self.disk.remove(name)

    def close(self) -> None:
        self.confirmed.close()
        self.log.close()
        self.segments.close()


def open_folder(disk: Disk, found: Segments, taker: Taker) -> tuple[Folder, Recovered]:
    """Read the folder back, hand over its parts and the frames behind them, and go on with it."""
    recovered = Recovery(disk, found, taker).run()
    return Folder(disk, found, recovered), recovered

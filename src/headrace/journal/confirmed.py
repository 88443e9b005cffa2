"""How much of the newest log is on the disk: one frame (frames.py) in the file `confirmed`, written over and over.

    log-00000012 4182        the payload, filled up with blanks to 40 bytes

It is written after each sync of the log and never synced itself. So after a kill it is exact, and after a power failure
it may be behind, never ahead: a log that is shorter has lost something, also when it ends between two frames. It only
adds to what is known. When it is missing or cannot be read, nothing is confirmed.
"""

from typing import Final

from headrace.journal.disk import Disk, FixedFile
from headrace.journal.frame_file import name_of, number_of
from headrace.journal.frames import FrameReader, encode_frame, seed_of

NAME: Final = "confirmed"
LOG: Final = "log"
PAYLOAD_BYTES: Final = 40
NOTHING: Final = (0, 0)


class Confirmed:
    """The file, held open by the broker that writes the log."""

    def __init__(self, disk: Disk) -> None:
        self.file: FixedFile = disk.open_fixed(NAME)
        self.seed = seed_of(NAME)

    def write(self, number: int, size: int) -> None:
        """So many bytes of this log are on the disk. OSError."""
        payload = f"{name_of(LOG, number)} {size}".encode().ljust(PAYLOAD_BYTES)
        self.file.write(b"".join(encode_frame(self.seed, 0, payload)))

    def close(self) -> None:
        self.file.close()


def read_confirmed(disk: Disk) -> tuple[tuple[int, int], str]:
    """Number of a log and how much of it is on the disk, or NOTHING and why."""
    if NAME not in disk.names():
        return NOTHING, ""
    file = disk.open(NAME)
    try:
        frame = FrameReader(file, seed_of(NAME)).next()
    finally:
        file.close()
    name, _, size = frame.payload.decode("ascii", "replace").strip().partition(" ") if frame else ("", "", "")
    if frame is None or not number_of(LOG, name) or not size.isdigit():
        return NOTHING, f"{NAME} cannot be read, so whether the end of the log is missing cannot be told"
    return (number_of(LOG, name), int(size)), ""

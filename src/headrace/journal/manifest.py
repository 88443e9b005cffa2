"""The manifest: which files hold the data, and how long they have to be.

One frame (frames.py) in the file `manifest`, with a JSON object as its payload:

    {"format": 1, "checkpoint": 12, "checkpoint_bytes": 4182, "log": 12, "log_bytes": 70, "segments": {"3": 51000}}

The data is the checkpoint (0: none), then the frames of the log with this number and of those with the numbers after
it. The checkpoint and the segments are exactly so long, the log at least. Every other file of ours is left over from
something that did not come to its end. It is replaced as a whole: written beside, synced, renamed.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

from headrace.errors import DiskFull, JournalError
from headrace.journal.disk import Disk
from headrace.journal.frame_file import FrameFile, open_error, sync_names
from headrace.journal.frames import FORMAT, FrameReader, newer_format, seed_of

NAME: Final = "manifest"
NEW_NAME: Final = "manifest.new"
LARGEST_BYTES: Final = 64 * 1024 * 1024  # A million segments; more is a mistake.


@dataclass(frozen=True, slots=True)
class Manifest:
    checkpoint: int
    checkpoint_bytes: int
    log: int
    log_bytes: int
    segments: dict[int, int]  # Number -> bytes.


def write_manifest(disk: Disk, manifest: Manifest) -> None:
    """Replace it. DiskFull: the old one stays."""
    try:
        file = FrameFile(NAME, disk.create(NEW_NAME), 0, 0)
    except OSError as error:
        raise open_error(NEW_NAME, error) from error
    try:
        file.append(json.dumps({"format": FORMAT, **asdict(manifest)}).encode())
        file.sync()
        replace(disk)
    except DiskFull:
        disk.remove(NEW_NAME)
        raise
    finally:
        file.close()
    sync_names(disk)


def replace(disk: Disk) -> None:
    try:
        disk.replace(NEW_NAME, NAME)
    except OSError as error:
        raise open_error(NAME, error) from error


def read_manifest(disk: Disk) -> Manifest:
    """JournalError when it is damaged."""
    file = disk.open(NAME)
    try:
        size = file.size()
        frame = FrameReader(file, seed_of(NAME)).next() if size <= LARGEST_BYTES else None
        if frame is None or frame.end != size:
            raise JournalError(f"{NAME} is damaged at byte {frame.end if frame else 0}")
        return parse_manifest(frame.payload)
    finally:
        file.close()


def parse_manifest(payload: bytes) -> Manifest:
    try:
        found = json.loads(payload)
        written = checked(found.pop("format"))
        if written != FORMAT:
            raise newer_format(str(written))
        segments = {int(number): checked(size) for number, size in found.pop("segments").items()}
        return Manifest(segments=segments, **{name: checked(number) for name, number in found.items()})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise JournalError(f"{NAME} is not one that this version of headrace can read") from error


def checked(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError("not a number")
    return number

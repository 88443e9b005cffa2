"""Which files of a folder hold the data, also when the manifest cannot say so.

Without a manifest: the newest checkpoint that is whole and closed; else none, when the very first log is there; else
the newest that was closed; else the newest. The logs from the one in which it began, and every segment. A checkpoint is
closed when all its parts are written, and then it is as good as named.
"""

from dataclasses import dataclass

from headrace.errors import JournalError, NewerFormat
from headrace.journal import checkpoint, segments
from headrace.journal.disk import Disk
from headrace.journal.frame_file import name_of, number_of
from headrace.journal.frames import Frame, parse_opening
from headrace.journal.manifest import NAME, Manifest, read_manifest
from headrace.journal.recovery import LOG
from headrace.journal.scan import Damage, Gap, read_pieces


@dataclass(slots=True)
class Remains:
    checkpoint: int  # 0: there never was one.
    checkpoint_bytes: int | None  # None: nobody knows.
    logs: list[int]
    segments: dict[int, int | None]
    log_bytes: int  # The first of the logs has so many at least.
    manifest_problem: Damage | None  # Why the manifest does not count.

    def files(self) -> list[tuple[str, str, int, int | None]]:
        """Name, kind, number and length of all."""
        found: list[tuple[str, str, int, int | None]] = []
        if self.checkpoint:
            name = name_of(checkpoint.KIND, self.checkpoint)
            found.append((name, checkpoint.KIND, self.checkpoint, self.checkpoint_bytes))
        for number, length in sorted(self.segments.items()):
            found.append((name_of(segments.KIND, number), segments.KIND, number, length))
        lengths = [self.log_bytes, *[None] * len(self.logs)]
        return found + [(name_of(LOG, number), LOG, number, lengths[at]) for at, number in enumerate(self.logs)]


def numbers_of(disk: Disk, kind: str) -> list[int]:
    """Of the files of this kind, in order."""
    return sorted(number for number in (number_of(kind, name) for name in disk.names()) if number)


def find_remains(disk: Disk) -> Remains:
    """NewerFormat when the folder is none of ours to touch."""
    manifest, problem = try_manifest(disk)
    logs = numbers_of(disk, LOG)
    if manifest is not None:
        named = manifest.checkpoint
        length = manifest.checkpoint_bytes if named else None
        counting = sorted({manifest.log, *[number for number in logs if number > manifest.log]})
        found = Remains(named, length, counting, dict(manifest.segments), manifest.log_bytes, None)
        others = [number for number in numbers_of(disk, checkpoint.KIND) if number != named]
        is_named_there = not named or named in numbers_of(disk, checkpoint.KIND)
        is_old = (others and not is_named_there) or (manifest.log not in logs and max(others, default=0) > named)
        if not is_old:
            return found
        problem = Damage(NAME, 0, "the files it names are missing, and newer ones are there")
    number = choose_checkpoint(disk)
    return Remains(
        number,
        None,
        logs_behind(disk, logs, start_of(disk, checkpoint.KIND, number) if number else 0),
        dict.fromkeys(numbers_of(disk, segments.KIND)),
        1,
        problem,
    )


def try_manifest(disk: Disk) -> tuple[Manifest | None, Damage | None]:
    if NAME not in disk.names():
        return None, Damage(NAME, 0, "it is missing")
    try:
        return read_manifest(disk), None
    except NewerFormat:
        raise
    except (JournalError, OSError) as error:
        return None, Damage(NAME, 0, str(error).removeprefix(NAME).strip())


def choose_checkpoint(disk: Disk) -> int:
    numbers = numbers_of(disk, checkpoint.KIND)
    ranked = [(*quality(disk, number), number) for number in numbers]
    is_closed, is_whole, best = max(ranked, default=(False, False, 0))
    has_first_log = start_of(disk, LOG, 1) == 0
    return 0 if has_first_log and not (is_closed and is_whole) else best


def quality(disk: Disk, number: int) -> tuple[bool, bool]:
    """Whether a checkpoint is closed, and whether it is whole."""
    name = name_of(checkpoint.KIND, number)
    file = disk.open(name)
    try:
        expected = 0
        is_whole = True
        is_closed = False
        for piece in read_pieces(file, name):
            if isinstance(piece, Gap) or piece.sequence != expected or is_closed:
                is_whole = False
            if isinstance(piece, Frame):
                is_closed = is_closed or not piece.payload
                expected = piece.sequence + 1
        return is_closed, is_whole
    finally:
        file.close()


def start_of(disk: Disk, kind: str, number: int) -> int | None:
    """The sequence at which a file began; None when its opening is damaged."""
    name = name_of(kind, number)
    try:
        file = disk.open(name)
    except OSError:
        return None
    try:
        first = next(read_pieces(file, name), None)
        return parse_opening(first.payload).start if isinstance(first, Frame) else None
    except ValueError:
        return None
    finally:
        file.close()


def logs_behind(disk: Disk, logs: list[int], start: int | None) -> list[int]:
    """The log that was written when a checkpoint began, and those after it."""
    if start is None:
        return logs
    starts = [(number, start_of(disk, LOG, number)) for number in logs]
    begun = [number for number, began in starts if began is not None and began <= start]
    return [number for number in logs if not begun or number >= max(begun)]

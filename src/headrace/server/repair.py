"""Making a damaged folder usable again, from what salvage.py says can be saved.

Nothing is mended in place. What can be saved becomes a new checkpoint with a new log, then a new manifest names them,
and only then the old files go; each of them has been kept before. Segments that are sound stay where they are. So a
repair that is interrupted leaves either the folder as it was or the repaired one.
"""

from collections.abc import Callable
from typing import Any, Protocol

from headrace.commands.call import State
from headrace.engine.snapshot import places_of
from headrace.journal import checkpoint, confirmed, segments
from headrace.journal.disk import Disk
from headrace.journal.dry_disk import DryDisk
from headrace.journal.folder import Folder
from headrace.journal.frame_file import FrameFile, create_file, name_of
from headrace.journal.frames import Opening
from headrace.journal.manifest import NAME, NEW_NAME, Manifest
from headrace.journal.recovery import LOG, Recovered
from headrace.journal.remains import find_remains, numbers_of
from headrace.journal.segments import Segments
from headrace.server.check import is_ours, new_state
from headrace.server.checkpointing import STEP_BYTES, Checkpoint
from headrace.server.findings import Finding, counted
from headrace.server.salvage import Salvage, salvage


class Keep(Protocol):
    """Where everything goes that a repair changes or removes."""

    def begin_records(self) -> Callable[[int, list[Any]], None]:
        """Dropped records come next, with the number of their frame; those that came before do not count."""

    def take(self, names: list[str]) -> Finding:
        """Keep these files of the folder as they are."""


def repair_folder(
    disk: Disk, keep: Keep, make_state: Callable[[], State] = new_state, progress: Callable[[int], None] | None = None
) -> list[Finding]:
    """Save what can be saved. NewerFormat when the folder is none of ours to touch."""
    dry = DryDisk(disk, progress)
    found = salvage(make_state, dry, find_remains(dry), keep.begin_records)
    staying = sound_segments(found)
    names = sorted(name for name in disk.names() if is_ours(name) or name in (NEW_NAME, confirmed.NAME))
    old = [name for name in names if name not in {name_of(segments.KIND, number) for number in staying}]
    kept = keep.take(old)
    if confirmed.NAME in old:
        disk.remove(confirmed.NAME)  # It is written in place, and would be ahead of the old manifest.
    before = set(disk.names())
    try:
        write_folder(disk, found, staying)
    except BaseException:  # No room, or interrupted: nothing of it counts yet.
        for name in set(disk.names()) - before:
            disk.remove(name)
        raise
    for name in set(old) & set(disk.names()) - {NAME, confirmed.NAME}:  # These are new ones.
        disk.remove(name)
    disk.sync()
    found.segments.close()
    keys = sum([len(database.values) for database in found.state.databases])
    there = f"{counted(keys, 'key')} {'is' if keys == 1 else 'are'} there"
    return [kept, *found.findings, Finding("repaired", f"{there}; a start will succeed")]


def sound_segments(found: Salvage) -> set[int]:
    """Those that stay: good from end to end, and needed."""
    needed: set[int] = set()
    for database in found.state.databases:
        for value in database.values.values():
            needed |= {segment for segment, _, _ in places_of(value)}
    return needed - set(found.segments.unsound)


def write_folder(disk: Disk, found: Salvage, staying: set[int]) -> None:
    """A new log, a new checkpoint, and the manifest that names them."""
    highest = {kind: max(numbers_of(disk, kind), default=0) for kind in (LOG, checkpoint.KIND, segments.KIND)}
    sequence = found.highest + 1
    number = highest[LOG] + 1
    log = create_file(disk, Opening(LOG, number, sequence), sequence)
    log.sync()
    shelves = Segments(disk)
    for segment in sorted(staying):
        file = found.segments.segments.files[segment]
        shelves.files[segment] = FrameFile(file.name, disk.open(file.name), file.size, file.sequence)
    shelves.next_number = highest[segments.KIND] + 1
    shelves.begin_new()  # Those that stay are not written to.
    manifest = Manifest(highest[checkpoint.KIND], 0, number, log.size, {})
    folder = Folder(disk, shelves, Recovered(manifest, log, number, log.size))
    saved = Checkpoint(found.state, folder, STEP_BYTES)
    saved.leaving = frozenset(found.segments.unsound)
    saved.write_all()
    saved.sync()
    saved.finish()
    folder.close()

"""A look at a stopped data folder: is it sound, what is in it, and what is wrong. Nothing is changed.

Sound means: a start on it succeeds, and every entry it refers to can be read. So a start is what is done here, on a
disk that keeps its hands still; only when that is refused, every file is looked through for all that is wrong.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headrace.commands.call import State
from headrace.commands.readable import readable_lines
from headrace.engine.shelf import split_place
from headrace.engine.stream import Stream
from headrace.errors import JournalError, NewerFormat
from headrace.journal import checkpoint, segments
from headrace.journal.disk import Disk
from headrace.journal.dry_disk import DryDisk
from headrace.journal.frame_file import name_of, number_of
from headrace.journal.frames import FORMAT, Frame
from headrace.journal.manifest import NAME
from headrace.journal.record import read_records
from headrace.journal.recovery import LOG
from headrace.journal.remains import Remains, find_remains
from headrace.journal.scan import Gap, find_damages, read_pieces
from headrace.server.durability import Durability
from headrace.server.findings import Finding, counted

KINDS = (LOG, checkpoint.KIND, segments.KIND)


@dataclass(slots=True)
class Checked:
    is_sound: bool
    findings: list[Finding]


def new_state() -> State:
    return State(0)


def is_ours(name: str) -> bool:
    return name == NAME or any(number_of(kind, name) for kind in KINDS)


def check_folder(
    disk: Disk, make_state: Callable[[], State] = new_state, progress: Callable[[int], None] | None = None
) -> Checked:
    """NewerFormat when the folder was written by a newer headrace."""
    dry = DryDisk(disk, progress)
    if not any(is_ours(name) for name in disk.names()):
        return Checked(is_sound=True, findings=[Finding("summary", "empty: there is no data yet")])
    findings = [Finding("summary", sizes(disk))]
    state = make_state()
    try:
        durability = Durability(state, dry)
    except NewerFormat:
        raise
    except (JournalError, OSError) as error:
        return Checked(is_sound=False, findings=findings + list_damages(DryDisk(disk, progress), str(error)))
    loaded = durability.loaded
    findings.append(
        Finding(
            "summary",
            f"{counted(loaded.keys, 'key')}: {counted(loaded.parts, 'part')} of a checkpoint, "
            f"{counted(loaded.frames, 'frame')} of the journal behind it",
        )
    )
    findings += [Finding("note", note) for note in loaded.notes]
    damages = list(unreadable_nodes(state))
    durability.close()
    return Checked(is_sound=not damages, findings=findings + damages)


def sizes(disk: Disk) -> str:
    """What is in the folder, in a line."""
    words: list[str] = []
    total = 0
    for kind in KINDS:
        found = [size_of(disk, name) for name in disk.names() if number_of(kind, name)]
        total += sum(found)
        if found:
            words.append(f"{counted(len(found), kind)} of {sum(found):,} bytes")
    return f"format {FORMAT}, {total:,} bytes: {', '.join(words)}"


def total_bytes(disk: Disk) -> int:
    return sum([size_of(disk, name) for name in disk.names() if is_ours(name)])


def size_of(disk: Disk, name: str) -> int:
    file = disk.open(name)
    try:
        return file.size()
    finally:
        file.close()


def unreadable_nodes(state: State) -> Iterator[Finding]:
    """What a start does not look at: whether each stored node holds what it should."""
    for database in state.databases:
        for value in database.values.values():
            for node in value.nodes if isinstance(value, Stream) else ():
                try:
                    node.plain() if node.names is None else None
                except (JournalError, ValueError, OSError) as error:
                    segment, offset, _ = split_place(node.place)
                    yield Finding("damage", str(error), name_of(segments.KIND, segment), offset)


def list_damages(disk: Disk, refusal: str) -> list[Finding]:
    """Everything that is wrong, and why a start is refused where no file shows it by itself."""
    remains = find_remains(disk)
    damages = [remains.manifest_problem] if remains.manifest_problem is not None else []
    for name, kind, number, length in remains.files():
        damages += find_damages(disk, name, kind, number, length)
    found = [Finding("damage", damage.problem, damage.name, damage.offset) for damage in damages]
    if not found:  # Each file is good by itself.
        return [Finding("damage", refusal, refusal.split(" ")[0], 0)]
    return [*found, Finding("refused", f"a start would say: {refusal}")]


# The log as commands


def dump_log(disk: Disk) -> Iterator[str]:
    """Every line of the log, as commands and comments. It goes on behind damage, and says where that is."""
    dry = DryDisk(disk)
    remains: Remains = find_remains(dry)
    database = -1
    for number in remains.logs:
        name = name_of(LOG, number)
        try:
            file = dry.open(name)
        except OSError as error:
            yield f"# {name}: {error.strerror}"
            continue
        for piece in read_pieces(file, name):
            if isinstance(piece, Gap):
                yield f"# {name}, byte {piece.offset}: damage, {piece.size} bytes: {piece.problem}"
                continue
            records, comment = records_of(piece)
            yield f"# {name}, byte {piece.offset}: frame {piece.sequence}, {comment}"
            for record in records:
                if int(record[1]) != database:
                    database = int(record[1])
                    yield f"SELECT {database}"
                yield from readable_lines(record)
        file.close()


def records_of(frame: Frame) -> tuple[list[list[Any]], str]:
    if not frame.payload:
        return [], "the end of this log"
    if frame.payload.startswith(b"headrace "):
        return [], frame.payload.decode("ascii", "replace")
    try:
        records = read_records(frame.payload)
    except ValueError as error:
        return [], f"which cannot be read: {error}"
    return records, counted(len(records), "record")

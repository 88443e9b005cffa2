"""Segments of a damaged folder: which stay as they are, what can be read of the others, and which entries are lost.

Part of salvage.py, which has the rules.
"""

from headrace.engine.ids import name_of as id_name
from headrace.engine.node import Node
from headrace.engine.snapshot import Part
from headrace.engine.stream import Stream
from headrace.errors import JournalError
from headrace.journal import segments
from headrace.journal.disk import Disk, Readable
from headrace.journal.frame_file import FrameFile, name_of
from headrace.journal.scan import Gap, read_pieces
from headrace.journal.segments import Segments, open_segment
from headrace.server.findings import Finding, counted, show_key


class SalvagedSegments:
    def __init__(self, disk: Disk, lengths: dict[int, int | None]) -> None:
        self.segments = Segments(disk)
        self.unsound: dict[int, set[int]] = {}  # Those that cannot stay as they are, and where they are still good.
        self.holes: dict[Stream, int] = {}  # Streams that lost entries; all of these have IDs below.
        for number, length in sorted(lengths.items()):
            self.open(disk, number, length)

    def open(self, disk: Disk, number: int, length: int | None) -> None:
        name = name_of(segments.KIND, number)
        try:
            file = disk.open(name)
        except OSError:
            return  # Its nodes will be missed.
        size = file.size()
        try:
            self.segments.files[number] = open_segment(disk, number, size if length is None else length)
            file.close()
        except JournalError:
            self.segments.files[number] = FrameFile(name, file, size, 0)
            self.unsound[number] = places_in_order(file, name)

    def fetch(self, segment: int, offset: int, size: int) -> bytes:
        """What lies at a place, unless something else may lie there now."""
        found = self.segments.fetch(segment, offset, size)
        if offset not in self.unsound.get(segment, (offset,)):
            raise JournalError(f"{name_of(segments.KIND, segment)} is out of order at byte {offset}")
        return found

    def drop_lost_nodes(self, part: Part) -> list[Finding]:
        """Take the nodes out of a stream that cannot be read. What is lost: neighbours are told together."""
        stream = part.value
        if not isinstance(stream, Stream):
            return []
        nodes = stream.nodes
        firsts = [*[node.first for node in nodes], stream.last_id + 1]
        runs: list[tuple[int, int, str]] = []  # Nodes from, below, and why the first of them is lost.
        for index, node in enumerate(nodes):
            problem = problem_of(node, firsts[index + 1])
            if problem and runs and runs[-1][1] == index:
                runs[-1] = (runs[-1][0], index + 1, runs[-1][2])
            elif problem:
                runs.append((index, index + 1, problem))
        findings = []
        for start, end, problem in runs:
            segment, offset, _ = part.places[start]
            entries = counted(sum([node.count for node in nodes[start:end]]), "entry", "entries")
            text = (
                f"{entries} of stream {show_key(part.database, part.key)}, with IDs from "
                f"{id_name(firsts[start]).decode()} to below {id_name(firsts[end]).decode()} ({problem})"
            )
            findings.append(Finding("dropped", text, name_of(segments.KIND, segment), offset))
        if runs:
            stream.drop_nodes({index for start, end, _ in runs for index in range(start, end)})
            self.holes[stream] = firsts[runs[-1][1]]
        return findings

    def close(self) -> None:
        self.segments.close()


def problem_of(node: Node, below: int) -> str:
    """Why the entries of a node are lost; nothing when they are there."""
    if node.shelf is None:
        return ""
    try:
        fits = node.first <= node.first_id() and node.last_id() < below
    except (JournalError, ValueError, OSError) as error:
        return str(error)
    return "" if fits else "other entries lie there"


def places_in_order(file: Readable, name: str) -> set[int]:
    """Where frames of a segment begin that surely are where they were written.

    Frames that are missing or doubled move all behind them; of the same size, they would be taken for others.
    """
    found: set[int] = set()
    last = -1
    is_behind_gap = False
    for piece in read_pieces(file, name):
        if isinstance(piece, Gap):
            is_behind_gap = True
        elif piece.sequence == last + 1 or (is_behind_gap and piece.sequence > last):
            found.add(piece.offset)
            last = piece.sequence
            is_behind_gap = False
        else:
            break
    return found

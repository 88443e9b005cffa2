"""Files that cannot be trusted: every good frame, and every place where there is none.

A start stops at the first damage. Here reading goes on behind it, to tell everything that is wrong and to save what is
right. What a frame means is not known here.
"""

import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from headrace.errors import JournalError
from headrace.journal.disk import Disk, Readable
from headrace.journal.frames import (
    CHECKSUM,
    END,
    FRAME_BYTES,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    Frame,
    FrameReader,
    find_frames,
    seed_of,
)
from headrace.journal.segments import check_opening

NAME_BYTES: Final = 64 * 1024  # Of a damaged payload, as much is looked at.
MOST_DAMAGES: Final = 50  # Told of one file.


class Gap(NamedTuple):
    """Bytes that are no frame."""

    offset: int
    size: int
    problem: str
    payload: bytes  # The beginning of what would be the payload.


class Damage(NamedTuple):
    name: str
    offset: int
    problem: str


def read_pieces(file: Readable, name: str) -> Iterator[Frame | Gap]:
    """The whole file: good frames, and gaps between them."""
    seed = seed_of(name)
    reader = FrameReader(file, seed)
    while reader.offset < reader.size:
        frame = reader.next()
        if frame is not None:
            yield frame
            continue
        start = reader.offset
        reader.offset = end_of_gap(file, seed, start)
        size = reader.offset - start
        payload = file.read(start + HEADER_BYTES, min(size, NAME_BYTES))
        yield Gap(start, size, reader.problem, payload)


def end_of_gap(file: Readable, seed: int, start: int) -> int:
    """Where good frames go on.

    A frame of which only the payload is damaged is passed over as a whole: what looks like a frame inside of it was put
    there by a client.
    """
    size = file.size()
    header = file.read(start, HEADER_BYTES)
    if len(header) == HEADER_BYTES and header.startswith(MAGIC):
        length: int = HEADER.unpack_from(header)[1]
        end = start + length + FRAME_BYTES
        is_right = CHECKSUM.unpack_from(header, HEADER.size)[0] == zlib.crc32(header[: HEADER.size], seed)
        if is_right and end <= size and file.read(end - len(END), len(END)) == END:
            return end
    following = next(find_frames(file, seed, start + 1), None)
    return size if following is None else following.offset


def find_damages(disk: Disk, name: str, kind: str, number: int, length: int | None = None) -> list[Damage]:
    """Everything that is wrong with a file by itself. `length` is how long it should be, where that is known."""
    try:
        file = disk.open(name)
    except OSError as error:
        return [Damage(name, 0, "it is missing" if isinstance(error, FileNotFoundError) else str(error))]
    try:
        found = list_damages(file, name, kind, number)
        size = file.size()
    finally:
        file.close()
    if length is not None and size < length:
        found.append(Damage(name, size, f"it ends there, and should have {length:,} bytes"))
    return found


def list_damages(file: Readable, name: str, kind: str, number: int) -> list[Damage]:
    found: list[Damage] = []
    expected: int | None = None
    for piece in read_pieces(file, name):
        problem = ""
        if isinstance(piece, Gap):
            problem = f"{piece.problem}, {piece.size:,} bytes"
        elif expected is None:
            problem = opening_problem(name, piece, kind, number)
            expected = piece.sequence + 1
        else:
            if piece.sequence != expected and not (found and piece.sequence > expected):
                problem = f"frame {piece.sequence} where frame {expected} should be"
            expected = piece.sequence + 1
        if problem:
            found.append(Damage(name, piece.offset, problem))
            if len(found) == MOST_DAMAGES:
                found.append(Damage(name, piece.offset, "more may follow, and is not listed"))
                break
    if expected is None and not found:
        found.append(Damage(name, 0, "it is empty"))
    return found


def opening_problem(name: str, frame: Frame, kind: str, number: int) -> str:
    try:
        check_opening(name, frame.payload, kind, number)
    except JournalError as error:
        return str(error).removeprefix(name).strip()
    return ""

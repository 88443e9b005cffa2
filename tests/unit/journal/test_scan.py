"""Behind damage reading goes on: every good frame is found, and every gap is told."""

import errno
from random import Random

import pytest

from headrace.errors import NewerFormat
from headrace.journal.confirmed import NOTHING, Confirmed, read_confirmed
from headrace.journal.dry_disk import SECTOR_BYTES, DryDisk
from headrace.journal.frame_file import create_file
from headrace.journal.frames import FRAME_BYTES, Frame, Opening, encode_frame, seed_of
from headrace.journal.manifest import Manifest, write_manifest
from headrace.journal.remains import find_remains
from headrace.journal.scan import Damage, Gap, find_damages, read_pieces
from support.fake_disk import FakeDisk, FakeFile

NAME = "log-00000001"


def disk_with(payloads: list[bytes]) -> FakeDisk:
    disk = FakeDisk(Random(0))
    file = create_file(disk, Opening("log", 1, 0))
    for payload in payloads:
        file.append(payload)
    return disk


def pieces_of(disk: FakeDisk) -> list[object]:
    """Sequences of frames, and sizes of gaps."""
    found = read_pieces(disk.open(NAME), NAME)
    return [piece.sequence if isinstance(piece, Frame) else ("gap", piece.size) for piece in found]


def test_a_damaged_frame_is_a_gap_between_good_ones() -> None:
    disk = disk_with([b"one", b"two", b"three"])
    data = disk.files[NAME].data
    data[data.index(b"two")] ^= 1

    assert pieces_of(disk) == [0, 1, ("gap", FRAME_BYTES + 3), 3]
    assert find_damages(disk, NAME, "log", 1) == [
        Damage(NAME, data.index(b"one") + 3 + 4, f"a frame with a wrong checksum, {FRAME_BYTES + 3} bytes")
    ]


def test_a_frame_inside_a_damaged_payload_is_none() -> None:
    inner = b"".join(encode_frame(seed_of(NAME), 3, b"forged"))
    disk = disk_with([b"one", b"x" + inner + b"y", b"three"])
    data = disk.files[NAME].data
    data[data.index(b"x" + inner)] ^= 1

    assert pieces_of(disk) == [0, 1, ("gap", FRAME_BYTES + len(inner) + 2), 3]


def test_frames_are_found_again_after_bytes_that_are_gone_or_too_many() -> None:
    for place, change in [(100, b""), (90, b"more bytes")]:
        disk = disk_with([b"one", b"two", b"three", b"four"])
        disk.files[NAME].data[place : place + 3] = change
        assert [piece for piece in pieces_of(disk) if isinstance(piece, int)][-2:] == [3, 4]


def test_a_missing_and_an_empty_file_are_damage() -> None:
    disk = FakeDisk(Random(0))
    disk.create(NAME)

    assert find_damages(disk, NAME, "log", 1) == [Damage(NAME, 0, "it is empty")]
    assert find_damages(disk, "log-00000002", "log", 2) == [Damage("log-00000002", 0, "it is missing")]


class BadSector(FakeFile):
    """Cannot be read at one place."""

    def read(self, offset: int, size: int) -> bytes:
        if offset <= 2 * SECTOR_BYTES < offset + size:
            raise OSError(errno.EIO, "Input/output error")
        return super().read(offset, size)


def test_a_sector_that_cannot_be_read_counts_as_zeros() -> None:
    disk = disk_with([b"a" * 1000 for _ in range(30)])
    whole = bytes(disk.files[NAME].data)
    disk.open = lambda name: BadSector(disk, disk.files[name])  # type: ignore[method-assign]
    read: list[int] = []
    file = DryDisk(disk, read.append).open(NAME)

    expected = whole[: 2 * SECTOR_BYTES] + bytes(SECTOR_BYTES) + whole[3 * SECTOR_BYTES :]
    assert file.read(0, len(whole) + 99) == expected
    assert read == [len(whole)]
    gaps = [piece.size for piece in read_pieces(file, NAME) if isinstance(piece, Gap)]
    assert SECTOR_BYTES < sum(gaps) < 2 * SECTOR_BYTES


def test_a_dry_disk_changes_nothing() -> None:
    disk = disk_with([b"one"])
    before = bytes(disk.files[NAME].data)
    dry = DryDisk(disk)
    dry.create("new").append([b"text"])
    dry.replace("new", "newer")
    dry.remove(NAME)
    dry.open_fixed("fixed").write(b"text")

    assert sorted(dry.names()) == ["fixed", "newer"]
    assert dry.open("newer").read(0, 9) == b"text"
    with pytest.raises(FileNotFoundError):
        dry.open(NAME)
    assert {name: bytes(content.data) for name, content in disk.files.items()} == {NAME: before}


def test_how_far_the_log_was_synced_is_known_until_the_file_is_damaged() -> None:
    disk = FakeDisk(Random(0))
    assert read_confirmed(disk) == (NOTHING, "")
    confirmed = Confirmed(disk)
    confirmed.write(12, 4182)
    confirmed.write(13, 70)
    assert read_confirmed(disk) == ((13, 70), "")

    disk.files["confirmed"].data[50] ^= 1
    known, problem = read_confirmed(disk)
    assert known == NOTHING
    assert problem.startswith("confirmed cannot be read")


def test_files_of_a_newer_version_are_not_taken_for_damaged_ones() -> None:
    disk = disk_with([])
    write_manifest(disk, Manifest(0, 0, 1, 0, {}))
    data = disk.files["manifest"].data
    newer = bytes(data[36:-4]).replace(b'"format": 1', b'"format": 7')
    data[:] = b"".join(encode_frame(seed_of("manifest"), 1, newer))

    with pytest.raises(NewerFormat, match="format 7"):
        find_remains(disk)

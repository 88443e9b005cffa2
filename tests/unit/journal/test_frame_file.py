"""Whole frames or nothing, whatever the disk does."""

from random import Random

import pytest

from headrace.errors import DiskFull, JournalError
from headrace.journal.frame_file import FrameFile, create_file, name_of, number_of
from headrace.journal.frames import FrameReader, Opening
from support.fake_disk import FakeDisk


def payloads_of(file: FrameFile) -> list[bytes]:
    reader = FrameReader(file.file, file.seed)
    found = []
    while (frame := reader.next()) is not None:
        found.append(frame.payload)
    assert reader.problem == ""
    return found[1:]


def test_short_writes_are_finished() -> None:
    file = create_file(FakeDisk(Random(1)), Opening("log", 1, 0))  # One write in ten takes only a part.
    payloads = [b"%d" % number * 20 for number in range(200)]

    for payload in payloads:
        file.append(payload)

    assert payloads_of(file) == payloads


@pytest.mark.parametrize("room", [0, 1, 20, 41])
def test_a_frame_for_which_there_is_no_room_leaves_no_trace_and_fits_later(room: int) -> None:
    disk = FakeDisk(Random(2))
    file = create_file(disk, Opening("log", 1, 0))
    file.append(b"before")
    disk.full_from, disk.full_until, disk.room = 0, disk.steps + 100, room

    with pytest.raises(DiskFull, match="No space left on device"):
        file.append(b"x" * 100)
    assert payloads_of(file) == [b"before"]

    disk.full_until = -1
    file.append(b"y" * 100)
    assert payloads_of(file) == [b"before", b"y" * 100]


def test_a_new_file_on_a_full_disk_is_not_there() -> None:
    disk = FakeDisk(Random(3))
    disk.full_from, disk.full_until = 0, 100

    with pytest.raises(DiskFull):
        create_file(disk, Opening("log", 1, 0))

    assert disk.names() == []


def test_after_a_failed_sync_nothing_is_written_any_more() -> None:
    disk = FakeDisk(Random(4))
    file = create_file(disk, Opening("log", 1, 0))
    disk.sync_fails_at = 1

    with pytest.raises(JournalError, match="cannot sync log-00000001: Input/output error"):
        file.sync()
    with pytest.raises(JournalError, match="has failed before"):  # The disk would say that all is well now.
        file.sync()
    with pytest.raises(JournalError, match="has failed before"):
        file.append(b"more")


def test_names_have_numbers() -> None:
    assert name_of("log", 12) == "log-00000012"
    assert [number_of("log", name) for name in ["log-00000012", "log-123456789", "log-12", "log-0000001x", "lock"]] == [
        12,
        123456789,
        0,
        0,
        0,
    ]

"""The manifest is the old one or the new one, and nothing else is believed."""

import errno
from random import Random

import pytest

from headrace.errors import DiskFull, JournalError
from headrace.journal.frames import encode_frame, seed_of
from headrace.journal.manifest import NAME, Manifest, read_manifest, write_manifest
from support.fake_disk import Crash, FakeDisk

OLD = Manifest(1, 100, 1, 61, {1: 200})
NEW = Manifest(2, 90, 3, 70, {1: 300, 2: 44})


def test_it_comes_back_as_it_was() -> None:
    disk = FakeDisk(Random(0))
    write_manifest(disk, NEW)

    assert read_manifest(disk) == NEW


def test_a_crash_leaves_the_old_one_or_the_new_one() -> None:
    found = set()
    for seed in range(300):
        disk = FakeDisk(Random(seed))
        write_manifest(disk, OLD)
        disk.crash_at = disk.steps + 1 + seed % 6
        try:
            write_manifest(disk, NEW)
        except Crash:
            manifest = read_manifest(disk.after_crash())
            assert manifest in (OLD, NEW)
            found.add(manifest.checkpoint)

    assert found == {1, 2}


def test_a_full_disk_leaves_the_old_one() -> None:
    disk = FakeDisk(Random(0))
    write_manifest(disk, OLD)
    disk.full_from, disk.full_until, disk.room = 0, 1000, 20

    with pytest.raises(DiskFull):
        write_manifest(disk, NEW)

    assert read_manifest(disk) == OLD
    assert disk.names() == [NAME]


def test_no_room_for_the_name_leaves_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FakeDisk(Random(0))
    write_manifest(disk, OLD)

    def refuse(name: str, other: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "replace", refuse)
    with pytest.raises(DiskFull):
        write_manifest(disk, NEW)

    assert read_manifest(disk) == OLD
    assert disk.names() == [NAME]


def test_names_that_cannot_be_synced_are_the_end() -> None:
    disk = FakeDisk(Random(0))
    write_manifest(disk, OLD)
    disk.sync_fails_at = disk.steps + 5  # Create, write, sync, rename.

    with pytest.raises(JournalError, match="cannot sync the names of the files: Input/output error"):
        write_manifest(disk, NEW)


def test_every_changed_byte_is_noticed() -> None:
    disk = FakeDisk(Random(0))
    write_manifest(disk, NEW)
    data = bytes(disk.files[NAME].data)
    for place in range(len(data)):
        disk.files[NAME].data[:] = data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
        with pytest.raises(JournalError, match="manifest"):
            read_manifest(disk)
    for harmed in (data[:-1], data + b"\0", b""):
        disk.files[NAME].data[:] = harmed
        with pytest.raises(JournalError, match="manifest is damaged at byte"):
            read_manifest(disk)


@pytest.mark.parametrize("payload", [b"[]", b"{}", b'{"segments": {}, "log": -1}', b"nonsense", b'{"segments": []}'])
def test_one_that_is_whole_but_not_understood_is_refused(payload: bytes) -> None:
    disk = FakeDisk(Random(0))
    disk.create(NAME).content.data += b"".join(encode_frame(seed_of(NAME), 1, payload))

    with pytest.raises(JournalError, match="not one that this version"):
        read_manifest(disk)

"""Whole frames or nothing, whatever the disk does."""

import errno
import threading
from random import Random

import pytest

from headrace.errors import DiskFull, JournalError
from headrace.journal.frame_file import FrameFile, create_file, name_of, number_of
from headrace.journal.frames import FrameReader, Opening
from support.fake_disk import FakeDisk, FakeFile


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


class SlowToFail(FakeFile):
    """A sync that fails after a while. The system tells of it once: the next one hears that all is well."""

    def __init__(self, disk: FakeDisk) -> None:
        super().__init__(disk, disk.create("log-00000001").content)
        self.began = threading.Event()
        self.may_end = threading.Event()

    def sync(self) -> None:
        if not self.began.is_set():
            self.began.set()
            self.may_end.wait(60)
            raise OSError(errno.EIO, "Input/output error")


def test_a_failed_sync_of_another_thread_is_not_taken_for_a_good_one() -> None:
    slow = SlowToFail(FakeDisk(Random(5)))
    file = FrameFile("log-00000001", slow, 0, 0)
    file.append(b"promised when synced")
    failures: list[Exception] = []

    def sync() -> None:
        try:
            file.sync()
        except JournalError as error:
            failures.append(error)

    threads = [threading.Thread(target=sync) for _ in range(2)]
    threads[0].start()
    slow.began.wait(60)
    threads[1].start()
    threads[1].join(0.2)  # Long enough to be told that all is well, if it does not wait for the other.
    slow.may_end.set()
    for thread in threads:
        thread.join(60)

    assert len(failures) == 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE])
def test_a_file_that_cannot_be_made_now_may_be_made_later(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients may use up the files that a process may open; a checkpoint then waits until some have gone."""
    disk = FakeDisk(Random(6))

    def refuse(name: str) -> FakeFile:
        raise OSError(number, "no")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "create", refuse)
        with pytest.raises(DiskFull):
            create_file(disk, Opening("log", 1, 0))

    assert create_file(disk, Opening("log", 1, 0)).size > 0


def test_names_have_numbers() -> None:
    assert name_of("log", 12) == "log-00000012"
    assert [number_of("log", name) for name in ["log-00000012", "log-123456789", "log-12", "log-0000001x", "lock"]] == [
        12,
        123456789,
        0,
        0,
        0,
    ]

"""Backups of folders in every state, and that a changed backup does not pass as one."""

from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path

import pytest

from headrace.errors import ConfigError, JournalError
from headrace.journal.backup import check_backup, restore_backup, take_backup
from headrace.journal.disk import RealDisk
from headrace.journal.frame_file import name_of
from headrace.journal.held_files import HeldFiles
from headrace.server.durability import Durability
from support.memory import MemoryBroker
from support.simulation import Contents, contents_of

TAKEN_MS = 1_700_000_000_000


class Kept:
    """A broker in memory with a real folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.broker = MemoryBroker()
        self.broker("CONFIG SET stream-node-max-entries 10 appendfsync no")
        self.disk = RealDisk(path)
        self.durability = Durability(self.broker.state, self.disk, segment_bytes=4000)
        self.client = self.broker.client()

    def __call__(self, *lines: str) -> None:
        """Commands of one turn."""
        for line in lines:
            self.client(line)
        records, self.broker.state.records = self.broker.state.records, []
        assert not records or self.durability.commit(records)

    def close(self) -> None:
        self.durability.close()
        self.disk.close()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path / "data")
    yield made
    made.close()


def take(kept: Kept, name: str = "backup") -> Path:
    target = kept.path.parent / name
    take_backup(kept.path, target, lambda: TAKEN_MS, lambda *_: None)
    return target


def contents_in(path: Path) -> Contents:
    """What a folder holds, read without changing it."""
    broker = MemoryBroker()
    broker("CONFIG SET stream-node-max-entries 10")
    held = HeldFiles(path)
    try:
        Durability(broker.state, held)
        return contents_of(broker)
    finally:
        held.close()


def fill(kept: Kept) -> None:
    kept(*[f"XADD s * number {number}" for number in range(50)])
    kept("RPUSH list a b c", "SET text tea")


def test_a_backup_holds_what_was_there_at_that_moment(kept: Kept) -> None:
    fill(kept)
    assert kept.durability.save()
    kept("XADD s * number more", "LPOP list")
    before = contents_of(kept.broker)
    target = take(kept)
    kept("FLUSHALL")
    assert kept.durability.save()

    found = check_backup(target, lambda *_: None)

    assert contents_in(target) == before
    assert (found.taken_ms, found.folder) == (TAKEN_MS, str(kept.path))


def test_what_comes_back_is_a_folder_to_go_on_with(kept: Kept) -> None:
    fill(kept)
    assert kept.durability.save()
    kept("LPOP list")
    back = kept.path.parent / "back"
    restore_backup(take(kept), back, lambda *_: None)

    again = Kept(back)
    again("SET text coffee")
    again.close()

    assert again.client("GET text") == b"coffee"
    assert again.client("XLEN s") == 50
    assert (back.stat().st_mode & 0o777, (back / "manifest").stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_checkpoint_that_is_being_written_is_no_part_of_it(kept: Kept) -> None:
    fill(kept)
    assert kept.durability.begin_checkpoint()  # From here on there are two logs.
    for _ in range(3):
        kept.durability.write_checkpoint()
    kept("SET text milk")
    before = contents_of(kept.broker)

    target = take(kept)

    names = {path.name for path in target.iterdir()}
    assert names == {"manifest", "backup", "log-00000001", "log-00000002"}
    assert contents_in(target) == before


def test_a_change_of_logs_that_did_not_come_to_its_end_is_put_right(kept: Kept) -> None:
    fill(kept)
    before = contents_of(kept.broker)
    log = kept.path / name_of("log", 1)
    size = log.stat().st_size
    kept.durability.folder.change_log()
    with log.open("r+b") as file:
        file.truncate(size)  # The new log is there, the old one not closed yet.

    assert contents_in(take(kept)) == before


def test_a_change_of_logs_while_the_copy_looks_is_put_right(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(kept)
    moments = [contents_of(kept.broker)]
    log = kept.path / name_of("log", 1)
    size = log.stat().st_size
    kept.durability.folder.change_log()
    closing = log.read_bytes()[size:]
    with log.open("r+b") as file:
        file.truncate(size)
    real = HeldFiles.open

    def look(self: HeldFiles, name: str) -> object:
        """Between the looks at the two logs the old one is closed, and the new one is written to."""
        if name.startswith("log") and len(self.files) == 2 and len(moments) == 1:
            with log.open("ab") as file:
                file.write(closing)
            kept("SET text milk")
            moments.append(contents_of(kept.broker))
        return real(self, name)

    monkeypatch.setattr(HeldFiles, "open", look)

    assert contents_in(take(kept)) in moments
    assert len(moments) == 2


def test_half_a_frame_at_the_end_of_the_log_is_left_out(kept: Kept) -> None:
    fill(kept)
    before = contents_of(kept.broker)
    kept("SET text milk")
    log = kept.path / name_of("log", 1)
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - 5)

    target = take(kept)

    check_backup(target, lambda *_: None)
    assert contents_in(target) == before


def test_no_backup_is_made_of_a_log_whose_end_is_missing(kept: Kept) -> None:
    fill(kept)
    log = kept.path / name_of("log", 1)
    size = log.stat().st_size
    kept("SET text milk")
    kept.durability.sync()
    with log.open("r+b") as file:
        file.truncate(size)  # Whole frames, but not all.

    with pytest.raises(JournalError, match=f"log-00000001 is damaged at byte {size}: it ends there"):
        take(kept)

    log.rename(kept.path / "other")
    with pytest.raises(JournalError, match="log-00000001 is missing"):
        take(kept)


@pytest.mark.parametrize("kind", ["log-00000002", "checkpoint-00000001", "segment-00000001", "manifest"])
def test_no_backup_is_made_of_damaged_data(kept: Kept, kind: str) -> None:
    fill(kept)
    assert kept.durability.save()
    for number in range(6):
        kept(f"SET key:{number} {'x' * 40}")
        kept.durability.sync()
    path = kept.path / kind
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)

    with pytest.raises(JournalError, match=f"{kind} is damaged at byte"):
        take(kept)
    assert not (kept.path.parent / "backup").exists()


@pytest.mark.parametrize("kind", ["log-00000002", "checkpoint-00000001", "segment-00000001", "manifest", "backup"])
@pytest.mark.parametrize("change", ["bit", "cut", "gone"])
def test_a_backup_that_changed_is_refused(kept: Kept, kind: str, change: str) -> None:
    fill(kept)
    assert kept.durability.save()
    kept("SET a 1")
    target = take(kept)
    path = target / kind
    data = bytearray(path.read_bytes())
    if change == "bit":
        data[-20] ^= 1
        path.write_bytes(data)
    elif change == "cut":
        path.write_bytes(data[:-1])
    else:
        path.unlink()

    with pytest.raises(JournalError, match=kind):
        check_backup(target, lambda *_: None)


def test_a_backup_names_no_files_elsewhere(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.journal.backup.copy_files", lambda *_: {"../lock": (1, 1)})
    target = take(kept)

    with pytest.raises(JournalError, match="not one that this version of headrace can read"):
        check_backup(target, lambda *_: None)


def test_nothing_is_written_over(kept: Kept) -> None:
    target = take(kept)
    (kept.path.parent / "file").write_text("mine")

    with pytest.raises(ConfigError, match="not empty"):
        take(kept)
    with pytest.raises(ConfigError, match="not empty"):
        take(kept, "file")
    with pytest.raises(ConfigError, match="not empty"):
        restore_backup(target, kept.path, lambda *_: None)


def test_a_copy_that_fails_leaves_nothing_behind(kept: Kept) -> None:
    fill(kept)

    def fail(done: int, total: int) -> None:
        raise KeyboardInterrupt(done, total)

    for target in (kept.path.parent / "new", kept.path.parent / "empty"):
        if target.name == "empty":
            target.mkdir()
        with pytest.raises(KeyboardInterrupt):
            take_backup(kept.path, target, lambda: TAKEN_MS, fail)
        assert target.exists() == (target.name == "empty")
        assert not target.exists() or list(target.iterdir()) == []


def test_a_folder_without_data_says_so(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="holds no data of headrace"):
        take_backup(tmp_path, tmp_path / "backup", lambda: TAKEN_MS, lambda *_: None)


@pytest.mark.parametrize("deed", ["write", "begin", "save", "save twice", "begin and go on"])
def test_whatever_the_broker_does_meanwhile_the_copy_is_of_one_moment(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    """It does it at every place where the copy looks at the folder, one place per round."""
    real = {name: getattr(HeldFiles, name) for name in ("open", "names")}
    moments: list[Contents] = []
    turn = [0, 0]  # Looks so far, and the one before which the broker does something.

    def look(self: HeldFiles, *words: str, name: str) -> object:
        turn[0] += 1
        if turn[0] == turn[1]:
            disturb(kept, deed, moments)
        return real[name](self, *words)

    for name in real:
        monkeypatch.setattr(HeldFiles, name, partialmethod(look, name=name))
    fill(kept)
    assert kept.durability.save()
    rounds = 0
    while turn[0] >= turn[1]:
        rounds += 1
        turn[:] = [0, rounds]
        kept(f"XADD s * round {rounds}")
        moments[:] = [contents_of(kept.broker)]
        target = take(kept, f"backup-{rounds}")
        assert contents_in(target) in moments, f"not of a moment between start and end, disturbed at look {rounds}"
        if kept.durability.checkpoint is not None:
            assert kept.durability.save()

    assert rounds > 7


def disturb(kept: Kept, deed: str, moments: list[Contents]) -> None:
    if deed.startswith("begin") and kept.durability.checkpoint is None:
        assert kept.durability.begin_checkpoint()
    if deed.startswith("save"):
        assert kept.durability.save()
    for number in range(4):
        kept(f"XADD s * during {number}", "XTRIM s MAXLEN 20")
        moments.append(contents_of(kept.broker))
    if deed == "save twice":
        assert kept.durability.save()
    if deed == "begin and go on":
        for _ in range(3):
            kept.durability.write_checkpoint()

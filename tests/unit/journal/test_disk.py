"""The real disk: names that last."""

import os
import stat
from pathlib import Path

import pytest

from headrace.journal import disk as module
from headrace.journal.disk import RealDisk


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were synced, in order."""
    found: list[Path] = []
    monkeypatch.setattr(module, "sync_folder", found.append)
    return found


def test_a_folder_that_is_made_has_a_name_that_lasts_and_those_above_it_too(tmp_path: Path, synced: list[Path]) -> None:
    old_mask = os.umask(0o022)
    try:
        RealDisk(tmp_path / "a" / "b" / "data").close()
    finally:
        os.umask(old_mask)

    assert synced[-3:] == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", tmp_path / "a" / "b" / "data")]
    assert modes == [0o755, 0o700]


def test_an_empty_folder_may_be_one_whose_maker_was_killed(tmp_path: Path, synced: list[Path]) -> None:
    (tmp_path / "data").mkdir()
    RealDisk(tmp_path / "data").close()
    assert synced == [tmp_path]

    (tmp_path / "data" / "lock").touch()
    RealDisk(tmp_path / "data").close()
    assert synced == [tmp_path]

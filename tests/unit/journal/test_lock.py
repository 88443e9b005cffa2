"""The lock of a folder."""

import os
from pathlib import Path

import pytest

from headrace.errors import ConfigError
from headrace.journal.lock import lock_folder


def test_the_one_who_has_it_is_named(tmp_path: Path) -> None:
    held = lock_folder(tmp_path)

    with pytest.raises(ConfigError, match=f"in use by process {os.getpid()}"):
        lock_folder(tmp_path)

    os.close(held)
    os.close(lock_folder(tmp_path))


def test_on_a_full_disk_it_holds_without_the_number_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", refuse)
        held = lock_folder(tmp_path)

    with pytest.raises(ConfigError, match=r"in use by process \(unknown\)"):
        lock_folder(tmp_path)
    os.close(held)

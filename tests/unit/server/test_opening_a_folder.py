"""What an operator is told when a broker cannot use its folder."""

import errno
import os
from pathlib import Path

import pytest

from headrace.commands.call import State
from headrace.errors import ConfigError, DiskFull, JournalError
from headrace.journal.disk import RealDisk
from headrace.journal.frame_file import open_error
from headrace.server.broker import load, refusal


def raised(error: OSError) -> JournalError:
    """As the journal passes an error of the system on."""
    try:
        raise open_error("log-00000001", error) from error
    except JournalError as caught:
        return caught


def test_damage_is_answered_with_the_command_that_repairs() -> None:
    told = refusal(Path("my data"), JournalError("log-00000001 is damaged at byte 7"))

    assert told.endswith("Nothing was changed. To save what can be saved: headrace check 'my data' --repair")


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "Make room on its disk first."), (errno.EACCES, "Run this as a user who may write there")],
)
def test_nobody_is_told_to_repair_what_is_not_damaged(number: int, advice: str) -> None:
    error = OSError(number, os.strerror(number))

    for told in (refusal(Path("data"), error), refusal(Path("data"), raised(error))):
        assert os.strerror(number) in told and f"Nothing was changed. {advice}" in told
        assert "--repair" not in told
    assert isinstance(raised(error), DiskFull) == (number == errno.ENOSPC)


def test_a_folder_that_can_only_be_read_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # Whoever runs as root may write everywhere.
    disk = RealDisk(tmp_path)
    try:
        with pytest.raises(ConfigError, match=r"Cannot use the folder .*: it cannot be written to\. Run this as"):
            load(State(0), disk, "always", print)
    finally:
        disk.close()
    assert list(tmp_path.iterdir()) == []

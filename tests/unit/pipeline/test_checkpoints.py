"""Whether Spark's checkpoint of an archive may be gone on with: only where it says the same as the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.errors import ConfigError
from headrace.pipeline.checkpoints import check_own, claim, discard, fits
from headrace.pipeline.entry_ids import id_of


def write_batch(checkpoint: Path, batch: int, **positions: str) -> None:
    """As Spark writes it before a batch."""
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    text = "\n".join(["v1", '{"batchWatermarkMs":0}', json.dumps(positions)])
    (checkpoint / "offsets" / str(batch)).write_text(text)


def at(**positions: str) -> dict[str, int]:
    return {stream: id_of(text) for stream, text in positions.items()}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    write_batch(tmp_path, 9, orders="5-0", parcels="7-0")
    write_batch(tmp_path, 10, orders="8-0", parcels="7-0")
    return tmp_path


def test_a_batch_that_is_in_the_table_or_about_to_come_is_gone_on_with(checkpoint: Path) -> None:
    assert fits(checkpoint, at(orders="8-0", parcels="7-0"))
    assert fits(checkpoint, at(orders="5-0", parcels="7-0"))


def test_a_table_that_went_on_or_back_without_it_makes_it_useless(checkpoint: Path) -> None:
    assert not fits(checkpoint, at(orders="9-0", parcels="7-0"))
    assert not fits(checkpoint, at(orders="4-0", parcels="7-0"))
    assert not fits(checkpoint, at(orders="8-0", parcels="6-0"))


def test_streams_that_come_and_go_are_told_apart(checkpoint: Path) -> None:
    assert fits(checkpoint, at(orders="8-0", parcels="7-0", letters="0-0"))
    assert not fits(checkpoint, at(orders="8-0", parcels="7-0", letters="3-0"))
    assert not fits(checkpoint, at(orders="8-0"))


def test_what_cannot_be_read_is_not_gone_on_with(checkpoint: Path, tmp_path: Path) -> None:
    assert not fits(tmp_path / "nothing", at(orders="8-0"))
    for text in ("", "v2\n{}\n{}", "v1\n{}\n{", "v1\n{}\n[]", 'v1\n{}\n{"orders": "x"}'):
        (checkpoint / "offsets" / "10").write_text(text)
        assert not fits(checkpoint, at(orders="8-0", parcels="7-0"))


def test_a_folder_with_anything_else_is_not_taken_for_a_checkpoint(checkpoint: Path, tmp_path: Path) -> None:
    """Such as the checkpoint of another query: it would be gone on with, or removed."""
    with pytest.raises(ConfigError, match="is not the checkpoint of this archive"):
        check_own(checkpoint, "archive ./here")

    new = tmp_path / "new"
    check_own(new, "archive ./here")
    claim(new, "archive ./here")
    write_batch(new, 0, orders="5-0")
    check_own(new, "archive ./here")
    with pytest.raises(ConfigError, match="holds other files"):
        check_own(new, "archive ./there")


def test_discarding_leaves_nothing_and_may_be_repeated(checkpoint: Path) -> None:
    discard(checkpoint)
    discard(checkpoint)
    assert not checkpoint.exists()

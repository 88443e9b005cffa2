"""Data of every format that was ever written is read, and shows a client what it did then."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from headrace.journal.disk import RealDisk
from headrace.journal.frames import FORMAT
from headrace.server.check import check_folder
from headrace.server.durability import Durability
from support.memory import ManualClock, MemoryBroker

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
FOLDERS = sorted(SAMPLES.glob("format-*"))


@pytest.fixture(params=FOLDERS, ids=lambda path: path.name)
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy: a start may change it."""
    for path in request.param.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def seen(broker: MemoryBroker, views: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(view, plain(broker(view))) for view, _ in views]


def plain(reply: Any) -> Any:
    if isinstance(reply, bytes):
        return reply.decode("latin-1")
    return [plain(item) for item in reply] if isinstance(reply, list) else reply


def test_there_is_a_sample_of_every_format() -> None:
    assert [path.name for path in FOLDERS] == [f"format-{number}" for number in range(1, FORMAT + 1)]


def test_a_sample_shows_what_it_did_when_it_was_written(sample: Path) -> None:
    now_ms, *listed = json.loads((sample / "expected.json").read_text("utf-8"))
    views = [(view, reply) for view, reply in listed]
    disk = RealDisk(sample)
    broker = MemoryBroker(ManualClock(now_ms))
    durability = Durability(broker.state, disk)

    assert durability.loaded.notes == []
    assert durability.loaded.frames > 20
    assert durability.loaded.parts > 10
    assert seen(broker, views) == views

    records, broker.state.records = broker.state.records, []  # A key has expired meanwhile.
    assert durability.commit(records)
    assert durability.save()  # And what this version makes of it shows the same.
    durability.close()
    again = MemoryBroker(ManualClock(now_ms))
    durability = Durability(again.state, disk)
    assert seen(again, views) == views
    durability.close()
    disk.close()


def test_a_sample_is_sound(sample: Path) -> None:
    disk = RealDisk(sample)
    checked = check_folder(disk)
    disk.close()

    assert checked.is_sound, checked
    format_line = checked.findings[0].text
    assert re.match(r"format \d+, [\d,]+ bytes: 1 log of .* 1 checkpoint of .* 1 segment of", format_line)

"""The walk of one message: the files it enters, recorded on a running broker and held against ARCHITECTURE.md.

A child process runs the real broker with a profiler on its thread; a client thread beside it lets ann wait for an
entry, adds one, and acknowledges it. Which files were entered, in which order and from which room, comes back as JSON.
The child runs the plain build: compiled functions have no frames to see.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDER = Path(__file__).with_name("walk_recorder.py")
ACTS = ["wait", "add", "ack"]

Walk = dict[str, dict[str, list[str]]]

# No room calls back into the one that called it: these are the only steps from room to room.
STEPS = {
    ("server", "wire"), ("server", "commands"), ("server", "engine"), ("server", "journal"),
    ("commands", "engine"), ("commands", "wire"), ("commands", "journal"), ("journal", "wire"),
}  # fmt: skip


@pytest.fixture(scope="module")
def walk() -> Walk:
    """Per act (wait, add, ack): the files in the order they were first entered, and the steps between rooms."""
    done = subprocess.run([sys.executable, str(RECORDER)], check=True, capture_output=True, text=True, timeout=60)
    recorded: Walk = json.loads(done.stdout)
    return recorded


def documented(row: str) -> list[str]:
    """The files that one row of the table in the section names, in its order."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    section = text.split("## The walk of one message", 1)[1].split("\n## ", 1)[0]
    [cell] = re.findall(rf"^\| {row} \|(.*)\|$", section, re.MULTILINE)
    return re.findall(r"`([\w/]+\.py)`", cell)


@pytest.mark.parametrize("act", ACTS)
def test_a_message_stops_at_the_stations_of_the_walk_in_their_order(walk: Walk, act: str) -> None:
    on_the_way = documented("on the way")

    assert [file for file in walk[act]["files"] if file not in on_the_way] == documented(act)


def test_every_file_on_the_way_is_really_entered(walk: Walk) -> None:
    entered = {file for act in ACTS for file in walk[act]["files"]}

    assert not set(documented("on the way")) - entered


@pytest.mark.parametrize("act", ACTS)
def test_a_message_goes_down_through_the_rooms_and_never_calls_back(walk: Walk, act: str) -> None:
    steps = {tuple(step.split(" -> ")) for step in walk[act]["steps"]}

    assert steps
    assert not steps - STEPS

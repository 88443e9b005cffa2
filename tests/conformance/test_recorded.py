"""Sessions whose replies were recorded from a real Redis 8.6 (see record.py), replayed on every server of that dialect.

So commands that Valkey or an older Redis lack are compared also where no Redis 8.6 is at hand.
"""

from pathlib import Path

import pytest

from support.recording import Script, play_and_normalise, read_recording, read_scripts
from support.servers import Server, wait_until
from support.wire import Wire

RECORDED = Path(__file__).parent / "recorded"
FILES = sorted(RECORDED.glob("*.commands"))
SCRIPTS = [(path, script) for path in FILES for script in read_scripts(path)]

pytestmark = pytest.mark.since("8.6")


@pytest.mark.parametrize(("path", "script"), SCRIPTS, ids=[f"{path.stem}: {script.title}" for path, script in SCRIPTS])
def test_the_replies_are_those_of_redis(server: Server, path: Path, script: Script) -> None:
    """Rows 1-160 where they need Redis 8, and the order in which mistakes are found (row 60 and its like)."""
    recorded = read_recording(path)[script.title]
    assert [step for step, _ in recorded] == [str(step) for step in script.steps], "run record.py again"
    played = play_and_normalise(server, script)
    differences = [
        f"{step}\n    expected  {expected}\n    got       {got}"
        for (step, expected), (_, got) in zip(recorded, played, strict=True)
        if expected != got
    ]
    assert not differences, "\n" + "\n".join(differences)


def test_an_identifier_is_forgotten_after_its_window(server: Server, client: Wire) -> None:
    client("XADD s 1-0 f v")
    assert client("XCFGSET s IDMP-DURATION 1") == "OK"
    first = client("XADD s IDMP producer 1 * f v")
    assert client("XADD s IDMP producer 1 * f v") == first
    wait_until(lambda: client("XADD s IDMP producer 1 * f v") != first, "the identifier to be forgotten")
    assert client("XLEN s") == 3


@pytest.mark.parametrize("command", ["COPY s t", "RENAME s t", "MOVE s 5", "DUMP"])
def test_identifiers_survive_every_way_of_moving_a_stream(server: Server, client: Wire, command: str) -> None:
    first = client("XADD s IDMP producer 1 * f v")
    if command == "DUMP":
        assert client("RESTORE", "t", 0, client("DUMP s")) == "OK"
    else:
        client(command)
    if command.startswith("MOVE"):
        client("SELECT 5")
    key = "s" if command.startswith("MOVE") else "t"
    assert client(f"XADD {key} IDMP producer 1 * f v") == first
    assert client(f"XLEN {key}") == 1


@pytest.mark.parametrize("removal", ["DEL s", "FLUSHALL"])
def test_identifiers_go_with_their_stream(server: Server, client: Wire, removal: str) -> None:
    client("XADD s IDMP producer 1 * f v")
    client(removal)
    client("XADD s IDMP producer 1 * f v")
    assert client("XLEN s") == 1

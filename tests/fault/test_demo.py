"""make demo: its verdicts hold, and Ctrl-C at any moment leaves no process behind."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"
TIMEOUT_S = 60


@contextmanager
def demo() -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The demo, and a mark in its environment that all of its children inherit."""
    mark = f"HEADRACE_DEMO_MARK={os.getpid()}-{time.monotonic_ns()}"
    name, value = mark.split("=")
    with subprocess.Popen(
        [sys.executable, str(DEMO)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {name: value},
        start_new_session=True,
    ) as process:
        try:
            yield process, mark
        finally:
            process.kill()


def processes_with(mark: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # It ended while we looked, or belongs to somebody else.
            continue
    return found


def test_every_verdict_of_the_demo_holds() -> None:
    with demo() as (process, mark):
        said, _ = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 0, said
    assert said.count("holds") == 8
    assert "FAILS" not in said
    if Path("/proc/self/environ").exists():
        assert not processes_with(mark)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_moment_leaves_no_process_behind(number: signal.Signals) -> None:
    seed = random.randrange(2**32)
    for moment_s in (0.0, *random.Random(seed).choices([k / 20 for k in range(40)], k=4)):
        with demo() as (process, mark):
            time.sleep(moment_s)
            process.send_signal(number)
            said, _ = process.communicate(timeout=TIMEOUT_S)

        assert not processes_with(mark), f"after {moment_s} s, seed {seed}: {said}"

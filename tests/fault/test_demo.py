"""make demo: its verdicts hold, with Spark and without, and Ctrl-C at any moment leaves no process behind."""

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
TIMEOUT_S = 300  # Spark starts in seconds, on a machine that has other things to do in minutes.
END_TIMEOUT_S = 60


@contextmanager
def demo(**environment: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The demo, and a mark in its environment that all of its children inherit."""
    mark = f"HEADRACE_DEMO_MARK={os.getpid()}-{time.monotonic_ns()}"
    name, value = mark.split("=")
    with subprocess.Popen(
        [sys.executable, str(DEMO)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | environment | {name: value},
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


def left_processes(mark: str) -> list[str]:
    """Python workers of Spark end once their JVM is gone: that takes a moment."""
    deadline = time.monotonic() + END_TIMEOUT_S
    while (left := processes_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def test_every_verdict_of_the_demo_holds() -> None:
    with demo() as (process, mark):
        said, _ = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 0, said
    assert said.count("holds") == 13
    assert "FAILS" not in said
    assert "rows 121 · files 2 · " in said
    assert not left_processes(mark)


def test_the_demo_goes_on_without_spark_and_says_why(tmp_path: Path) -> None:
    facts = tmp_path / "pandas-3.0.0.dist-info" / "METADATA"
    facts.parent.mkdir()
    facts.write_text("Metadata-Version: 2.1\nName: pandas\nVersion: 3.0.0\n")

    with demo(PYTHONPATH=str(tmp_path), HEADRACE_DEMO_HAS_SPARK="1") as (process, mark):
        said, _ = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 0, said
    assert said.count("holds") == 11 and "FAILS" not in said
    assert "not shown: the pipeline needs pandas 2.2 or newer but before 3, not 3.0.0: pip install" in said
    assert not left_processes(mark)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_moment_leaves_no_process_behind(number: signal.Signals) -> None:
    seed = random.randrange(2**32)
    for moment_s in (0.0, *random.Random(seed).choices([k / 20 for k in range(40)], k=4)):
        with demo() as (process, mark):
            time.sleep(moment_s)
            process.send_signal(number)
            said, _ = process.communicate(timeout=TIMEOUT_S)

        assert not left_processes(mark), f"after {moment_s} s, seed {seed}: {said}"

"""Programs written with other people's libraries, run in their own environment against `headrace serve`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.testing import RunningBroker, running_broker

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build" / "ecosystem-env" / "bin" / "python"
PROGRAMS = Path(__file__).parent / "programs"
PATIENCE_S = 300

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with running_broker() as broker:
        yield broker


@pytest.fixture
def run(broker: RunningBroker) -> Run:
    """Runs one of the programs with the broker's URL and further words."""

    def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(PYTHON), str(PROGRAMS / program), broker.url, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    return run

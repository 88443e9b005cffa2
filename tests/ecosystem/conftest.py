"""Programs written with other people's libraries, run in their own environments against `headrace serve`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.testing import RunningBroker, running_broker

BUILD = Path(__file__).resolve().parents[2] / "build"
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

    def run(program: str, *words: str, environment: str = "ecosystem") -> subprocess.CompletedProcess[str]:
        python = BUILD / f"{environment}-env" / "bin" / "python"
        command = [str(python), str(PROGRAMS / program), broker.url, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    return run

"""Other people's libraries run on our broker unchanged: a hundred jobs each, with their own workers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.ecosystem

Run = Callable[..., subprocess.CompletedProcess[str]]


def assert_done(finished: subprocess.CompletedProcess[str]) -> None:
    assert finished.returncode == 0, finished.stderr[-4000:]
    assert finished.stdout.splitlines()[-1] == "100 jobs done"


def test_arq_runs_a_hundred_jobs(run: Run) -> None:
    assert_done(run("arq_jobs.py", environment="arq"))


def test_faststream_runs_a_hundred_jobs_over_lists_channels_and_streams(run: Run) -> None:
    assert_done(run("faststream_jobs.py"))


@pytest.mark.parametrize("broker_kind", ["list", "channel", "stream"])
def test_taskiq_runs_a_hundred_jobs(run: Run, broker_kind: str) -> None:
    finished = run("taskiq_jobs.py", broker_kind)
    assert_done(finished)
    assert "Error" not in finished.stderr


def test_celery_runs_a_hundred_jobs(run: Run) -> None:
    finished = run("celery_jobs.py")
    assert_done(finished)
    assert "Error" not in finished.stderr


@pytest.mark.parametrize("program", ["rq_jobs.py", "huey_jobs.py"])
def test_a_hundred_jobs_run(run: Run, program: str) -> None:
    assert_done(run(program))


def test_a_library_that_cannot_do_without_lua_is_told_why(run: Run) -> None:
    finished = run("dramatiq_jobs.py")
    assert finished.returncode != 0
    assert "headrace runs no Lua" in finished.stderr

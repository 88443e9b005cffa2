"""Every job on a real standalone cluster, a master and two workers in processes of their own, with counts checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from headrace import Client
from headrace.pipeline.archives import forget
from headrace.pipeline.session import variables
from support.command_line import COMMAND, environment
from support.spark_cluster import standalone_cluster

pytestmark = pytest.mark.long

ENTRIES = 200_000
PATIENCE_S = 900.0  # Only to end a broken test.
SPARK_SUBMIT = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
SUBMIT_SCRIPT = [sys.executable, "-m", "headrace.pipeline.submit", "--path"]


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


def run(command: list[str], url: str) -> Any:
    """The JSON that a command says at its end."""
    more = {**variables(os.environ, is_local=True), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, env=environment(url, more), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_job_runs_on_a_standalone_cluster(
    master: str, our_url: str, our_client: Client, name: str, tmp_path: Path
) -> None:
    url, client, stream, lake = our_url, our_client, our_client.stream(name), str(tmp_path / "lake")
    stream.add_many({"key": f"customer-{number % 7}", "data": str(number)} for number in range(ENTRIES))
    jobs = [*COMMAND, "pipeline"]
    count = [*jobs, "query", f"select count(*) n, count(distinct id) ids from `{name}`", "--master", master]

    archived = run(
        [*jobs, "archive", name, "--to", lake, "--name", name, "--max-entries", "80000", "--master", master], url
    )
    assert archived["entries"] == ENTRIES and archived["batches"] >= 2
    assert run([*jobs, "trim", "--name", name, "--yes"], url)["removed"] == ENTRIES
    assert stream.length() == 0

    stream.add_many([{"key": "customer-7"}] * 1000)
    assert run(count, url) == {"n": ENTRIES + 1000, "ids": ENTRIES + 1000}

    again = ("replay", name, "--to", f"{name}-again", "--archive", name, "--where", "key = 'customer-3'")
    matched = len(range(3, ENTRIES, 7))
    assert run([*jobs, *again, "--master", master], url)["added"] == matched
    assert client.stream(f"{name}-again").length() == matched

    script = subprocess.run(SUBMIT_SCRIPT, check=True, capture_output=True, text=True).stdout.strip()
    words = [script, "archive", name, "--to", lake, "--name", name, "--trim"]
    submitted = run([SPARK_SUBMIT, "--master", master, *words], url)
    assert (submitted["entries"], submitted["streams"][0]["trimmed"]) == (1000, 1000)

    assert run([*jobs, "compact", "--name", name, "--yes"], url)["files_after"] == 1
    assert run(count, url) == {"n": ENTRIES + 1000, "ids": ENTRIES + 1000}
    forget(client, name)

"""The jobs by spark-submit, in the words of headrace pipeline."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark

from headrace import Client
from headrace.pipeline.archives import forget
from headrace.pipeline.session import variables
from support.command_line import environment
from support.small_spark import JAVA_OPTIONS

SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
OPTIONS = ("--master", "local[2]", "--driver-memory", "1g", "--driver-java-options", JAVA_OPTIONS)
PATIENCE_S = 300.0  # Only to end a broken test.


@functools.cache
def script_path() -> str:
    words = [sys.executable, "-m", "headrace.pipeline.submit", "--path"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def spark_submit(url: str, *words: str) -> subprocess.CompletedProcess[str]:
    chosen = environment(url, {**variables(os.environ, is_local=True), "SPARK_LOCAL_IP": "127.0.0.1"})
    command = [str(SPARK_SUBMIT), *OPTIONS, script_path(), *words]
    return subprocess.run(command, env=chosen, capture_output=True, text=True, timeout=PATIENCE_S)


def test_the_script_is_where_it_says() -> None:
    assert Path(script_path()).name == "submit.py" and Path(script_path()).is_file()


def test_spark_submit_runs_a_job_and_shows_what_the_command_does(
    our_url: str, our_client: Client, name: str, tmp_path: Path
) -> None:
    our_client.stream(name).add_many([{"n": "x"}] * 50)

    done = spark_submit(our_url, "archive", name, "--to", str(tmp_path / "lake"), "--name", name)
    forget(our_client, name)

    assert done.returncode == 0, done.stderr
    report: Any = json.loads(done.stdout)
    assert (report["entries"], report["streams"][0]["stream"]) == (50, name)


def test_what_is_wrong_with_the_words_is_told_before_spark_starts(our_url: str, name: str) -> None:
    command = [sys.executable, script_path(), "archive", name]
    wrong = subprocess.run(command, env=environment(our_url), capture_output=True, text=True, timeout=PATIENCE_S)

    assert wrong.returncode == 2
    assert "headrace: say where to archive: --to FOLDER." in wrong.stderr

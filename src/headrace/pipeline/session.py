"""A SparkSession from pip alone: Java found or taken from a package, quiet, with the settings the pipeline wants.

    from headrace.pipeline import session

    spark = session("reports", config={"spark.driver.memory": "2g"})

A session that is there already is taken as it is: inside spark-submit, in a notebook, after a first call. Only light
things are loaded with this module; PySpark is when a session is made.
"""

import os
import re
import shutil
import site
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from headrace.errors import ConfigError

LOOPBACK: Final = "127.0.0.1"
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
# Package, oldest version that will do, first version that will not.
PACKAGES: Final = (("pyspark", "4.2", ""), ("pyarrow", "18", ""), ("pandas", "2.2", "3"), ("numpy", "1.26", ""))
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
# Wanted on every session, also on one that was there before us: a filter on IDs or times then reads less.
FILTERS: Final = {"spark.sql.python.filterPushdown.enabled": "true"}


def session(app_name: str = "headrace", *, master: str | None = None, config: Mapping[str, str] | None = None) -> Any:
    """The SparkSession at hand, else a new one: on the cores of this machine, unless `master` names a cluster.

    `config` holds Spark settings by their names. Raises ConfigError, with what to install, where Spark cannot run.
    """
    check_packages()
    from pyspark.sql import SparkSession

    settings = FILTERS | dict(config or {})
    builder = SparkSession.builder.appName(app_name)
    if is_provided():
        return builder.config(map=settings).getOrCreate()
    master = master or "local[*]"
    settings = SETTINGS | {"spark.master": master} | settings
    settings[JAVA_OPTIONS] = f"{quiet_logs()} {settings.get(JAVA_OPTIONS, '')}".strip()
    check_shell(os.environ)
    with environment(variables(os.environ, is_local=master.startswith("local"))):
        spark = start(builder.config(map=settings))
    register(spark)
    return spark


def get_session(given: Any, app_name: str) -> Any:
    """The session a job was given, or what a function gives that it was given, else `session(app_name)`.

    With a function Spark starts when the job needs it: once everything that can be refused without it is checked.
    """
    if given is None:
        return session(app_name)
    return given() if callable(given) else given


def register(spark: Any) -> None:
    """Spark finds the format by itself, but keeps silent when its search fails, and then knows no such format."""
    from headrace.pipeline.source import HeadraceDataSource

    spark.dataSource.register(HeadraceDataSource)


def is_provided() -> bool:
    """Whether Spark runs already in this process, or spark-submit or Spark Connect provide it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    has_context = SparkContext._active_spark_context is not None
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ
    return has_context or is_submitted or SparkSession.getActiveSession() is not None


def start(builder: Any) -> Any:
    from pyspark.errors import PySparkRuntimeError

    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise ConfigError("Spark's Java process ended at its start; it said why on the standard error.") from None


# What must be installed.


def installed_version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        pass
    try:  # Spark's own distribution puts its Python on the path without saying so to pip.
        return str(import_module(package).__version__)
    except (ImportError, AttributeError):
        return None


def check_packages(version_of: Callable[[str], str | None] = installed_version) -> None:
    """Raises ConfigError when packages are missing or of a version that does not do, and names them all."""
    missing, misfits = [], []
    for name, oldest, end in PACKAGES:
        installed = version_of(name)
        if installed is None:
            missing.append(name)
        elif numbers(installed) < numbers(oldest) or (end and numbers(installed) >= numbers(end)):
            misfits.append(f"{name} {oldest} or newer{f' but before {end}' if end else ''}, not {installed}")
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        misfits.insert(0, f"{' and '.join(missing)}, which {verb} not installed")
    if misfits:
        raise ConfigError(f'the pipeline needs {"; ".join(misfits)}: pip install "headrace[spark]" brings what fits.')


def numbers(version: str) -> tuple[int, ...]:
    """(4, 3, 0) for 4.3.0 and for 4.3.0.dev1: two numbers decide, whatever follows."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def check_shell(given: Mapping[str, str]) -> None:
    if shutil.which("bash", path=given.get("PATH", "")) is None:
        raise ConfigError("Spark is started by bash, and there is none on PATH: install the package bash.")


# What Spark reads from outside.


def quiet_logs() -> str:
    """The JVM option that names our log settings. Quoted, as the path may hold spaces."""
    path = Path(__file__).with_name("log4j2.properties").absolute()
    return f'"-Dlog4j2.configurationFile={path.as_uri()}"'


def variables(given: Mapping[str, str], *, is_local: bool) -> dict[str, str]:
    """What Spark's scripts, its JVM and its Python workers shall find in their environment.

    What the user has set stays, but for JAVA_HOME, which becomes the wrapper of the Java that was chosen.
    """
    import pyspark

    from headrace.pipeline.java import installed_archives, java_home, python_command

    home = Path(pyspark.__file__).parent
    python = python_command(sys.executable, given, installed_archives(home) if is_local else "")
    wanted = {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_HOME": str(home),  # Spark's own search breaks on a path with spaces.
    }
    if is_local:
        wanted["SPARK_LOCAL_IP"] = LOOPBACK
    chosen = {name: value for name, value in wanted.items() if not given.get(name)}
    chosen["JAVA_HOME"] = str(java_home(given))
    sources = str(Path(__file__).absolute().parents[2])
    if is_local and sources not in site.getsitepackages():
        # The workers of this machine run the same Python, but do not know what was added to sys.path here.
        chosen["PYTHONPATH"] = os.pathsep.join(filter(None, (sources, given.get("PYTHONPATH"))))
    return chosen


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Changes the environment for the length of the block: the JVM keeps it, the user's other children do not."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

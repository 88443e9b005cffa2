"""A SparkSession from pip alone: Java found or taken from a package, quiet, with the settings the pipeline wants.

    from headrace.pipeline import session

    spark = session("reports", config={"spark.driver.memory": "2g"})

A session that is there already is taken as it is: inside spark-submit, in a notebook, after a first call. Only light
things are loaded with this module; PySpark is when a session is made.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

LOOPBACK: Final = "127.0.0.1"
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
# Wanted on every session, also on one that was there before us: a source that takes filters is refused without it.
FILTERS: Final = ("spark.sql.python.filterPushdown.enabled", "true")


def session(app_name: str = "headrace", *, master: str | None = None, config: Mapping[str, str] | None = None) -> Any:
    """The SparkSession at hand, else a new one; on this machine's cores unless `master` names a cluster."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app_name)
    settings = dict([FILTERS]) | dict(config or {})
    if SparkSession.getActiveSession() is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return builder.config(map=settings).getOrCreate()
    master = master or "local[*]"
    settings = SETTINGS | {"spark.driver.extraJavaOptions": quiet_logs(), "spark.master": master} | settings
    with environment(variables(is_local=master.startswith("local"))):
        return builder.config(map=settings).getOrCreate()


def quiet_logs() -> str:
    """The JVM option that names our log settings. Quoted, as the path may hold spaces."""
    path = Path(__file__).with_name("log4j2.properties").absolute()
    return f'"-Dlog4j2.configurationFile={path.as_uri()}"'


def variables(*, is_local: bool) -> dict[str, str]:
    """What Spark's scripts and the JVM read from the environment, for what the user has not set."""
    import pyspark

    wanted = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
    }
    if is_local:
        wanted["SPARK_LOCAL_IP"] = LOOPBACK
    return {name: value for name, value in wanted.items() if not os.environ.get(name)}


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

"""Names in SQL -> DataFrames, made when Spark asks for them.

Spark itself says which name it misses, so names of common table expressions, of subqueries and of the session's own
views mean what they mean to Spark. Each missing name becomes a temporary view, and the query is looked at again. The
views are gone when `run_sql` returns: the next query has new ones, with what the broker holds then.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, Final

from headrace.errors import ConfigError

MAX_NAMES: Final = 100  # Of streams in one query.
QUOTED: Final = re.compile(r"`((?:[^`]|``)*)`")
# What Spark adds to a sentence: a code before it, and where to look behind it.
CODE: Final = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
UNQUOTED: Final = re.compile(r"near '[^\w']")  # At a sign, as in orders:eu. Of a hyphen Spark says so itself.
BEHIND: Final = re.compile(r"\s*SQLSTATE: \w+")
PLACE: Final = re.compile(r"\(?line (\d+),? pos (\d+)\)?")

views_lock: Final = RLock()  # Views belong to the session, and threads may share one.


def run_sql(spark: Any, sql: str, make_frame: Callable[[str], Any]) -> Any:
    """The result of the query as a DataFrame. `make_frame` gives the rows of a name, or raises what to tell."""
    from pyspark.errors import AnalysisException, ParseException

    made: list[str] = []
    with views_lock, unlogged():
        try:
            while True:
                try:
                    frame = spark.sql(sql)
                    _ = frame.schema
                    return frame
                except ParseException as error:
                    raise ConfigError(f"the SQL cannot be read: {parse_sentence(error)}") from None
                except AnalysisException as error:
                    name = missing_name(error)
                    if name is None or name in made or len(made) >= MAX_NAMES:
                        raise ConfigError(f"the SQL cannot be run: {sentence_of(error)}") from None
                make_frame(name).createOrReplaceTempView(quoted(name))
                made.append(name)
        finally:
            for name in made:
                spark.catalog.dropTempView(name)


def missing_name(error: Any) -> str | None:
    """The name that Spark did not find. Raises for a name of several parts, which only backticks can hold."""
    if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return None
    text = (error.getMessageParameters() or {}).get("relationName", "")
    parts = [part.replace("``", "`") for part in QUOTED.findall(text)]
    if len(parts) > 1:
        name = ".".join(parts)
        raise ConfigError(
            f"there is no table {text}. If it is the stream {name!r}, write it in backticks: {quoted(name)}."
        )
    return parts[0] if parts else None


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def spellings(sql: str, name: str) -> set[str]:
    """How else the SQL writes this name. SQL does not tell upper from lower case, brokers do."""
    return set(re.findall(re.escape(name), sql, re.IGNORECASE)) - {name}


def sentence_of(error: Any) -> str:
    """What Spark says, without code, plan and hints: one sentence, with the place in the SQL."""
    first, *rest = CODE.sub("", str(error).strip()).split("\n")
    at = PLACE.search("\n".join((first, *rest)))
    sentence = PLACE.sub("", BEHIND.sub("", first)).strip(" ;.")
    return sentence + (f" (line {at[1]}, column {int(at[2]) + 1})." if at else ".")


def parse_sentence(error: Any) -> str:
    """The same, with how to write names of streams where it stumbled over a sign that may belong to one."""
    sentence = sentence_of(error)
    if UNQUOTED.search(sentence):
        sentence += " Names of streams with signs in them stand in backticks: `orders:eu`."
    return sentence


@contextmanager
def unlogged() -> Iterator[None]:
    """PySpark logs every refused query in full; here it is part of the search for names."""
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was_disabled

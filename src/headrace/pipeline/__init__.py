"""Streams in Spark, through PySpark: a source, sinks, and the jobs archive, trim, replay, query and compact.

    from headrace.pipeline import session

    spark = session()
    orders = spark.readStream.format("headrace").option("url", url).option("streams", "orders").load()

Needs `pip install "headrace[spark]"`; everything here is loaded when first asked for.
"""

from importlib import import_module
from typing import Any

# At once: module and function share their name, and the one bound last is found here.
from headrace.pipeline.session import session as session

HOMES: dict[str, tuple[str, ...]] = {}


def __getattr__(name: str) -> Any:
    for home, names in HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'headrace.pipeline' has no attribute {name!r}")

"""Two tables: every visit, and the visits of each page. `spark-pipeline.yml` beside this file says how to run them.

Nothing here is run by itself: Spark calls each function for its plan. The server is that of HEADRACE_URL.
"""

import os
from typing import Any

from pyspark import pipelines
from pyspark.sql import SparkSession

spark = SparkSession.active()


@pipelines.table  # type: ignore[untyped-decorator]  # Spark is Any to the check.
def visits() -> Any:
    """A streaming table: each run adds the entries that are new in the stream."""
    return (
        spark.readStream.format("headrace")
        .schema("id string, timestamp timestamp, page string")
        .option("url", os.environ["HEADRACE_URL"])
        .option("streams", "visits")
        .option("startingOffsets", "earliest")
        .load()
    )


@pipelines.materialized_view  # type: ignore[untyped-decorator]
def visits_per_page() -> Any:
    """A materialized view: each run computes it from the table above."""
    return spark.read.table("visits").groupBy("page").count()

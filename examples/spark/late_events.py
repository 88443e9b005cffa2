"""Averages over five minutes by the time at which something happened, with readings that come late.

    python examples/spark/late_events.py
    python examples/spark/late_events.py --url redis://localhost:6379 --folder ./checkpoints

The field `at` says when a sensor was read; the ID only says when the reading arrived. The watermark is five minutes
behind the latest `at` seen so far: what is late by less than that is counted, what comes for a window that has ended
before the watermark is dropped, and Spark tells how many rows that were.
"""

from typing import Any

import sample
from pyspark.sql.functions import avg, col, count, window

PARTS: list[sample.Part] = [
    # After this part the watermark is 09:07, and the window that ends at 09:05 is complete.
    {
        "readings": [
            ("09:00:31", {"at": "2026-01-01T09:00:30Z", "celsius": "20.0"}),
            ("09:03:01", {"at": "2026-01-01T09:03:00Z", "celsius": "21.0"}),
            ("09:12:01", {"at": "2026-01-01T09:12:00Z", "celsius": "25.0"}),
        ]
    },
    {
        "readings": [
            ("09:12:02", {"at": "2026-01-01T09:08:00Z", "celsius": "23.0"}),  # Late, and counted.
            ("09:12:03", {"at": "2026-01-01T09:04:00Z", "celsius": "99.0"}),  # Too late.
            ("09:20:01", {"at": "2026-01-01T09:20:00Z", "celsius": "26.0"}),  # Its window stays open.
        ]
    },
]


def main(spark: Any, url: str, folder: str) -> tuple[list[Any], int]:
    readings = (
        spark.readStream.format("headrace")
        .schema("at timestamp, celsius double")  # Columns with other names than the source's are fields of the entry.
        .option("url", url)
        .option("streams", "readings")
        .option("startingOffsets", "earliest")
        .load()
    )
    averages = (
        readings.withWatermark("at", "5 minutes")
        .groupBy(window("at", "5 minutes"))
        .agg(count("*").alias("readings"), avg("celsius").alias("celsius"))
        .select(col("window.start").alias("since"), "readings", "celsius")
    )
    complete: list[Any] = []
    query = (
        averages.writeStream.foreachBatch(lambda rows, _: complete.extend(rows.collect()))
        .option("checkpointLocation", f"{folder}/late-events")
        .outputMode("append")  # A window is given once, when it is complete.
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    dropped = sum(
        operator.numRowsDroppedByWatermark for batch in query.recentProgress for operator in batch.stateOperators
    )
    complete.sort()
    for row in complete:
        print(f"{row.since:%H:%M}  {row.readings} readings, {row.celsius:.1f} °C")
    print(f"dropped: {dropped}")
    return complete, dropped


if __name__ == "__main__":
    sample.run(main, PARTS)

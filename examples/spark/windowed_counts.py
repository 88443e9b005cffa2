"""Orders per minute, by the time in their IDs, written to another stream.

    python examples/spark/windowed_counts.py
    python examples/spark/windowed_counts.py --url redis://localhost:6379 --folder ./checkpoints

An entry ID begins with the time at which the entry was added; the column `timestamp` is that time. A run reads what is
new since the last one and adds an entry to `orders-per-minute` for each minute that is over. The sink takes rows that
stay as they are (outputMode append); for counts that change, see the page on the examples.
"""

from typing import Any

import sample
from pyspark.sql.functions import col, window

from headrace import Client

PARTS: list[sample.Part] = [
    {"orders": [("09:00:05", {"item": "tea"}), ("09:00:40", {"item": "milk"}), ("09:01:10", {"item": "tea"})]},
    {"orders": [("09:01:30", {"item": "rice"}), ("09:03:00", {"item": "tea"})]},
]


def main(spark: Any, url: str, folder: str) -> None:
    orders = (
        spark.readStream.format("headrace")
        .option("url", url)
        .option("streams", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    # A minute is over when an entry has been seen that is later than its end: the IDs of one stream only grow.
    per_minute = orders.withWatermark("timestamp", "0 seconds").groupBy(window("timestamp", "1 minute")).count()
    query = (
        per_minute.select(col("window.start").alias("minute"), "count")
        .writeStream.format("headrace")
        .option("url", url)
        .option("stream", "orders-per-minute")
        .option("checkpointLocation", f"{folder}/orders-per-minute")
        .outputMode("append")
        .trigger(availableNow=True)  # Leave this line out and the query goes on for ever.
        .start()
    )
    query.awaitTermination()
    with Client(url) as client:
        for entry in client.stream("orders-per-minute").iterate():
            print(entry.payload)


if __name__ == "__main__":
    sample.run(main, PARTS)

"""Orders per minute while the minute still goes on: counts that change, written to another stream.

    python examples/spark/running_counts.py
    python examples/spark/running_counts.py --url redis://localhost:6379 --folder ./checkpoints

In the output mode `update` each batch gives the minutes whose count has changed. Spark's Python sinks do not take that
mode, but foreachBatch does, and writes each batch by itself. With `writeId` and `batchId` the broker knows which
batches it has: one that Spark repeats after a crash is not added again.
"""

from typing import Any

import sample
from pyspark.sql.functions import col, window

from headrace import Client

PARTS: list[sample.Part] = [
    {"orders": [("09:00:05", {"item": "tea"}), ("09:00:40", {"item": "milk"}), ("09:01:10", {"item": "tea"})]},
    {"orders": [("09:01:30", {"item": "rice"})]},
]


def main(spark: Any, url: str, folder: str) -> None:
    def add_changes(changed: Any, batch_id: int) -> None:
        (
            changed.write.format("headrace")
            .option("url", url)
            .option("stream", "orders-so-far")
            .option("writeId", "orders-so-far")
            .option("batchId", batch_id)
            .mode("append")
            .save()
        )

    orders = (
        spark.readStream.format("headrace")
        .option("url", url)
        .option("streams", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    # The watermark lets Spark forget the counts of minutes that are long over.
    per_minute = orders.withWatermark("timestamp", "10 minutes").groupBy(window("timestamp", "1 minute")).count()
    query = (
        per_minute.select(col("window.start").alias("minute"), "count")
        .writeStream.foreachBatch(add_changes)
        .option("checkpointLocation", f"{folder}/orders-so-far")
        .outputMode("update")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    with Client(url) as client:
        for entry in client.stream("orders-so-far").iterate():
            print(entry.payload)


if __name__ == "__main__":
    sample.run(main, PARTS)

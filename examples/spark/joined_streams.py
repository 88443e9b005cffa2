"""Orders and their payments, two streams joined as they grow.

    python examples/spark/joined_streams.py
    python examples/spark/joined_streams.py --url redis://localhost:6379 --folder ./checkpoints

A payment belongs to its order if it comes within 30 minutes. A pair goes to the stream `settled` as soon as both are
there. An order without payment goes there once none can come any more: when the watermarks of *both* streams have
passed its 30 minutes. Until then Spark remembers it, and no longer.
"""

from typing import Any

import sample
from pyspark.sql.functions import expr

from headrace import Client

PARTS: list[sample.Part] = [
    {
        "orders-to-pay": [
            ("09:00:00", {"number": "1", "total": "9.90"}),
            ("09:01:00", {"number": "2", "total": "4.50"}),
            ("09:02:00", {"number": "3", "total": "7.00"}),
        ],
        "payments": [("09:05:00", {"number": "1"})],
    },
    {
        "orders-to-pay": [("10:30:00", {"number": "4", "total": "1.20"})],
        "payments": [("09:20:00", {"number": "2"}), ("10:31:00", {"number": "4"})],
    },
]


def main(spark: Any, url: str, folder: str) -> None:
    def read(stream: str, columns: str) -> Any:
        reader = spark.readStream.format("headrace").schema(columns).option("url", url).option("streams", stream)
        return reader.option("startingOffsets", "earliest").load()

    orders = (
        read("orders-to-pay", "timestamp timestamp, number string, total decimal(9,2)")
        .withColumnRenamed("timestamp", "ordered_at")
        .withWatermark("ordered_at", "10 minutes")
    )
    payments = (
        read("payments", "timestamp timestamp, number string")
        .withColumnsRenamed({"timestamp": "paid_at", "number": "paid_number"})
        .withWatermark("paid_at", "10 minutes")
    )
    belongs = "number = paid_number and paid_at between ordered_at and ordered_at + interval 30 minutes"
    query = (
        orders.join(payments, expr(belongs), "left_outer")
        .select("number", "total", "paid_at")
        .writeStream.format("headrace")
        .option("url", url)
        .option("stream", "settled")
        .option("checkpointLocation", f"{folder}/settled")
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    with Client(url) as client:
        for entry in client.stream("settled").iterate():
            print(entry.payload)


if __name__ == "__main__":
    sample.run(main, PARTS)

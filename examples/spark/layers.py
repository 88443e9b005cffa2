"""Bronze, silver, gold: from raw entries to figures per day, in Delta tables.

    python examples/spark/layers.py
    python examples/spark/layers.py --url redis://localhost:6379 --folder ./lake

    bronze    every entry as it came, with all its bytes
    silver    rows with types; what is no sale is left out, and a sale that was sent twice is there once
    gold      sales and their total per day, computed from silver

Bronze and silver are streaming queries over the same stream: a run adds what is new, and a run that is cut short and
repeated adds nothing twice. Bronze is what remains of entries that are trimmed from the stream later. Gold is small and
written anew each time. Any tool that knows Delta reads the tables; here it is the package deltalake.
"""

from typing import Any

import sample
from deltalake import DeltaTable
from pyspark.sql import functions

PARTS: list[sample.Part] = [
    {
        "sales": [
            ("09:00:00", {"data": '{"sale": "s1", "sold_at": "2025-12-31T18:00:00Z", "amount": 9.90}'}),
            ("09:00:01", {"data": '{"sale": "s2", "sold_at": "2026-01-01T08:59:00Z", "amount": 4.50}'}),
            ("09:00:02", {"data": '{"sale": "s2", "sold_at": "2026-01-01T08:59:00Z", "amount": 4.50}'}),  # Sent twice.
            ("09:00:03", {"data": "till 7 is out of paper"}),
        ]
    },
    {
        "sales": [
            ("09:05:00", {"data": '{"sale": "s1", "sold_at": "2025-12-31T18:00:00Z", "amount": 9.90}'}),  # Once more.
            ("09:05:01", {"data": '{"sale": "s3", "sold_at": "2026-01-01T09:04:00Z", "amount": 7.00}'}),
        ]
    },
]


def main(spark: Any, url: str, folder: str) -> None:
    def add_new(rows: Any, layer: str) -> None:
        writer = rows.writeStream.format("headrace").option("table", f"{folder}/{layer}")
        writer = writer.option("checkpointLocation", f"{folder}/checkpoints/{layer}")
        writer.trigger(availableNow=True).start().awaitTermination()

    source = spark.readStream.format("headrace").option("url", url).option("streams", "sales")
    source = source.option("startingOffsets", "earliest")

    add_new(source.load(), "bronze")

    typed = source.schema("id string, timestamp timestamp, sale string, sold_at timestamp, amount decimal(9,2)")
    sales = (
        typed.option("columnsFrom", "json")
        .load()
        .where("sale is not null")
        .withWatermark("timestamp", "1 day")
        .dropDuplicatesWithinWatermark(["sale"])
    )
    add_new(sales, "silver")

    silver = spark.createDataFrame(DeltaTable(f"{folder}/silver").to_pyarrow_table())
    per_day = silver.groupBy(functions.to_date("sold_at").alias("day"))
    gold = per_day.agg(functions.count("*").alias("sales"), functions.sum("amount").alias("total"))
    gold.write.format("headrace").option("table", f"{folder}/gold").mode("overwrite").save()
    gold.orderBy("day").show()


if __name__ == "__main__":
    sample.run(main, PARTS)

"""Sessions of users: clicks with less than 30 minutes between them belong together.

    python examples/spark/sessions.py
    python examples/spark/sessions.py --url redis://localhost:6379 --folder ./checkpoints

Spark keeps the open session of each user (`transformWithState`) and calls `handleExpiredTimer` when the watermark has
passed its end: the session is closed and given out. The user is the entry's `key`, the time is that of its ID.
"""

from collections.abc import Iterator
from typing import Any

import sample
from pyspark.sql import Row
from pyspark.sql.functions import unix_millis
from pyspark.sql.streaming import StatefulProcessor

PAUSE_MS = 30 * 60 * 1000
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PARTS: list[sample.Part] = [
    {
        "clicks": [
            ("09:00:00", {"key": "ann", "page": "/"}),
            ("09:05:00", {"key": "bob", "page": "/"}),
            ("09:10:00", {"key": "ann", "page": "/tea"}),
        ]
    },
    {
        "clicks": [
            ("09:30:00", {"key": "bob", "page": "/milk"}),  # Goes on with bob's session of the first run.
            ("11:00:00", {"key": "ann", "page": "/"}),  # Ends ann's and begins another one, which stays open.
        ]
    },
]


class Sessions(StatefulProcessor):  # type: ignore[misc]  # Spark's classes are Any to the check.
    """One object for all users of a task; Spark gives it the state of the user at hand."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.session = handle.getValueState("session", "first_ms long, last_ms long, clicks int")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        first_ms, last_ms, clicks = self.session.get() or (0, 0, 0)
        for ms in sorted(row.ms for row in rows):
            if clicks and ms - last_ms >= PAUSE_MS:  # The pause lies between two clicks of one batch.
                yield closed(key, first_ms, last_ms, clicks)
                clicks = 0
            first_ms = min(first_ms, ms) if clicks else ms
            last_ms = max(last_ms, ms) if clicks else ms
            clicks += 1
        self.session.update((first_ms, last_ms, clicks))
        for timer_ms in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer_ms)
        self.handle.registerTimer(last_ms + PAUSE_MS)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        yield closed(key, *self.session.get())
        self.session.clear()


def closed(key: Any, first_ms: int, last_ms: int, clicks: int) -> Row:
    return Row(user=key[0], first_ms=first_ms, minutes=(last_ms - first_ms) // 60_000, clicks=clicks)


def main(spark: Any, url: str, folder: str) -> list[Any]:
    spark = spark.newSession()  # With settings of its own: transformWithState keeps its state in RocksDB only.
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    clicks = (
        spark.readStream.format("headrace")
        .option("url", url)
        .option("streams", "clicks")
        .option("startingOffsets", "earliest")
        .load()
    )
    sessions = (
        clicks.select("key", "timestamp", unix_millis("timestamp").alias("ms"))
        .withWatermark("timestamp", "10 minutes")
        .groupBy("key")
        .transformWithState(
            Sessions(),
            outputStructType="user string, first_ms long, minutes long, clicks int",
            outputMode="Append",
            timeMode="EventTime",
        )
    )
    ended: list[Any] = []
    query = (
        sessions.writeStream.foreachBatch(lambda rows, _: ended.extend(rows.collect()))
        .option("checkpointLocation", f"{folder}/sessions")
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    ended.sort()
    for row in ended:
        print(f"{row.user}: {row.clicks} clicks in {row.minutes} minutes")
    return ended


if __name__ == "__main__":
    sample.run(main, PARTS)

"""spark.readStream.format("headrace"): each entry once, over restarts, limits and lost entries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions

from headrace import Client
from headrace.client.requests import raw
from headrace.pipeline.spark_errors import explain_error


def stream_of(spark: Any, url: str, **options: Any) -> Any:
    return spark.readStream.format("headrace").option("url", url).options(**options).load()


def to_files(rows: Any, folder: Path) -> Any:
    writer = rows.writeStream.format("parquet").option("path", str(folder / "rows"))
    return writer.option("checkpointLocation", str(folder / "checkpoint"))


def ids_in(spark: Any, folder: Path) -> list[str]:
    rows = spark.read.parquet(str(folder / "rows")).select("id", "id_ms", "id_seq").collect()
    return [row.id for row in sorted(rows, key=lambda row: (row.id_ms, row.id_seq))]


def progress_of(query: Any) -> list[dict[str, Any]]:
    return [json.loads(one.json) for one in query.recentProgress]


def test_every_entry_is_read_once_over_limits_and_restarts(
    spark: Any, url: str, client: Client, name: str, tmp_path: Path, drain: Callable[[Any], Any]
) -> None:
    ids = client.stream(name).add_many([{"n": str(n)} for n in range(1000)])
    options = {"streams": name, "startingOffsets": "earliest", "maxEntriesPerTrigger": 400}
    query = drain(to_files(stream_of(spark, url, **options), tmp_path))

    batches = progress_of(query)
    assert [batch["numInputRows"] for batch in batches] == [400, 400, 200]
    assert batches[-1]["sources"][0]["endOffset"][name] == ids[-1]
    assert batches[0]["sources"][0]["latestOffset"][name] == ids[-1]
    lags = [batch["sources"][0]["latestOffset"][""][name]["lag"] for batch in batches]
    assert lags[0] >= lags[1] >= lags[2] == 0
    assert ids_in(spark, tmp_path) == ids

    ids += client.stream(name).add_many([{"n": str(n)} for n in range(50)])
    drain(to_files(stream_of(spark, url, **options), tmp_path))
    assert ids_in(spark, tmp_path) == ids
    drain(to_files(stream_of(spark, url, **options), tmp_path))
    assert ids_in(spark, tmp_path) == ids


def test_a_running_query_gets_what_comes_and_streams_that_join(
    spark: Any, our_url: str, our_client: Client, name: str, tmp_path: Path
) -> None:
    our_client.stream(name).add({"n": "before"})
    view = f"seen_{tmp_path.name.replace('-', '_')}"
    rows = stream_of(spark, our_url, streamsPattern=name + "*").select(
        "stream", functions.col("fields")["n"].alias("n")
    )
    query = rows.writeStream.format("memory").queryName(view).start()
    try:
        query.processAllAvailable()
        our_client.stream(name).add({"n": "1"})
        our_client.stream(name + "-new").add({"n": "2"})
        query.processAllAvailable()
        our_client.stream(name).add({"n": "3"})
        query.processAllAvailable()
        seen = sorted((row.stream, row.n) for row in spark.table(view).collect())
    finally:
        query.stop()

    assert seen == [(name, "1"), (name, "3"), (name + "-new", "2")]


def test_lost_entries_stop_the_query_until_it_is_told_to_go_on(
    spark: Any, our_url: str, our_client: Client, name: str, tmp_path: Path, drain: Callable[[Any], Any]
) -> None:
    ids = our_client.stream(name).add_many([{"n": str(n)} for n in range(10)])
    options = {"streams": name, "startingOffsets": "earliest"}
    drain(to_files(stream_of(spark, our_url, **options), tmp_path))
    more = our_client.stream(name).add_many([{"n": str(n)} for n in range(10)])
    our_client.stream(name).trim(keep=4, force=True)

    with pytest.raises(StreamingQueryException) as raised:
        drain(to_files(stream_of(spark, our_url, **options), tmp_path))
    sentence = explain_error(raised.value)
    assert sentence is not None
    assert f"6 entries behind {ids[-1]} were trimmed" in sentence and "failOnDataLoss" in sentence
    assert ids_in(spark, tmp_path) == ids

    drain(to_files(stream_of(spark, our_url, failOnDataLoss="false", **options), tmp_path))
    assert ids_in(spark, tmp_path) == ids + more[-4:]


def test_declared_columns_and_ids_that_are_no_times_stream_as_well(
    spark: Any, our_url: str, our_client: Client, name: str, tmp_path: Path, drain: Callable[[Any], Any]
) -> None:
    for number in range(1, 21):
        our_client.stream(name).add({"total": str(number)}, id=f"0-{number}")
    reader = spark.readStream.format("headrace").schema("id string, timestamp timestamp, total long")
    rows = reader.options(url=our_url, streams=name, startingOffsets="earliest", minPartitions=3).load()
    writer = rows.writeStream.format("parquet").option("path", str(tmp_path / "rows"))
    drain(writer.option("checkpointLocation", str(tmp_path / "checkpoint")))

    found = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert sorted((row.total, row.id, row.timestamp) for row in found) == [(n, f"0-{n}", None) for n in range(1, 21)]


@pytest.mark.long
@pytest.mark.parametrize("form", ["time", "counter"])
def test_a_million_entries_stream_in_limited_batches_each_once(
    spark: Any, url: str, client: Client, name: str, tmp_path: Path, drain: Callable[[Any], Any], form: str
) -> None:
    count = 1_000_000

    def flow(begin: int) -> Any:
        ids = ["*" if form == "time" else f"0-{n + 1}" for n in range(begin, begin + 20_000)]
        yield [raw("XADD", name, entry_id, "n", begin + n, key=name) for n, entry_id in enumerate(ids)]

    for begin in range(0, count, 20_000):
        client.run(flow(begin))
    rows = stream_of(spark, url, streams=name, startingOffsets="earliest", maxEntriesPerTrigger=200_000)
    query = drain(to_files(rows.select("id", "id_ms", "id_seq", functions.col("fields")["n"].alias("n")), tmp_path))

    sizes = [batch["numInputRows"] for batch in progress_of(query)]
    found = spark.read.parquet(str(tmp_path / "rows"))
    [row] = found.agg(
        functions.count("*").alias("count"),
        functions.count_distinct("id").alias("ids"),
        functions.sum(functions.col("n").cast("long")).alias("sum"),
    ).collect()
    client.command("DEL", name)
    assert (row["count"], row.ids, row.sum) == (count, count, count * (count - 1) // 2)
    assert sum(sizes) == count and max(sizes) <= 400_000, sizes

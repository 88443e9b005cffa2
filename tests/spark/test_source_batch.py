"""spark.read.format("headrace"): what is in streams, as a table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import functions

from headrace import Client
from headrace.client.requests import raw
from headrace.pipeline.rows import STANDARD_DDL
from support.deployments import Deployment, deployments

FIRST_MS = 1_700_000_000_000
PUSH = "spark.sql.python.filterPushdown.enabled"


def rows_of(spark: Any, url: str, schema: str | None = None, **options: Any) -> Any:
    reader = spark.read.format("headrace").option("url", url).options(**options)
    return (reader if schema is None else reader.schema(schema)).load()


def ids_of(rows: Any) -> list[str]:
    return [row.id for row in rows.select("id").collect()]


def rows_read(rows: Any) -> int:
    """How many rows the scan itself brought, before any filter of Spark's."""
    plan = rows._jdf.queryExecution().executedPlan()
    scan = plan.collectLeaves().head()
    return int(scan.metrics().apply("numOutputRows").value())


def fill(client: Client, name: str, ids: list[str]) -> None:
    def flow(part: list[str]) -> Any:
        yield [raw("XADD", name, entry_id, "n", entry_id, key=name) for entry_id in part]

    for begin in range(0, len(ids), 5000):
        client.run(flow(ids[begin : begin + 5000]))


@pytest.fixture
def filled(client: Client, name: str) -> list[str]:
    """The IDs of 100 entries, one per second."""
    ids = [f"{FIRST_MS + 1000 * n}-0" for n in range(100)]
    fill(client, name, ids)
    client.stream(name).group("billing").create(ids[49])
    return ids


def test_a_batch_has_every_entry_in_the_standard_columns(spark: Any, url: str, client: Client, name: str) -> None:
    client.stream(name).add({"n": "1"}, id=f"{FIRST_MS}-7")
    client.stream(name).publish({"total": 9}, key="customer-42")
    rows = rows_of(spark, url, streams=name)

    first, second = rows.collect()
    assert rows.schema == spark.createDataFrame([], STANDARD_DDL).schema
    assert (first.stream, first.id, first.id_ms, first.id_seq) == (name, f"{FIRST_MS}-7", FIRST_MS, 7)
    assert first.timestamp.astimezone(UTC) == datetime.fromtimestamp(FIRST_MS / 1000, UTC)
    assert (first.key, first.data, first.fields) == (None, None, {"n": "1"})
    assert [(bytes(pair.name), bytes(pair.value)) for pair in first.pairs] == [(b"n", b"1")]
    assert (second.key, bytes(second.data)) == ("customer-42", b'{"total":9}')


def test_slices_read_each_entry_once_in_the_order_of_ids(spark: Any, url: str, filled: list[str], name: str) -> None:
    rows = rows_of(spark, url, streams=name, minPartitions=3).select(
        "id", functions.spark_partition_id().alias("slice")
    )

    found = [(row.slice, row.id) for row in rows.collect()]
    assert [entry_id for _, entry_id in sorted(found)] == filled
    assert {number for number, _ in found} == {0, 1, 2}


def test_bounds_choose_what_is_read(spark: Any, url: str, filled: list[str], name: str) -> None:
    for options, expected in [
        ({"startingOffsets": filled[90]}, filled[90:]),
        ({"startingOffsets": "latest"}, []),
        ({"startingOffsets": filled[20], "endingOffsets": filled[29]}, filled[20:30]),
        ({"startingTimestamp": FIRST_MS + 95_000}, filled[95:]),
        ({"endingTimestamp": "2023-11-14T22:13:25Z"}, filled[:6]),
        ({"startingGroup": "billing", "endingOffsets": filled[52]}, filled[50:53]),
        ({"startingOffsets": filled[20], "endingOffsets": filled[10]}, []),
    ]:
        assert ids_of(rows_of(spark, url, streams=name, **options)) == expected, options


def test_streams_are_named_or_matched_and_each_has_its_bounds(spark: Any, url: str, client: Client, name: str) -> None:
    for part in ("a", "b", "c,d"):
        fill(client, f"{name}:{part}", ["1-0", "2-0", "3-0"])
    client.command("SET", f"{name}:e", "no stream")

    everything = rows_of(spark, url, streamsPattern=f"{name}:*").groupBy("stream").count().collect()
    assert sorted((row.stream, row["count"]) for row in everything) == [
        (f"{name}:{part}", 3) for part in ("a", "b", "c,d")
    ]
    some = rows_of(
        spark, url, streams=f'["{name}:b", "{name}:c,d"]', startingOffsets=f'{{"{name}:b": "3-0", "{name}:c,d": "2-0"}}'
    )
    assert sorted((row.stream, row.id) for row in some.collect()) == [
        (f"{name}:b", "3-0"), (f"{name}:c,d", "2-0"), (f"{name}:c,d", "3-0"),
    ]  # fmt: skip
    assert rows_of(spark, url, streamsPattern=f"{name}:none:*").count() == 0


def test_filters_on_ids_times_and_streams_read_only_what_can_match(
    spark: Any, our_url: str, our_client: Client, name: str
) -> None:
    ids = [f"{FIRST_MS + 1000 * n}-0" for n in range(100)]
    other = name + "-other"
    fill(our_client, name, ids)
    fill(our_client, other, ids[:10])
    for condition, expected, count_read in [
        (f"timestamp >= timestamp_millis({FIRST_MS + 90_000})", [(name, one) for one in ids[90:]], 10),
        (f"id_ms > {FIRST_MS + 10_000} and id_ms <= {FIRST_MS + 12_000}", [(name, one) for one in ids[11:13]], 2),
        (f"id = '{ids[7]}'", [(name, ids[7]), (other, ids[7])], 2),
        (f"stream = '{name}' and id in ('{ids[3]}', '{ids[7]}')", [(name, ids[3]), (name, ids[7])], 5),
        (f"id > '{ids[97]}'", [(name, one) for one in ids[98:]], 3),
        (f"stream = '{other}' and id_ms < {FIRST_MS + 2000}", [(other, one) for one in ids[:2]], 2),
        ("id = 'nothing'", [], 0),
    ]:
        rows = rows_of(spark, our_url, streams=f"{name},{other}", pushFilters="true").where(condition)
        assert sorted((row.stream, row.id) for row in rows.collect()) == expected, condition
        assert rows_read(rows) == count_read, condition


def test_queries_over_one_dataframe_do_not_filter_each_other(
    spark: Any, our_url: str, our_client: Client, name: str
) -> None:
    """Spark up to 4.3 mixes up what they push down, so by default they push nothing."""
    fill(our_client, name, [f"{ms}-0" for ms in range(1, 101)])
    rows = rows_of(spark, our_url, streams=name)
    early, late = rows.where("id_ms <= 5"), rows.where("id_ms > 90")

    assert late.count() == 10
    assert rows.count() == 100
    assert early.union(late).count() == 15
    assert rows.union(late).count() == 110


def test_reading_does_not_depend_on_the_setting_that_allows_filters(
    spark: Any, our_url: str, our_client: Client, name: str
) -> None:
    fill(our_client, name, ["1-0", "2-0", "3-0"])
    allowed = spark.conf.get(PUSH)
    try:
        for setting in ("false", "true"):
            spark.conf.set(PUSH, setting)
            for pushed in ("false", "true"):
                assert ids_of(rows_of(spark, our_url, streams=name, pushFilters=pushed).where("id_ms > 1")) == [
                    "2-0",
                    "3-0",
                ]
    finally:
        spark.conf.set(PUSH, allowed)


def test_declared_columns_have_the_types_that_were_asked_for(spark: Any, url: str, client: Client, name: str) -> None:
    client.stream(name).add_many([{"order_id": "17", "total": "9.5"}, {"order_id": "no number"}])

    rows = rows_of(spark, url, "order_id long, total double, stream string", streams=name).collect()

    assert [tuple(row) for row in rows] == [(17, 9.5, name), (None, None, name)]


def test_ids_that_are_no_times_have_no_timestamp_and_are_sliced_by_id(
    spark: Any, url: str, client: Client, name: str
) -> None:
    ids = [f"0-{n}" for n in range(1, 2001)]
    fill(client, name, ids)
    rows = rows_of(spark, url, streams=name, minPartitions=4)
    slices = rows.groupBy(functions.spark_partition_id().alias("slice")).agg(
        functions.count("*").alias("count"),
        functions.count("timestamp").alias("times"),
        functions.min("id_seq").alias("first"),
    )

    assert [(row["count"], row.times, row.first) for row in slices.orderBy("slice").collect()] == [
        (500, 0, 1), (500, 0, 501), (500, 0, 1001), (500, 0, 1501),
    ]  # fmt: skip
    assert sorted(ids_of(rows)) == sorted(ids)


def test_an_empty_stream_is_an_empty_table(spark: Any, url: str, client: Client, name: str) -> None:
    client.stream(name).group("billing").create()

    assert rows_of(spark, url, streams=name).collect() == []


# Large counts


def millions(client: Client, name: str, count: int, entry_id: Callable[[int], str] | None = None) -> None:
    """So many entries, in few round trips; with the IDs the server gives unless told otherwise."""

    def flow(begin: int) -> Any:
        yield [
            raw("XADD", name, "*" if entry_id is None else entry_id(n), "n", n, "text", "some words", key=name)
            for n in range(begin, min(begin + 20_000, count))
        ]

    for begin in range(0, count, 20_000):
        client.run(flow(begin))


@pytest.mark.long
@pytest.mark.parametrize("count", [1_000_000, 5_000_000])
def test_millions_of_entries_are_counted_exactly_and_in_order(
    spark: Any, url: str, client: Client, name: str, count: int
) -> None:
    millions(client, name, count)
    check_whole(spark, url, name, count)
    client.command("DEL", name)


@pytest.mark.long
def test_a_million_ids_that_are_no_times_are_counted_exactly_and_in_order(
    spark: Any, url: str, client: Client, name: str
) -> None:
    millions(client, name, 1_000_000, lambda n: f"0-{n + 1}")
    slices = check_whole(spark, url, name, 1_000_000)
    client.command("DEL", name)

    assert len(slices) > 1 and sum(row.times for row in slices) == 0


def check_whole(spark: Any, url: str, name: str, count: int) -> list[Any]:
    """Every entry once and in the order of IDs: n counts the entries as they were added."""
    rows = rows_of(spark, url, "id string, timestamp timestamp, n long", streams=name)
    rows = rows.withColumn("slice", functions.spark_partition_id())
    place = functions.monotonically_increasing_id()  # Grows by one from row to row of a slice.
    counts = (
        rows.withColumn("shift", place - functions.col("n"))
        .groupBy("slice")
        .agg(
            functions.count("*").alias("count"),
            functions.count_distinct("id").alias("ids"),
            functions.count("timestamp").alias("times"),
            functions.min("n").alias("first"),
            functions.min("shift").alias("least_shift"),
            functions.max("shift").alias("greatest_shift"),
        )
    )
    slices: list[Any] = counts.orderBy("slice").collect()
    begin = 0
    for row in slices:
        assert row.first == begin and row.ids == row["count"] and row.least_shift == row.greatest_shift, row
        begin += row["count"]
    assert begin == count
    return slices


def clusters() -> list[Any]:
    return [pytest.param(one, id=one.name) for one in deployments() if one.name.endswith("-cluster")]


@pytest.mark.long
@pytest.mark.parametrize("cluster", clusters())
def test_streams_of_a_cluster_are_read_from_their_own_nodes(spark: Any, cluster: Deployment) -> None:
    names = [f"orders:{number}" for number in range(12)]
    with cluster.start() as url:
        with Client(url) as client:
            for name in names:
                client.stream(name).add_many([{"n": str(n)} for n in range(500)])
        listed = rows_of(spark, url, streams=",".join(names), minPartitions=24)
        matched = rows_of(spark, url, streamsPattern="orders:*")
        for rows in (listed, matched):
            counts = rows.groupBy("stream").agg(functions.count_distinct("id").alias("ids")).collect()
            assert sorted((row.stream, row.ids) for row in counts) == sorted((name, 500) for name in names)

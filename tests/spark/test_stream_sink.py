"""Rows written to a stream: each is one entry, once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from headrace import Client

ROWS_THAT_ARE_STAGED = 3000  # More than a task hands to the driver.


def numbers(client: Client, name: str) -> list[int]:
    return [json.loads(entry.fields["data"])["n"] for entry in client.stream(name).iterate()]


def left_over(url: str, name: str) -> list[str]:
    with redis.Redis.from_url(url, decode_responses=True) as server:
        return sorted(server.keys(f"hr:{{{name}}}:*"))


def counting(spark: Any, tmp_path: Path, files: int, rows: int) -> Any:
    """A stream of `files` batches, each with its own `rows` numbers."""
    folder = tmp_path / "numbers"
    folder.mkdir(exist_ok=True)
    for number in range(files):
        lines = [json.dumps({"n": number * rows + row}) for row in range(rows)]
        (folder / f"{number:03}.json").write_text("\n".join(lines))
    return spark.readStream.schema("n int").option("maxFilesPerTrigger", 1).json(str(folder))


def to_stream(rows: Any, url: str, name: str, checkpoint: Path, **options: Any) -> Any:
    writer = rows.writeStream.format("headrace").option("url", url).option("stream", name)
    return writer.option("checkpointLocation", str(checkpoint)).options(**options)


def write(rows: Any, url: str, name: str, **options: Any) -> None:
    rows.write.format("headrace").option("url", url).option("stream", name).options(**options).mode("append").save()


def test_every_row_of_a_streaming_query_becomes_one_entry(
    spark: Any, url: str, client: Client, name: str, tmp_path: Path, drain: Callable[[Any], Any]
) -> None:
    few = counting(spark, tmp_path, files=3, rows=20)

    drain(to_stream(few, url, name, tmp_path / "checkpoint"))

    assert sorted(numbers(client, name)) == list(range(60))
    assert [key.split(":")[2] for key in left_over(url, name)] == ["sink"]


def test_many_rows_are_staged_and_leave_nothing_behind(spark: Any, url: str, client: Client, name: str) -> None:
    write(spark.range(ROWS_THAT_ARE_STAGED).selectExpr("cast(id as int) n").repartition(2, "n"), url, name)

    assert sorted(numbers(client, name)) == list(range(ROWS_THAT_ARE_STAGED))
    assert left_over(url, name) == []


@pytest.mark.costly("headrace")
def test_sorted_rows_arrive_in_their_order(spark: Any, url: str, client: Client, name: str) -> None:
    rows = spark.range(0, 4 * ROWS_THAT_ARE_STAGED, 1, 4).selectExpr("cast(id as int) n")

    write(rows.where(f"n < {ROWS_THAT_ARE_STAGED} or n % 100 = 0"), url, name)  # Staged, and carried behind it.

    assert numbers(client, name) == sorted(numbers(client, name))


def test_entries_of_the_source_are_passed_on_byte_for_byte(
    spark: Any, url: str, client: Client, new_name: Callable[[], str]
) -> None:
    here, there = new_name(), new_name()
    pairs = [(b"a", b"1"), (b"a", b"\xff\r\n"), (b"", b"")]
    client.stream(here).add(pairs)

    write(spark.read.format("headrace").option("url", url).option("streams", here).load(), url, there)

    [entry] = client.stream(there).range()
    assert list(entry.pairs) == pairs


@pytest.mark.costly("headrace")
def test_a_published_row_is_read_as_a_message(spark: Any, url: str, client: Client, name: str) -> None:
    row = "to_json(named_struct('id', 17)) data, 'customer-42' key, map('source', 'shop') headers"

    write(spark.sql(f"select {row}"), url, name)

    [entry] = client.stream(name).range()
    assert entry.payload == {"id": 17} and entry.key == "customer-42" and entry.headers == {"source": "shop"}


def test_in_complete_mode_each_batch_adds_the_whole_result_again(
    spark: Any, our_url: str, our_client: Client, name: str, tmp_path: Path, drain: Callable[[Any], Any]
) -> None:
    counts = counting(spark, tmp_path, files=2, rows=4).groupBy(odd("n").alias("key")).count()

    drain(to_stream(counts, our_url, name, tmp_path / "checkpoint").outputMode("complete"))

    written = sorted((entry.key, entry.payload["count"]) for entry in our_client.stream(name).range())
    assert written == [("0", 2), ("0", 4), ("1", 2), ("1", 4)]


def test_updates_are_written_once_by_foreach_batch_with_a_write_id_and_the_batch_id(
    spark: Any, our_url: str, our_client: Client, name: str, tmp_path: Path, drain: Callable[[Any], Any]
) -> None:
    counts = counting(spark, tmp_path, files=2, rows=4).groupBy(odd("n").alias("key")).count()

    def add(rows: Any, batch_id: int) -> None:
        for _ in range(2):
            write(rows, our_url, name, writeId="counts", batchId=batch_id)

    drain(counts.writeStream.foreachBatch(add).outputMode("update").option("checkpointLocation", str(tmp_path / "c")))

    written = sorted((entry.key, entry.payload["count"]) for entry in our_client.stream(name).range())
    assert written == [("0", 2), ("0", 4), ("1", 2), ("1", 4)]
    assert left_over(our_url, name) == [f"hr:{{{name}}}:sink:write:counts"]


def odd(name: str) -> Any:
    from pyspark.sql.functions import col

    return col(name) % 2


@pytest.mark.costly("headrace")
def test_max_length_keeps_the_stream_short(spark: Any, url: str, client: Client, name: str) -> None:
    write(spark.range(ROWS_THAT_ARE_STAGED), url, name, maxLength=100)

    assert 100 <= client.stream(name).length() < ROWS_THAT_ARE_STAGED / 2


# Once


def test_a_batch_write_with_a_write_id_is_done_once(spark: Any, url: str, client: Client, name: str) -> None:
    rows = spark.range(10).selectExpr("cast(id as int) n")

    write(rows, url, name, writeId="2026-11-15")
    write(rows, url, name, writeId="2026-11-15")
    assert client.stream(name).length() == 10

    write(rows, url, name)
    write(rows, url, name)
    assert client.stream(name).length() == 30


def test_a_batch_that_spark_repeats_is_not_written_again(
    spark: Any, url: str, client: Client, name: str, tmp_path: Path, drain: Callable[[Any], Any]
) -> None:
    checkpoint = tmp_path / "checkpoint"
    rows = counting(spark, tmp_path, files=2, rows=20)
    drain(to_stream(rows, url, name, checkpoint))
    for file in (checkpoint / "commits").glob("*1*"):  # As if the driver had been killed before it wrote this.
        file.unlink()

    drain(to_stream(rows, url, name, checkpoint))

    assert sorted(numbers(client, name)) == list(range(40))


def test_an_old_checkpoint_is_refused(
    spark: Any, our_url: str, our_client: Client, name: str, tmp_path: Path, drain: Callable[[Any], Any]
) -> None:
    checkpoint = tmp_path / "checkpoint"
    rows = counting(spark, tmp_path, files=2, rows=20)
    drain(to_stream(rows, our_url, name, checkpoint))
    for old in ("commits/0", "commits/1", "offsets/1", "sources/0/1"):
        (checkpoint / old).unlink()

    with pytest.raises(Exception, match="batch 0 comes after batch 1 was written"):
        drain(to_stream(rows, our_url, name, checkpoint))

    assert our_client.stream(name).length() == 40


# Refusals


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ("1 n", {"maxlenght": "5"}, "no option 'maxlenght'. Did you mean maxLength"),
        ("1 n", {"maxLength": "0"}, "maxLength is '0'"),
        ("1 n", {"as": "xml"}, "as is 'xml'"),
        ("1 n", {"writeId": ""}, "writeId is empty"),
        ("1 n", {"batchId": "1"}, "batchId counts the writes under one name"),
        ("1 n", {"writeId": "a", "batchId": "x"}, "batchId is 'x'"),
        ("1 data", {}, "'data' must be string or binary"),
        ("make_ym_interval(1, 2) span", {}, "cannot be written to a stream"),
        ("parse_json('1') v", {}, "is a variant|cannot be written to a stream"),
    ],
)
def test_a_wrong_option_or_column_is_told_in_one_sentence(
    spark: Any, our_url: str, our_client: Client, name: str, columns: str, options: dict[str, str], words: str
) -> None:
    with pytest.raises(Exception, match=words):
        write(spark.sql(f"select {columns}"), our_url, name, **options)

    assert our_client.stream(name).length() == 0


def test_a_row_without_data_stops_the_write_before_anything_is_written(
    spark: Any, our_url: str, our_client: Client, name: str
) -> None:
    with pytest.raises(Exception, match=r"a row has no data \(null\)"):
        write(spark.sql("select 'a' data union all select null"), our_url, name)

    assert our_client.stream(name).length() == 0


@pytest.mark.costly("headrace")
def test_a_target_of_another_type_is_left_as_it_is(spark: Any, url: str, name: str) -> None:
    with redis.Redis.from_url(url) as server:
        server.set(name, "mine")
    for rows in (1, ROWS_THAT_ARE_STAGED):
        with pytest.raises(Exception, match=f"'{name}' is not a stream but a string"):
            write(spark.range(rows), url, name)

    with redis.Redis.from_url(url) as server:
        assert server.get(name) == b"mine"
    assert left_over(url, name) == []


def test_a_broker_that_is_away_is_told_without_the_password(spark: Any, name: str) -> None:
    with pytest.raises(Exception, match=r"Cannot reach redis://127\.0\.0\.1:1 ") as caught:
        write(spark.range(1), "redis://:topsecret@127.0.0.1:1", name)

    assert "topsecret" not in str(caught.value)


def test_overwriting_is_refused(spark: Any, our_url: str, name: str) -> None:
    rows = spark.range(1).write.format("headrace").option("url", our_url).option("stream", name)

    with pytest.raises(Exception, match="only adds"):
        rows.mode("overwrite").save()

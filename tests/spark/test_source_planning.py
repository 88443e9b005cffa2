"""What a streaming query plans and reads, batch by batch, without Spark around it: readers are called as Spark does."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StringType, StructField, StructType

from headrace import Client
from headrace.errors import ConfigError, DataLoss, NotFound, WrongType
from headrace.pipeline.source import HeadraceDataSource, StreamReader

IDS = StructType([StructField("stream", StringType()), StructField("id", StringType())])
ALL = ReadAllAvailable()


class Query:
    """A streaming query's side of the source: its offset, and everything it has read."""

    def __init__(self, reader: StreamReader, offset: dict[str, Any] | None = None) -> None:
        self.reader = reader
        self.offset = reader.initialOffset() if offset is None else offset
        self.batches: list[list[tuple[str, str]]] = []

    def plan(self, limit: Any = ALL) -> dict[str, Any]:
        return json.loads(json.dumps(self.reader.latestOffset(self.offset, limit)))

    def read(self, end: dict[str, Any]) -> list[tuple[str, str]]:
        rows = []
        for partition in self.reader.partitions(self.offset, end):
            for batch in self.reader.read(partition):
                rows += [(row["stream"], row["id"]) for row in batch.to_pylist()]
        return rows

    def step(self, limit: Any = ALL) -> list[str]:
        """One batch; the IDs it read. Empty where there is nothing new."""
        end = self.plan(limit)
        if end == self.offset:
            return []
        rows = self.read(end)
        self.batches.append(rows)
        self.offset = end
        return [entry_id for _, entry_id in rows]

    def drain(self, limit: Any = ALL, most: int = 100) -> list[tuple[str, str]]:
        rows: list[tuple[str, str]] = []
        for _ in range(most):
            if (end := self.plan(limit)) == self.offset:
                return rows
            rows += self.read(end)
            self.offset = end
        raise AssertionError(f"still not at the end after {most} batches")


@contextmanager
def reader(url: str, **options: str) -> Iterator[StreamReader]:
    made = HeadraceDataSource({"url": url, **options}).streamReader(IDS)
    with closing(made.planner):
        yield made


@contextmanager
def query(url: str, name: str, start: str = "earliest", **options: str) -> Iterator[Query]:
    with reader(url, streams=name, startingOffsets=start, **options) as made:
        yield Query(made)


def add(client: Client, name: str, *ids: str) -> None:
    for entry_id in ids:
        client.stream(name).add({"n": entry_id}, id=entry_id)


# Where a query begins


def test_a_query_begins_where_it_is_told(url: str, client: Client, name: str) -> None:
    add(client, name, *(f"{ms}-0" for ms in range(1, 10)))
    client.stream(name).group("billing").create("3-0")

    for options, expected in [
        ({"startingOffsets": "earliest"}, 1),
        ({"startingOffsets": "latest"}, 10),
        ({}, 10),
        ({"startingOffsets": "4-0"}, 4),
        ({"startingOffsets": "4"}, 4),
        ({"startingOffsets": f'{{"{name}": "7-0"}}'}, 7),
        ({"startingTimestamp": "5"}, 5),
        ({"startingTimestamp": "1970-01-01T00:00:00.006Z"}, 6),
        ({"startingGroup": "billing"}, 4),
    ]:
        with reader(url, streams=name, **options) as made:
            one = Query(made)
            assert one.step() == [f"{ms}-0" for ms in range(expected, 10)], options
    add(client, name, "10-0")


def test_a_query_that_begins_now_reads_what_comes_then(url: str, client: Client, name: str) -> None:
    add(client, name, "1-0", "2-0")
    with query(url, name, "latest") as one:
        assert one.step() == []
        add(client, name, "3-0", "4-0")
        assert one.step() == ["3-0", "4-0"]
        assert one.step() == []


def test_a_query_may_begin_with_an_id_that_comes_later(url: str, client: Client, name: str) -> None:
    add(client, name, "1-0")
    with query(url, name, "5-0") as one:
        add(client, name, "4-0")
        assert one.step() == []
        add(client, name, "5-0", "6-0")
        assert one.step() == ["5-0", "6-0"]


# Limits


@pytest.mark.parametrize("limit", [1, 7, 250])
def test_a_small_limit_is_kept_exactly(url: str, client: Client, name: str, limit: int) -> None:
    ids = client.stream(name).add_many([{"n": str(n)} for n in range(40 * min(limit, 7))])
    with query(url, name) as one:
        for begin in range(0, len(ids), limit):
            assert one.step(ReadMaxRows(limit)) == ids[begin : begin + limit]
        assert one.step(ReadMaxRows(limit)) == []


def test_a_limit_is_shared_between_streams_and_used_up(url: str, client: Client, new_name: Callable[[], str]) -> None:
    names = [new_name() for _ in range(3)]
    for name, count in zip(names, (5, 100, 1000), strict=True):
        client.stream(name).add_many([{"n": "x"}] * count)
    with reader(url, streams=",".join(names), startingOffsets="earliest") as made:
        one = Query(made)
        sizes = []
        while one.step(ReadMaxRows(300)):
            sizes.append([sum(stream == name for stream, _ in one.batches[-1]) for name in names])

    assert sizes == [[5, 100, 195], [0, 0, 300], [0, 0, 300], [0, 0, 205]]


def test_a_limit_below_the_number_of_streams_starves_none(
    url: str, client: Client, new_name: Callable[[], str]
) -> None:
    names = [new_name() for _ in range(3)]
    for name in names:
        add(client, name, "1-0", "2-0")
    with reader(url, streams=",".join(names), startingOffsets="earliest") as made:
        one = Query(made)
        rows = one.drain(ReadMaxRows(2))

    assert sorted(rows) == sorted((name, entry_id) for name in names for entry_id in ("1-0", "2-0"))


@pytest.mark.parametrize("shape", ["even", "bursts", "one millisecond", "counters", "two milliseconds"])
def test_a_large_limit_is_kept_roughly_and_ends_at_the_end(
    our_url: str, our_client: Client, name: str, shape: str
) -> None:
    count = 60_000
    make: dict[str, Callable[[int], str]] = {
        "even": lambda n: f"{1_700_000_000_000 + n // 3}-{n % 3}",
        "bursts": lambda n: f"{1_700_000_000_000 + n // 10_000 * 900_000 + n % 10_000 // 50}-{n % 50}",
        "one millisecond": lambda n: f"1700000000000-{n}",
        "counters": lambda n: f"0-{n + 1}",
        "two milliseconds": lambda n: f"{1_700_000_000_000 + n // 30_000}-{n % 30_000}",
    }
    fill(our_client, name, [make[shape](n) for n in range(count)])
    with query(our_url, name) as one:
        sizes = []
        while ids := one.step(ReadMaxRows(12_000)):
            sizes.append(len(ids))

    assert sum(sizes) == count and len({row for batch in one.batches for row in batch}) == count
    assert all(1000 <= size <= 24_000 for size in sizes[:-1]), sizes


def fill(client: Client, name: str, ids: list[str]) -> None:
    """XADDs with these IDs, many at a time."""
    from headrace.client.requests import raw

    def flow(part: list[str]) -> Any:
        yield [raw("XADD", name, entry_id, "n", "1", key=name) for entry_id in part]

    for begin in range(0, len(ids), 5000):
        client.run(flow(ids[begin : begin + 5000]))


# What is available now


def test_what_comes_after_the_start_waits_for_the_next_run(url: str, client: Client, name: str) -> None:
    add(client, name, "1-0", "2-0", "3-0")
    with reader(url, streamsPattern=name + "*", startingOffsets="earliest") as made:
        one = Query(made)
        made.prepareForTriggerAvailableNow()
        add(client, name, "4-0")
        add(client, name + "-late", "1-0")
        assert one.drain(ReadMaxRows(2)) == [(name, "1-0"), (name, "2-0"), (name, "3-0")]
    with reader(url, streamsPattern=name + "*", startingOffsets="earliest") as made:
        made.prepareForTriggerAvailableNow()
        later = Query(made, one.offset)
        assert sorted(later.drain()) == [(name, "4-0"), (name + "-late", "1-0")]


# Streams that come and go


def test_a_stream_that_matches_later_joins_from_its_beginning(url: str, client: Client, name: str) -> None:
    with reader(url, streamsPattern=name + "*") as made:
        one = Query(made)
        assert one.offset == {} and one.step() == []
        add(client, name + "-a", "1-0", "2-0")
        assert one.step() == ["1-0", "2-0"]
        add(client, name + "-b", "1-0")
        add(client, name + "-a", "3-0")
        assert one.step() == ["3-0", "1-0"]


def test_a_stream_added_to_the_list_joins_and_one_taken_out_keeps_its_place(
    url: str, client: Client, new_name: Callable[[], str]
) -> None:
    a, b = new_name(), new_name()
    add(client, a, "1-0")
    add(client, b, "1-0", "2-0")
    with query(url, a) as one:
        one.step()
    with reader(url, streams=b) as made:
        two = Query(made, one.offset)
        add(client, a, "2-0")
        assert two.drain() == [(b, "1-0"), (b, "2-0")]
    with reader(url, streams=f"{a},{b}") as made:
        assert Query(made, two.offset).drain() == [(a, "2-0")]


def test_a_missing_stream_is_told_at_the_start(url: str, name: str) -> None:
    with reader(url, streams=name) as made, pytest.raises(NotFound, match=f"there is no stream '{name}'"):
        made.initialOffset()
    with reader(url, streams=name) as made, pytest.raises(NotFound, match=f"there is no stream '{name}'"):
        made.latestOffset({}, ALL)


def test_a_missing_group_is_told_at_the_start(url: str, client: Client, name: str) -> None:
    add(client, name, "1-0")
    with reader(url, streams=name, startingGroup="nobody") as made, pytest.raises(NotFound, match="no group 'nobody'"):
        made.initialOffset()


def test_a_key_of_another_type_is_told_at_any_time(url: str, client: Client, name: str) -> None:
    client.command("SET", name, "x")
    with reader(url, streams=name) as made, pytest.raises(WrongType, match=f"'{name}' is not a stream but a string"):
        made.initialOffset()

    client.command("DEL", name)
    add(client, name, "1-0", "2-0")
    with query(url, name) as one:
        end = one.plan()
        client.command("DEL", name)
        client.command("SET", name, "x")
        with pytest.raises(WrongType, match="not a stream"):
            one.read(end)
        with pytest.raises(WrongType, match="not a stream but a string"):
            one.plan()


# Lost entries


def losing(url: str, client: Client, name: str) -> Iterator[tuple[str, Query]]:
    """The same query, failing on lost entries and going on; it has read 1-0 and 2-0 of a stream up to 6-0."""
    for fails in ("true", "false"):
        client.command("DEL", name)
        add(client, name, *(f"{ms}-0" for ms in range(1, 7)))
        with query(url, name, failOnDataLoss=fails) as one:
            assert one.step(ReadMaxRows(2)) == ["1-0", "2-0"]
            yield fails, one


def test_trimming_what_was_read_is_no_loss(url: str, client: Client, name: str) -> None:
    add(client, name, *(f"{ms}-0" for ms in range(1, 7)))
    with query(url, name) as one:
        one.step(ReadMaxRows(2))
        client.command("XTRIM", name, "MINID", "3-0")
        assert one.step() == ["3-0", "4-0", "5-0", "6-0"]
        client.command("XTRIM", name, "MAXLEN", "0")
        assert one.step() == []
        add(client, name, "7-0")
        assert one.step() == ["7-0"]


def test_trimming_what_was_not_read_is_an_error_or_reported_once(
    url: str, client: Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    for fails, one in losing(url, client, name):
        client.command("XTRIM", name, "MINID", "5-0")
        if fails == "true":
            with pytest.raises(DataLoss, match=f"'{name}': entries from 3-0 on were trimmed .*failOnDataLoss"):
                one.step()
            assert one.offset[name] == "2-0"
        else:
            with caplog.at_level(logging.WARNING):
                assert one.step() == ["5-0", "6-0"]
                assert one.step() == []
            [told] = [record.getMessage() for record in caplog.records]
            assert "entries from 3-0 on were trimmed" in told and "\n" not in told


def test_what_came_and_was_trimmed_between_batches_is_noticed(url: str, client: Client, name: str) -> None:
    add(client, name, "1-0", "2-0")
    with query(url, name) as one:
        one.step()
        add(client, name, "3-0", "4-0", "5-0")
        client.command("XTRIM", name, "MAXLEN", "2")
        with pytest.raises(DataLoss, match="1 entries behind 2-0 were trimmed or deleted"):
            one.step()


def test_what_went_while_the_query_was_stopped_is_noticed_when_it_goes_on(url: str, client: Client, name: str) -> None:
    add(client, name, "1-0", "2-0")
    with query(url, name) as one:
        one.step()
    add(client, name, "3-0", "4-0")
    client.command("XTRIM", name, "MAXLEN", "1")
    with reader(url, streams=name) as made, pytest.raises(DataLoss, match="1 entries behind 2-0"):
        Query(made, one.offset).step()


def test_a_trim_between_planning_and_reading_is_noticed(url: str, client: Client, name: str) -> None:
    for fails, one in losing(url, client, name):
        end = one.plan()
        partitions = one.reader.partitions(one.offset, end)
        client.command("XTRIM", name, "MINID", "5-0")
        batches = (batch for partition in partitions for batch in one.reader.read(partition))
        if fails == "true":
            with pytest.raises(DataLoss, match="went before they were read"):
                list(batches)
        else:
            assert [row["id"] for batch in batches for row in batch.to_pylist()] == ["5-0", "6-0"]


def test_a_batch_that_runs_again_notices_what_went_since(url: str, client: Client, name: str) -> None:
    for fails, one in losing(url, client, name):
        end = one.plan()
        client.command("XTRIM", name, "MINID", "5-0")
        if fails == "true":
            with pytest.raises(DataLoss, match="from 3-0 on were trimmed"):
                one.read(end)
        else:
            assert one.read(end) == [(name, "5-0"), (name, "6-0")]


def test_a_deleted_entry_is_an_error_or_reported(url: str, client: Client, name: str) -> None:
    for fails, one in losing(url, client, name):
        client.stream(name).delete("1-0", "4-0")
        if fails == "true":
            with pytest.raises(DataLoss, match="entries behind 2-0 were deleted, 4-0 among them"):
                one.step()
        else:
            assert one.step() == ["3-0", "5-0", "6-0"]


def test_deletions_from_before_the_query_are_no_loss(url: str, client: Client, name: str) -> None:
    add(client, name, *(f"{ms}-0" for ms in range(1, 7)))
    client.stream(name).delete("4-0")
    with query(url, name) as one:
        assert one.step(ReadMaxRows(2)) == ["1-0", "2-0"]
        assert one.step(ReadMaxRows(1)) == ["3-0"]
        assert one.step() == ["5-0", "6-0"]


def test_a_stream_that_is_deleted_and_made_anew_is_an_error_or_read_from_its_beginning(
    url: str, client: Client, name: str
) -> None:
    for fails, one in losing(url, client, name):
        client.command("DEL", name)
        add(client, name, "1-0")
        if fails == "true":
            with pytest.raises(DataLoss, match="deleted and made anew: its last ID is 1-0, below 2-0"):
                one.step()
        else:
            assert one.drain() == [(name, "1-0")]


def test_a_stream_that_is_made_anew_with_higher_ids_is_noticed_too(url: str, client: Client, name: str) -> None:
    for fails in ("true", "false"):
        client.command("DEL", name)
        add(client, name, "1-0", "2-0", "3-0")
        with query(url, name, failOnDataLoss=fails) as one:
            one.step()
            client.command("DEL", name)
            add(client, name, "2-0", "9-0")
            if fails == "true":
                with pytest.raises(DataLoss, match="made anew: it has had 2 entries, and 3 were read"):
                    one.step()
            else:
                assert one.drain() == [(name, "2-0"), (name, "9-0")]


def test_a_stream_that_is_gone_is_an_error_or_reported_until_it_is_back(url: str, client: Client, name: str) -> None:
    for fails, one in losing(url, client, name):
        client.command("DEL", name)
        if fails == "true":
            with pytest.raises(DataLoss, match=f"'{name}', read up to 2-0, is gone"):
                one.step()
        else:
            assert one.drain() == []
            add(client, name, "1-0")
            assert one.drain() == [(name, "1-0")]


def test_a_matching_stream_that_is_gone_is_an_error_or_forgotten(url: str, client: Client, name: str) -> None:
    for fails in ("true", "false"):
        add(client, name + "-a", "1-0")
        with reader(url, streamsPattern=name + "*", startingOffsets="earliest", failOnDataLoss=fails) as made:
            one = Query(made)
            one.step()
            client.command("DEL", name + "-a")
            if fails == "true":
                with pytest.raises(DataLoss, match="is gone"):
                    one.step()
            else:
                assert one.drain() == [] and one.offset == {}


# Progress and checkpoints


def test_the_progress_tells_how_far_behind_a_query_is(url: str, client: Client, name: str) -> None:
    add(client, name, *(f"{ms}-0" for ms in range(1, 11)))
    with query(url, name) as one:
        one.step(ReadMaxRows(4))
        assert one.reader.reportLatestOffset() == {"": {name: {"lag": 6}}, name: "10-0"}
        one.step()
        assert one.reader.reportLatestOffset() == {"": {name: {"lag": 0}}, name: "10-0"}


def test_a_damaged_checkpoint_is_one_sentence(our_url: str, our_client: Client, name: str) -> None:
    add(our_client, name, "1-0")
    with reader(our_url, streams=name) as made:
        for plan in (lambda: made.latestOffset({name: "x"}, ALL), lambda: made.partitions({name: "1-0"}, {name: 5})):
            with pytest.raises(ConfigError, match="the checkpoint is damaged"):
                plan()


def test_any_slicing_reads_each_entry_once_in_the_order_of_ids(url: str, client: Client, name: str) -> None:
    fill(client, name, [f"{1_700_000_000_000 + n // 7}-{n % 7}" for n in range(3000)])
    for partitions in ("1", "3", "16"):
        with query(url, name, minPartitions=partitions, pageEntries="100") as one:
            ids = one.step()
            assert len(ids) == 3000 and ids == [f"{1_700_000_000_000 + n // 7}-{n % 7}" for n in range(3000)]


def test_many_streams_are_planned_at_once(url: str, client: Client, name: str) -> None:
    for number in range(600):
        add(client, f"{name}:{number:03}", "1-0")
    with reader(url, streamsPattern=name + ":*", startingOffsets="earliest") as made:
        assert len(Query(made).drain()) == 600

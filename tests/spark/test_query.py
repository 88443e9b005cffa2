"""One table over archive and live stream: the same rows wherever they are, none missing and none twice."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from headrace import Client
from headrace.errors import ConfigError, NotFound, TableError
from headrace.pipeline.archives import forget
from headrace.pipeline.jobs.archive import archive
from headrace.pipeline.jobs.query import query, table
from headrace.pipeline.results import read_rows
from support.servers import wait_until

QUERIES = 2
PAGE = 50
MOST = 20_000  # Entries, so that a slow machine gets no more to do than a quick one.


@pytest.fixture
def lake(client: Client, tmp_path: Path, name: str) -> Iterator[Path]:
    """The folder of an archive that has the stream's name."""
    yield tmp_path / "lake"
    if client.command("HEXISTS", "hr:archives", name):
        forget(client, name)


def ids_of(frame: Any) -> list[str]:
    return sorted((row.id for row in frame.select("id").collect()), key=lambda text: [int(n) for n in text.split("-")])


# The seam


class Publisher:
    """Adds entries to a stream, page by page, and knows their IDs."""

    def __init__(self, url: str, stream: str) -> None:
        self.url, self.stream = url, stream
        self.ids: list[str] = []

    def run(self, stop: Event) -> None:
        with Client(self.url) as client:
            target = client.stream(self.stream)
            while not stop.wait(0.02) and len(self.ids) < MOST:
                self.ids += target.add_many([{"n": str(len(self.ids))}] * PAGE)


@contextmanager
def running(*jobs: Callable[[Event], Any]) -> Iterator[list[BaseException]]:
    """Runs jobs in threads until the block ends. Their failures are in the list."""
    stop, failures = Event(), []

    def run(job: Callable[[Event], Any]) -> None:
        try:
            job(stop)
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    try:
        yield failures
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.costly("headrace")
def test_while_an_archive_trims_no_row_is_missing_and_none_comes_twice(
    spark: Any, url: str, client: Client, stream: Any, lake: Path
) -> None:
    publisher = Publisher(url, stream.name)
    publisher.ids += stream.add_many([{"n": "0"}] * PAGE)

    def archive_and_trim(stop: Event) -> None:
        archive(
            stream.name, lake, url=url, name=stream.name, trim=True, continuous=True, interval="50ms",
            max_entries_per_batch=3 * PAGE, spark=spark, stop_event=stop,
        )  # fmt: skip

    with running(publisher.run, archive_and_trim) as failures:
        wait_until(lambda: bool(failures) or stream.length() < len(publisher.ids) - PAGE, "a first trim", timeout_s=60)
        for _ in range(QUERIES):
            first, before = stream.info().first_entry, len(publisher.ids)
            found = ids_of(table(stream.name, url=url, archive=stream.name, spark=spark))

            assert found == publisher.ids[: len(found)]
            assert len(found) >= before
            wait_until(
                lambda first=first: bool(failures) or stream.info().first_entry != first, "a next trim", timeout_s=60
            )

    assert not failures, failures[0]
    assert ids_of(table(stream.name, url=url, archive=stream.name, spark=spark)) == publisher.ids


@pytest.mark.costly("headrace")
def test_a_table_that_was_made_before_a_trim_still_has_every_row_after_it(
    spark: Any, url: str, stream: Any, lake: Path
) -> None:
    ids = stream.add_many([{"n": str(number)} for number in range(1000)])
    archive(stream.name, lake, url=url, name=stream.name, spark=spark)
    ids += stream.add_many([{"n": str(number)} for number in range(1000)])
    made = table(stream.name, url=url, spark=spark)

    archive(stream.name, lake, url=url, name=stream.name, trim=True, spark=spark)
    stream.add({"n": "later"})

    assert stream.length() == 1
    assert ids_of(made) == ids
    assert len(ids_of(table(stream.name, url=url, spark=spark))) == 2001


def test_rows_are_the_same_before_and_after_they_are_archived_and_those_of_the_source(
    spark: Any, url: str, stream: Any, lake: Path
) -> None:
    stream.add(
        [("n", "1"), ("n", "2"), ("é", b"\xff\xfe"), (b"\x80", ""), ("key", "k"), ("data", b"\x00\xff")], id="1-1"
    )
    stream.add({"data": '{"id":17}', "key": "customer-42"}, id="1794744000000-7")
    stream.add({"n": "x"}, id="18446744073709551615-18446744073709551614")
    source = list(read_rows(spark.read.format("headrace").option("url", url).option("streams", stream.name).load()))
    live = list(read_rows(table(stream.name, url=url, spark=spark)))

    archive(stream.name, lake, url=url, name=stream.name, trim=True, spark=spark)

    assert stream.length() == 0
    assert live[1]["day"] == "2026-11-15" and live[0]["day"] is live[2]["day"] is None
    assert sorted(read_rows(table(stream.name, url=url, spark=spark)), key=lambda row: row["id_ms"]) == live
    assert [{name: row[name] for name in row if name != "day"} for row in live] == source


@pytest.mark.costly("headrace")
def test_entries_from_before_the_archive_was_begun_are_rows_too(spark: Any, url: str, stream: Any, lake: Path) -> None:
    ids = [stream.add({"n": "x"}, id=f"{number}-0") for number in range(1, 7)]
    archive(stream.name, lake, url=url, name=stream.name, start="3-0", spark=spark)
    ids += [stream.add({"n": "x"}, id="7-0")]

    assert ids_of(table(stream.name, url=url, spark=spark)) == ids


@pytest.mark.costly("headrace")
def test_a_stream_that_is_gone_is_what_is_archived_of_it(
    spark: Any, url: str, client: Client, stream: Any, lake: Path
) -> None:
    ids = stream.add_many([{"n": "x"}] * 3)
    archive(stream.name, lake, url=url, name=stream.name, spark=spark)
    client.command("DEL", stream.name)

    assert ids_of(table(stream.name, url=url, spark=spark)) == ids


# SQL


@pytest.mark.costly("headrace")
def test_sql_sees_streams_by_their_names_live_and_archived(
    spark: Any, url: str, client: Client, stream: Any, lake: Path
) -> None:
    odd = client.stream("{" + stream.name + "}:Köln/a.b`c")
    stream.add_many([{"key": "tea"}] * 3)
    archive(stream.name, lake, url=url, name=stream.name, trim=True, spark=spark)
    stream.add_many([{"key": "tea"}, {"key": "milk"}])
    odd.add({"key": "milk"})
    sql = f"""
        with o as (select * from `{stream.name}`)
        select key, count(*) n from o group by key having key not in (select key from `{odd.name.replace("`", "``")}`)
    """

    assert list(read_rows(query(sql, url=url, spark=spark))) == [{"key": "tea", "n": 4}]


@pytest.mark.costly("headrace")
def test_filters_on_ids_and_times_find_the_same_rows_in_both_halves(
    spark: Any, url: str, stream: Any, lake: Path
) -> None:
    first = 1_794_744_000_000
    for number in range(10):
        stream.add({"n": str(number)}, id=f"{first + number * 60_000}-0")
        if number == 4:
            archive(stream.name, lake, url=url, name=stream.name, trim=True, spark=spark)
    rows = f"select count(*) n from `{stream.name}` where "

    def count(condition: str) -> int:
        [row] = read_rows(query(rows + condition, url=url, spark=spark))
        return int(row["n"])

    assert count(f"id_ms between {first + 120_000} and {first + 420_000}") == 6
    assert count("timestamp >= timestamp'2026-11-15 12:07:00Z'") == 3
    assert count(f"id = '{first + 480_000}-0' or id = '{first}-0'") == 2
    assert count(f"id_ms > {first + 600_000}") == 0
    assert count("day = date'2026-11-15' and fields['n'] >= '5'") == 5


def test_names_that_differ_in_case_only_are_refused(spark: Any, our_url: str, our_client: Client, name: str) -> None:
    for spelling in (name, name.upper()):
        our_client.stream(spelling).add({"n": "x"})

    with pytest.raises(ConfigError, match="which SQL cannot tell apart"):
        query(f"select * from `{name}` join `{name.upper()}` using (id)", url=our_url, spark=spark)


def test_a_name_that_is_no_stream_is_told(spark: Any, our_url: str, our_client: Client, name: str) -> None:
    with pytest.raises(NotFound) as missing:
        query(f"select * from `{name}`", url=our_url, spark=spark)

    assert missing.value.stream == name
    assert str(missing.value) == f"there is no stream {name!r} at {our_client.url}, and no archive of one."


def test_a_url_is_in_no_plan(spark: Any, our_url: str, our_client: Client, name: str) -> None:
    our_client.stream(name).add({"n": "x"})

    plan = table(name, url=our_url, spark=spark)._jdf.queryExecution().toString()

    assert name not in our_url and our_url.removeprefix("redis://") not in plan


# Archives


def test_of_several_archives_one_must_be_chosen(
    spark: Any, our_url: str, our_client: Client, name: str, tmp_path: Path
) -> None:
    our_client.stream(name).add({"n": "x"})
    for place in ("one", "two"):
        archive(name, tmp_path / place, url=our_url, name=f"{name}-{place}", spark=spark)

    with pytest.raises(ConfigError, match=f"is in the archives {name}-one, {name}-two. Say which one"):
        table(name, url=our_url, spark=spark)
    assert len(ids_of(table(name, url=our_url, archive=f"{name}-two", spark=spark))) == 1
    with pytest.raises(ConfigError, match="the broker knows no archive 'three'"):
        query(f"select * from `{name}`", url=our_url, archive="three", spark=spark)

    shutil.rmtree(tmp_path / "one")
    with pytest.raises(TableError, match=f"the archive '{name}-one' cannot be read: no table at .*no such folder"):
        table(name, url=our_url, archive=f"{name}-one", spark=spark)
    for place in ("one", "two"):
        forget(our_client, f"{name}-{place}")

"""Streams go to a table, each entry once, byte for byte; and nothing leaves the broker before it is there."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace import Client
from headrace.errors import ConfigError, DataLoss, NotFound, Refused, TableError
from headrace.pipeline.archive_layout import read_archive
from headrace.pipeline.archives import find_hold, forget, get_archive, group_of, list_archives
from headrace.pipeline.entry_ids import id_of, text_of
from headrace.pipeline.jobs.archive import ArchiveReport, archive
from headrace.pipeline.jobs.query import table
from headrace.pipeline.jobs.trim import Holder, trim
from headrace.pipeline.tables.table import find_table, open_table
from support.servers import wait_until

ODD_ENTRIES = [
    ("0-1", [(b"n", b"1")]),  # A counter, no time.
    ("0-2", [(b"data", b"first"), (b"data", b"second"), (b"key", b"k")]),
    ("5-0", [(b"", b""), (b"\xff\xfe", b"\r\n\x00"), (b"key", b"\xff")]),
    ("1700000000000-0", [(b"data", b'{"a": 1}'), (b"key", "schl\u00fcssel".encode())]),
    ("1700000000000-18446744073709551615", [(b"n", b"2")]),
    ("1700086400000-0", [(b"n", b"3")]),  # The next day.
    ("18446744073709551615-7", [(b"n", b"4")]),
]


def stored(spark: Any, folder: Path, stream: str) -> list[Any]:
    rows = read_archive(spark, open_table(folder)).where(f"stream = '{stream}'").collect()
    return sorted(rows, key=lambda row: (row.id_ms, row.id_seq))


def stored_ids(folder: Path, stream: str) -> list[str]:
    """Without Spark, in the order of IDs; a doubled entry is there twice."""
    from pyarrow.parquet import read_table

    table = find_table(folder)
    files = [one for one in (table.files() if table else []) if one.partition["stream"] == stream]
    ids = [
        entry_id
        for one in files
        for entry_id in read_table(one.path, columns=["id"], partitioning=None)["id"].to_pylist()
    ]
    return sorted(ids, key=id_of)


def add_numbers(client: Client, stream: str, begin: int, count: int) -> list[str]:
    return client.stream(stream).add_many({"n": str(number)} for number in range(begin, begin + count))


class Archiving:
    """Runs archives of one stream."""

    def __init__(self, spark: Any, url: str, client: Client, stream: str, folder: Path) -> None:
        self.spark = spark
        self.url = url
        self.client = client
        self.stream = stream
        self.folder = folder
        self.name = f"archive-{stream}"

    def run(self, **more: Any) -> ArchiveReport:
        return archive(self.stream, self.folder, **({"url": self.url, "name": self.name, "spark": self.spark} | more))

    @property
    def ids(self) -> list[str]:
        return stored_ids(self.folder, self.stream)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "_headrace" / f"checkpoint-{self.name}"


@pytest.fixture
def archiving(spark: Any, url: str, client: Client, name: str, tmp_path: Path) -> Archiving:
    return Archiving(spark, url, client, name, tmp_path / "archive")


@pytest.fixture
def ours(spark: Any, our_url: str, our_client: Client, name: str, tmp_path: Path) -> Archiving:
    return Archiving(spark, our_url, our_client, name, tmp_path / "archive")


# What is archived


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_every_entry_is_archived_once_and_byte_for_byte(archiving: Archiving, kind: str) -> None:
    stream = archiving.client.stream(archiving.stream)
    for entry_id, pairs in ODD_ENTRIES:
        stream.add(pairs, id=entry_id)

    report = archiving.run(format=kind)
    again = archiving.run(format=kind)

    rows = stored(archiving.spark, archiving.folder, archiving.stream)
    assert [(row.id, [(bytes(pair.name), bytes(pair.value)) for pair in row.pairs]) for row in rows] == ODD_ENTRIES
    assert (report.entries, again.entries) == (len(ODD_ENTRIES), 0)
    assert report.through == again.through == {archiving.stream: "18446744073709551615-7"}
    assert [row.day and row.day.isoformat() for row in rows] == [
        None,
        None,
        None,
        "2023-11-14",
        "2023-11-14",
        "2023-11-15",
        None,
    ]


@pytest.mark.costly("headrace")
def test_readers_see_the_columns_of_the_source(archiving: Archiving, drain: Callable[[Any], Any]) -> None:
    stream = archiving.client.stream(archiving.stream)
    for entry_id, pairs in ODD_ENTRIES:
        stream.add(pairs, id=entry_id)
    archiving.run()

    live = archiving.spark.read.format("headrace").options(url=archiving.url, streams=archiving.stream).load()
    expected = sorted(live.collect(), key=lambda row: (row.id_ms, row.id_seq))
    assert [row.asDict() for row in expected] == [
        {name: value for name, value in row.asDict().items() if name != "day"}
        for row in stored(archiving.spark, archiving.folder, archiving.stream)
    ]


def test_later_runs_add_what_is_new_in_batches_of_the_size_asked_for(ours: Archiving) -> None:
    first = add_numbers(ours.client, ours.stream, 0, 250)
    seen: list[ArchiveReport] = []
    report = ours.run(max_entries_per_batch=100, on_progress=seen.append)
    assert report.entries == 250 and report.batches == 3 == len(seen)
    assert [one.entries for one in seen] == sorted(one.entries for one in seen) and seen[-1].entries == 250

    second = add_numbers(ours.client, ours.stream, 250, 50)
    assert ours.run().entries == 50
    assert ours.ids == first + second


def test_a_long_run_joins_its_small_files(ours: Archiving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.pipeline.jobs.archive.COMPACT_EVERY", 3)
    ids = add_numbers(ours.client, ours.stream, 0, 100)

    assert ours.run(max_entries_per_batch=20).batches == 5
    assert len(open_table(ours.folder).files()) < 5
    assert ours.ids == ids and ours.run().entries == 0


def test_a_run_that_is_to_end_does_so_after_the_batch_under_way_however_much_waits(ours: Archiving) -> None:
    ids = add_numbers(ours.client, ours.stream, 0, 1000)
    stop = threading.Event()

    report = ours.run(
        continuous=True, interval="0s", max_entries_per_batch=2, stop_event=stop, on_progress=lambda _: stop.set()
    )

    assert 0 < report.entries < 100
    ours.run()
    assert ours.ids == ids


def test_an_archive_may_begin_later_than_the_stream(ours: Archiving) -> None:
    old = add_numbers(ours.client, ours.stream, 0, 10)
    assert ours.run(start="now").entries == 0

    new = add_numbers(ours.client, ours.stream, 10, 5)
    assert ours.run(start="now").entries == 5
    assert ours.ids == new and not set(old) & set(ours.ids)


def test_streams_of_any_name_lie_in_one_archive(ours: Archiving) -> None:
    names = [f"{ours.stream}/{odd}" for odd in ("a b", "50%", "k=v,w", "*?[x]{y}", "schl\u00fcssel")]
    ids = {name: add_numbers(ours.client, name, 0, 3) for name in names}

    report = archive(names, ours.folder, url=ours.url, name=ours.name, spark=ours.spark)

    assert report.entries == 15 and set(report.through) == set(names)
    rows = read_archive(ours.spark, open_table(ours.folder)).collect()
    assert {name: sorted((row.id for row in rows if row.stream == name), key=id_of) for name in names} == ids


def test_plain_parquet_files_are_read_by_anybody(ours: Archiving) -> None:
    ids = add_numbers(ours.client, ours.stream, 0, 20)
    ours.run(format="parquet")

    rows = ours.spark.read.parquet(str(ours.folder)).where(f"stream = '{ours.stream}'").collect()
    assert sorted((row.id for row in rows), key=id_of) == ids


# The hold


def test_what_is_not_archived_stays_while_consumers_acknowledge_and_delete(archiving: Archiving) -> None:
    stream = archiving.client.stream(archiving.stream)
    group = stream.group("workers")
    group.create("beginning")
    archived = add_numbers(archiving.client, archiving.stream, 0, 50)
    archiving.run()
    kept = add_numbers(archiving.client, archiving.stream, 50, 50)

    taken = group.read("ann", count=100)
    group.ack(*(entry.id for entry in taken), delete=True)

    assert [entry.id for entry in stream.range()] == kept
    assert archiving.run().entries == 50
    assert archiving.ids == archived + kept


def test_the_hold_follows_the_table_and_comes_back_when_it_was_removed(archiving: Archiving) -> None:
    ids = add_numbers(archiving.client, archiving.stream, 0, 5)
    archiving.run()
    assert find_hold(archiving.client, archiving.name, archiving.stream) == id_of(ids[-1])

    archiving.client.stream(archiving.stream).group(group_of(archiving.name)).destroy()
    ids += add_numbers(archiving.client, archiving.stream, 5, 5)
    archiving.run()
    assert find_hold(archiving.client, archiving.name, archiving.stream) == id_of(ids[-1])
    assert archiving.ids == ids


def test_the_broker_knows_its_archives_until_they_are_forgotten(ours: Archiving) -> None:
    add_numbers(ours.client, ours.stream, 0, 1)
    ours.run()

    known = get_archive(ours.client, ours.name)
    assert (known.path, known.format, known.streams) == (str(ours.folder), "delta", (ours.stream,))
    assert known in list_archives(ours.client)
    forget(ours.client, ours.name)
    assert known not in list_archives(ours.client)
    assert ours.client.stream(ours.stream).groups() == []


# Trimming


def test_trimming_leaves_what_a_group_needs_and_names_the_group(archiving: Archiving) -> None:
    stream = archiving.client.stream(archiving.stream)
    group = stream.group("slow")
    group.create("beginning")
    ids = add_numbers(archiving.client, archiving.stream, 0, 10)
    taken = group.read("ann", count=4)
    group.ack(*(entry.id for entry in taken[:2]))

    report = archiving.run(trim=True)

    assert report.trimmed == {archiving.stream: 2}
    assert report.held_by == {archiving.stream: Holder("slow", 8)}
    assert [entry.id for entry in stream.range()] == ids[2:]

    group.ack(*(entry.id for entry in taken[2:]))
    group.ack(*(entry.id for entry in group.read("ann", count=10)))
    [told] = trim(url=archiving.url, name=archiving.name)
    assert (told.removed, told.held_by, told.is_dry_run) == (8, None, True) and stream.length() == 8
    [done] = trim(archiving.stream, url=archiving.url, name=archiving.name, dry_run=False)
    assert (done.removed, done.archived_through) == (8, ids[-1]) and stream.length() == 0
    assert archiving.ids == ids


def test_nothing_that_is_not_archived_is_trimmed(ours: Archiving) -> None:
    add_numbers(ours.client, ours.stream, 0, 10)
    ours.run()
    new = add_numbers(ours.client, ours.stream, 10, 10)

    [done] = trim(url=ours.url, name=ours.name, dry_run=False)

    assert done.removed == 10
    assert [entry.id for entry in ours.client.stream(ours.stream).range()] == new
    assert ours.run(trim=True).trimmed == {ours.stream: 10}


def test_an_archive_from_mid_stream_trims_nothing_while_older_entries_are_there(ours: Archiving) -> None:
    ids = add_numbers(ours.client, ours.stream, 0, 10)
    stream = ours.client.stream(ours.stream)
    ours.run(start=ids[3])

    for attempt in (lambda: ours.run(trim=True), lambda: trim(url=ours.url, name=ours.name, dry_run=False)):
        with pytest.raises(Refused, match=f"has entries up to {ids[3]} from before the archive"):
            attempt()
    assert [entry.id for entry in stream.range()] == ids

    stream.trim(before=ids[4], force=True)
    assert ours.run(trim=True).trimmed == {ours.stream: 6}
    assert ours.ids == ids[4:]


def test_a_lost_registry_is_made_again_from_the_table_and_no_row_doubles(ours: Archiving) -> None:
    ids = add_numbers(ours.client, ours.stream, 0, 10)
    ours.run(start=ids[3])
    ours.client.command("HDEL", "hr:archives", ours.name)

    ours.run()

    rows = table(ours.stream, url=ours.url, archive=ours.name, spark=ours.spark).collect()
    assert sorted(row.id for row in rows) == ids
    with pytest.raises(Refused, match=f"has entries up to {text_of(id_of(ids[4]) - 1)} from before the archive"):
        ours.run(trim=True)


def test_nothing_is_trimmed_without_a_hold_a_table_or_all_of_its_files(ours: Archiving) -> None:
    add_numbers(ours.client, ours.stream, 0, 10)
    ours.run()
    stream = ours.client.stream(ours.stream)

    with pytest.raises(ConfigError, match="knows no archive 'nothing'"):
        trim(url=ours.url, name="nothing", dry_run=False)
    with pytest.raises(ConfigError, match="does not keep 'another'"):
        trim("another", url=ours.url, name=ours.name, dry_run=False)
    stream.group(group_of(ours.name)).destroy()
    with pytest.raises(Refused, match="somebody removed it"):
        trim(url=ours.url, name=ours.name, dry_run=False)
    ours.run()
    [file] = open_table(ours.folder).files()
    Path(file.path).rename(ours.folder / "away")
    with pytest.raises(TableError, match="is damaged"):
        trim(url=ours.url, name=ours.name, dry_run=False)
    shutil.rmtree(ours.folder)
    with pytest.raises(TableError, match="there is no such folder"):
        trim(url=ours.url, name=ours.name, dry_run=False)
    assert stream.length() == 10


# Crashes and losses


def test_a_batch_that_reached_the_table_but_not_the_checkpoint_is_not_added_again(ours: Archiving) -> None:
    ids = add_numbers(ours.client, ours.stream, 0, 200)
    ours.run(max_entries_per_batch=100)
    (ours.checkpoint / "commits" / "1").unlink()  # As if the driver died between the two.
    (ours.checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)

    ids += add_numbers(ours.client, ours.stream, 200, 50)
    assert ours.run().entries == 50
    assert ours.ids == ids


def test_a_lost_or_damaged_checkpoint_loses_and_doubles_nothing(ours: Archiving) -> None:
    ids = add_numbers(ours.client, ours.stream, 0, 100)
    ours.run()
    shutil.rmtree(ours.checkpoint)
    ids += add_numbers(ours.client, ours.stream, 100, 10)
    ours.run()
    assert ours.ids == ids

    for file in (ours.checkpoint / "offsets").iterdir():
        file.write_text("v1\n{\n")
    ids += add_numbers(ours.client, ours.stream, 110, 10)
    ours.run()
    assert ours.ids == ids


def test_a_checkpoint_from_before_the_table_went_on_is_not_followed(ours: Archiving, tmp_path: Path) -> None:
    ids = add_numbers(ours.client, ours.stream, 0, 10)
    ours.run()
    shutil.copytree(ours.checkpoint, tmp_path / "old")
    for begin in (10, 20):
        ids += add_numbers(ours.client, ours.stream, begin, 10)
        ours.run()
    shutil.rmtree(ours.checkpoint)
    shutil.copytree(tmp_path / "old", ours.checkpoint)

    ids += add_numbers(ours.client, ours.stream, 30, 10)
    ours.run()
    assert ours.ids == ids


@pytest.mark.parametrize("has_checkpoint", [True, False], ids=["checkpoint", "no-checkpoint"])
def test_a_stream_that_was_made_anew_is_told(ours: Archiving, has_checkpoint: bool) -> None:
    ours.client.stream(ours.stream).add({"n": "1"}, id="100-0")
    ours.run()
    ours.client.command("DEL", ours.stream)
    ours.client.stream(ours.stream).add({"n": "1"}, id="1-0")
    if not has_checkpoint:
        shutil.rmtree(ours.checkpoint)

    with pytest.raises(DataLoss, match="was deleted and made anew"):
        ours.run()
    assert ours.ids == ["100-0"]


@pytest.mark.costly("headrace")
def test_entries_that_were_removed_by_force_are_told_and_then_left_out(archiving: Archiving) -> None:
    ids = add_numbers(archiving.client, archiving.stream, 0, 10)
    archiving.run()
    lost = add_numbers(archiving.client, archiving.stream, 10, 10)
    archiving.client.stream(archiving.stream).trim(keep=5, force=True)

    with pytest.raises(DataLoss, match="trimmed"):
        archiving.run()
    assert archiving.ids == ids
    assert archiving.run(fail_on_data_loss=False).entries == 5
    assert archiving.ids == ids + lost[5:]
    rest = add_numbers(archiving.client, archiving.stream, 20, 5)
    assert archiving.run().entries == 5
    assert archiving.ids == ids + lost[5:] + rest


def test_an_archive_whose_table_was_removed_does_not_begin_another_one(ours: Archiving) -> None:
    add_numbers(ours.client, ours.stream, 0, 10)
    ours.run()
    shutil.rmtree(ours.folder)

    with pytest.raises(TableError, match="moved or removed"):
        ours.run()


# What is refused


def has_begun(archiving: Archiving) -> bool:
    return any(one.name == archiving.name for one in list_archives(archiving.client))


def test_two_archives_do_not_write_to_one_table_at_once(ours: Archiving, new_name: Callable[[], str]) -> None:
    ids = add_numbers(ours.client, ours.stream, 0, 10)
    stop = threading.Event()
    ended: list[ArchiveReport] = []
    running = threading.Thread(
        target=lambda: ended.append(ours.run(continuous=True, interval="100ms", stop_event=stop, duration="60s"))
    )
    running.start()
    try:
        wait_until(lambda: has_begun(ours) and ours.ids == ids, "the first archive to be at work", timeout_s=60)
        with pytest.raises(Refused, match=r"another archive \(process \d+\) writes to the table"):
            ours.run()
    finally:
        stop.set()
        running.join()
    [report] = ended
    assert report.entries == 10 and ours.run().entries == 0


def test_a_name_belongs_to_one_folder(ours: Archiving, tmp_path: Path) -> None:
    add_numbers(ours.client, ours.stream, 0, 1)
    ours.run()

    with pytest.raises(Refused, match="Give that path, or another name"):
        archive(ours.stream, tmp_path / "elsewhere", url=ours.url, name=ours.name, spark=ours.spark)


def test_wrong_calls_are_told_in_one_sentence(ours: Archiving, tmp_path: Path) -> None:
    ours.client.command("SET", f"{ours.stream}-text", "x")
    add_numbers(ours.client, ours.stream, 0, 1)
    long_name = f"{ours.stream}-" + "ä" * 130
    add_numbers(ours.client, long_name, 0, 1)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("dear")
    calls: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"streams": ()}, ConfigError, "say what to archive"),
        ({"pattern": "x*"}, ConfigError, "and not both"),
        ({"to": ""}, ConfigError, "say where to archive"),
        ({"to": "s3://bucket"}, ConfigError, "is a URL"),
        ({"format": "csv"}, ConfigError, "write delta or parquet"),
        ({"max_entries_per_batch": 0}, ConfigError, "at least 1"),
        ({"interval": "soon"}, ConfigError, "interval is 'soon'"),
        ({"start": "soon"}, ConfigError, "start is 'soon'"),
        ({"url": "embedded:"}, ConfigError, "cannot reach an embedded: broker"),
        ({"streams": long_name}, ConfigError, "too long for the name of a folder"),
        ({"streams": f"{ours.stream}-missing"}, NotFound, "no stream"),
        ({"to": str(tmp_path / "letters")}, TableError, "holds other files"),
    ]
    for change, kind, told in calls:
        given = {"streams": ours.stream, "to": str(ours.folder), "url": ours.url, "name": ours.name} | change
        with pytest.raises(kind, match=told):
            archive(**given, spark=ours.spark)
    with pytest.raises(Exception, match="string"):
        archive(f"{ours.stream}-text", ours.folder, url=ours.url, name=ours.name, spark=ours.spark)


# Patterns


def test_streams_join_a_running_archive_by_its_pattern_and_are_held_before_they_are_read(ours: Archiving) -> None:
    ids = {f"{ours.stream}:a": add_numbers(ours.client, f"{ours.stream}:a", 0, 10)}
    add_numbers(ours.client, f"hr:{ours.stream}:own", 0, 1)  # Not what a user means.
    stop = threading.Event()
    ended: list[ArchiveReport] = []

    def run() -> None:
        ended.append(
            archive(
                pattern=f"*{ours.stream}:*", to=ours.folder, url=ours.url, name=ours.name, spark=ours.spark,
                continuous=True, interval="100ms", stop_event=stop, duration="60s", trim=True,
            )
        )  # fmt: skip

    def has_all() -> bool:
        return has_begun(ours) and all(stored_ids(ours.folder, stream) == expected for stream, expected in ids.items())

    running = threading.Thread(target=run)
    running.start()
    try:
        wait_until(has_all, "the first stream to be archived", timeout_s=60)
        ids[f"{ours.stream}:b"] = add_numbers(ours.client, f"{ours.stream}:b", 0, 10)
        wait_until(has_all, "the second stream to be archived", timeout_s=60)
    finally:
        stop.set()
        running.join()
    [report] = ended
    assert report.entries == 20 and set(report.through) == set(ids)
    assert report.trimmed == dict.fromkeys(ids, 10)
    assert get_archive(ours.client, ours.name).streams == tuple(ids)
    for stream, expected in ids.items():
        assert find_hold(ours.client, ours.name, stream) == id_of(expected[-1])
        assert report.through[stream] == text_of(id_of(expected[-1]))

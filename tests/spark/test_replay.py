"""Archived entries go back to a stream: in order, byte for byte, and each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import redis

from headrace import Client
from headrace.errors import ConfigError, HeadraceError
from headrace.pipeline.jobs.archive import archive
from headrace.pipeline.jobs.replay import ReplayReport, replay

SPECIAL = [(b"type", b"refund"), (b"type", b"refund"), (b"\xff", b"\r\n\x00"), (b"", b"")]
COUNT = 1200  # More than two chunks.


@dataclass(frozen=True)
class Archived:
    """A stream with COUNT entries, IDs 1000-0, 1001-0 and so on, every third one a refund; all of it archived."""

    url: str
    stream: str
    name: str  # Of the archive.
    folder: Path


ready: dict[str, Archived] = {}


def archived_at(url: str, client: Client, spark: Any, folder: Path, stream: str) -> Archived:
    """Made once per server: an archive takes seconds."""
    if url not in ready:
        with redis.Redis.from_url(url) as server:
            pipeline = server.pipeline(transaction=False)
            for number in range(COUNT):
                kind = "refund" if number % 3 == 0 else "sale"
                pipeline.xadd(stream, {"type": kind, "n": number}, f"{1000 + number}-0")
            pipeline.execute()
        client.stream(stream).add(SPECIAL)
        name = f"archive-{stream}"
        archive(stream, folder / stream, url=url, name=name, spark=spark)
        ready[url] = Archived(url, stream, name, folder / stream)
    return ready[url]


@pytest.fixture
def orders(
    url: str, client: Client, spark: Any, tmp_path_factory: pytest.TempPathFactory, new_name: Callable[[], str]
) -> Archived:
    return archived_at(url, client, spark, tmp_path_factory.getbasetemp(), new_name())


@pytest.fixture
def our_orders(
    our_url: str, our_client: Client, spark: Any, tmp_path_factory: pytest.TempPathFactory, new_name: Callable[[], str]
) -> Archived:
    return archived_at(our_url, our_client, spark, tmp_path_factory.getbasetemp(), new_name())


@pytest.fixture
def again(spark: Any) -> Callable[..., ReplayReport]:
    """again(orders, to=…) replays from the archive of the orders."""

    def run(orders: Archived, **options: Any) -> ReplayReport:
        return replay(orders.stream, url=orders.url, archive=orders.name, spark=spark, **options)

    return run


def first_ids(client: Client, stream: str) -> list[str]:
    return [entry.fields["hr:id"] for entry in client.stream(stream).iterate()]


def test_a_replay_brings_every_entry_in_order_and_byte_for_byte(
    orders: Archived, client: Client, name: str, again: Callable[..., ReplayReport]
) -> None:
    report = again(orders, to=name)

    firsts = list(client.stream(orders.stream).iterate())
    copies = list(client.stream(name).iterate())
    assert (report.matched, report.added, report.skipped) == (COUNT + 1, COUNT + 1, 0)
    assert [copy.pairs[:-2] for copy in copies] == [entry.pairs for entry in firsts]
    assert {copy.pairs[-2] for copy in copies} == {(b"hr:stream", orders.stream.encode())}
    assert first_ids(client, name) == [entry.id for entry in firsts]


@pytest.mark.costly("headrace")
def test_twice_and_wider_gives_the_set_once_and_a_new_name_gives_it_anew(
    orders: Archived, client: Client, name: str, again: Callable[..., ReplayReport]
) -> None:
    options = {"to": name, "where": "fields['type'] = 'refund'"}
    reports = [
        again(orders, since="1300", until="1599-0", **options),
        again(orders, since="1300", until="1599-0", **options),
        again(orders, since="1200", until="1800", **options),
        again(orders, since="1200", until="1299", name="anew", **options),
    ]

    assert [(report.matched, report.added, report.skipped) for report in reports] == [
        (100, 100, 0), (100, 0, 100), (200, 100, 100), (33, 33, 0),
    ]  # fmt: skip
    assert len(set(first_ids(client, name))) == 200
    assert client.stream(name).length() == 233


def test_a_dry_run_counts_and_adds_nothing(
    our_orders: Archived, our_client: Client, name: str, again: Callable[..., ReplayReport]
) -> None:
    where = "fields['type'] = 'sale'"
    again(our_orders, to=name, until="1299", where=where)
    before = our_client.stream(name).length()

    report = again(our_orders, to=name, where=where, dry_run=True)

    assert (report.matched, report.added, report.skipped, report.is_dry_run) == (800, 600, 200, True)
    assert our_client.stream(name).length() == before == 200


@pytest.mark.costly("headrace")
def test_replays_to_the_same_stream_are_not_replayed_when_they_are_archived_too(
    url: str, client: Client, spark: Any, name: str, tmp_path: Path
) -> None:
    stream = client.stream(name)
    for number in range(5):
        stream.add({"n": number})
    options: dict[str, Any] = {"url": url, "archive": f"archive-{name}", "spark": spark}
    archive(name, tmp_path / "table", url=url, name=f"archive-{name}", spark=spark)
    first = replay(name, **options)
    archive(name, tmp_path / "table", url=url, name=f"archive-{name}", spark=spark)

    second = replay(name, **options)
    anew = replay(name, name="anew", **options)

    assert [report.added for report in (first, second, anew)] == [5, 0, 5]
    assert [entry.fields["n"] for entry in stream.range()] == [str(number % 5) for number in range(15)]


def test_a_rate_and_progress_are_told_on_the_way(
    our_orders: Archived, our_client: Client, name: str, again: Callable[..., ReplayReport]
) -> None:
    told: list[ReplayReport] = []

    report = again(our_orders, to=name, until="1099", rate="60/s", on_progress=told.append)

    assert report.added == 100
    assert told and {one.matched for one in told} == {100}
    assert all(a.added <= b.added for a, b in pairwise(told))


def test_the_folder_of_an_archive_is_as_good_as_its_name(our_orders: Archived, spark: Any, name: str) -> None:
    report = replay(our_orders.stream, to=name, url=our_orders.url, path=our_orders.folder, until="1009", spark=spark)

    assert report.added == 10


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"where": "type ="}, "where cannot be read: "),
        ({"where": "typ = 'refund'"}, "where cannot be used: .*`typ`"),
        ({"where": "1"}, "where cannot be used: "),
        ({"archive": "nowhere"}, "knows no archive 'nowhere'"),
        ({"path": "nowhere"}, "no table at .*nowhere"),
        ({"stream": "others"}, "has nothing of 'others'; it has '"),
        ({"since": "2000", "until": "1000"}, "the range begins at 2000-0 and ends before that, at 1000-"),
        ({"since": "2999-01-01"}, "nothing of it is archived"),
        ({"since": "yesterday"}, "since is 'yesterday'; write an entry ID"),
        ({"until": "99999999999999999999"}, "is no entry ID"),
        ({"rate": "fast"}, "rate is 'fast'"),
        ({"url": "embedded:"}, "cannot reach an embedded: broker"),
    ],
)
def test_what_cannot_be_replayed_is_told_in_one_sentence(
    our_orders: Archived, our_client: Client, spark: Any, name: str, options: dict[str, Any], words: str
) -> None:
    chosen = {"stream": our_orders.stream, "to": name, "url": our_orders.url, "archive": our_orders.name} | options

    with pytest.raises(HeadraceError, match=words) as caught:
        replay(spark=spark, **chosen)

    assert "\n" not in str(caught.value)
    assert our_client.stream(name).length() == 0


def test_a_target_of_another_type_is_left_as_it_is(
    our_orders: Archived, name: str, again: Callable[..., ReplayReport]
) -> None:
    with redis.Redis.from_url(our_orders.url) as server:
        server.set(name, "mine")
        with pytest.raises(HeadraceError, match="is not a stream but a string"):
            again(our_orders, to=name)

        assert server.get(name) == b"mine"


def test_a_name_means_one_replay(our_orders: Archived, name: str, again: Callable[..., ReplayReport]) -> None:
    again(our_orders, to=name, until="1009", name="fix")

    with pytest.raises(HeadraceError, match=r"the replay 'fix' to .* was one of another stream or with another where"):
        again(our_orders, to=name, until="1009", name="fix", where="id_ms > 5")


def test_no_url_is_told(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_URL", raising=False)

    with pytest.raises(ConfigError, match="no URL"):
        replay("orders", spark=spark)

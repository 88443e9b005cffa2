"""Following a stream: from now, an ID, a time back or a bookmark; nothing is lost or given twice."""

import itertools
import os
import signal
import subprocess
import sys
import threading

import pytest

from support.flavours import Spy, take
from support.servers import wait_until


def ids(entries):
    return [entry.id for entry in entries]


def fill(stream, first, last):
    for number in range(first, last + 1):
        stream.add({"n": number}, id=f"{number}-0")


def test_following_from_now_gives_only_what_comes_after(connect, name):
    stream, other = connect().stream(name), connect().stream(name)
    fill(stream, 1, 3)
    spy = Spy(client := connect())

    def add_later() -> None:
        wait_until(lambda: "XREAD" in spy.names, "the follower to read")
        fill(other, 4, 5)

    producer = threading.Thread(target=add_later)
    producer.start()
    entries = client.stream(name).follow(start="now", wait="20s")
    seen = [next(entries).id, next(entries).id]
    entries.close()
    producer.join()

    assert seen == ["4-0", "5-0"]


def test_following_a_stream_that_is_not_there_yet(connect, name):
    spy = Spy(client := connect())
    other = connect().stream(name)

    def add_later() -> None:
        wait_until(lambda: "XREAD" in spy.names, "the follower to read")
        other.add({"n": 1}, id="1-0")

    producer = threading.Thread(target=add_later)
    producer.start()
    entries = client.stream(name).follow(wait="20s")
    first = next(entries)
    entries.close()
    producer.join()

    assert first.id == "1-0"


def test_following_from_an_id_begins_with_it(stream):
    fill(stream, 1, 5)

    assert ids(stream.follow(start="3-0", wait=0)) == ["3-0", "4-0", "5-0"]
    assert ids(stream.follow(start="beginning", wait=0, page=2)) == ["1-0", "2-0", "3-0", "4-0", "5-0"]


def test_following_from_a_time_back(client, stream):
    now_ms = int(client.command("TIME")[0]) * 1000
    for minutes in (30, 4, 3):
        stream.add({"n": minutes}, id=f"{now_ms - minutes * 60_000}-0")

    assert [entry.fields["n"] for entry in stream.follow(start="-5m", wait=0)] == ["4", "3"]


def test_following_ends_when_nothing_comes_for_so_long(stream):
    stream.add({"n": 1}, id="1-0")

    assert ids(stream.follow(start="beginning", wait="50ms")) == ["1-0"]


def test_an_idle_follower_calls_once_per_wait(stream, spy):
    assert list(stream.follow(start="beginning", wait="300ms")) == []

    assert spy.names.count("XREAD") <= 3


def test_a_follower_receives_all_of_ten_thousand_entries_added_meanwhile(connect, name):
    producer_stream = connect().stream(name)
    added: list[str] = []

    def produce() -> None:
        for start in range(0, 10_000, 250):
            added.extend(producer_stream.add_many({"n": number} for number in range(start, start + 250)))

    entries = connect().stream(name).follow(start="beginning", wait="20s", page=100)
    producer = threading.Thread(target=produce)
    producer.start()
    seen = ids(take(entries, 10_000))
    entries.close()
    producer.join()

    assert seen == added


def test_a_bookmark_is_kept_after_each_page(stream):
    fill(stream, 1, 7)

    assert len(list(stream.follow(start="beginning", bookmark="audit", wait=0, page=3))) == 7
    fill(stream, 8, 9)

    assert ids(stream.follow(start="beginning", bookmark="audit", wait=0)) == ["8-0", "9-0"]
    assert len(list(stream.follow(start="beginning", bookmark="another", wait=0))) == 9


def test_a_follower_that_stops_in_a_page_is_given_that_page_again(stream):
    fill(stream, 1, 6)
    entries = stream.follow(start="beginning", bookmark="audit", wait=0, page=2)

    assert ids(itertools.islice(entries, 3)) == ["1-0", "2-0", "3-0"]
    entries.close()

    assert ids(stream.follow(start="beginning", bookmark="audit", wait=0)) == ["3-0", "4-0", "5-0", "6-0"]


@pytest.mark.other_process
def test_a_bookmark_survives_a_follower_that_is_killed(url, connect, name):
    stream = connect().stream(name)
    fill(stream, 1, 20)
    code = (
        "import sys; from headrace import Client\n"
        f"for entry in Client({url!r}).stream({name!r}).follow(start='beginning', bookmark='audit', page=5):\n"
        "    print(entry.id, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline().strip() for _ in range(12)]
        os.kill(process.pid, signal.SIGKILL)
        seen += process.stdout.read().split()
    rest = ids(stream.follow(start="beginning", bookmark="audit", wait=0))

    assert rest == [f"{number}-0" for number in range(21 - len(rest), 21)]
    assert set(seen) | set(rest) == {f"{number}-0" for number in range(1, 21)}
    assert len(rest) <= 10  # The two full pages that were asked for were kept.


def test_a_stream_that_is_trimmed_meanwhile_is_followed_on(stream):
    fill(stream, 1, 4)
    entries = stream.follow(start="beginning", wait=0, page=2)
    first = ids(itertools.islice(entries, 2))
    stream.trim(keep=1)

    assert first + ids(entries) == ["1-0", "2-0", "4-0"]

"""A slice of a stream is read whole, each entry once, whatever happens to the stream and the connection meanwhile."""

import random
import select
import threading
from itertools import pairwise

import pytest

from headrace import ConnectionLost, DataLoss, HeadraceError, WrongType
from headrace.client.raw_connection import open_raw
from headrace.pipeline import reader
from headrace.pipeline.ranges import Slice
from headrace.pipeline.reader import LossCheck, Reading, read_slice
from support.deployments import KEEPS_EVERYTHING, Process, is_from_wheel, real_kinds

pytestmark = pytest.mark.other_process

LENIENT = LossCheck(fails=False)


def kinds():
    """Valkey always, every Redis in the long run."""
    return [
        pytest.param(kind, marks=[] if is_from_wheel(kind) else [pytest.mark.long], id=kind.name)
        for kind in real_kinds()
    ]


@pytest.fixture
def raw(url, name):
    with open_raw(url, name) as connection:
        yield connection


def fill(raw, name, count, first=1):
    """Entries 1-0, 2-0, … with their number in the field n."""
    raw.call_many([("XADD", name, f"{number}-0", "n", number) for number in range(first, first + count)])


def numbers_of(pages):
    return [int(value) for page in pages for value in page.last_values(b"n").to_pylist()]


class Watched:
    """A slice that is read page by page, with the server's answer to the next request already there."""

    def __init__(self, url, piece, checks=None):
        self.reading = Reading(url, piece, 10, checks or LossCheck(), 10.0)
        self.numbers = []

    def step(self):
        page = self.reading.next_page()
        if page is None:
            return False
        self.numbers += numbers_of([page])
        if self.reading.asked is not None:
            select.select([self.reading.connection.socket], [], [], 30)
        return True

    def finish(self):
        while self.step():
            pass
        return self.numbers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reading.close()


# What is read


def test_a_slice_is_read_in_order_from_behind_its_beginning_through_its_end(url, raw, name):
    fill(raw, name, 1000)

    pages = list(read_slice(url, Slice(name, "100-0", "900-0"), page_entries=77))

    assert numbers_of(pages) == list(range(101, 901))
    assert all(0 < page.count <= 77 for page in pages)


@pytest.mark.parametrize("page_entries", [1, 2, 3, 10, 5000])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 9, 10, 11, 20, 21])
def test_pages_of_any_size_give_every_entry_once(url, raw, name, count, page_entries):
    fill(raw, name, count)
    fill(raw, name, 3, first=900)

    assert numbers_of(read_slice(url, Slice(name, "0-0", "800-0"), page_entries)) == list(range(1, count + 1))
    assert numbers_of(read_slice(url, Slice(name, "0-0", "901-0"), page_entries)) == [*range(1, count + 1), 900, 901]


def test_slices_that_follow_each_other_give_the_whole_stream(url, raw, name):
    raw.call_many([("XADD", name, f"0-{number}", "n", number) for number in range(1, 500)])
    borders = ["0-0", "0-1", "0-200", "0-201", "0-499"]

    slices = [Slice(name, after, through) for after, through in pairwise(borders)]

    assert [number for piece in slices for number in numbers_of(read_slice(url, piece, 50))] == list(range(1, 500))


def test_a_value_may_look_like_the_beginning_of_an_entry(url, raw, name):
    forged = "*2\r\n$5\r\n7-777\r\n*2\r\n"
    raw.call_many([("XADD", name, f"{n}-0", "n", n, "text", forged, forged, "x") for n in range(1, 300)])

    assert numbers_of(read_slice(url, Slice(name, "0-0", "999-0"), 20)) == list(range(1, 300))


def test_large_and_small_entries_may_be_mixed(url, raw, name):
    for number in range(1, 41):
        raw.call("XADD", name, f"{number}-0", "n", number, "blob", b"x" * ((3 << 20) if number % 10 == 5 else 1))

    assert numbers_of(read_slice(url, Slice(name, "0-0", "99-0"))) == list(range(1, 41))


def test_a_reply_beyond_the_limit_is_asked_for_in_smaller_parts(url, raw, name, monkeypatch):
    for number in range(1, 31):
        raw.call("XADD", name, f"{number}-0", "n", number, "blob", b"x" * ((1 << 20) if 10 < number < 20 else 1))
    monkeypatch.setattr("headrace.client.raw_connection.MAX_REPLY_BYTES", 4 << 20)

    assert numbers_of(read_slice(url, Slice(name, "0-0", "99-0"))) == list(range(1, 31))


def test_a_slice_that_has_no_width_is_empty(url, name):
    assert list(read_slice(url, Slice(name, "5-0", "5-0"))) == []


# Lost entries


def test_a_stream_trimmed_since_it_was_planned_is_a_loss(url, raw, name):
    fill(raw, name, 100)
    raw.call("XTRIM", name, "MINID", "=", "6-0")

    with pytest.raises(
        DataLoss, match=r"'.*' behind 0-0 went before they were read: it begins with 6-0 now; set"
    ) as caught:
        list(read_slice(url, Slice(name, "0-0", "50-0", first="5-0")))

    assert isinstance(caught.value, HeadraceError)
    assert numbers_of(read_slice(url, Slice(name, "0-0", "50-0", first="6-0"))) == list(range(6, 51))


def test_a_stream_trimmed_while_it_is_read_is_a_loss(url, raw, name):
    fill(raw, name, 100)
    with Watched(url, Slice(name, "0-0", "90-0", first="1-0")) as watched:
        watched.step()
        raw.call("XTRIM", name, "MINID", "=", "40-0")

        with pytest.raises(DataLoss, match="it begins with 40-0 now"):
            watched.finish()

        assert watched.numbers == list(range(1, watched.numbers[-1] + 1))


def test_trimming_what_was_read_already_is_no_loss(url, raw, name):
    fill(raw, name, 100)
    with Watched(url, Slice(name, "0-0", "90-0", first="1-0")) as watched:
        while watched.step():
            next_id = watched.reading.asked or "90-0"
            raw.call("XTRIM", name, "MINID", "=", next_id)

        assert watched.numbers == list(range(1, 91))


def test_a_trim_of_a_single_entry_too_many_is_a_loss(url, raw, name):
    fill(raw, name, 100)
    with Watched(url, Slice(name, "0-0", "90-0", first="1-0")) as watched:
        watched.step()
        watched.step()
        still_unread = watched.numbers[-1] + 10
        raw.call("XTRIM", name, "MINID", "=", f"{still_unread + 1}-0")

        with pytest.raises(DataLoss):
            watched.finish()


def test_losses_are_told_once_and_reading_goes_on_where_that_is_wanted(url, raw, name):
    fill(raw, name, 100)
    told = []
    with Watched(url, Slice(name, "0-0", "90-0", first="1-0"), LossCheck(fails=False, on_loss=told.append)) as watched:
        watched.step()
        raw.call("XTRIM", name, "MINID", "=", "40-0")
        watched.step()
        watched.step()
        raw.call("XTRIM", name, "MINID", "=", "70-0")
        numbers = watched.finish()

    assert numbers[-21:] == list(range(70, 91))
    assert numbers == sorted(set(numbers))
    assert len(told) == 1 and told[0].endswith("it begins with 40-0 now.")


def test_an_entry_deleted_before_it_was_read_is_a_loss(url, raw, name):
    fill(raw, name, 100)
    raw.call("XDEL", name, "42-0")

    with pytest.raises(DataLoss, match="42-0 was deleted"):
        list(read_slice(url, Slice(name, "0-0", "50-0")))
    assert len(numbers_of(read_slice(url, Slice(name, "0-0", "50-0", deleted="42-0")))) == 49
    assert len(numbers_of(read_slice(url, Slice(name, "42-0", "50-0")))) == 8
    assert len(numbers_of(read_slice(url, Slice(name, "0-0", "41-0")))) == 41


def test_an_entry_deleted_after_it_was_read_is_no_loss(url, raw, name):
    fill(raw, name, 100)
    with Watched(url, Slice(name, "0-0", "90-0")) as watched:
        watched.step()
        raw.call("XDEL", name, "3-0")

        assert watched.finish() == list(range(1, 91))


def test_a_stream_that_is_gone_is_a_loss(url, raw, name):
    fill(raw, name, 100)
    with Watched(url, Slice(name, "0-0", "90-0")) as watched:
        watched.step()
        raw.call("DEL", name)

        with pytest.raises(DataLoss, match="the stream is gone"):
            watched.finish()
    assert list(read_slice(url, Slice(name, "0-0", "90-0"), checks=LENIENT)) == []


def test_a_stream_that_is_empty_now_is_a_loss(url, raw, name):
    fill(raw, name, 10)
    raw.call("XTRIM", name, "MAXLEN", "=", 0)

    with pytest.raises(DataLoss, match="the stream is empty now"):
        list(read_slice(url, Slice(name, "0-0", "9-0", first="1-0")))


def test_something_else_under_the_name_is_told(url, raw, name):
    fill(raw, name, 100)
    with Watched(url, Slice(name, "0-0", "90-0")) as watched:
        watched.step()
        raw.call_many([("DEL", name), ("SET", name, "x")])

        with pytest.raises(WrongType, match=f"'{name}' is not a stream but something else by now"):
            watched.finish()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_no_entry_is_lost_silently_while_somebody_trims_and_deletes(url, raw, name, seed):
    chance = random.Random(seed)
    count = chance.randint(50, 600)
    fill(raw, name, count)
    is_over = threading.Event()

    def trim():
        with open_raw(url, name) as other:
            first = 1
            while not is_over.is_set():
                first = min(count, first + chance.randint(0, 20))
                if chance.random() < 0.2:
                    other.call("XDEL", name, f"{chance.randint(1, count)}-0")
                else:
                    other.call("XTRIM", name, "MINID", "=", f"{first}-0")

    trimmer = threading.Thread(target=trim)
    seen = []
    is_told = False
    pages = read_slice(url, Slice(name, "0-0", f"{count}-0", first="1-0"), chance.choice([2, 5, 17, 60]))
    try:
        for page in pages:
            seen += numbers_of([page])
            if not trimmer.ident:
                trimmer.start()
    except DataLoss:
        is_told = True
    finally:
        is_over.set()
        trimmer.join()

    assert seen == list(range(1, len(seen) + 1))
    assert is_told or len(seen) == count


# Lost connections


def test_reading_goes_on_where_the_connection_broke(url, raw, name, monkeypatch):
    monkeypatch.setattr(reader, "FIRST_WAIT_S", 0.01)
    fill(raw, name, 200)
    with Watched(url, Slice(name, "0-0", "200-0", first="1-0")) as watched:
        while watched.step():
            if watched.reading.connection is not None and not watched.reading.is_done:
                watched.reading.connection.socket.shutdown(2)

        assert watched.numbers == list(range(1, 201))


@pytest.mark.parametrize("kind", kinds())
def test_reading_goes_on_when_the_server_comes_back_and_ends_when_it_does_not(kind, monkeypatch):
    monkeypatch.setattr(reader, "FIRST_WAIT_S", 0.01)
    with Process(kind, *KEEPS_EVERYTHING) as server:
        with open_raw(server.url, "orders") as raw:
            fill(raw, "orders", 100)
        with Watched(server.url, Slice("orders", "0-0", "90-0")) as watched:
            watched.step()
            server.end()
            server.start()
            watched.step()
            watched.step()
            assert watched.numbers == list(range(1, watched.numbers[-1] + 1))
            server.end()

            with pytest.raises(ConnectionLost, match="Cannot reach"):
                watched.finish()
            assert watched.reading.failures == reader.RETRIES + 1

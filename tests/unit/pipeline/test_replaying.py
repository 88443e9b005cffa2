"""What a replay remembers, how fast it goes, and what it adds to an entry."""

import random

import pytest

from headrace.errors import ConfigError, HeadraceError, Refused
from headrace.pipeline.entry_ids import MAX_ID
from headrace.pipeline.id_intervals import Intervals, intervals_of
from headrace.pipeline.pace import Pace, parse_rate
from headrace.pipeline.replaying import Record, ReplayPlan, decode_record, mark

PLAN = ReplayPlan("redis://x", "orders", "orders", "n", "subject", 0, MAX_ID)


def test_intervals_that_meet_become_one() -> None:
    apart = Intervals().add(30, 40).add(0, 17)

    assert apart.items == ((0, 17), (30, 40))
    assert apart.add(18, 29).items == ((0, 40),)
    assert apart.add(5, 35).items == ((0, 40),)
    assert apart.add(19, 28).items == ((0, 17), (19, 28), (30, 40))


def test_intervals_cover_what_was_added_and_nothing_else() -> None:
    chance = random.Random(7)
    for _ in range(200):
        done, expected = Intervals(), set()
        for _ in range(chance.randrange(8)):
            first = chance.randrange(50)
            last = first + chance.randrange(10)
            done = done.add(first, last)
            expected.update(range(first, last + 1))

        assert {number for number in range(70) if done.covers(number)} == expected
        assert intervals_of((first, last) for first, last in done.to_texts()) == done


def test_the_last_possible_id_can_be_done() -> None:
    assert Intervals().add(0, MAX_ID).covers(MAX_ID)


def test_a_record_reads_back_as_it_was_written() -> None:
    record = Record("subject", 12, Intervals().add(0, 5 << 64 | 3))

    assert decode_record(record.encode(), PLAN) == record
    assert record.encode() == b'{"of":"subject","added":12,"done":[["0-0","5-3"]]}'
    assert decode_record(None, PLAN) == Record("subject")


def test_a_name_that_stands_for_another_replay_is_refused() -> None:
    with pytest.raises(Refused, match="another where"):
        decode_record(Record("other").encode(), PLAN)
    with pytest.raises(HeadraceError, match="does not hold what a replay left"):
        decode_record(b'{"of":"subject","added":0,"done":[["x","y"]]}', PLAN)


def test_an_entry_gets_its_first_stream_and_id_and_keeps_those_it_has() -> None:
    marked = mark([b"a", b"1"], "orders", "5-3")

    assert marked == [b"a", b"1", b"hr:stream", b"orders", b"hr:id", b"5-3"]
    assert mark(marked, "copies", "9-0") == marked


@pytest.mark.parametrize(
    ("text", "per_second"), [("500/s", 500.0), ("120/m", 2.0), ("1 / h", 1 / 3600), ("0.5/s", 0.5)]
)
def test_a_rate_is_entries_per_time(text: str, per_second: float) -> None:
    assert parse_rate(text) == pytest.approx(per_second)


@pytest.mark.parametrize("text", ["", "500", "0/s", "-1/s", "5/d", "fast", "1e5/s"])
def test_a_rate_that_is_none_is_told_in_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"rate is .*; write entries per time, like 500/s"):
        parse_rate(text)


def test_entries_go_out_no_faster_than_the_rate_and_in_small_steps() -> None:
    time_s = 0.0
    sleeps: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal time_s
        sleeps.append(seconds)
        time_s += seconds

    pace = Pace(50.0, lambda: time_s, sleep)
    size = pace.step_size(500)
    for _ in range(10):
        pace.wait(size)

    assert size == 10
    assert time_s == pytest.approx(9 * 10 / 50)
    assert max(sleeps) <= 0.2
    assert Pace(None).step_size(500) == 500
    assert Pace(0.1).step_size(500) == 1

"""Entries that were given and not acknowledged: looking at them, taking them over, giving them back."""

from __future__ import annotations

import pytest

from support.memory import START_MS, ManualClock, MemoryBroker, Refusal

NO_GROUP = Refusal("NOGROUP No such key 's' or consumer group 'h'")
FATAL = 2**63 - 1


@pytest.fixture
def stream(broker: MemoryBroker, clock: ManualClock) -> MemoryBroker:
    """Ann has had 1-0 and 2-0 for 100 ms, Bob 3-0 for 50; 4-0 is unread."""
    for number in range(1, 5):
        broker(f"XADD s {number}-0 f v{number}")
    broker("XGROUP CREATE s g 0")
    broker("XREADGROUP GROUP g ann COUNT 2 STREAMS s >")
    clock.advance(ms=50)
    broker("XREADGROUP GROUP g bob COUNT 1 STREAMS s >")
    clock.advance(ms=50)
    return broker


def rows(broker: MemoryBroker) -> list[list[object]]:
    reply = broker("XPENDING s g - + 100")
    assert isinstance(reply, list)
    return reply


# XPENDING


def test_the_summary_names_the_edges_and_counts_by_consumer(stream: MemoryBroker) -> None:
    assert stream("XPENDING s g") == [3, b"1-0", b"3-0", [[b"ann", b"2"], [b"bob", b"1"]]]


def test_consumers_without_pending_entries_are_left_out(stream: MemoryBroker) -> None:
    stream("XACK s g 3-0")

    assert stream("XPENDING s g") == [2, b"1-0", b"2-0", [[b"ann", b"2"]]]


def test_the_listing_shows_owner_idle_time_and_deliveries_by_id(stream: MemoryBroker) -> None:
    assert rows(stream) == [[b"1-0", b"ann", 100, 1], [b"2-0", b"ann", 100, 1], [b"3-0", b"bob", 50, 1]]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("- + 2", [b"1-0", b"2-0"]),
        ("(1-0 + 9", [b"2-0", b"3-0"]),
        ("1-0 (3-0 9", [b"1-0", b"2-0"]),
        ("2 2 9", [b"2-0"]),
        ("- + 9 bob", [b"3-0"]),
        ("- + 9 nobody", []),
        ("- + 0", []),
        ("- + -5", []),
        ("IDLE 51 - + 9", [b"1-0", b"2-0"]),
        ("IDLE 50 - + 9 bob", [b"3-0"]),
        ("IDLE 101 - + 9", []),
        ("IDLE 60 - + 1", [b"1-0"]),
    ],
)
def test_the_listing_can_be_narrowed(stream: MemoryBroker, words: str, found: list[bytes]) -> None:
    assert [row[0] for row in stream(f"XPENDING s g {words}")] == found


def test_looking_changes_nothing(stream: MemoryBroker, clock: ManualClock) -> None:
    before = rows(stream)
    stream("XPENDING s g IDLE 1 - + 9 ann")
    stream("XPENDING s g")

    assert rows(stream) == before


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("XPENDING s h", str(NO_GROUP)),
        ("XPENDING s h - + 1", str(NO_GROUP)),
        ("XPENDING s g -", "ERR syntax error"),
        ("XPENDING s g - +", "ERR syntax error"),
        ("XPENDING s g IDLE 5 - +", "ERR syntax error"),
        ("XPENDING s g - + x", "ERR value is not an integer or out of range"),
        ("XPENDING s g x + 1", "ERR Invalid stream ID specified as stream command argument"),
    ],
)
def test_xpending_refuses_in_the_words_of_redis(stream: MemoryBroker, command: str, text: str) -> None:
    assert stream(command) == Refusal(text)


# XCLAIM


def test_a_claim_moves_an_entry_restarts_its_idle_time_and_counts(stream: MemoryBroker) -> None:
    assert stream("XCLAIM s g cat 60 1-0 3-0") == [[b"1-0", [b"f", b"v1"]]]
    assert rows(stream)[0] == [b"1-0", b"cat", 0, 2]
    assert rows(stream)[2] == [b"3-0", b"bob", 50, 1]


def test_of_two_rivals_the_first_wins(stream: MemoryBroker) -> None:
    assert len(stream("XCLAIM s g cat 100 1-0")) == 1
    assert stream("XCLAIM s g dan 100 1-0") == []


def test_a_claim_makes_its_consumer_even_when_it_gets_nothing(stream: MemoryBroker) -> None:
    stream("XCLAIM s g cat 1000 1-0")

    assert [row[1] for row in stream("XINFO CONSUMERS s g")] == [b"ann", b"bob", b"cat"]
    assert stream("XPENDING s g")[0] == 3


def test_justid_gives_names_and_does_not_count(stream: MemoryBroker) -> None:
    assert stream("XCLAIM s g cat 0 1-0 JUSTID") == [b"1-0"]
    assert rows(stream)[0] == [b"1-0", b"cat", 0, 1]


def test_a_claim_may_say_how_long_and_how_often(stream: MemoryBroker) -> None:
    stream("XCLAIM s g cat 0 1-0 IDLE 5000 RETRYCOUNT 7 JUSTID")
    stream(f"XCLAIM s g cat 0 2-0 TIME {START_MS + 40}")

    assert rows(stream)[:2] == [[b"1-0", b"cat", 5000, 7], [b"2-0", b"cat", 60, 2]]


@pytest.mark.parametrize("option", ["IDLE -5000", f"TIME {START_MS + 10**9}", "TIME -7", f"IDLE {10**15}"])
def test_a_time_that_cannot_be_is_now(stream: MemoryBroker, option: str) -> None:
    stream(f"XCLAIM s g cat 0 1-0 {option}")

    assert rows(stream)[0] == [b"1-0", b"cat", 0, 2]


def test_force_makes_an_entry_pending(stream: MemoryBroker) -> None:
    assert stream("XCLAIM s g cat 0 4-0") == []
    assert stream("XCLAIM s g cat 1000 4-0 FORCE JUSTID") == [b"4-0"]
    assert rows(stream)[3] == [b"4-0", b"cat", 0, 1]


def test_a_forced_entry_counts_one_delivery_more_as_in_redis(stream: MemoryBroker) -> None:
    stream("XCLAIM s g cat 0 4-0 FORCE")

    assert rows(stream)[3] == [b"4-0", b"cat", 0, 2]


def test_a_forced_entry_must_exist(stream: MemoryBroker) -> None:
    assert stream("XCLAIM s g cat 0 9-0 FORCE") == []
    assert stream("XPENDING s g")[0] == 3


def test_claiming_an_entry_that_is_gone_ends_its_being_pending(stream: MemoryBroker) -> None:
    stream("XDEL s 1-0")

    assert stream("XCLAIM s g cat 1000 1-0") == []
    assert [row[0] for row in rows(stream)] == [b"2-0", b"3-0"]


def test_the_order_of_claimed_ids_is_the_order_of_the_reply(stream: MemoryBroker) -> None:
    assert stream("XCLAIM s g cat 0 3-0 1-0 3-0 JUSTID") == [b"3-0", b"1-0", b"3-0"]
    assert [row[0] for row in rows(stream)] == [b"1-0", b"2-0", b"3-0"]


def test_lastid_moves_the_position_ahead_only(stream: MemoryBroker) -> None:
    stream("XCLAIM s g cat 0 1-0 LASTID 2-0")
    assert stream("XINFO GROUPS s")[0][7] == b"3-0"
    stream("XCLAIM s g cat 0 1-0 LASTID 9-0")

    assert stream("XINFO GROUPS s")[0][7] == b"9-0"


def test_a_refused_claim_changes_nothing(stream: MemoryBroker) -> None:
    before = rows(stream)

    assert stream("XCLAIM s g cat 0 1-0 LASTID 9-0 FOO") == Refusal("ERR Unrecognized XCLAIM option 'FOO'")
    assert rows(stream) == before
    assert stream("XINFO GROUPS s")[0][7] == b"3-0"
    assert len(stream("XINFO CONSUMERS s g")) == 2


def test_counting_deliveries_ends_at_64_bits(stream: MemoryBroker) -> None:
    stream(f"XCLAIM s g cat 0 1-0 RETRYCOUNT {FATAL}")
    stream("XCLAIM s g cat 0 1-0")
    stream("XREADGROUP GROUP g cat STREAMS s 0")

    assert rows(stream)[0][3] == FATAL


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("XCLAIM s h c 0 1-0", str(NO_GROUP)),
        ("XCLAIM s g c x 1-0", "ERR Invalid min-idle-time argument for XCLAIM"),
        ("XCLAIM s g c 0 1-0 IDLE x", "ERR Invalid IDLE option argument for XCLAIM"),
        ("XCLAIM s g c 0 1-0 TIME x", "ERR Invalid TIME option argument for XCLAIM"),
        ("XCLAIM s g c 0 1-0 RETRYCOUNT x", "ERR Invalid RETRYCOUNT option argument for XCLAIM"),
        ("XCLAIM s g c 0 1-0 LASTID x", "ERR Invalid stream ID specified as stream command argument"),
        ("XCLAIM s g c 0 1-0 IDLE", "ERR Unrecognized XCLAIM option 'IDLE'"),
        ("XAUTOCLAIM s h c 0 0", str(NO_GROUP)),
        ("XAUTOCLAIM s g c x 0", "ERR Invalid min-idle-time argument for XAUTOCLAIM"),
        ("XAUTOCLAIM s g c 0 x", "ERR Invalid stream ID specified as stream command argument"),
        ("XAUTOCLAIM s g c 0 0 COUNT 0", "ERR COUNT must be > 0"),
        ("XAUTOCLAIM s g c 0 0 COUNT x", "ERR COUNT must be > 0"),
        ("XAUTOCLAIM s g c 0 0 FOO", "ERR syntax error"),
    ],
)
def test_claims_are_refused_in_the_words_of_redis(stream: MemoryBroker, command: str, text: str) -> None:
    assert stream(command) == Refusal(text)


# XAUTOCLAIM


def test_entries_return_to_the_group_when_their_consumer_stays_silent(stream: MemoryBroker) -> None:
    assert stream("XAUTOCLAIM s g cat 60 0 JUSTID") == [b"0-0", [b"1-0", b"2-0"], []]


def test_a_scan_goes_on_where_it_stopped(stream: MemoryBroker) -> None:
    assert stream("XAUTOCLAIM s g cat 0 - COUNT 2") == [
        b"3-0",
        [[b"1-0", [b"f", b"v1"]], [b"2-0", [b"f", b"v2"]]],
        [],
    ]
    assert stream("XAUTOCLAIM s g cat 0 3-0 COUNT 2") == [b"0-0", [[b"3-0", [b"f", b"v3"]]], []]


def test_a_scan_may_begin_behind_an_id(stream: MemoryBroker) -> None:
    assert stream("XAUTOCLAIM s g cat 0 (1-0 JUSTID")[1] == [b"2-0", b"3-0"]


def test_a_scan_reports_and_drops_what_is_gone(stream: MemoryBroker) -> None:
    stream("XDEL s 2-0")

    assert stream("XAUTOCLAIM s g cat 0 0 JUSTID") == [b"0-0", [b"1-0", b"3-0"], [b"2-0"]]
    assert [row[0] for row in rows(stream)] == [b"1-0", b"3-0"]


def test_what_is_gone_counts_as_found(stream: MemoryBroker) -> None:
    stream("XDEL s 1-0")

    assert stream("XAUTOCLAIM s g cat 0 0 COUNT 1 JUSTID") == [b"2-0", [], [b"1-0"]]


def test_a_scan_looks_at_no_more_than_ten_times_its_count(broker: MemoryBroker, clock: ManualClock) -> None:
    for number in range(1, 31):
        broker(f"XADD s {number}-0 f v")
    broker("XGROUP CREATE s g 0")
    broker("XREADGROUP GROUP g ann STREAMS s >")
    broker("XCLAIM s g ann 0 25-0 IDLE 1000")

    assert broker("XAUTOCLAIM s g bob 500 0 COUNT 1 JUSTID") == [b"11-0", [], []]
    assert broker("XAUTOCLAIM s g bob 500 11-0 COUNT 1 JUSTID") == [b"21-0", [], []]
    assert broker("XAUTOCLAIM s g bob 500 21-0 COUNT 1 JUSTID") == [b"26-0", [b"25-0"], []]


# XNACK


def test_an_entry_given_back_is_nobodys_and_can_be_claimed_at_once(stream: MemoryBroker) -> None:
    assert stream("XNACK s g FAIL IDS 2 2-0 9-0") == 1
    assert rows(stream)[1] == [b"2-0", b"", -1, 1]
    assert stream("XCLAIM s g cat 100000 2-0 JUSTID") == [b"2-0"]


@pytest.mark.parametrize(("mode", "count"), [("SILENT", 0), ("FAIL", 1), ("FATAL", FATAL)])
def test_the_mode_says_what_becomes_of_the_count(stream: MemoryBroker, mode: str, count: int) -> None:
    stream(f"XNACK s g {mode} IDS 1 1-0")

    assert rows(stream)[0][3] == count


def test_the_count_can_be_given(stream: MemoryBroker) -> None:
    stream("XNACK s g FAIL IDS 1 1-0 RETRYCOUNT 42")

    assert rows(stream)[0][3] == 42


def test_an_entry_given_back_is_the_first_to_be_claimed(stream: MemoryBroker) -> None:
    stream("XNACK s g FAIL IDS 1 3-0")

    entries = stream("XREADGROUP GROUP g cat COUNT 2 CLAIM 60 STREAMS s >")[0][1]
    assert [entry[0] for entry in entries] == [b"3-0", b"1-0"]


def test_an_entry_given_back_can_be_acknowledged(stream: MemoryBroker) -> None:
    stream("XNACK s g FAIL IDS 1 3-0")

    assert stream("XACK s g 3-0") == 1
    assert stream("XPENDING s g")[0] == 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("h FAIL IDS 1 1-0", str(NO_GROUP)),
        ("g FOO IDS 1 1-0", "ERR mode must be SILENT, FAIL, or FATAL"),
        ("g FAIL IDS 0 1-0", "ERR numids must be a positive integer"),
        ("g FAIL IDS 3 1-0", "ERR number of IDs doesn't match numids"),
        ("g FAIL FOO 1 1-0", "ERR expected IDS keyword"),
        ("g FAIL IDS 1 1-0 RETRYCOUNT -1", "ERR Invalid RETRYCOUNT"),
    ],
)
def test_xnack_refuses_what_makes_no_sense(stream: MemoryBroker, words: str, text: str) -> None:
    assert stream(f"XNACK s {words}") == Refusal(text)


def test_very_many_entries_can_be_claimed_in_one_command(broker: MemoryBroker) -> None:
    ids = [f"{number}-1" for number in range(1, 10_001)]
    for entry_id in ids:
        broker("XADD", "crowd", entry_id, "f", "v")
    broker("XGROUP CREATE crowd g 0")

    assert broker("XCLAIM", "crowd", "g", "ann", 0, *ids, *ids, "FORCE", "JUSTID") == [id_.encode() for id_ in ids * 2]
    assert broker("XPENDING crowd g")[0] == 10_000

"""HR.TRIM: the oldest entries go, but none that a group still needs."""

from __future__ import annotations

import pytest

from support.memory import MemoryBroker, Refusal


@pytest.fixture
def ten(broker: MemoryBroker) -> MemoryBroker:
    """A stream of ten entries, 1-0 to 10-0."""
    for number in range(1, 11):
        broker(f"XADD orders {number}-0 n {number}")
    return broker


def ids(broker: MemoryBroker) -> list[bytes]:
    return [entry[0] for entry in broker("XRANGE orders - +")]


def test_without_groups_all_that_is_asked_for_goes(ten: MemoryBroker) -> None:
    assert ten("HR.TRIM orders MINID 4") == [3, b"4-0", None]
    assert ids(ten)[0] == b"4-0"
    assert ten("HR.TRIM orders MAXLEN 2") == [5, b"9-0", None]
    assert ids(ten) == [b"9-0", b"10-0"]
    assert ten("HR.TRIM orders MAXLEN 2") == [0, b"9-0", None]
    assert ten("HR.TRIM orders MAXLEN 0") == [2, b"10-1", None]
    assert ten("HR.TRIM orders MAXLEN 3") == [0, b"0-0", None]


def test_what_a_group_has_not_been_given_stays(ten: MemoryBroker) -> None:
    ten("XGROUP CREATE orders slow 3-0")
    ten("XGROUP CREATE orders fast 9-0")
    assert ten("HR.TRIM orders MINID 8") == [3, b"3-1", b"slow"]
    assert ids(ten)[0] == b"4-0"


def test_what_a_group_has_pending_stays(ten: MemoryBroker) -> None:
    ten("XGROUP CREATE orders billing 0")
    ten("XREADGROUP GROUP billing ann STREAMS orders >")
    ten("XACK orders billing 1-0 2-0 4-0")
    assert ten("HR.TRIM orders MAXLEN 1") == [2, b"3-0", b"billing"]
    ten("XACK orders billing 3-0")
    assert ten("HR.TRIM orders MAXLEN 1") == [2, b"5-0", b"billing"]


def test_a_pending_entry_that_is_gone_holds_nothing_back(ten: MemoryBroker) -> None:
    ten("XGROUP CREATE orders billing 0")
    ten("XREADGROUP GROUP billing ann STREAMS orders >")
    ten("XACK orders billing 2-0 4-0 6-0 8-0 9-0")
    ten("XDEL orders 1-0 3-0 5-0")
    assert ten("HR.TRIM orders MINID 6") == [2, b"6-0", None]
    assert ten("HR.TRIM orders MINID 9") == [1, b"7-0", b"billing"]
    ten("XDEL orders 7-0 10-0")
    assert ten("HR.TRIM orders MINID 50") == [2, b"10-1", None]


def test_a_group_set_back_needs_what_it_will_be_given_again(ten: MemoryBroker) -> None:
    ten("XGROUP CREATE orders billing 0")
    ten("XREADGROUP GROUP billing ann STREAMS orders >")
    ten("XACK orders billing 1-0 2-0 3-0 4-0")
    ten("XGROUP SETID orders billing 2-0")
    assert ten("HR.TRIM orders MINID 9") == [2, b"2-1", b"billing"]


def test_a_trim_that_no_group_minds_names_none(ten: MemoryBroker) -> None:
    ten("XGROUP CREATE orders billing 5-0")
    assert ten("HR.TRIM orders MINID 5") == [4, b"5-0", None]
    assert ten("HR.TRIM orders MINID 6") == [1, b"5-1", None]
    assert ids(ten)[0] == b"6-0"


def test_a_group_that_has_everything_holds_nothing_back(ten: MemoryBroker) -> None:
    ten("XGROUP CREATE orders billing $")
    assert ten("HR.TRIM orders MINID 50") == [10, b"10-1", None]
    assert ids(ten) == []


def test_of_groups_equally_slow_the_first_by_name_is_named(ten: MemoryBroker) -> None:
    for group in ("mail", "audit", "billing"):
        ten(f"XGROUP CREATE orders {group} 4-0")
    assert ten("HR.TRIM orders MAXLEN 0") == [4, b"4-1", b"audit"]


def test_a_dry_run_answers_the_same_and_removes_nothing(ten: MemoryBroker) -> None:
    ten("XGROUP CREATE orders slow 3-0")
    would = ten("HR.TRIM orders MINID 8 DRYRUN")
    assert len(ids(ten)) == 10
    assert ten("HR.TRIM orders MINID 8") == would == [3, b"3-1", b"slow"]


def test_a_dry_run_counts_over_many_nodes(broker: MemoryBroker) -> None:
    for number in range(1, 1001):
        broker(f"XADD orders {number}-0 n {number}")
    broker("XDEL orders 150-0 700-0")
    for place in (1, 2, 100, 101, 102, 150, 151, 700, 1000, 1001):
        would = broker(f"HR.TRIM orders MINID {place} DRYRUN")
        broker("COPY orders other REPLACE")
        assert broker(f"HR.TRIM other MINID {place}") == would


def test_a_missing_stream_is_not_made(broker: MemoryBroker) -> None:
    assert broker("HR.TRIM orders MINID 5") == [0, b"0-0", None]
    assert broker("EXISTS orders") == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("MINID", "ERR wrong number of arguments for 'hr.trim' command"),
        ("MINID bad", "ERR Invalid stream ID specified as stream command argument"),
        ("MAXLEN -1", "ERR The MAXLEN argument must be >= 0."),
        ("MAXLEN many", "ERR value is not an integer or out of range"),
        ("MINLEN 5", "ERR syntax error"),
        ("MINID 5 WET", "ERR syntax error"),
        ("MINID 5 DRYRUN DRYRUN", "ERR syntax error"),
        ("MAXLEN ~ 5", "ERR syntax error"),
    ],
)
def test_a_faulty_trim_is_refused(ten: MemoryBroker, words: str, error: str) -> None:
    assert ten(f"HR.TRIM orders {words}") == Refusal(error)
    assert len(ids(ten)) == 10


def test_other_types_are_refused(broker: MemoryBroker) -> None:
    broker("SET key text")
    wrong_type = Refusal("WRONGTYPE Operation against a key holding the wrong kind of value")
    assert broker("HR.TRIM key MINID 5") == wrong_type


def test_the_highest_id_there_is_is_trimmed_too(broker: MemoryBroker) -> None:
    broker("XADD orders 18446744073709551615-18446744073709551615 a b")
    assert broker("HR.TRIM orders MAXLEN 0") == [1, b"18446744073709551615-18446744073709551615", None]

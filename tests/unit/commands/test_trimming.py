"""How much of a stream stays: exactly, roughly, and with a say about pending references."""

from __future__ import annotations

import pytest

from support.memory import MemoryBroker, Refusal


def fill(broker: MemoryBroker, count: int) -> None:
    """Entries 1-0 to count-0 in nodes of 3."""
    assert broker("CONFIG SET stream-node-max-entries 3") == b"OK"
    for number in range(1, count + 1):
        broker(f"XADD s {number}-0 f v")


def left(broker: MemoryBroker) -> list[int]:
    return [int(entry[0].split(b"-")[0]) for entry in broker("XRANGE s - +")]


@pytest.mark.parametrize("sign", ["", "= "])
def test_the_newest_entries_stay(broker: MemoryBroker, sign: str) -> None:
    fill(broker, 10)

    assert broker(f"XTRIM s MAXLEN {sign}4") == 6
    assert left(broker) == [7, 8, 9, 10]
    assert broker(f"XTRIM s MAXLEN {sign}4") == 0


@pytest.mark.parametrize("sign", ["", "= "])
def test_entries_from_an_id_on_stay(broker: MemoryBroker, sign: str) -> None:
    fill(broker, 10)

    assert broker(f"XTRIM s MINID {sign}4") == 3
    assert broker(f"XTRIM s MINID {sign}4-1") == 1
    assert left(broker) == [5, 6, 7, 8, 9, 10]


def test_roughly_means_whole_nodes_and_never_fewer_than_asked_for(broker: MemoryBroker) -> None:
    fill(broker, 10)

    assert broker("XTRIM s MAXLEN ~ 5") == 3
    assert left(broker) == [4, 5, 6, 7, 8, 9, 10]


def test_roughly_by_id_means_whole_nodes_below_it(broker: MemoryBroker) -> None:
    fill(broker, 10)

    assert broker("XTRIM s MINID ~ 9-0") == 6
    assert left(broker) == [7, 8, 9, 10]


def test_a_limit_ends_rough_trimming_early(broker: MemoryBroker) -> None:
    fill(broker, 10)

    assert broker("XTRIM s MAXLEN ~ 0 LIMIT 5") == 3
    assert broker("XTRIM s MAXLEN ~ 0 LIMIT 2") == 0
    assert broker("XTRIM s MAXLEN ~ 0 LIMIT 0") == 7


def test_rough_trimming_without_a_limit_stops_after_a_hundred_nodes(broker: MemoryBroker) -> None:
    fill(broker, 400)

    assert broker("XTRIM s MAXLEN ~ 0") == 300


def test_an_added_entry_trims_in_the_same_step(broker: MemoryBroker) -> None:
    fill(broker, 10)
    broker("XADD s MAXLEN 2 11-0 f v")

    assert left(broker) == [10, 11]


def test_an_entry_added_below_the_threshold_goes_at_once(broker: MemoryBroker) -> None:
    assert broker("XADD s MINID 9 5-0 f v") == b"5-0"
    assert broker("XLEN s") == 0
    assert broker("EXISTS s") == 1


def test_a_stream_trimmed_to_nothing_goes_on(broker: MemoryBroker) -> None:
    fill(broker, 4)

    assert broker("XTRIM s MAXLEN 0") == 4
    assert broker("XADD s 5-0 f v") == b"5-0"
    assert left(broker) == [5]


def test_a_missing_key_has_nothing_to_trim(broker: MemoryBroker) -> None:
    assert broker("XTRIM none MAXLEN 0") == 0


# References


def deliver(broker: MemoryBroker, count: int) -> None:
    broker("XGROUP CREATE s g 0")
    broker(f"XREADGROUP GROUP g ann COUNT {count} STREAMS s >")


@pytest.mark.parametrize("policy", ["", "KEEPREF"])
def test_references_stay_unless_told_otherwise(broker: MemoryBroker, policy: str) -> None:
    fill(broker, 5)
    deliver(broker, 2)
    broker(f"XTRIM s MAXLEN 0 {policy}")

    assert broker("XPENDING s g")[0] == 2
    assert broker("XREADGROUP GROUP g ann STREAMS s 0") == [[b"s", [[b"1-0", None], [b"2-0", None]]]]


def test_delref_takes_references_along(broker: MemoryBroker) -> None:
    fill(broker, 5)
    deliver(broker, 4)

    assert broker("XTRIM s MAXLEN 2 DELREF") == 3
    assert [row[0] for row in broker("XPENDING s g - + 9")] == [b"4-0"]


def test_acked_keeps_what_is_pending_or_unread_and_goes_on_behind_it(broker: MemoryBroker) -> None:
    fill(broker, 6)
    deliver(broker, 4)
    broker("XACK s g 1-0 3-0 4-0")

    assert broker("XTRIM s MAXLEN 0 ACKED") == 3
    assert left(broker) == [2, 5, 6]


def test_acked_asks_every_group(broker: MemoryBroker) -> None:
    fill(broker, 3)
    deliver(broker, 3)
    broker("XACK s g 1-0 2-0 3-0")
    broker("XGROUP CREATE s h 1-0")

    assert broker("XTRIM s MAXLEN 0 ACKED") == 1
    assert left(broker) == [2, 3]


def test_with_a_policy_roughly_cuts_nodes_too(broker: MemoryBroker) -> None:
    """As Redis does: only the limit is left of it."""
    fill(broker, 10)

    assert broker("XTRIM s MAXLEN ~ 5 DELREF LIMIT 2") == 0
    assert broker("XTRIM s MAXLEN ~ 5 DELREF") == 5


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("FOO 1", "ERR syntax error"),
        ("MAXLEN 1 MINID 1", "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"),
        ("MAXLEN -1", "ERR The MAXLEN argument must be >= 0."),
        ("MAXLEN x", "ERR value is not an integer or out of range"),
        ("MINID x", "ERR Invalid stream ID specified as stream command argument"),
        ("MAXLEN 2 LIMIT 1", "ERR syntax error, LIMIT cannot be used without the special ~ option"),
        ("LIMIT 1 KEEPREF", "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"),
        ("LIMIT 0 KEEPREF", "ERR syntax error, XTRIM must be called with a trimming strategy"),
        ("MAXLEN ~ 2 LIMIT -1", "ERR The LIMIT argument must be >= 0."),
        ("KEEPREF ACKED", "ERR syntax error"),
    ],
)
def test_wrong_words_are_refused(broker: MemoryBroker, words: str, text: str) -> None:
    fill(broker, 1)

    assert broker(f"XTRIM s {words}") == Refusal(text)
    assert broker("XLEN s") == 1

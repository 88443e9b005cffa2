"""Which publish ids a stream has seen."""

from __future__ import annotations

from headrace.engine.publish_ids import DELAYED, UNKNOWN, PublishIds


def test_a_delayed_message_becomes_an_entry() -> None:
    known = PublishIds()
    known.add(b"x", DELAYED, 100, 0)
    assert known.find(b"x", 150, 1000) == DELAYED

    assert known.settle(b"x", 5 << 64)

    assert known.find(b"x", 150, 1000) == 5 << 64
    assert known.find(b"x", 1100, 1000) == UNKNOWN  # The window began when it was published.


def test_an_id_that_was_forgotten_or_has_its_entry_is_left_alone() -> None:
    known = PublishIds()
    known.add(b"x", 5 << 64, 100, 0)

    assert not known.settle(b"x", 7 << 64)
    assert not known.settle(b"y", 7 << 64)
    assert known.find(b"x", 150, 1000) == 5 << 64
    assert known.find(b"y", 150, 1000) == UNKNOWN

"""Segments: bytes get a place, come back checked, and the space of those nobody needs comes back too."""

from random import Random

import pytest

from headrace.errors import JournalError
from headrace.journal.segments import Segments
from support.fake_disk import FakeDisk


def test_what_was_placed_is_fetched_from_its_place() -> None:
    segments = Segments(FakeDisk(Random(0)), 500)
    payloads = [b"%d" % number * 50 for number in range(30)]

    places = [segments.place(payload) for payload in payloads]

    assert [segments.fetch(*place) for place in places] == payloads
    assert {place[0] for place in places} == set(range(1, max(places)[0] + 1))
    assert max(places)[0] > 3


def test_it_is_there_after_a_start_and_what_was_placed_since_is_not() -> None:
    disk = FakeDisk(Random(0))
    segments = Segments(disk, 500)
    place = segments.place(b"kept")
    lengths = segments.lengths()
    segments.place(b"not in the manifest")
    segments.sync()
    disk.sync()

    again = Segments(disk.after_crash(), 500)
    again.load(lengths)
    again.cut(lengths)

    assert again.fetch(*place) == b"kept"
    assert again.lengths() == lengths
    assert again.fetch(*again.place(b"next")) == b"next"


def test_damage_is_refused_at_the_start_and_when_fetched() -> None:
    disk = FakeDisk(Random(0))
    segments = Segments(disk)
    place = segments.place(b"some bytes")
    disk.files["segment-00000001"].data[place[1] + 45] ^= 1

    with pytest.raises(JournalError, match=f"segment-00000001 is damaged at byte {place[1]}"):
        segments.fetch(*place)
    with pytest.raises(JournalError, match=f"segment-00000001 is damaged at byte {place[1]}"):
        Segments(disk).load(segments.lengths())
    with pytest.raises(JournalError, match="segment-00000001 ends at byte"):
        Segments(disk).load({1: 10_000})
    with pytest.raises(JournalError, match="segment-00000002 is missing"):
        Segments(disk).load({2: 100})
    with pytest.raises(JournalError, match="segment-00000009 is missing"):
        segments.fetch(9, 0, 1)


def test_segments_nobody_needs_are_given_up_and_half_empty_ones_are_left() -> None:
    segments = Segments(FakeDisk(Random(0)), 300)
    places = [segments.place(b"x" * 150) for _ in range(6)]
    assert {place[0] for place in places} == {1, 2, 3}

    gone = segments.keep({1: 300, 2: 50})

    assert gone == ["segment-00000003"]
    assert segments.sparse() == {2}
    assert segments.place(b"new")[0] == 4  # A number is never used again.

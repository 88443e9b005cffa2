"""Who is taken for: a share of each one's room, and few calls where there is little to give."""

from headrace.client.lane_steps import Grant
from headrace.client.lane_views import Registered
from headrace.client.results import Entry
from headrace.ordered.delegating import MOST_AT_ONCE, growing_parts, share_out
from headrace.ordered.granted import MOST_REMEMBERED, Granted


def consumer(name: str, session: int = 1) -> Registered:
    return Registered(name, session, 0, 8, "heartbeat:")


def grant(key: str, fence: int) -> Grant:
    return Grant(key, fence, 1, "", [Entry(f"{fence}-0", ((b"n", b"1"),), "s")])


ANN, BOB, CAT = (consumer(name) for name in ("ann", "bob", "cat"))


def test_each_gets_a_part_of_its_room_and_who_is_alone_all_of_it():
    assert share_out({ANN: 8, BOB: 2, CAT: 0}, least=0) == {ANN: 2, BOB: 1}
    assert share_out({ANN: 8}, least=0) == {ANN: 8}
    assert share_out({}, least=1) == {}


def test_who_is_full_is_asked_for_last_and_only_when_a_lease_is_over():
    assert list(share_out({CAT: 0, ANN: 8, BOB: -1}, least=1).items()) == [(ANN, 2), (CAT, 1), (BOB, 1)]


def test_one_is_asked_for_alone_and_then_more_and_more_at_a_time():
    shares = {consumer(str(number)): 1 for number in range(200)}
    parts = list(growing_parts(shares))

    assert [len(part) for part in parts] == [1, 4, 16, MOST_AT_ONCE, MOST_AT_ONCE, 51]
    assert {one: share for part in parts for one, share in part.items()} == shares


def test_a_grant_is_remembered_until_it_is_settled_or_its_consumer_is_gone():
    granted = Granted()
    granted.note(ANN, [grant("7", 10), grant("8", 11)])
    granted.note(BOB, [grant("9", 12)])
    granted.forget("ann", "7", 9)  # An older one.
    assert granted.find("ann", "7").fence == 10
    granted.forget("ann", "7", 10)
    granted.note_told("ann", ["8", "none"])

    assert granted.find("ann", "7") is None and granted.find("ann", "8").entry is None
    granted.forget_others({"ann"})
    assert granted.find("bob", "9") is None and [one.key for one in granted.all_of("ann")] == ["8"]


def test_no_more_is_remembered_than_a_consumer_can_hold():
    granted = Granted()
    granted.note(ANN, [grant(str(number), number) for number in range(MOST_REMEMBERED + 1)])
    granted.note(ANN, [grant("1", MOST_REMEMBERED + 1)])

    known = granted.all_of("ann")
    assert len(known) == MOST_REMEMBERED and known[0].key == "2" and known[-1].key == "1"

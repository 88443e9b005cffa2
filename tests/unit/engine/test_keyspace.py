"""Keys and their expiry."""

from headrace.engine.keyspace import EXPIRED, NEW, OVERWRITTEN, TYPE_CHANGED, Event, Keyspace


def test_every_key_whose_time_has_come_goes_sooner_or_later_however_many_others_wait() -> None:
    keys = Keyspace(0)
    for number in range(50):
        keys.put(b"later-%d" % number, b"x", 10_000)
    keys.put(b"due", b"x", 100)
    for number in range(50):
        keys.put(b"much-later-%d" % number, b"x", 20_000)

    for _ in range(11):
        keys.drop_expired(now_ms=500, limit=10)

    assert b"due" not in keys.values
    assert keys.dropped == [(0, b"due")]
    assert len(keys.values) == 100


def test_a_key_is_missing_from_the_moment_its_time_has_come() -> None:
    keys = Keyspace(0)
    keys.put(b"k", b"x", 100)

    assert keys.find(b"k", now_ms=99) == b"x"
    assert keys.find(b"k", now_ms=100) is None


def test_storing_a_value_anew_forgets_the_old_expiry() -> None:
    keys = Keyspace(0)
    keys.put(b"k", b"x", 100)
    keys.put(b"k", b"y")

    assert keys.find(b"k", now_ms=500) == b"y"


def test_what_happens_to_a_key_is_told_to_those_who_asked_for_its_kind() -> None:
    events: list[Event] = []
    keys = Keyspace(3, events)
    keys.put(b"quiet", b"v")
    keys.event_kinds = NEW | OVERWRITTEN | TYPE_CHANGED | EXPIRED

    keys.put(b"a", b"v")
    keys.put(b"a", b"w")
    keys.change(b"a", b"ww")
    keys.put(b"a", {b"m"}, expires_ms=10)
    keys.find(b"a", now_ms=10)
    keys.change(b"a", b"v")

    assert [(name, key) for _, _, name, key in events] == [
        (b"new", b"a"),
        (b"overwritten", b"a"),
        (b"overwritten", b"a"),
        (b"type_changed", b"a"),
        (b"expired", b"a"),
        (b"new", b"a"),
    ]
    assert {database for _, database, _, _ in events} == {3}


def test_other_kinds_are_not_told() -> None:
    events: list[Event] = []
    keys = Keyspace(0, events)
    keys.event_kinds = EXPIRED

    keys.put(b"a", b"v")
    keys.put(b"a", {b"m"})

    assert events == []

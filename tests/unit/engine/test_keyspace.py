"""Keys and their expiry."""

from headrace.engine.keyspace import Keyspace


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

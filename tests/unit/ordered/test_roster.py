"""Who counts as alive: whoever gave a sign within a lease."""

from headrace.client.lane_views import Registered
from headrace.ordered import roster as module
from headrace.ordered.bodies import BY_CALLS
from headrace.ordered.roster import Roster, has_health_url, is_delegated


def one(name="c1", session=1, health="http://x/"):
    return Registered(name, session, 0, 1, health)


def test_a_sign_counts_for_a_lease_and_for_its_session_only(monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now_s[0])
    roster = Roster(lease_ms=3000)

    assert not roster.is_alive(one())
    roster.note("c1", 1)
    assert roster.is_alive(one()) and not roster.is_alive(one(session=2))
    now_s[0] += 2.9
    assert roster.is_alive(one()) and roster.left_ms(one()) == 100
    now_s[0] += 0.2
    assert not roster.is_alive(one()) and roster.left_ms(one()) == 0


def test_failures_are_counted_until_the_next_sign():
    roster = Roster(lease_ms=3000)

    assert [roster.note_failure("c1", 1) for _ in range(3)] == [1, 2, 3]
    roster.note("c1", 1)
    assert roster.note_failure("c1", 1) == 1


def test_it_forgets_whoever_is_not_registered_any_more():
    roster = Roster(lease_ms=3000)
    for session in range(100):
        roster.note("c1", session)
        roster.note_failure("c2", session)
    roster.forget_others([one(session=99)])

    assert list(roster.signs) == [("c1", 99)] and not roster.failures


def test_consumers_that_take_for_themselves_have_no_health_url():
    assert not is_delegated(one(health=""))
    assert is_delegated(one(health=BY_CALLS)) and not has_health_url(one(health=BY_CALLS))
    assert has_health_url(one())

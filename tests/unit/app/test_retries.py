"""How often, and after which pause."""

import pytest

from headrace.app.retries import Bury, Retries, Retry, read_retries
from headrace.errors import ConfigError


def test_pauses_grow_by_the_factor_up_to_the_longest():
    retries = Retries(5, first="1s", factor=2, longest="5s")

    assert [retries.pause_ms(attempt, 0) for attempt in (1, 2, 3, 4, 5)] == [1000, 2000, 4000, 5000, 5000]


def test_a_pause_is_up_to_a_fifth_shorter_by_chance_and_never_longer():
    assert Retries(first="10s").pause_ms(1, 1) == 8000
    assert Retries(first="10s").pause_ms(1, 0) == 10_000


def test_a_huge_attempt_does_not_overflow():
    assert Retries(first="1s", factor=1000, longest="5m").pause_ms(10_000, 0) == 300_000


def test_a_number_is_that_many_with_the_usual_pauses():
    assert read_retries(3) == Retries(3)
    assert read_retries(None).count == 5
    assert read_retries(0).count == 0


@pytest.mark.parametrize("count", [-1, 1.5, True, "3", 10**9])
def test_a_number_of_retries_that_cannot_be_is_named(count):
    with pytest.raises(ConfigError, match="retries is"):
        Retries(count)


def test_other_settings_that_cannot_be_are_named():
    with pytest.raises(ConfigError, match="factor of Retries is 0"):
        Retries(3, factor=0)
    with pytest.raises(ConfigError, match="first is 'soon'"):
        Retries(3, first="soon")
    with pytest.raises(ConfigError, match="give a number, or Retries"):
        read_retries("five")


def test_what_a_handler_raises_to_decide_itself():
    assert Retry(after="5m").after_ms == 300_000
    assert Retry("rate limited").after_ms is None and str(Retry("rate limited")) == "rate limited"
    assert str(Bury("no such customer")) == "no such customer"
    with pytest.raises(ConfigError, match="after is 'later'"):
        Retry(after="later")

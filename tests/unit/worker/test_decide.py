"""What becomes of a failed message. Requirement 221: N retries are N + 1 runs."""

from headrace import Bury, Retries, Retry
from headrace.errors import Misfit
from headrace.worker.decide import GiveUp, TryAgain, decide, read_given_up, write_given_up


def failure(error):
    try:
        raise error
    except BaseException as raised:
        return raised


def test_n_retries_are_n_plus_one_runs():
    decisions = [decide(failure(ValueError("no")), attempt, Retries(3), 0.5) for attempt in (1, 2, 3, 4)]

    assert [type(decision) for decision in decisions] == [TryAgain, TryAgain, TryAgain, GiveUp]


def test_a_pause_follows_the_backoff():
    assert decide(ValueError("no"), 2, Retries(3, first="1s", factor=3), 0) == TryAgain(3000, "ValueError: no")


def test_a_handler_may_ask_for_its_own_pause_which_still_counts_as_a_run():
    assert decide(Retry("busy", after="5m"), 1, Retries(3), 0.5) == TryAgain(300_000, "busy")
    assert isinstance(decide(Retry("busy", after="5m"), 4, Retries(3), 0.5), GiveUp)
    assert decide(Retry("busy"), 1, Retries(3, first="2s"), 0) == TryAgain(2000, "busy")


def test_what_no_other_try_can_help_is_given_up_at_once():
    assert decide(Bury("no such customer"), 1, Retries(3), 0.5) == GiveUp("no such customer", "", is_hopeless=True)
    assert decide(Misfit("no Order"), 1, Retries(3), 0.5) == GiveUp("no Order", "", is_hopeless=True)


def test_errors_that_are_no_exceptions_count_too():
    assert isinstance(decide(KeyboardInterrupt(), 1, Retries(3), 0.5), TryAgain)
    assert decide(SystemExit(3), 1, Retries(0), 0.5).error == "SystemExit: 3"


def test_the_traceback_is_that_of_the_handler_and_limited():
    decision = decide(failure(ValueError("x" * 100_000)), 1, Retries(0), 0.5)

    assert isinstance(decision, GiveUp)
    assert len(decision.error) == 1000 and len(decision.traceback) == 16_000
    short = decide(failure(ValueError("no")), 1, Retries(0), 0.5)
    assert (
        isinstance(short, GiveUp) and "in failure" in short.traceback and short.traceback.endswith("ValueError: no\n")
    )


def test_every_error_has_a_text_that_can_be_stored():
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert decide(failure(Unspeakable()), 1, Retries(0), 0.5).error == "Unspeakable"
    given_up = decide(failure(ValueError("half \ud800")), 1, Retries(0), 0.5)
    assert given_up.error == "ValueError: half \\ud800" and given_up.traceback.encode()
    assert len(decide(failure(ValueError("x" * (1 << 20))), 1, Retries(0), 0.5).error) == 1000


def test_a_message_that_is_to_be_buried_later_keeps_its_error_and_its_traceback():
    given_up = GiveUp("ValueError: a\0b\nc", "Traceback …\n  in bill")
    record = write_given_up(given_up)
    assert read_given_up(record) == GiveUp("ValueError: a b\nc", "Traceback …\n  in bill")
    assert read_given_up("ValueError: of a run before\nand more") == GiveUp("ValueError: of a run before\nand more", "")

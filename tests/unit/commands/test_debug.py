"""DEBUG as clients see it; what RELOAD and LOADAOF do is tested where there is a folder."""

import pytest

from support.memory import MemoryBroker, Refusal


@pytest.fixture
def debugged(broker: MemoryBroker) -> MemoryBroker:
    """A broker that allows DEBUG."""

    def sleep(seconds: float) -> int:
        broker.clock.time_ms += round(seconds * 1000)
        return broker.clock.now_ms()

    broker.state.debugging.is_allowed = True
    broker.state.debugging.sleep = sleep
    broker.state.keeping.is_durable = True
    return broker


@pytest.mark.parametrize("words", ["SLEEP 10", "RELOAD", "SET-ACTIVE-EXPIRE 0", "HELP", "NOTHING"])
def test_debug_is_refused_unless_the_broker_was_started_for_it(broker: MemoryBroker, words: str) -> None:
    reply = broker(f"DEBUG {words}")

    assert reply == Refusal("ERR DEBUG command not allowed. Start the broker with --enable-debug-command to allow it.")
    assert broker.state.debugging.expires_actively


@pytest.mark.parametrize("words", ["JMAP", "SEGFAULT", "RELOAD NOSAVE", "SLEEP", "SLEEP 1 2", "LOADAOF now"])
def test_what_is_not_known_is_refused(debugged: MemoryBroker, words: str) -> None:
    asked = words.split()[0]

    assert debugged(f"DEBUG {words}") == Refusal(
        f"ERR unknown subcommand or wrong number of arguments for '{asked}'. Try DEBUG HELP."
    )


@pytest.mark.parametrize("seconds", ["-1", "3601", "inf", "soon", "nan"])
def test_nobody_sleeps_longer_than_an_hour(debugged: MemoryBroker, seconds: str) -> None:
    assert isinstance(debugged(f"DEBUG SLEEP {seconds}"), Refusal)
    assert isinstance(debugged(f"DEBUG SET-ACTIVE-EXPIRE {seconds}"), Refusal)
    assert isinstance(debugged(f"DEBUG QUICKLIST-PACKED-THRESHOLD {seconds}5gb"), Refusal)


def test_the_threshold_of_packed_lists_is_accepted_without_effect(debugged: MemoryBroker) -> None:
    assert debugged("DEBUG QUICKLIST-PACKED-THRESHOLD 1b") == b"OK"
    assert debugged("DEBUG quicklist-packed-threshold 0") == b"OK"


def test_keys_whose_time_has_come_stay_until_somebody_asks(debugged: MemoryBroker) -> None:
    debugged("SET a 1 PX 100")
    assert debugged("DEBUG SET-ACTIVE-EXPIRE 0") == b"OK"
    debugged.clock.advance(s=1)
    assert debugged("DBSIZE") == 1

    assert debugged("DEBUG SET-ACTIVE-EXPIRE 1") == b"OK"
    debugged.clock.advance(s=1)
    assert debugged("DBSIZE") == 0


def test_a_transaction_that_sleeps_past_the_life_of_a_key_wakes_nobody_for_it(debugged: MemoryBroker) -> None:
    waiting = debugged.client()
    waiting.send("BRPOP list 0")
    for line in ("MULTI", "RPUSH list a", "PEXPIRE list 100", "DEBUG SLEEP 0.2"):
        debugged(line)

    assert debugged("EXEC") == [1, 1, b"OK"]
    assert waiting.is_waiting
    debugged("RPUSH list b")
    assert waiting.replies() == [[b"list", b"b"]]


def test_nothing_is_loaded_again_inside_a_transaction(debugged: MemoryBroker) -> None:
    debugged("MULTI")
    debugged("DEBUG RELOAD")

    assert debugged("EXEC") == [Refusal("ERR DEBUG RELOAD cannot run inside a transaction")]


def test_without_a_journal_or_room_there_is_nothing_to_load(debugged: MemoryBroker) -> None:
    debugged.state.keeping.is_full = True
    assert debugged("DEBUG LOADAOF") == Refusal("ERR there is no room on the disk")

    debugged.state.keeping.is_durable = False
    assert debugged("DEBUG LOADAOF") == Refusal("ERR nothing is kept on disk: the broker was started with --memory")


def test_help_lists_what_there_is(debugged: MemoryBroker) -> None:
    lines = debugged("DEBUG HELP")

    assert b"RELOAD" in lines and b"LOADAOF" in lines and b"SLEEP <seconds>" in lines

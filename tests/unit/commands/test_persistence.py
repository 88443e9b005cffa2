"""SAVE and its relatives as clients see them, and what happens to writes while there is no room for them."""

import pytest

from support.memory import MemoryBroker, Refusal


@pytest.mark.parametrize("command", ["SAVE", "BGSAVE", "BGSAVE SCHEDULE", "BGREWRITEAOF"])
def test_a_broker_in_memory_says_that_there_is_no_folder(broker: MemoryBroker, command: str) -> None:
    reply = broker(command)

    assert reply == Refusal("ERR nothing is kept on disk: the broker was started with --memory")


def test_lastsave_is_the_time_of_the_start_before_there_is_a_checkpoint(broker: MemoryBroker) -> None:
    started_s = broker.clock.now_ms() // 1000
    broker.clock.advance(s=10)

    assert broker("LASTSAVE") == started_s


def test_bgsave_knows_one_option(broker: MemoryBroker) -> None:
    assert broker("BGSAVE SOON") == Refusal("ERR syntax error")


def test_one_checkpoint_at_a_time(broker: MemoryBroker) -> None:
    broker.state.keeping.is_durable = True

    assert broker("BGSAVE") == b"Background saving started"
    assert broker("BGSAVE") == Refusal("ERR Background save already in progress")
    assert broker("SAVE") == Refusal("ERR Background save already in progress")
    assert broker("BGREWRITEAOF") == Refusal("ERR Background append only file rewriting already in progress")
    assert broker.state.keeping.is_wanted


def test_save_waits_until_the_checkpoint_is_there(broker: MemoryBroker) -> None:
    broker.state.keeping.is_durable = True
    broker.first.send("SAVE")

    assert broker.first.is_waiting
    assert broker.state.keeping.savers == [broker.first.call.id]


def test_without_room_writes_are_refused_and_reads_are_not(broker: MemoryBroker) -> None:
    broker("SET a 1")
    broker.state.refuse_writes("MISCONF no room")

    for write in ["SET a 2", "XADD s * f v", "DEL a", "XGROUP CREATE s g $ MKSTREAM", "RQ.PUSH q a", "EXPIRE a 10"]:
        assert broker(write) == Refusal("MISCONF no room")
    assert broker("GET a") == b"1"
    assert broker("PING") == b"PONG"
    assert broker.client()("SET a 3") == Refusal("MISCONF no room")

    broker.state.refuse_writes("")
    assert broker("SET a 4") == b"OK"


def test_without_room_a_transaction_with_a_write_does_not_run(broker: MemoryBroker) -> None:
    broker("MULTI")
    broker("XGROUP CREATE s g $ MKSTREAM")
    broker("GET a")
    broker.state.refuse_writes("MISCONF no room")
    assert broker("EXEC") == Refusal("EXECABORT Transaction discarded because of: MISCONF no room")
    assert broker("EXISTS s") == 0

    broker("MULTI")
    assert broker("SET a 1") == Refusal("MISCONF no room")
    assert broker("EXEC") == Refusal("EXECABORT Transaction discarded because of previous errors.")

    broker("MULTI")
    broker("GET a")
    assert broker("EXEC") == [None]


def test_the_journal_is_chosen_at_the_start(broker: MemoryBroker) -> None:
    assert broker("CONFIG SET appendonly no") == b"OK"
    assert "chosen at the start" in str(broker("CONFIG SET appendonly yes"))
    assert broker("CONFIG GET appendonly") == [b"appendonly", b"no"]

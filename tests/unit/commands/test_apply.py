"""What commands write to the journal brings back the same data."""

from __future__ import annotations

import hiredis
import pytest

from headrace.commands.apply import apply
from headrace.commands.call import State
from headrace.engine.dump import dump_value
from support.memory import START_MS, ManualClock, MemoryBroker

SESSIONS = {
    "strings": "SET a 1|SET b 2 EX 100|SET b 3 KEEPTTL|APPEND a 23|INCRBY a 7|GETDEL missing|MSET c 1 d 2|GETDEL c",
    "lists": "RPUSH l a b c|LPUSH l y z|LPOP l|RPOP l 2|RPUSH gone x|LPOP gone|RPUSH m 1|BLPOP none m 0",
    "elements": "RPUSH l a b a c|LSET l -1 d|LINSERT l AFTER b x|LREM l -1 a|LTRIM l 1 2|RPUSH m a a|LREM m 0 a",
    "moves": "RPUSH l a b|EXPIRE l 9|LMOVE l l LEFT LEFT|LMOVE l m LEFT RIGHT|LMOVE l m LEFT LEFT|BRPOPLPUSH m l 0",
    "sorting": "RPUSH l 3 1 2|SORT l STORE m|SET t 1 EX 9|SORT l DESC LIMIT 0 2 STORE t|SORT no STORE l|LMPOP 1 m LEFT",
    "sets": "SADD s a b c|SREM s a x|SADD gone x|SREM gone x|SADD s b d",
    "hashes": "HSET h a 1 b 2|HINCRBY h a 4|HSETNX h c 3|HDEL h b x|HSET h b 5|HSET gone x 1|HDEL gone x|HMSET h a 0",
    "keys": "SET a 1 EX 50|RENAME a b|RPUSH l 1|COPY l k|COPY l l DB 3|MOVE k 2|SET x 1|DEL x|RENAMENX b c",
    "expiry": "SET a 1|EXPIRE a 10|SET b 1 EX 10|PERSIST b|SET c 1|EXPIRE c -1|SET d 1|PEXPIREAT d 1700000099999",
    "databases": "SET a 1|SELECT 1|SET b 1|SWAPDB 0 1|SELECT 2|SET c 1|FLUSHDB|SELECT 0|SET d 1|SWAPDB 0 5",
    "flush": "SET a 1|SELECT 7|SET b 1|FLUSHALL|SET c 1",
    "streams": "XADD o 1-0 a b|XGROUP CREATE o g 0|XREADGROUP GROUP g c STREAMS o >|COPY o p|RENAME o q|XADD q 2-0 c d",
}


def contents(state: State) -> dict[tuple[int, bytes], tuple[bytes, int]]:
    """Every key with its payload and its expiry."""
    return {
        (database.number, key): (dump_value(value), database.expires_ms.get(key, 0))
        for database in state.databases
        for key, value in database.values.items()
    }


def replayed(records: list[bytes]) -> State:
    reader = hiredis.Reader()
    reader.feed(b"".join(records))
    state = State(START_MS)
    record = reader.gets()
    while record is not False:
        apply(state, record)
        record = reader.gets()
    return state


@pytest.mark.parametrize("name", SESSIONS)
def test_replaying_the_journal_gives_the_same_data(name: str) -> None:
    broker = MemoryBroker(ManualClock(), journaling=True)
    for command in SESSIONS[name].split("|"):
        broker(command)
    assert contents(replayed(broker.state.records)) == contents(broker.state)


def test_a_restored_value_and_an_expired_key_are_journaled() -> None:
    clock = ManualClock()
    broker = MemoryBroker(clock, journaling=True)
    broker("RPUSH list a b")
    broker("RESTORE", "copy", 5000, broker("DUMP list"))
    broker("SET short 1 PX 10")
    clock.advance(ms=10)
    broker("GET short")
    assert contents(replayed(broker.state.records)) == contents(broker.state)


def test_what_waiting_clients_took_is_journaled() -> None:
    broker = MemoryBroker(ManualClock(), journaling=True)
    for command in ("BLMOVE a b LEFT RIGHT 0", "BLMOVE b c LEFT RIGHT 0", "BLMPOP 0 1 a RIGHT COUNT 2", "BRPOP a 0"):
        broker.client().send(command)
    broker("RPUSH a 1 2 3 4 5")
    assert broker("LRANGE a 0 -1") == [b"2"]
    assert broker("LRANGE c 0 -1") == [b"1"]
    assert contents(replayed(broker.state.records)) == contents(broker.state)


def test_reads_write_nothing() -> None:
    broker = MemoryBroker(ManualClock(), journaling=True)
    for command in (
        "GET a",
        "DEL a",
        "LRANGE l 0 -1",
        "LTRIM l 0 1",
        "EXPIRE a 1",
        "SMEMBERS s",
        "INFO",
        "KEYS *",
        "SELECT 1",
    ):
        broker(command)
    assert broker.state.records == []

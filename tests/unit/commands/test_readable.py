"""Journal records as commands: readable, and good to be given to a broker again."""

from __future__ import annotations

import pytest

from headrace.commands.apply import VERBS
from headrace.commands.readable import readable_lines
from headrace.journal.record import encode_record, read_records
from support.memory import MemoryBroker, Refusal
from support.replay import contents_of

SESSION = [
    "XADD s 1-1 f v", 'XADD s 2-1 f "two words"', "XADD s 3-1 f v", "XADD s 4-1 f v", "XGROUP CREATE s g 0",
    "XGROUP CREATE s h $", "XGROUP SETID s h 1-1", "XGROUP CREATECONSUMER s h bob",
    "XREADGROUP GROUP g ann STREAMS s >", "XACK s g 1-1", "XCLAIM s g bob 0 2-1", "XNACK s g FAIL IDS 1 3-1",
    "XDEL s 4-1", "XTRIM s MINID 2-1", "XSETID s 9-9", "XADD i 1-1 a b", "XCFGSET i IDMP-DURATION 50",
    "XIDMPRECORD i p m 1-1", "XGROUP DELCONSUMER s h bob", "XGROUP DESTROY s h", "RPUSH l a b c", "LPUSH l z", "LPOP l",
    "RPOP l", "LSET l 0 q", "LREM l 0 b", "RPUSH l x y", "LMOVE l l LEFT RIGHT", "SADD m a b c", "SREM m a",
    "ZADD z 1.5 a inf b", "ZREM z b", "HSET h f v g w", "HDEL h g", "SET k v PX 90000", "PERSIST k",
    "PEXPIREAT k 4102444800000", r'SET b "\x00 \"quoted\" \\ #"', "COPY h hh", "COPY s ss", "COPY l ll", "COPY m mm",
    "COPY z zz", "DEL hh", "RENAME k kk", "MOVE kk 1", "SELECT 1", "SET o v", "SWAPDB 0 1", "SELECT 5", "SET p v",
    "FLUSHDB", "SET last v", "RQ.PUSH q a b c", "RQ.POP q", "RQ.PUSHX q RETRY 10 MAXDELIVERIES 2 ELEMENTS 1 d",
    "RQ.PAUSE q IN",
]  # fmt: skip


def lines_of(broker: MemoryBroker) -> list[str]:
    lines = []
    database = b"0"
    for record in read_records(b"".join(broker.state.records)):
        if record[1] != database:
            database = record[1]
            lines.append(f"SELECT {database.decode()}")
        lines += readable_lines(record)
    return lines


def test_commands_made_of_the_records_bring_the_same_data_back() -> None:
    first = MemoryBroker(journaling=True)
    for command in SESSION:
        reply = first(command)
        assert not isinstance(reply, Refusal), (command, reply)
    second = MemoryBroker()
    for line in lines_of(first):
        if not line.startswith("#"):
            reply = second(line)
            assert not isinstance(reply, Refusal), (line, reply)

    assert contents_of(second.state) == contents_of(first.state)
    assert sum([len(database.values) for database in first.state.databases]) == 15


@pytest.mark.parametrize("kind", sorted(VERBS))
def test_a_record_of_every_kind_has_lines_also_when_it_makes_no_sense(kind: bytes) -> None:
    for count in range(10):
        record = read_records(encode_record(kind, 0, *[b"1"] * count))[0]
        lines = readable_lines(record)

        assert lines
        assert all(line.isprintable() for line in lines)


def test_what_a_newer_version_wrote_is_shown_as_it_is() -> None:
    assert readable_lines([b"novelty", b"0", b"key", [b"a b", b"\xff"]]) == ['# novelty 0 key "a b" "\\xff"']

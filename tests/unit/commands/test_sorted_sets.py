"""What sorted sets and sets do besides replying: records, events, counted changes, and chance."""

from __future__ import annotations

from collections import Counter

import pytest

from support.memory import MemoryBroker, Refusal


def events(broker: MemoryBroker, *commands: str) -> list[tuple[str, str]]:
    """The events of the last command, published to a client that listens to all of them."""
    listener = broker.client()
    broker("CONFIG SET notify-keyspace-events EA")
    for command in commands[:-1]:
        broker(command)
    listener("PSUBSCRIBE *")
    broker(commands[-1])
    return [(message[2].decode().partition(":")[2], message[3].decode()) for message in listener.replies()]


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        (["ZADD z 1 a"], [("zadd", "z")]),
        (["ZADD z 1 a", "ZADD z 1 a"], []),
        (["ZADD z 1 a", "ZADD z 2 a"], [("zadd", "z")]),
        (["ZADD z INCR 1 a"], [("zincr", "z")]),
        (["ZINCRBY z 1 a"], [("zincr", "z")]),
        (["ZADD z 1 a 2 b", "ZREM z a"], [("zrem", "z")]),
        (["ZADD z 1 a", "ZREM z a"], [("zrem", "z"), ("del", "z")]),
        (["ZADD z 1 a", "ZREMRANGEBYSCORE z 0 9"], [("zremrangebyscore", "z"), ("del", "z")]),
        (["ZADD z 1 a 2 b", "ZREMRANGEBYRANK z 0 0"], [("zremrangebyrank", "z")]),
        (["ZADD z 0 a 0 b", "ZREMRANGEBYLEX z [a [a"], [("zremrangebylex", "z")]),
        (["ZADD z 1 a", "ZPOPMIN z"], [("zpopmin", "z"), ("del", "z")]),
        (["ZADD z 1 a 2 b", "ZPOPMAX z"], [("zpopmax", "z")]),
        (["ZADD z 1 a 2 b", "BZMPOP 0 1 z MAX"], [("zpopmax", "z")]),
        (["ZADD z 1 a", "ZUNIONSTORE d 1 z"], [("zunionstore", "d")]),
        (["ZADD z 1 a", "ZINTERSTORE d 1 z"], [("zinterstore", "d")]),
        (["ZADD z 1 a", "ZDIFFSTORE d 1 z"], [("zdiffstore", "d")]),
        (["ZADD z 1 a", "ZRANGESTORE d z 0 0"], [("zrangestore", "d")]),
        (["ZADD z 1 a", "ZUNIONSTORE z 1 missing"], [("del", "z")]),
        (["SADD s a"], [("sadd", "s")]),
        (["SADD s a", "SADD s a"], []),
        (["SADD s a", "SREM s a"], [("srem", "s"), ("del", "s")]),
        (["SADD s a", "SPOP s"], [("spop", "s"), ("del", "s")]),
        (["SADD s a b", "SPOP s 1"], [("spop", "s")]),
        (["SADD s a", "SMOVE s t a"], [("srem", "s"), ("del", "s"), ("sadd", "t")]),
        (["SADD s a b", "SADD t a", "SMOVE s t a"], [("srem", "s")]),
        (["SADD s a", "SUNIONSTORE d s"], [("sunionstore", "d")]),
        (["SADD s a", "SINTERSTORE d s"], [("sinterstore", "d")]),
        (["SADD s a", "SDIFFSTORE d s"], [("sdiffstore", "d")]),
        (["SADD s a", "SDIFFSTORE s s s"], [("del", "s")]),
    ],
)
def test_changes_are_told(broker: MemoryBroker, commands: list[str], expected: list[tuple[str, str]]) -> None:
    assert events(broker, *commands) == expected


@pytest.mark.parametrize(
    ("commands", "changes"),
    [
        (["ZADD z 1 a 2 b 3 c"], 3),
        (["ZADD z 1 a", "ZADD z 1 a 2 b"], 2),
        (["ZADD z 1 a", "ZADD z NX 5 a"], 1),
        (["ZADD z 1 a 2 b", "ZREM z a b x"], 4),
        (["ZADD z 1 a 2 b", "ZPOPMIN z 5"], 4),
        (["ZADD z 1 a 2 b", "ZUNIONSTORE d 1 z"], 3),
        (["ZRANGE z 0 -1", "ZUNIONSTORE d 1 z", "ZPOPMIN z"], 0),
        (["SADD s a b", "SPOP s 2"], 4),
        (["SADD s a b", "SMOVE s t a"], 4),
        (["SADD s a b", "SADD t a", "SMOVE s t a"], 4),
    ],
)
def test_changes_are_counted_as_in_redis(broker: MemoryBroker, commands: list[str], changes: int) -> None:
    for command in commands:
        assert not isinstance(broker(command), Refusal)
    assert broker.state.changes == changes


def test_the_journal_gets_scores_and_members_chosen() -> None:
    broker = MemoryBroker(journaling=True)
    broker("ZADD z 1 a")
    broker("ZINCRBY z 0.5 a")
    assert broker.state.records[-1].endswith(b"$1\r\na\r\n$3\r\n1.5\r\n")
    broker("SADD s a b c")
    taken = broker("SPOP s")
    assert broker.state.records[-1].endswith(b"$1\r\n" + taken + b"\r\n")
    records = len(broker.state.records)
    broker("ZADD z XX 1 x")
    broker("SRANDMEMBER s 2")
    assert len(broker.state.records) == records


def test_members_are_drawn_fairly(broker: MemoryBroker) -> None:
    broker("SADD s a b c d e f g h")
    broker("ZADD z 1 a 2 b 3 c 4 d 5 e 6 f 7 g 8 h")
    for command in ("SRANDMEMBER s", "ZRANDMEMBER z"):
        drawn = Counter(broker(command) for _ in range(2000))
        assert len(drawn) == 8
        assert all(180 < times < 320 for times in drawn.values()), command
    for command in ("SRANDMEMBER s -2000", "ZRANDMEMBER z -2000"):
        assert all(180 < times < 320 for times in Counter(broker(command)).values()), command


def test_large_sets_are_popped_and_drawn_from(broker: MemoryBroker) -> None:
    wanted = {b"%d" % number for number in range(5000)}
    broker("SADD", "s", *wanted)
    drawn = broker("SRANDMEMBER s 100")
    assert len(set(drawn)) == 100 and set(drawn) <= wanted
    taken = [broker("SPOP s") for _ in range(10)] + broker("SPOP s 4000") + broker("SPOP s 4000")
    assert set(taken) == wanted and len(taken) == 5000


@pytest.mark.parametrize("command", ["SRANDMEMBER s -1000001", "ZRANDMEMBER z -1000001 WITHSCORES"])
def test_no_reply_grows_without_end(broker: MemoryBroker, command: str) -> None:
    broker("SADD s a")
    broker("ZADD z 1 a")
    assert broker(command) == Refusal("ERR value is out of range")


def test_every_score_survives_a_copy(broker: MemoryBroker) -> None:
    broker("ZADD z inf a -inf b 0.1 c 1e300 d 5e-324 e -0 f 4503599627370497.5 g")
    assert broker("COPY z copy") == 1
    assert broker("ZRANGE copy 0 -1 WITHSCORES") == broker("ZRANGE z 0 -1 WITHSCORES")
    assert broker("DUMP copy") == broker("DUMP z")


def test_what_a_sorted_set_is(broker: MemoryBroker) -> None:
    broker("ZADD z 1 a 2 b")
    assert broker("TYPE z") == b"zset"
    assert broker("OBJECT ENCODING z") == b"listpack"
    small = broker("MEMORY USAGE z")
    for number in range(128):
        broker(f"ZADD z {number} member-{number}")
    assert broker("OBJECT ENCODING z") == b"skiplist"
    assert broker("MEMORY USAGE z") > small + 128 * 100
    broker("ZADD", "long", "1", b"x" * 65)
    assert broker("OBJECT ENCODING long") == b"skiplist"
    payload = broker("DUMP z")
    assert broker("RESTORE", "copy", "0", payload) == b"OK"
    assert broker("ZRANGE copy 0 -1 WITHSCORES") == broker("ZRANGE z 0 -1 WITHSCORES")

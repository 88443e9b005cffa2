"""Make tests/samples/format-N: a small data folder in the format of this version, and what a client sees in it.

    python tools/format_sample.py

Run it once when a format is new; never again for a format that has been released, for the sample is what such a version
really wrote. The folder is that of a broker that was killed: a checkpoint with a segment, and a log behind them. Beside
its files lies expected.json: a time, then commands with their replies at that time. tests/fault/test_samples.py reads
every sample with the version of the day.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from headrace.journal.disk import RealDisk  # noqa: E402 - the tests' own modules are found only now.
from headrace.journal.frames import FORMAT  # noqa: E402
from headrace.server.durability import Durability  # noqa: E402
from support.memory import MemoryBroker, Refusal  # noqa: E402

# What the checkpoint holds.
BEFORE = [
    *[f"XADD orders {number}-0 number {number}" for number in range(1, 231)],
    "XGROUP CREATE orders billing 0",
    "XGROUP CREATE orders shipping 100-0 ENTRIESREAD 100",
    "XREADGROUP GROUP billing ann COUNT 3 STREAMS orders >",
    "XDEL orders 2-0",
    "XADD repeats 5-1 x y",
    "XCFGSET repeats IDMP-DURATION 300 IDMP-MAXSIZE 50",
    "XADD repeats IDMP shop m-1 * a b",
    "HR.ADD published ID once WINDOW 86400000 MAX 100 FIELDS 2 name value",
    "RPUSH list one two three",
    "SET string text",
    "SET kept text PXAT 4102444800000",
    "HSET hash field value other 2",
    "SADD set a b c",
    "SADD numbers 1 2 3",
    "ZADD scores 1.5 a -inf b 2 c",
    "RQ.PUSH queue first second third",
    "RQ.POP queue",
    "RQ.PUSHX queue DELAY 60000 RETRY 5000 MAXDELIVERIES 3 DEADLETTER dead ELEMENTS 1 later",
    "SELECT 3",
    "SET elsewhere text",
    "SELECT 0",
]
# What the log behind it does.
AFTER = [
    "XADD orders 231-0 number 231",
    "XREADGROUP GROUP billing bob COUNT 2 STREAMS orders >",
    "XREADGROUP GROUP shipping cid COUNT 2 STREAMS orders >",
    "XACK orders billing 1-0",
    "XDEL orders 4-0",
    "XCLAIM orders billing ann 0 5-0",
    "XNACK orders shipping FAIL IDS 1 101-0",
    "XADD orders MAXLEN = 220 * number last",
    "XADD repeats IDMP shop m-2 * a c",
    "HR.ADD published ID twice WINDOW 86400000 MAX 100 FIELDS 2 name other",
    "MULTI",
    "RPUSH list four",
    "LPOP list",
    "EXEC",
    "LSET list 0 TWO",
    "INCRBY count 41",
    "SET short text PX 500",
    "PEXPIREAT list 4102444800000",
    "HDEL hash other",
    "SREM set a",
    "ZADD scores 9 d",
    "ZREM scores b",
    "RQ.POP queue",
    "RQ.ACK queue 1700000000000-1",
    "RQ.PAUSE queue IN",
    "RENAME string renamed",
    "COPY hash copy",
    "MOVE renamed 1",
    'SET binary "\\x00\\xff"',
]
# What a client sees.
VIEWS = [
    "XLEN orders", "XRANGE orders - +", "XINFO GROUPS orders", "XPENDING orders billing",
    "XPENDING orders billing - + 10", "XPENDING orders shipping - + 10", "XINFO STREAM orders",
    "XADD repeats IDMP shop m-1 * a b", "XADD repeats IDMP shop m-2 * a b", "XRANGE repeats - +",
    "HR.ADD published ID once WINDOW 86400000 MAX 100 FIELDS 2 name again", "XRANGE published - +",
    "LRANGE list 0 -1", "PEXPIRETIME list", "GET count", "EXISTS short string", "DBSIZE", "GET kept",
    "PEXPIRETIME kept",
    "HGETALL hash", "HGETALL copy", "SMEMBERS set", "SMEMBERS numbers", "ZRANGE scores 0 -1 WITHSCORES",
    "RQ.INSPECT queue 0 10", "RQ.INSPECT queue PENDING 0 10", "RQ.INSPECT queue DELAYED 0 10", "RQ.STATS queue",
    "GET binary", "SELECT 1", "GET renamed", "SELECT 3", "GET elsewhere",
]  # fmt: skip


def make(folder: Path) -> None:
    folder.mkdir(parents=True)
    disk = RealDisk(folder)
    broker = MemoryBroker()
    broker.state.settings.assign("appendfsync", "always")
    durability = Durability(broker.state, disk)
    broker.first = broker.client()  # One that is told to keep what it does.
    for commands in (BEFORE, AFTER):
        for command in commands:
            reply = broker(command)
            assert not isinstance(reply, Refusal), (command, reply)
            keep(broker, durability)
        if commands is BEFORE:
            assert durability.save()
    durability.close()
    disk.close()
    broker.clock.advance(s=1)
    lines = [json.dumps([view, plain(broker(view))]) for view in VIEWS]
    (folder / "expected.json").write_text("[\n" + ",\n".join([str(broker.clock.now_ms()), *lines]) + "\n]\n", "utf-8")


def keep(broker: MemoryBroker, durability: Durability) -> None:
    """The end of a turn."""
    if broker.state.records and broker.first.call.queue is None:
        records, broker.state.records = broker.state.records, []
        assert durability.commit(records)


def plain(reply: Any) -> Any:
    """A reply as JSON can hold it."""
    if isinstance(reply, bytes):
        return reply.decode("latin-1")
    return [plain(item) for item in reply] if isinstance(reply, list) else reply


if __name__ == "__main__":
    target = ROOT / "tests" / "samples" / f"format-{FORMAT}"
    if target.exists():
        sys.exit(f"{target} is there already; a sample of a format that was released stays as it is")
    make(target)
    sys.stdout.write(f"{target}\n")

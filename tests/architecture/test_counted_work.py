"""What a command costs does not grow with what it does not touch. Work is counted, never timed.

The count is the lines of headrace that run, so a loop over too much shows at once. Lines can be counted in the plain
build only, which is why this stands here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import headrace
from support.memory import ManualClock, MemoryBroker
from support.wire import encode

PACKAGE = str(Path(headrace.__file__).parent)


def work_of(broker: MemoryBroker, command: str) -> int:
    """How many lines run for a command, its reply included."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            lines += 1
        return trace

    broker("CONFIG RESETSTAT")  # The first call of a command is measured, as one of many is: so each is a first one.
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        broker.first.send(command)
    finally:
        sys.settrace(before)
    assert broker.first.received()
    return lines


def filled(entries: int) -> MemoryBroker:
    broker = MemoryBroker(ManualClock())
    broker.first.send_bytes(b"".join(encode([b"XADD", b"s", b"%d-0" % ms, b"f", b"v"]) for ms in range(1, entries + 1)))
    assert broker.first.replies()[-1] == b"%d-0" % entries
    return broker


def with_pending(idle: int, busy: int) -> MemoryBroker:
    """Entries that have been pending for a while, and many that were just given."""
    broker = filled(idle + busy)
    broker("XGROUP CREATE s g 0")
    broker(f"XREADGROUP GROUP g ann COUNT {idle} STREAMS s >")
    broker.clock.advance(ms=1000)
    for _ in range(busy // 100):
        broker("XREADGROUP GROUP g bob COUNT 100 STREAMS s >")
    return broker


def test_a_range_of_ten_costs_the_same_in_a_long_stream() -> None:
    short, long = filled(1000), filled(16_000)

    for command in ("XRANGE s 500 + COUNT 10", "XREVRANGE s 500 - COUNT 10", "XREAD COUNT 10 STREAMS s 500"):
        # Four more steps of each search for 16 times the length.
        assert work_of(long, command) <= work_of(short, command) + 40, command


def test_deleting_an_entry_costs_the_same_in_a_long_stream() -> None:
    short, long = filled(1000), filled(16_000)

    assert work_of(long, "XDEL s 500-0") <= work_of(short, "XDEL s 500-0") + 40


def test_adding_costs_the_same_however_long_the_stream_is() -> None:
    short, long = filled(1001), filled(16_001)

    assert work_of(long, "XADD s * f v") == work_of(short, "XADD s * f v")


def test_claiming_costs_what_is_found_and_not_what_is_pending() -> None:
    few, many = with_pending(100, 1000), with_pending(100, 10_000)
    command = "XREADGROUP GROUP g cat COUNT 100 CLAIM 1000 STREAMS s >"

    assert work_of(many, command) <= work_of(few, command) + 40


def test_looking_for_idle_entries_in_vain_costs_nothing_per_pending_entry() -> None:
    few, many = with_pending(100, 1000), with_pending(100, 10_000)
    command = "XREADGROUP GROUP g cat CLAIM 5000 STREAMS s >"

    assert work_of(many, command) <= work_of(few, command) + 40


def test_reading_new_entries_costs_nothing_per_pending_entry() -> None:
    few, many = with_pending(100, 1000), with_pending(100, 10_000)
    for broker in (few, many):
        broker("XADD s * f v")
    command = "XREADGROUP GROUP g cat COUNT 1 STREAMS s >"

    assert work_of(many, command) <= work_of(few, command) + 40


def test_acknowledging_costs_nothing_per_pending_entry() -> None:
    few, many = with_pending(100, 1000), with_pending(100, 10_000)

    assert work_of(many, "XACK s g 50-0 70-0") == work_of(few, "XACK s g 50-0 70-0")


def test_folded_entries_cost_the_same_however_many_there_are() -> None:
    few, many = with_pending(100, 1000), with_pending(100, 10_000)
    for broker in (few, many):
        group = broker.state.databases[0].values[b"s"].groups[b"g"]
        group.pending.most = 0
        group.fold_old()

    for command in ("XPENDING s g 500 + 10", "XPENDING s g - + 10 ann", "XACK s g 50-0 70-0"):
        assert work_of(many, command) <= work_of(few, command) + 300, command  # A search of a few more steps per row.


def test_adding_costs_nothing_for_clients_that_wait_elsewhere() -> None:
    alone, crowded = filled(10), filled(10)
    for number in range(2000):
        crowded.client().send(f"XREAD BLOCK 0 STREAMS other{number} $")
    alone.client().send("XREAD BLOCK 0 STREAMS other $")

    assert work_of(crowded, "XADD s * f v") == work_of(alone, "XADD s * f v")


def test_adding_without_trimming_anything_looks_at_few_nodes() -> None:
    short, long = filled(1000), filled(16_000)
    short("XADD s MAXLEN ~ 1000 100000-0 f v")
    long("XADD s MAXLEN ~ 16000 100000-0 f v")

    assert work_of(long, "XADD s MAXLEN ~ 16000 * f v") <= work_of(short, "XADD s MAXLEN ~ 1000 * f v") + 40


def test_claiming_one_entry_costs_the_same_however_many_were_given_together() -> None:
    few, many = with_pending(1000, 0), with_pending(16_000, 0)
    command = "XREADGROUP GROUP g cat COUNT 1 CLAIM 1000 STREAMS s >"

    assert work_of(many, command) <= work_of(few, command) + 40


def test_claiming_one_by_one_does_not_cost_more_and_more() -> None:
    broker = with_pending(4000, 0)
    command = "XREADGROUP GROUP g cat COUNT 1 CLAIM 1000 STREAMS s >"
    early = sum(work_of(broker, command) for _ in range(300))
    broker("XREADGROUP GROUP g cat COUNT 2000 CLAIM 1000 STREAMS s >")
    work_of(broker, command)

    assert sum(work_of(broker, command) for _ in range(300)) <= 1.5 * early


def test_working_through_what_is_pending_costs_the_same_per_entry() -> None:
    def drain(entries: int, look: str) -> float:
        broker = with_pending(entries, 0)
        work = 0
        for first in range(1, entries, 10):
            work += work_of(broker, look)
            broker("XACK", "s", "g", *(f"{ms}-0" for ms in range(first, first + 10)))
        return work / entries

    for look in ("XPENDING s g", "XPENDING s g - + 1", "XREADGROUP GROUP g ann COUNT 1 STREAMS s 0"):
        assert drain(4000, look) <= 2.5 * drain(500, look), look


def test_pending_entries_that_are_gone_cost_nothing_more_once_they_were_looked_for() -> None:
    few, many = with_pending(100, 0), with_pending(10_000, 0)
    command = "XREADGROUP GROUP g cat CLAIM 1000 STREAMS s >"
    for broker in (few, many):
        broker("XTRIM s MAXLEN 0")
        broker.first.send(command)
        broker.first.replies()

    assert work_of(many, command) <= work_of(few, command) + 40


def sorted_set_with(members: int) -> MemoryBroker:
    broker = MemoryBroker(ManualClock())
    for start in range(0, members, 1000):
        words = [word for number in range(start, start + 1000) for word in (b"%d" % number, b"m%d" % number)]
        assert broker("ZADD", "z", *words) == 1000
    return broker


def test_a_sorted_set_costs_about_the_same_however_much_is_in_it() -> None:
    few, many = sorted_set_with(2000), sorted_set_with(32_000)

    for command in ("ZADD z 500.5 new", "ZINCRBY z 7 m600", "ZREM z m700", "ZPOPMIN z", "ZPOPMIN z 5", "ZSCORE z m800"):
        assert work_of(many, command) <= work_of(few, command) + 40, command
    for command in ("ZRANK z m1500", "ZRANGEBYSCORE z 1600 +inf LIMIT 0 10", "ZRANGE z 900 910", "ZREVRANGE z 0 9"):
        few.first.send(command)
        many.first.send(command)
        few.first.replies(), many.first.replies()
        assert work_of(many, command) <= work_of(few, command) + 40, command  # The places of chunks are known by now.


def queue_with(delivered: int, undelivered: int = 0) -> MemoryBroker:
    broker = MemoryBroker(ManualClock())
    for start in range(0, delivered + undelivered, 1000):
        size = min(1000, delivered + undelivered - start)
        broker("RQ.PUSH", "q", *[b"m"] * size)
    if delivered:
        assert len(broker(f"RQ.POP COUNT {delivered} q")) == delivered
    return broker


def test_a_queue_costs_the_same_however_much_is_in_it() -> None:
    few, many = queue_with(1000, 1000), queue_with(10_000, 10_000)

    for command in ("RQ.PUSH q a", "RQ.POP COUNT 3 q", "RQ.RECOVER q 3 0", "RQ.INFO q", "RQ.INSPECT q -3 3"):
        assert work_of(many, command) == work_of(few, command), command
    name = f"{ManualClock().now_ms()}-500"
    for command in (f"RQ.EXTEND q {name}", f"RQ.NACK q {name}", "RQ.POP q", f"RQ.ACK q {name}"):
        # Only a large one is asked whether it has room to give back.
        assert work_of(many, command) <= work_of(few, command) + 10, command


def test_a_queue_is_worked_off_at_the_same_cost_from_either_end() -> None:
    """The plain build runs every acknowledgement of 100,000 in about a second; a search for each would take minutes."""
    first, last = ManualClock().now_ms(), 100_000
    for numbers in (range(1, last + 1), range(last, 0, -1)):
        broker = queue_with(last)
        names = [b"%d-%d" % (first, number) for number in numbers]
        for start in range(0, last, 1000):
            assert broker("RQ.ACK", "q", *names[start : start + 1000]) == names[start : start + 1000]
        assert broker("RQ.INFO q") == [b"undelivered", 0, b"delivered", 0]


def test_recovering_a_long_queue_bit_by_bit_does_not_cost_more_and_more() -> None:
    broker = queue_with(20_000)
    early = sum(work_of(broker, "RQ.RECOVER q 10 0") for _ in range(100))
    for _ in range(18):
        broker("RQ.RECOVER q 1000 0")

    assert sum(work_of(broker, "RQ.RECOVER q 10 0") for _ in range(100)) == early


def test_a_push_costs_little_for_each_client_that_waits_in_vain() -> None:
    def crowd(count: int) -> MemoryBroker:
        broker = MemoryBroker(ManualClock())
        for _ in range(count):
            broker.client().send("RQ.POP BLOCK 0 q")
        return broker

    few, many = crowd(10), crowd(1010)

    assert work_of(many, "RQ.PUSH q a") <= work_of(few, "RQ.PUSH q a") + 8 * 1000

"""SCAN, HSCAN and SSCAN: going through many names in pages."""

from __future__ import annotations

from zlib import crc32

import pytest

from support.memory import ManualClock, MemoryBroker, Refusal

EQUAL_CRC = [b"plumless", b"buckeroo"]  # The best known pair of words with the same CRC-32.


def walk(broker: MemoryBroker, *words: str | int, command: str = "SCAN") -> list[bytes]:
    """Everything from cursor 0 to the end, page after page."""
    found: list[bytes] = []
    cursor = b"0"
    while True:
        cursor, page = broker(*command.split(), cursor, *words)
        found += page
        if cursor == b"0":
            return found


def fill(broker: MemoryBroker, count: int) -> list[bytes]:
    for number in range(count):
        broker(f"SET key-{number} x")
    return sorted(b"key-%d" % number for number in range(count))


@pytest.mark.parametrize("count", [1, 7, 10, 99, 100, 1000])
def test_every_key_comes_once(broker: MemoryBroker, count: int) -> None:
    assert sorted(walk(broker, "COUNT", count)) == []
    keys = fill(broker, 100)
    assert sorted(walk(broker, "COUNT", count)) == keys


def test_a_page_holds_about_as_much_as_asked_for(broker: MemoryBroker) -> None:
    fill(broker, 100)
    assert len(broker("SCAN 0")[1]) == 10
    assert len(broker("SCAN 0 COUNT 25")[1]) == 25
    assert broker("SCAN 0 COUNT 100")[0] == b"0"


def test_members_with_one_crc_stand_in_one_page(broker: MemoryBroker) -> None:
    assert crc32(EQUAL_CRC[0]) == crc32(EQUAL_CRC[1])
    broker("SADD", "set", *EQUAL_CRC, *[f"member-{number}" for number in range(200)])
    found: list[list[bytes]] = []
    cursor = b"0"
    while cursor != b"0" or not found:
        cursor, page = broker("SSCAN", "set", cursor, "COUNT", 1)
        found.append(page)
    assert sorted(EQUAL_CRC) in [sorted(page) for page in found]
    assert sum(len(page) for page in found) == 202


def test_keys_that_stay_are_not_missed_while_others_come_and_go(broker: MemoryBroker) -> None:
    staying = set(fill(broker, 200))
    for number in range(200):
        broker(f"SET going-{number} x")
    found: set[bytes] = set()
    cursor, turn = b"0", 0
    while True:
        cursor, page = broker("SCAN", cursor)
        found.update(page)
        if cursor == b"0":
            break
        broker(f"DEL going-{turn}")
        broker(f"SET coming-{turn} x")
        if turn % 5 == 0:
            broker("SCAN 0 COUNT 3")  # Somebody else begins a scan.
        turn += 1
    assert staying <= found


def test_a_scan_ends_although_more_keys_come_than_it_returns(broker: MemoryBroker) -> None:
    fill(broker, 50)
    cursor, turn = b"0", 0
    while cursor != b"0" or not turn:
        cursor, _ = broker("SCAN", cursor, "COUNT", 10)
        for number in range(20):
            broker(f"SET later-{turn}-{number} x")
        turn += 1
    assert turn == 5


def test_a_scan_begun_after_a_key_came_returns_it_although_another_scan_goes_on(broker: MemoryBroker) -> None:
    fill(broker, 50)
    older, _ = broker("SCAN 0")
    older, _ = broker("SCAN", older)
    broker("SET late x")
    assert b"late" in broker("SCAN 0 COUNT 1")[1]
    fill(broker, 80)
    first, page = broker("SCAN 0 COUNT 1")
    found = set(page)
    older, _ = broker("SCAN", older)
    cursor = first
    while cursor != b"0":
        cursor, page = broker("SCAN", cursor)
        found.update(page)
    assert found == {b"late", *[b"key-%d" % number for number in range(80)]}


def test_a_cursor_is_good_without_the_snapshot_it_came_from(broker: MemoryBroker) -> None:
    keys = fill(broker, 100)
    cursor, first = broker("SCAN 0 COUNT 40")
    broker.state.databases[0].orders.by_key.clear()
    assert sorted(first + broker("SCAN", cursor, "COUNT", 100)[1]) == keys


def test_keys_that_are_gone_are_not_returned(broker: MemoryBroker, clock: ManualClock) -> None:
    fill(broker, 30)
    cursor, first = broker("SCAN 0 COUNT 10")
    for number in range(30):
        broker(f"PEXPIRE key-{number} 100")
    clock.time_ms += 100
    assert broker("SCAN", cursor, "COUNT", 100) == [b"0", []]
    assert broker("SCAN 0") == [b"0", []]
    assert len(first) == 10


def test_a_flushed_database_has_no_more_pages(broker: MemoryBroker) -> None:
    fill(broker, 30)
    cursor, _ = broker("SCAN 0")
    broker("FLUSHDB")
    assert broker("SCAN", cursor) == [b"0", []]


def test_databases_are_scanned_apart(broker: MemoryBroker) -> None:
    keys = fill(broker, 30)
    broker("SELECT 1")
    broker("SET other x")
    assert broker("SCAN 0") == [b"0", [b"other"]]
    broker("SELECT 0")
    assert sorted(walk(broker)) == keys


def test_names_and_types_can_be_chosen(broker: MemoryBroker) -> None:
    fill(broker, 30)
    broker("XADD orders 1-0 a b")
    broker("HSET hash a 1")
    assert walk(broker, "TYPE", "stream") == [b"orders"]
    assert walk(broker, "type", "HASH", "COUNT", 100) == [b"hash"]
    assert walk(broker, "TYPE", "stream", "MATCH", "key-*") == []
    assert walk(broker, "TYPE", "nosuch") == []
    assert sorted(walk(broker, "MATCH", "key-1?")) == [b"key-%d" % number for number in range(10, 20)]


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("SCAN x", "ERR invalid cursor"),
        ("SCAN -1", "ERR invalid cursor"),
        ("SCAN 18446744073709551616", "ERR invalid cursor"),
        ("SCAN 0 COUNT 0", "ERR syntax error"),
        ("SCAN 0 COUNT x", "ERR value is not an integer or out of range"),
        ("SCAN 0 COUNT", "ERR syntax error"),
        ("SCAN 0 WHERE x", "ERR syntax error"),
        ("SCAN 0 NOVALUES", "ERR NOVALUES option can only be used in HSCAN"),
        ("SSCAN set 0 NOVALUES", "ERR NOVALUES option can only be used in HSCAN"),
        ("SSCAN set 0 TYPE set", "ERR syntax error"),
        ("SSCAN string 0", "WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("HSCAN string 0", "WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("HSCAN string x", "ERR invalid cursor"),
    ],
)
def test_a_faulty_scan_is_refused(broker: MemoryBroker, command: str, error: str) -> None:
    broker("SET string x")
    broker("SADD set a")
    assert broker(command) == Refusal(error)


@pytest.mark.parametrize("cursor", [1, 5, 2**20, 2**63, 2**64 - 1])
def test_a_cursor_that_nobody_gave_out_does_no_harm(broker: MemoryBroker, cursor: int) -> None:
    keys = fill(broker, 30)
    found: list[bytes] = []
    following = b"%d" % cursor
    while following != b"0":
        following, page = broker("SCAN", following)
        found += page
    assert len(found) == len(set(found))
    assert set(found) <= set(keys)


def test_small_hashes_and_sets_come_as_one_page(broker: MemoryBroker) -> None:
    broker("HSET hash a 1 b 2")
    broker("SADD set a b c")
    assert broker("HSCAN hash 0 COUNT 1") == [b"0", [b"a", b"1", b"b", b"2"]]
    assert broker("HSCAN hash 5 NOVALUES MATCH b") == [b"0", [b"b"]]
    assert broker("SSCAN set 0 COUNT 1") == [b"0", [b"a", b"b", b"c"]]
    assert broker("SSCAN none 0") == broker("HSCAN none 0") == [b"0", []]


def test_large_hashes_and_sets_come_in_pages(broker: MemoryBroker) -> None:
    names = sorted(b"name-%d" % number for number in range(600))
    for name in names:
        broker("HSET", "hash", name, b"of " + name)
        broker("SADD", "set", name)
    assert len(broker("SSCAN set 0")[1]) == 10
    assert sorted(walk(broker, command="SSCAN set")) == names
    flat = walk(broker, "COUNT", 50, command="HSCAN hash")
    assert sorted(flat[::2]) == names
    assert all(value == b"of " + name for name, value in zip(flat[::2], flat[1::2], strict=True))
    assert sorted(walk(broker, "NOVALUES", command="HSCAN hash")) == names


def test_many_scans_at_once_miss_nothing_and_keep_little(broker: MemoryBroker) -> None:
    for key in range(20):
        for number in range(130):
            broker(f"SADD set-{key} member-{number}")
    cursors = [b"0"] * 20
    found: list[set[bytes]] = [set() for _ in range(20)]
    is_done = [False] * 20
    while not all(is_done):
        for key in range(20):
            if not is_done[key]:
                cursors[key], page = broker("SSCAN", f"set-{key}", cursors[key], "COUNT", 40)
                found[key].update(page)
                is_done[key] = cursors[key] == b"0"
                assert len(broker.state.databases[0].orders.by_key) <= 16
    assert all(len(members) == 130 for members in found)
    assert not broker.state.databases[0].orders.by_key


@pytest.mark.parametrize(
    "command", ["RENAME other key-0", "COPY other key-0 REPLACE", "RESTORE key-0 0 payload REPLACE"]
)
def test_a_key_that_got_another_value_meanwhile_still_comes(broker: MemoryBroker, command: str) -> None:
    """The oldest key comes last. It exists all the time."""
    fill(broker, 30)
    broker("SET other x")
    payload = broker("DUMP other")
    cursor, found = broker("SCAN 0 COUNT 5")
    broker(*[payload if word == "payload" else word for word in command.split()])
    while cursor != b"0":
        cursor, page = broker("SCAN", cursor, "COUNT", 5)
        found += page
    assert b"key-0" in found

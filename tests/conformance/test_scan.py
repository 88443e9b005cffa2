"""SCAN and SSCAN. Orders differ between servers, so only what is found is compared."""

from support.session import Session
from support.wire import Wire


def walk(client: Wire, *words: str | int) -> list[bytes]:
    """Everything from cursor 0 to the end, page after page."""
    found: list[bytes] = []
    cursor = b"0"
    while True:
        cursor, page = client("SCAN", cursor, *words)
        found += page
        if cursor == b"0":
            return found


def test_every_key_is_found(client: Wire) -> None:
    wanted = {b"key-%d" % number for number in range(500)}
    for key in wanted:
        client("SET", key, "x")
    client("XADD", "orders", "1-0", "a", "b")
    assert set(walk(client)) == wanted | {b"orders"}
    assert set(walk(client, "COUNT", 1000)) == wanted | {b"orders"}
    assert set(walk(client, "MATCH", "key-1?")) == {b"key-%d" % number for number in range(10, 20)}
    assert set(walk(client, "TYPE", "stream")) == {b"orders"}
    assert set(walk(client, "TYPE", "STREAM", "COUNT", 100)) == {b"orders"}


def test_keys_that_stay_are_not_missed(client: Wire) -> None:
    staying = {b"staying-%d" % number for number in range(300)}
    for number, key in enumerate(staying):
        client("SET", key, "x")
        client("SET", f"going-{number}", "x")
    found: set[bytes] = set()
    cursor, turn = b"0", 0
    while cursor != b"0" or not turn:
        cursor, page = client("SCAN", cursor, "COUNT", 20)
        found.update(page)
        for number in range(turn * 10, turn * 10 + 10):
            client("DEL", f"going-{number}")
            client("SET", f"coming-{number}", "x")
        turn += 1
    assert staying <= found


def test_faulty_scans(talk: Session) -> None:
    talk.play(
        """
        > SCAN x
        -ERR invalid cursor
        > SCAN 0 COUNT 0
        -ERR syntax error
        > SCAN 0 COUNT x
        -ERR value is not an integer or out of range
        > SCAN 0 MATCH
        -ERR syntax error
        > SCAN 0 WHERE x
        -ERR syntax error
        > SCAN
        -ERR wrong number of arguments for 'scan' command
        > SCAN 0
        ["0", []]
        """
    )


def test_a_set_is_scanned(talk: Session) -> None:
    talk.play(
        """
        > SADD numbers 3 1 2
        > SSCAN numbers 0 COUNT 1
        ["0", ["1", "2", "3"]]
        > SSCAN numbers 0 MATCH [13]
        ["0", ["1", "3"]]
        > SSCAN missing 0
        ["0", []]
        > SSCAN missing x
        -ERR invalid cursor
        > SSCAN numbers 0 COUNT 0
        -ERR syntax error
        > SET text x
        > SSCAN text 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        """
    )
    client = talk.wire()
    wanted = {b"member-%d" % number for number in range(400)}
    client("SADD", "words", *wanted)
    found: set[bytes] = set()
    cursor, pages = b"0", 0
    while cursor != b"0" or not pages:
        cursor, page = client("SSCAN", "words", cursor)
        found.update(page)
        pages += 1
    assert found == wanted
    assert pages > 5

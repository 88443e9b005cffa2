"""XLEN, XTRIM, XDEL, XDELEX, XSETID and empty streams (requirements, section 2; rows 298, 301, 302)."""

from collections.abc import Callable

import pytest

from support.session import Session
from support.wire import Wire

FIVE = "\n".join(f"> XADD s {i}-0 n {i}" for i in range(1, 6))


def test_xlen_counts_entries(talk: Session) -> None:
    """Row 24."""
    talk.play("""
        > XLEN missing
        :0
        > XADD s * f v
        > XLEN s
        :1
        > XADD s * f v
        > XLEN s
        :2
    """)


@pytest.mark.parametrize("form", ["MAXLEN 4", "MAXLEN = 4"])
def test_xtrim_keeps_the_newest(talk: Session, form: str) -> None:
    """Rows 25, 302."""
    talk.play(
        FIVE
        + f"""
        > XTRIM s {form}
        :1
        > XTRIM s {form}
        :0
        > XRANGE s - + COUNT 1
        [["2-0", ["n", "2"]]]
        > XTRIM s MAXLEN 1
        :3
        > XRANGE s - +
        [["5-0", ["n", "5"]]]
        """
    )


def test_xtrim_removes_what_is_below_an_id(talk: Session) -> None:
    """Rows 26, 302."""
    talk.play(
        FIVE
        + """
        > XTRIM s MINID 2
        :1
        > XTRIM s MINID = 2-1
        :1
        > XTRIM s MINID 2-1
        :0
        > XRANGE s - + COUNT 1
        [["3-0", ["n", "3"]]]
        > XTRIM s MINID 100
        :3
        > XLEN s
        :0
        """
    )


@pytest.mark.parametrize("form", ["MAXLEN ~ 1", "MINID ~ 3"])
def test_approximate_xtrim_removes_whole_nodes_only(talk: Session, form: str) -> None:
    """Rows 27, 302."""
    talk.play(
        FIVE
        + f"""
        > XTRIM s MAXLEN ~ 10
        :0
        > XTRIM s {form}
        :0
        > XLEN s
        :5
        """
    )


def test_approximate_xtrim_stops_at_its_limit(client: Wire, settings: Callable[[str, object], None]) -> None:
    """Row 27."""
    settings("stream-node-max-entries", 10)
    client.pipeline([("XADD", "s", f"{i}-0", "f", "v") for i in range(1, 101)])
    assert client("XTRIM s MAXLEN ~ 0 LIMIT 5") == 0
    assert client("XTRIM s MAXLEN ~ 0 LIMIT 30") == 30
    assert client("XTRIM s MAXLEN ~ 55 LIMIT 0") == 10
    assert client("XTRIM s MINID ~ 56") == 10
    assert client("XRANGE s - + COUNT 1") == [[b"51-0", [b"f", b"v"]]]


@pytest.mark.since("8.2")
def test_policies_over_many_nodes(talk: Session, settings: Callable[[str, object], None]) -> None:
    """Rows 23, 27. With a policy that looks at references, approximate trimming takes single entries too."""
    settings("stream-node-max-entries", 10)
    client = talk.wire()
    client.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 101)])
    client("XGROUP CREATE s g 0")
    client("XREADGROUP GROUP g c COUNT 50 STREAMS s >")
    client("XACK", "s", "g", *[f"{i}-0" for i in range(1, 26)])
    talk.play("""
        > XTRIM s MAXLEN ~ 20 ACKED
        :25
        > XTRIM s MAXLEN ~ 70 DELREF
        :5
        > XPENDING s g
        [:20, "31-0", "50-0", [["c", "20"]]]
        > XTRIM s MAXLEN = 40 ACKED
        :0
        > XTRIM s MINID ~ 75 DELREF
        :44
        > XPENDING s g
        [:0, (nil), (nil), (nil array)]
        > XRANGE s - + COUNT 1
        [["75-0", ["n", "75"]]]
        > XDEL s 81-0 82-0
        :2
        > XTRIM s MINID ~ 90
        :6
        > XTRIM s MINID = 95 ACKED
        :0
        > XTRIM s MAXLEN ~ 0 LIMIT 3
        :0
        > XTRIM s MAXLEN ~ 0
        :18
        > XINFO GROUPS s
        [[..., "last-delivered-id", "50-0", "entries-read", :50, "lag", :0]]
    """)


def test_xtrim_on_a_missing_key_and_with_a_wrong_word(talk: Session) -> None:
    """Row 28."""
    talk.play("""
        > XTRIM missing MAXLEN 1
        :0
        > EXISTS missing
        :0
        > XADD s 1-0 f v
        > XTRIM s FOO 1
        -ERR syntax error
        > XTRIM s MAXLEN
        -ERR wrong number of arguments for 'xtrim' command
        > XTRIM s MAXLEN -1
        -ERR The MAXLEN argument must be >= 0.
        > XTRIM s MAXLEN x
        -ERR value is not an integer or out of range
        > XTRIM s MAXLEN 1 MINID 1
        -ERR syntax error, MAXLEN and MINID options at the same time are not compatible
        > XLEN s
        :1
    """)


def test_xdel_counts_what_it_removed(talk: Session) -> None:
    """Row 29."""
    talk.play("""
        > XADD s 5-1 f v
        > XADD s 6-0 f v
        > XDEL s 5-1 99-9
        :1
        > XDEL s 5-1
        :0
        > XDEL missing 1-0
        :0
        > XDEL s 6-0 bad
        -ERR Invalid stream ID specified as stream command argument
        > XRANGE s - +
        [["6-0", ["f", "v"]]]
        > XDEL s 6 6 6-0
        :1
    """)


def test_the_highest_deleted_id_stays_visible(talk: Session) -> None:
    """Row 30."""
    talk.play("""
        > XADD s 1-0 f v
        > XADD s 2-0 f v
        > XADD s 3-0 f v
        > XINFO STREAM s
        [..., "max-deleted-entry-id", "0-0", ...]
        > XDEL s 2-0
        :1
        > XDEL s 1-0
        :1
        > XINFO STREAM s
        [..., "last-generated-id", "3-0", "max-deleted-entry-id", "2-0", "entries-added", :3, ...]
        > XDEL s 3-0
        :1
        > XINFO STREAM s
        ["length", :0, ..., "last-generated-id", "3-0", "max-deleted-entry-id", "3-0", ...]
        > XADD s 3-0 f v
        -ERR The ID specified in XADD is equal or smaller than the target stream top item
    """)


@pytest.mark.parametrize(
    "emptying",
    ["XTRIM s MAXLEN 0", "XTRIM s MINID 99", "XDEL s 1-0", "XADD s MAXLEN 0 2-0 f v"],
)
@pytest.mark.parametrize("group", [True, False], ids=["with a group", "without groups"])
def test_an_empty_stream_still_exists(talk: Session, emptying: str, group: bool) -> None:
    """Rows 32, 301."""
    talk.play("> XADD s 1-0 f v")
    if group:
        talk.play("> XGROUP CREATE s g 1-0")
    talk.play(f"""
        > {emptying}
        <any>
        > XLEN s
        :0
        > EXISTS s
        :1
        > TYPE s
        +stream
        > XRANGE s - +
        []
    """)
    expected = '[["name", "g", "consumers", :0, "pending", :0, "last-delivered-id", "1-0", ...]]' if group else "[]"
    talk.play(f"> XINFO GROUPS s\n{expected}")


@pytest.mark.since("8.2")
def test_xdelex_tells_what_happened_to_each_id(talk: Session) -> None:
    """Row 33."""
    talk.play("""
        > XADD s 1-0 f v
        > XADD s 2-0 f v
        > XGROUP CREATE s g 0
        > XREADGROUP GROUP g c COUNT 1 STREAMS s >
        > XDELEX s ACKED IDS 1 1-0
        [:2]
        > XDELEX s ACKED IDS 1 2-0
        [:2]
        > XLEN s
        :2
        > XACK s g 1-0
        :1
        > XDELEX s ACKED IDS 1 1-0
        [:1]
        > XDELEX s ACKED IDS 1 1-0
        [:-1]
        > XDELEX s ACKED IDS 1 99-0
        [:2]
        > XDELEX s IDS 3 99-0 2-0 2-0
        [:-1, :1, :-1]
        > XDELEX missing IDS 2 1-0 2-0
        [:-1, :-1]
    """)


@pytest.mark.since("8.2")
@pytest.mark.parametrize(("policy", "left"), [("", 1), ("KEEPREF", 1), ("DELREF", 0)])
def test_xdelex_keeps_or_forgets_pending_references(talk: Session, policy: str, left: int) -> None:
    """Row 33."""
    talk.play(f"""
        > XADD s 1-0 f v
        > XGROUP CREATE s g 0
        > XREADGROUP GROUP g c STREAMS s >
        > XDELEX s {policy} IDS 1 1-0
        [:1]
        > XPENDING s g
        [:{left}, ...]
    """)


@pytest.mark.parametrize("removal", ["XDEL s 1-0", "XTRIM s MAXLEN 0", "XTRIM s MINID 9", "XADD s MAXLEN 1 2-0 f v"])
def test_a_pending_entry_that_was_removed_has_null_fields(talk: Session, removal: str) -> None:
    """Rows 100, 298."""
    talk.play(f"""
        > XADD s 1-0 f v
        > XGROUP CREATE s g 0
        > XREADGROUP GROUP g c STREAMS s >
        > {removal}
        > XREADGROUP GROUP g c STREAMS s 0
        [["s", [["1-0", (nil array)]]]]
    """)


@pytest.mark.since("8.2")
@pytest.mark.parametrize(
    "removal",
    [
        "XDELEX s IDS 1 1-0",
        "XDELEX s KEEPREF IDS 1 1-0",
        "XACKDEL s other IDS 1 1-0",
        "XACKDEL s other KEEPREF IDS 1 1-0",
        "XTRIM s MAXLEN 0 KEEPREF",
        "XADD s KEEPREF MAXLEN 1 2-0 f v",
    ],
)
def test_null_fields_after_each_newer_way_of_removal(talk: Session, removal: str) -> None:
    """Row 298."""
    talk.play(f"""
        > XADD s 1-0 f v
        > XGROUP CREATE s g 0
        > XGROUP CREATE s other 0
        > XREADGROUP GROUP g c STREAMS s >
        > XREADGROUP GROUP other c STREAMS s >
        > {removal}
        > XREADGROUP GROUP g c STREAMS s 0
        [["s", [["1-0", (nil array)]]]]
    """)


def test_null_fields_are_one_null_in_resp3(talk3: Session) -> None:
    """Rows 100, 298."""
    talk3.play("""
        > XADD s 1-0 f v
        > XGROUP CREATE s g 0
        > XREADGROUP GROUP g c STREAMS s >
        {"s": [["1-0", ["f", "v"]]]}
        > XDEL s 1-0
        :1
        > XREADGROUP GROUP g c STREAMS s 0
        {"s": [["1-0", _]]}
    """)


@pytest.mark.parametrize(
    ("fill", "empty"),
    [("LPUSH k a", "LPOP k"), ("RPUSH k a", "RPOP k"), ("SADD k a", "SREM k a")],
)
def test_other_types_lose_their_key_when_emptied(talk: Session, fill: str, empty: str) -> None:
    """Row 301."""
    talk.play(f"""
        > {fill}
        :1
        > {empty}
        > EXISTS k
        :0
    """)


def test_xsetid_moves_the_last_id(talk: Session) -> None:
    """Rows 9, 30: the counters a restored stream needs."""
    talk.play("""
        > XADD s 1-0 f v
        > XSETID s 200-0
        +OK
        > XADD s 150-0 f v
        -ERR The ID specified in XADD is equal or smaller than the target stream top item
        > XADD s 200-* f v
        "200-1"
        > XSETID s 1-0
        -ERR The ID specified in XSETID is smaller than the target stream top item
        > XSETID s 300-0 ENTRIESADDED 50 MAXDELETEDID 250-0
        +OK
        > XINFO STREAM s
        [..., "last-generated-id", "300-0", "max-deleted-entry-id", "250-0", "entries-added", :50, ...]
        > XSETID s 300-0 ENTRIESADDED 1 MAXDELETEDID 0-0
        -ERR The entries_added specified in XSETID is smaller than the target stream length
        > XSETID s 300-0 ENTRIESADDED -1 MAXDELETEDID 0-0
        -ERR entries_added must be positive
        > XSETID s 300-0 ENTRIESADDED 50 MAXDELETEDID 301-0
        -ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id
        > XSETID missing 1-0
        -ERR no such key
    """)

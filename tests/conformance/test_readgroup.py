"""XREADGROUP without CLAIM (requirements, section 7; rows 160, 297). Waiting is in test_blocking.py."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from support.servers import Server
from support.session import Session
from support.wire import Wire

FOUR = "\n".join(f"> XADD s {i}-0 n {i}" for i in range(1, 5)) + "\n> XGROUP CREATE s g 0\n"


def test_the_group_must_be_named(talk: Session) -> None:
    """Row 84."""
    talk.play(
        FOUR
        + """
        > XREADGROUP STREAMS s >
        -ERR wrong number of arguments for 'xreadgroup' command
        > XREADGROUP COUNT 1 BLOCK 1 STREAMS s >
        -ERR Missing GROUP option for XREADGROUP
        > XREADGROUP GROUP g c COUNT 1 NOACK NOACK
        -ERR syntax error
        > XREADGROUP STREAMS s GROUP g c 0 >
        -ERR Missing GROUP option for XREADGROUP
        > XREADGROUP NOACK COUNT 1 GROUP g c STREAMS s >
        [["s", [["1-0", ["n", "1"]]]]]
        > XREADGROUP GROUP g c FOO STREAMS s >
        -ERR syntax error
        """
    )


def test_an_entry_is_new_for_one_consumer_only(talk: Session) -> None:
    """Rows 85, 160."""
    talk.play(
        FOUR
        + """
        > XREADGROUP GROUP g one COUNT 1 STREAMS s >
        [["s", [["1-0", ["n", "1"]]]]]
        > XINFO GROUPS s
        [["name", "g", "consumers", :1, "pending", :1, "last-delivered-id", "1-0", "entries-read", :1, "lag", :3]]
        > XREADGROUP GROUP g two COUNT 1 STREAMS s >
        [["s", [["2-0", ["n", "2"]]]]]
        > XREADGROUP GROUP g two STREAMS s >
        [["s", [["3-0", ["n", "3"]], ["4-0", ["n", "4"]]]]]
        > XREADGROUP GROUP g one STREAMS s >
        (nil array)
        """
    )


def test_a_delivered_entry_is_pending_with_its_owner_and_count(talk: Session) -> None:
    """Row 86."""
    talk.play(
        FOUR
        + """
        > XREADGROUP GROUP g one COUNT 2 STREAMS s >
        > XPENDING s g - + 1
        [["1-0", "one", :0+, :1]]
        > XINFO CONSUMERS s g
        [["name", "one", "pending", :2, ...]]
        """
    )


def test_the_history_holds_the_own_pending_entries_after_an_id(talk: Session) -> None:
    """Rows 87, 91."""
    talk.play(
        FOUR
        + """
        > XREADGROUP GROUP g one COUNT 2 STREAMS s >
        > XREADGROUP GROUP g two COUNT 1 STREAMS s >
        > XREADGROUP GROUP g one COUNT 1 STREAMS s >
        > XREADGROUP GROUP g one STREAMS s 0
        [["s", [["1-0", ["n", "1"]], ["2-0", ["n", "2"]], ["4-0", ["n", "4"]]]]]
        > XREADGROUP GROUP g one STREAMS s 1-0
        [["s", [["2-0", ["n", "2"]], ["4-0", ["n", "4"]]]]]
        > XREADGROUP GROUP g one STREAMS s 2
        [["s", [["4-0", ["n", "4"]]]]]
        > XREADGROUP GROUP g one COUNT 1 STREAMS s 0
        [["s", [["1-0", ["n", "1"]]]]]
        > XREADGROUP GROUP g two STREAMS s 0
        [["s", [["3-0", ["n", "3"]]]]]
        """
    )


def test_an_empty_history_is_a_stream_without_entries(talk: Session) -> None:
    """Row 88."""
    talk.play(
        FOUR
        + """
        > XREADGROUP GROUP g one COUNT 1 STREAMS s 0
        [["s", []]]
        > XREADGROUP GROUP g one STREAMS s 99-99
        [["s", []]]
        """
    )


def test_nothing_in_resp3(talk3: Session) -> None:
    """Rows 88, 92."""
    talk3.play(
        FOUR
        + """
        > XREADGROUP GROUP g one STREAMS s 0
        {"s": []}
        > XREADGROUP GROUP g one STREAMS s >
        {"s": [["1-0", ["n", "1"]], ["2-0", ["n", "2"]], ["3-0", ["n", "3"]], ["4-0", ["n", "4"]]]}
        > XREADGROUP GROUP g one STREAMS s >
        _
        > XREADGROUP GROUP g one BLOCK 10 STREAMS s >
        _
        """
    )


def test_reading_the_history_counts_as_a_delivery(talk: Session) -> None:
    """Row 89."""
    talk.play(
        FOUR
        + """
        > XREADGROUP GROUP g one COUNT 2 STREAMS s >
        > XCLAIM s g one 0 1-0 2-0 IDLE 60000 JUSTID
        > XREADGROUP GROUP g one COUNT 1 STREAMS s 0
        > XREADGROUP GROUP g one COUNT 1 STREAMS s 0
        > XPENDING s g - + 10
        [["1-0", "one", :<fresh>, :3], ["2-0", "one", :60000+, :1]]
        """
    )
    assert int(talk.bound["fresh"]) < 60000


@pytest.mark.parametrize("options", ["BLOCK 0", "BLOCK 2000", "NOACK", "BLOCK 0 NOACK"])
def test_options_for_new_entries_are_ignored_in_the_history(talk: Session, options: str) -> None:
    """Row 90."""
    talk.play(
        FOUR
        + f"""
        > XREADGROUP GROUP g one COUNT 1 STREAMS s >
        > XREADGROUP GROUP g one {options} STREAMS s 0
        [["s", [["1-0", ["n", "1"]]]]]
        > XREADGROUP GROUP g one {options} STREAMS s 1
        [["s", []]]
        > XPENDING s g
        [:1, "1-0", "1-0", [["one", "1"]]]
        """
    )


def test_nothing_new_is_null(talk: Session) -> None:
    """Row 92."""
    talk.play(
        FOUR
        + """
        > XREADGROUP GROUP g one STREAMS s >
        > XREADGROUP GROUP g one STREAMS s >
        (nil array)
        > XREADGROUP GROUP g one BLOCK 20 STREAMS s >
        (nil array)
        """
    )


def test_count_is_a_limit_per_stream(talk: Session) -> None:
    """Row 94."""
    talk.play(
        FOUR
        + """
        > XADD t 1-0 t 1
        > XADD t 2-0 t 2
        > XADD t 3-0 t 3
        > XGROUP CREATE t g 0
        > XREADGROUP GROUP g one COUNT 2 STREAMS s t > >
        [["s", [["1-0", ["n", "1"]], ["2-0", ["n", "2"]]]], ["t", [["1-0", ["t", "1"]], ["2-0", ["t", "2"]]]]]
        > XREADGROUP GROUP g one STREAMS s t > >
        [["s", [["3-0", ["n", "3"]], ["4-0", ["n", "4"]]]], ["t", [["3-0", ["t", "3"]]]]]
        """
    )


def test_noack_delivers_without_a_pending_entry(talk: Session) -> None:
    """Row 95."""
    talk.play(
        FOUR
        + """
        > XREADGROUP GROUP g one COUNT 1 STREAMS s >
        > XREADGROUP GROUP g one NOACK COUNT 2 STREAMS s >
        [["s", [["2-0", ["n", "2"]], ["3-0", ["n", "3"]]]]]
        > XPENDING s g
        [:1, "1-0", "1-0", [["one", "1"]]]
        > XINFO GROUPS s
        [[..., "last-delivered-id", "3-0", "entries-read", :3, "lag", :1]]
        """
    )


def test_one_missing_group_stops_the_whole_read(talk: Session) -> None:
    """Row 96."""
    talk.play(
        FOUR
        + """
        > XADD t 1-0 f v
        > XREADGROUP GROUP g one STREAMS s t > >
        -NOGROUP No such key 't' or consumer group 'g' in XREADGROUP with GROUP option
        > XPENDING s g
        [:0, (nil), (nil), (nil array)]
        > XINFO CONSUMERS s g
        []
        """
    )


def test_an_unknown_key_or_group_is_named(talk: Session) -> None:
    """Row 97."""
    talk.play(
        FOUR
        + """
        > XREADGROUP GROUP nog c STREAMS s >
        -NOGROUP No such key 's' or consumer group 'nog' in XREADGROUP with GROUP option
        > XREADGROUP GROUP g c STREAMS missing >
        -NOGROUP No such key 'missing' or consumer group 'g' in XREADGROUP with GROUP option
        > XREADGROUP GROUP g c BLOCK 0 STREAMS missing >
        -NOGROUP No such key 'missing' or consumer group 'g' in XREADGROUP with GROUP option
        > XREADGROUP GROUP nog c STREAMS s 0
        -NOGROUP No such key 's' or consumer group 'nog' in XREADGROUP with GROUP option
        """
    )


def test_mistakes_are_named(server: Server, talk: Session) -> None:
    """Rows 84, 98."""
    unbalanced = "-ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
    if server.dialect < (7, 2):
        unbalanced = "-ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified."
    talk.play(
        FOUR
        + f"""
        > XREADGROUP GROUP g c STREAMS s t >
        {unbalanced}
        > XREADGROUP GROUP g c STREAMS s $
        -ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer
         by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty
         result set.
        > XREADGROUP GROUP g c STREAMS s x
        -ERR Invalid stream ID specified as stream command argument
        > XREADGROUP GROUP g c BLOCK -1 STREAMS s >
        -ERR timeout is negative
        > XREADGROUP GROUP g c BLOCK x STREAMS s >
        -ERR timeout is not an integer or out of range
        > XREADGROUP GROUP g c COUNT x STREAMS s >
        -ERR value is not an integer or out of range
        """
    )


@pytest.mark.since("7.4")
def test_plus_is_refused(talk: Session) -> None:
    """Row 98, the ID + of Redis 7.4."""
    talk.play(
        FOUR
        + """
        > XREADGROUP GROUP g c STREAMS s +
        -ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer
         by specifying a proper ID, or use the > ID to get new messages. The + ID would just return an empty
         result set.
        """
    )


def test_the_fast_consumer_gets_more(client: Wire) -> None:
    """Row 102: whoever asks is served; there are no fixed shares."""
    client.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 111)])
    client("XGROUP CREATE s g 0")
    for _ in range(10):
        for consumer in ["fast"] * 10 + ["slow"]:
            client("XREADGROUP", "GROUP", "g", consumer, "COUNT", 1, "STREAMS", "s", ">")
    assert client("XPENDING s g") == [110, b"1-0", b"110-0", [[b"fast", b"100"], [b"slow", b"10"]]]


def test_new_and_pending_entries_can_be_read_in_one_call(talk: Session) -> None:
    """Row 297."""
    talk.play(
        FOUR
        + """
        > XADD t 1-0 t 1
        > XADD t 2-0 t 2
        > XGROUP CREATE t g 0
        > XREADGROUP GROUP g one COUNT 1 STREAMS t >
        > XREADGROUP GROUP g one COUNT 2 BLOCK 0 STREAMS s t > 0
        [["s", [["1-0", ["n", "1"]], ["2-0", ["n", "2"]]]], ["t", [["1-0", ["t", "1"]]]]]
        > XREADGROUP GROUP g one BLOCK 0 STREAMS s t 0 >
        [["s", [["1-0", ["n", "1"]], ["2-0", ["n", "2"]]]], ["t", [["2-0", ["t", "2"]]]]]
        > XREADGROUP GROUP g one BLOCK 0 STREAMS t s > 99
        [["s", []]]
        """
    )


def test_the_history_is_read_by_id_whatever_the_order_of_delivery(talk: Session) -> None:
    """Row 87."""
    talk.play(
        FOUR
        + """
        > XREADGROUP GROUP g two STREAMS s >
        > XCLAIM s g one 0 3-0 JUSTID
        > XCLAIM s g one 0 1-0 JUSTID
        > XCLAIM s g one 0 4-0 JUSTID
        > XREADGROUP GROUP g one STREAMS s 0
        [["s", [["1-0", ["n", "1"]], ["3-0", ["n", "3"]], ["4-0", ["n", "4"]]]]]
        > XREADGROUP GROUP g two STREAMS s 0
        [["s", [["2-0", ["n", "2"]]]]]
        """
    )


def deliver_to_eight_readers(server: Server, entries: int) -> None:
    with server.connect() as client:
        for start in range(0, entries, 1000):
            client.pipeline([("XADD", "s", f"{i + 1}-0", "n", i) for i in range(start, start + 1000)])
        client("XGROUP CREATE s g 0")

    def read_all(number: int) -> list[bytes]:
        seen: list[bytes] = []
        with server.connect() as reader:
            while True:
                reply = reader("XREADGROUP", "GROUP", "g", f"c{number}", "COUNT", 50, "STREAMS", "s", ">")
                if not isinstance(reply, list):
                    return seen
                seen += [entry for entry, _ in reply[0][1]]

    with ThreadPoolExecutor(8) as pool:
        shares = list(pool.map(read_all, range(8)))
    for share in shares:
        assert share == sorted(share, key=lambda entry: int(entry.split(b"-")[0]))
    delivered = [entry for share in shares for entry in share]
    assert len(delivered) == entries
    assert set(delivered) == {b"%d-0" % (i + 1) for i in range(entries)}
    assert server.control("XPENDING s g")[0] == entries  # type: ignore[index]


def test_eight_readers_share_a_stream_without_a_double(server: Server) -> None:
    """Row 160, a small count."""
    deliver_to_eight_readers(server, 10_000)


@pytest.mark.long
def test_eight_readers_share_a_long_stream_without_a_double(server: Server) -> None:
    """Row 160."""
    deliver_to_eight_readers(server, 100_000)

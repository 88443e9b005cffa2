"""XREAD without waiting (requirements, section 4). Waiting is in test_blocking.py."""

import pytest

from support.servers import Server
from support.session import Session
from support.wire import Wire

TWO_STREAMS = "\n".join(f"> XADD {key} {i}-0 n {i}" for key in "ab" for i in range(1, 6))


def test_only_entries_after_the_id_are_read(talk: Session) -> None:
    """Row 47."""
    talk.play(
        TWO_STREAMS
        + """
        > XREAD COUNT 2 STREAMS a 0
        [["a", [["1-0", ["n", "1"]], ["2-0", ["n", "2"]]]]]
        > XREAD STREAMS a 4-0
        [["a", [["5-0", ["n", "5"]]]]]
        """
    )


@pytest.mark.parametrize("start", ["0", "0-0", "00-0"])
def test_zero_is_the_beginning(talk: Session, start: str) -> None:
    """Row 48."""
    talk.play(f"""
        > XADD s 0-1 f v
        > XREAD STREAMS s {start}
        [["s", [["0-1", ["f", "v"]]]]]
    """)


def test_several_streams_answer_in_the_order_of_their_keys(talk: Session) -> None:
    """Rows 49, 50."""
    talk.play(
        TWO_STREAMS
        + """
        > XREAD COUNT 2 STREAMS b a 0 3
        [["b", [["1-0", ["n", "1"]], ["2-0", ["n", "2"]]]], ["a", [["4-0", ["n", "4"]], ["5-0", ["n", "5"]]]]]
        > XREAD STREAMS a a 3-0 4-0
        [["a", [["4-0", ["n", "4"]], ["5-0", ["n", "5"]]]], ["a", [["5-0", ["n", "5"]]]]]
        """
    )


def test_a_count_of_zero_means_no_limit(talk: Session) -> None:
    """Row 50."""
    talk.play(
        TWO_STREAMS
        + """
        > XREAD COUNT 0 STREAMS a 0
        [["a", [<any>, <any>, <any>, <any>, <any>]]]
        > XREAD COUNT x STREAMS a 0
        -ERR value is not an integer or out of range
        """
    )


def test_streams_without_news_are_left_out(talk: Session) -> None:
    """Row 51."""
    talk.play(
        TWO_STREAMS
        + """
        > XREAD STREAMS a b 5-0 4-0
        [["b", [["5-0", ["n", "5"]]]]]
        > XREAD STREAMS a missing b 4-0 0 5-0
        [["a", [["5-0", ["n", "5"]]]]]
        > XREAD STREAMS a b 5-0 $
        (nil array)
        > XREAD STREAMS missing 0
        (nil array)
        > EXISTS missing
        :0
        """
    )


def test_the_reply_is_a_map_in_resp3(talk3: Session) -> None:
    """Rows 51, 52."""
    talk3.play(
        TWO_STREAMS
        + """
        > XREAD COUNT 1 STREAMS b a 0 0
        {"b": [["1-0", ["n", "1"]]], "a": [["1-0", ["n", "1"]]]}
        > XREAD STREAMS a 5
        _
        > XREAD BLOCK 10 STREAMS a $
        _
        """
    )


def test_a_bare_time_reads_after_its_first_entry(talk: Session) -> None:
    """Row 302."""
    talk.play("""
        > XADD s 5-0 f v
        > XADD s 5-1 f v
        > XREAD STREAMS s 5
        [["s", [["5-1", ["f", "v"]]]]]
    """)


@pytest.mark.since("7.4")
def test_plus_reads_the_last_entry(talk: Session) -> None:
    """Row 47, the ID + of Redis 7.4."""
    talk.play(
        TWO_STREAMS
        + """
        > XREAD STREAMS a +
        [["a", [["5-0", ["n", "5"]]]]]
        > XREAD COUNT 3 STREAMS a b missing + 4-0 +
        [["a", [["5-0", ["n", "5"]]]], ["b", [["5-0", ["n", "5"]]]]]
        > XDEL a 5-0
        :1
        > XREAD STREAMS a +
        [["a", [["4-0", ["n", "4"]]]]]
        > XREAD STREAMS missing +
        (nil array)
        """
    )


def test_mistakes_are_named(server: Server, talk: Session) -> None:
    """Row 60."""
    unbalanced = (
        "-ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified."
        if server.dialect >= (7, 4)
        else "-ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified."
    )
    if server.dialect < (7, 2):
        unbalanced = "-ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified."
    talk.play(f"""
        > XREAD STREAMS a b 0
        {unbalanced}
        > XREAD STREAMS a >
        -ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.
        > XREAD BLOCK -1 STREAMS a 0
        -ERR timeout is negative
        > XREAD BLOCK foo STREAMS a 0
        -ERR timeout is not an integer or out of range
        > XREAD GROUP g c STREAMS a 0
        -ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.
        > XREAD NOACK STREAMS a 0
        -ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.
        > XREAD STREAMS a x
        -ERR Invalid stream ID specified as stream command argument
        > XREAD FOO STREAMS a 0
        -ERR syntax error
        > XREAD COUNT 1 a 0
        -ERR syntax error
        > XREAD STREAMS a
        -ERR wrong number of arguments for 'xread' command
    """)


@pytest.mark.since("8.4")
def test_claiming_is_for_groups(talk: Session) -> None:
    """Row 60."""
    talk.play("""
        > XREAD CLAIM 10 STREAMS a 0
        -ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.
    """)


def test_plain_readers_and_groups_do_not_disturb_each_other(talk: Session) -> None:
    """Row 61."""
    talk.play("""
        > XADD s 1-0 f v
        > XADD s 2-0 f v
        > XGROUP CREATE s g 0
        > XREADGROUP GROUP g c COUNT 1 STREAMS s >
        > XACK s g 1-0
        :1
        > XREAD STREAMS s 0
        [["s", [["1-0", ["f", "v"]], ["2-0", ["f", "v"]]]]]
        > XREADGROUP GROUP g c STREAMS s >
        [["s", [["2-0", ["f", "v"]]]]]
    """)


def test_a_long_stream_can_be_read_page_by_page(client: Wire) -> None:
    """Rows 47, 50."""
    client.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 1001)])
    seen, last = [], b"0"
    while isinstance(reply := client("XREAD", "COUNT", 37, "STREAMS", "s", last), list):
        ((_, entries),) = reply
        seen += [entry for entry, _ in entries]
        last = seen[-1]
    assert seen == [b"%d-0" % i for i in range(1, 1001)]

"""XCLAIM and XAUTOCLAIM (requirements, section 10)."""

import pytest

from support.servers import Server
from support.session import Session
from support.wire import Wire

# Reader "gone" holds 1-0 to 4-0, idle for a minute; 5-0 is new.
HELD = (
    "\n".join(f"> XADD s {i}-0 n {i}" for i in range(1, 6))
    + """
    > XGROUP CREATE s g 0
    > XREADGROUP GROUP g gone COUNT 4 STREAMS s >
    > XCLAIM s g gone 0 1-0 2-0 3-0 4-0 IDLE 60000 JUSTID
    """
)


def test_idle_entries_move_to_another_consumer(talk: Session) -> None:
    """Rows 130, 131, 133."""
    talk.play(
        HELD
        + """
        > XCLAIM s g c 30000 1-0 3-0
        [["1-0", ["n", "1"]], ["3-0", ["n", "3"]]]
        > XPENDING s g - + 10
        [["1-0", "c", :<a>, :2], ["2-0", "gone", :60000+, :1], ["3-0", "c", :<b>, :2], ["4-0", "gone", :60000+, :1]]
        > XINFO GROUPS s
        [["name", "g", "consumers", :2, "pending", :4, ...]]
        > XPENDING s g
        [:4, "1-0", "4-0", [["c", "2"], ["gone", "2"]]]
        """
    )
    assert int(talk.bound["a"]) < 60000
    assert int(talk.bound["b"]) < 60000


def test_entries_that_are_not_idle_enough_stay(talk: Session) -> None:
    """Row 130."""
    talk.play(
        HELD
        + """
        > XCLAIM s g c 3600000 1-0 2-0
        []
        > XPENDING s g
        [:4, "1-0", "4-0", [["gone", "4"]]]
        """
    )


def test_of_two_rivals_the_first_wins(talk: Session) -> None:
    """Row 132."""
    talk.play(
        HELD
        + """
        one> XCLAIM s g one 30000 1-0
        [["1-0", ["n", "1"]]]
        two> XCLAIM s g two 30000 1-0
        []
        > XPENDING s g - + 1
        [["1-0", "one", :0+, :2]]
        """
    )


def test_justid_gives_ids_and_does_not_count(talk: Session) -> None:
    """Row 134."""
    talk.play(
        HELD
        + """
        > XCLAIM s g c 30000 3-0 2-0 JUSTID
        ["3-0", "2-0"]
        > XPENDING s g - + 10 c
        [["2-0", "c", :<fresh>, :1], ["3-0", "c", :<any>, :1]]
        """
    )
    assert int(talk.bound["fresh"]) < 60000


def test_idle_time_and_count_can_be_set(server: Server, talk: Session) -> None:
    """Row 135."""
    talk.play(
        HELD
        + """
        > XCLAIM s g d 0 3-0 IDLE 5000 RETRYCOUNT 7 JUSTID
        ["3-0"]
        > XPENDING s g 3-0 3-0 1
        [["3-0", "d", :5000+, :7]]
        > XCLAIM s g d 0 3-0 RETRYCOUNT 9
        [["3-0", ["n", "3"]]]
        > XPENDING s g 3-0 3-0 1
        [["3-0", "d", :0+, :9]]
        > XCLAIM s g d 0 3-0 TIME <past> JUSTID LASTID 3-0
        ["3-0"]
        > XPENDING s g 3-0 3-0 1
        [["3-0", "d", :100000+, :9]]
        """,
        past=server.now_ms() - 100_000,
    )


def test_a_negative_count_is_as_good_as_none(talk: Session) -> None:
    """Row 135."""
    talk.play(
        HELD
        + """
        > XCLAIM s g c 0 1-0 RETRYCOUNT -1
        [["1-0", ["n", "1"]]]
        > XPENDING s g - + 1
        [["1-0", "c", :0+, :2]]
        """
    )


def test_force_makes_an_entry_pending(talk: Session) -> None:
    """Row 135. An entry made in this way counts two deliveries at once, on every server."""
    talk.play(
        HELD
        + """
        > XACK s g 1-0
        > XCLAIM s g c 0 1-0
        []
        > XCLAIM s g c 0 1-0 FORCE
        [["1-0", ["n", "1"]]]
        > XPENDING s g 1-0 1-0 1
        [["1-0", "c", :0+, :2]]
        > XCLAIM s g c 0 5-0 99-0 FORCE JUSTID
        ["5-0"]
        > XREADGROUP GROUP g c STREAMS s 3-0
        [["s", [["5-0", ["n", "5"]]]]]
        """
    )


def test_lastid_moves_the_cursor_forward(talk: Session) -> None:
    """Row 135."""
    talk.play(
        HELD
        + """
        > XCLAIM s g c 0 1-0 JUSTID LASTID 5-0
        > XINFO GROUPS s
        [[..., "last-delivered-id", "5-0", ...]]
        > XCLAIM s g c 0 1-0 JUSTID LASTID 2-0
        > XINFO GROUPS s
        [[..., "last-delivered-id", "5-0", ...]]
        > XREADGROUP GROUP g c STREAMS s >
        (nil array)
        """
    )


def test_claiming_a_deleted_entry_drops_it(talk: Session) -> None:
    """Row 136."""
    talk.play(
        HELD
        + """
        > XDEL s 1-0 2-0
        > XCLAIM s g c 0 1-0
        []
        > XPENDING s g
        [:3, "2-0", "4-0", [["gone", "3"]]]
        > XCLAIM s g c 0 2-0 3-0 JUSTID
        ["3-0"]
        > XPENDING s g
        [:2, "3-0", "4-0", [["c", "1"], ["gone", "1"]]]
        """
    )


def test_mistakes_are_named(talk: Session) -> None:
    """Row 137."""
    talk.play(
        HELD
        + """
        > XCLAIM s nog c 0 1-0
        -NOGROUP No such key 's' or consumer group 'nog'
        > XCLAIM missing g c 0 1-0
        -NOGROUP No such key 'missing' or consumer group 'g'
        > XCLAIM s g c x 1-0
        -ERR Invalid min-idle-time argument for XCLAIM
        > XCLAIM s g c 0 1-0 FOO
        -ERR Unrecognized XCLAIM option 'FOO'
        > XCLAIM s g c 0 x
        -ERR Unrecognized XCLAIM option 'x'
        > XCLAIM s g c 0 1-0 IDLE x
        -ERR Invalid IDLE option argument for XCLAIM
        > XCLAIM s g c 0 1-0 TIME x
        -ERR Invalid TIME option argument for XCLAIM
        > XCLAIM s g c 0 1-0 RETRYCOUNT x
        -ERR Invalid RETRYCOUNT option argument for XCLAIM
        > XCLAIM s g c 0
        -ERR wrong number of arguments for 'xclaim' command
        > XPENDING s g
        [:4, "1-0", "4-0", [["gone", "4"]]]
        """
    )


def test_autoclaim_scans_in_id_order_from_a_cursor(talk: Session) -> None:
    """Row 138."""
    talk.play(
        HELD
        + """
        > XAUTOCLAIM s g c 30000 0 COUNT 1
        ["2-0", [["1-0", ["n", "1"]]], []]
        > XAUTOCLAIM s g c 30000 2-0 COUNT 2
        ["4-0", [["2-0", ["n", "2"]], ["3-0", ["n", "3"]]], []]
        > XAUTOCLAIM s g c 30000 4-0 COUNT 2
        ["0-0", [["4-0", ["n", "4"]]], []]
        > XAUTOCLAIM s g c 30000 0
        ["0-0", [], []]
        > XPENDING s g - + 10
        [["1-0", "c", :0+, :2], ["2-0", "c", :0+, :2], ["3-0", "c", :0+, :2], ["4-0", "c", :0+, :2]]
        """
    )


def test_autoclaim_takes_a_start_that_is_excluded_or_symbolic(talk: Session) -> None:
    """Row 138."""
    talk.play(
        HELD
        + """
        > XAUTOCLAIM s g c 30000 (1-0 COUNT 1 JUSTID
        ["3-0", ["2-0"], []]
        > XAUTOCLAIM s g c 30000 - COUNT 1 JUSTID
        ["2-0", ["1-0"], []]
        > XAUTOCLAIM s g c 30000 3 JUSTID
        ["0-0", ["3-0", "4-0"], []]
        """
    )


def test_autoclaim_reports_and_drops_deleted_entries(talk: Session) -> None:
    """Row 139."""
    talk.play(
        HELD
        + """
        > XDEL s 1-0 3-0
        > XAUTOCLAIM s g c 30000 0
        ["0-0", [["2-0", ["n", "2"]], ["4-0", ["n", "4"]]], ["1-0", "3-0"]]
        > XPENDING s g
        [:2, "2-0", "4-0", [["c", "2"]]]
        """
    )


def test_autoclaim_justid_does_not_count(talk: Session) -> None:
    """Rows 134, 138."""
    talk.play(
        HELD
        + """
        > XAUTOCLAIM s g c 30000 0 JUSTID
        ["0-0", ["1-0", "2-0", "3-0", "4-0"], []]
        > XPENDING s g - + 1
        [["1-0", "c", :0+, :1]]
        """
    )


def test_autoclaim_takes_a_hundred_at_most_unless_told(client: Wire) -> None:
    """Row 140."""
    client.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 251)])
    client("XGROUP CREATE s g 0")
    client("XREADGROUP GROUP g gone STREAMS s >")
    cursor, ids, deleted = client("XAUTOCLAIM s g c 0 0 JUSTID")
    assert (cursor, ids, deleted) == (b"101-0", [b"%d-0" % i for i in range(1, 101)], [])


def test_autoclaim_looks_at_ten_times_its_count(client: Wire) -> None:
    """Row 140."""
    client.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 51)])
    client("XGROUP CREATE s g 0")
    client("XREADGROUP GROUP g gone STREAMS s >")
    client("XCLAIM s g gone 0 35-0 IDLE 60000 JUSTID")
    assert client("XAUTOCLAIM s g c 30000 0 COUNT 3 JUSTID") == [b"31-0", [], []]
    assert client("XAUTOCLAIM s g c 30000 31-0 COUNT 3 JUSTID") == [b"0-0", [b"35-0"], []]


def test_autoclaim_mistakes_are_named(talk: Session) -> None:
    """Row 140."""
    talk.play(
        HELD
        + """
        > XAUTOCLAIM s g c 0 0 COUNT 0
        -ERR COUNT must be > 0
        > XAUTOCLAIM s g c 0 0 COUNT -1
        -ERR COUNT must be > 0
        > XAUTOCLAIM s g c x 0
        -ERR Invalid min-idle-time argument for XAUTOCLAIM
        > XAUTOCLAIM s g c 0 x
        -ERR Invalid stream ID specified as stream command argument
        > XAUTOCLAIM s g c 0 0 FOO
        -ERR syntax error
        > XAUTOCLAIM s nog c 0 0
        -NOGROUP No such key 's' or consumer group 'nog'
        > XAUTOCLAIM missing g c 0 0
        -NOGROUP No such key 'missing' or consumer group 'g'
        > XPENDING s g
        [:4, "1-0", "4-0", [["gone", "4"]]]
        """
    )


@pytest.mark.parametrize("command", ["XCLAIM s g c 0 1-0", "XAUTOCLAIM s g c 0 0 COUNT 1"])
def test_claims_look_the_same_in_resp3(talk3: Session, command: str) -> None:
    """Rows 130, 139."""
    talk3.play(HELD)
    reply = talk3.wire()(command)
    entries = reply[1] if command.startswith("XAUTO") else reply
    assert entries == [[b"1-0", [b"n", b"1"]]]

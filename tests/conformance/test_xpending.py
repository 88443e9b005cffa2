"""XPENDING (requirements, section 11)."""

import pytest

from support.session import Session

HELD = (
    "\n".join(f"> XADD s {i}-0 n {i}" for i in range(1, 6))
    + """
    > XGROUP CREATE s g 0
    > XREADGROUP GROUP g worker-2 COUNT 2 STREAMS s >
    > XREADGROUP GROUP g worker-1 COUNT 2 STREAMS s >
    > XGROUP CREATECONSUMER s g worker-0
    """
)


def test_the_summary_counts_per_consumer(talk: Session) -> None:
    """Rows 143, 145."""
    talk.play(
        HELD
        + """
        > XPENDING s g
        [:4, "1-0", "4-0", [["worker-1", "2"], ["worker-2", "2"]]]
        > XACK s g 1-0 2-0
        :2
        > XPENDING s g
        [:2, "3-0", "4-0", [["worker-1", "2"]]]
        """
    )


def test_nothing_pending(talk: Session) -> None:
    """Row 144."""
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        > XPENDING s g
        [:0, (nil), (nil), (nil array)]
        > XPENDING s g - + 10
        []
    """)


def test_nothing_pending_in_resp3(talk3: Session) -> None:
    """Row 144."""
    talk3.play("""
        > XGROUP CREATE s g $ MKSTREAM
        > XPENDING s g
        [:0, _, _, _]
        > XPENDING s g - + 10
        []
    """)


def test_the_extended_form_tells_owner_idle_time_and_deliveries(talk: Session) -> None:
    """Row 146."""
    talk.play(
        HELD
        + """
        > XCLAIM s g worker-2 0 1-0 IDLE 6011030 JUSTID
        > XCLAIM s g worker-1 0 4-0 IDLE 7000 RETRYCOUNT 3 JUSTID
        > XPENDING s g - + 10
        [["1-0", "worker-2", :6011030+, :1], ["2-0", "worker-2", :0+, :1],
         ["3-0", "worker-1", :0+, :1], ["4-0", "worker-1", :7000+, :3]]
        > XPENDING s g - + 2
        [["1-0", ...], ["2-0", ...]]
        > XPENDING s g 2 3 10
        [["2-0", ...], ["3-0", ...]]
        """
    )


def test_the_list_can_be_limited_to_one_consumer(talk: Session) -> None:
    """Row 147."""
    talk.play(
        HELD
        + """
        > XPENDING s g - + 10 worker-1
        [["3-0", "worker-1", :0+, :1], ["4-0", "worker-1", :0+, :1]]
        > XPENDING s g 4-0 + 10 worker-1
        [["4-0", ...]]
        > XPENDING s g - + 10 worker-0
        []
        > XPENDING s g - + 10 nobody
        []
        > XINFO CONSUMERS s g
        [["name", "worker-0", ...], ["name", "worker-1", ...], ["name", "worker-2", ...]]
        """
    )


def test_the_list_can_be_limited_by_idle_time(talk: Session) -> None:
    """Row 148."""
    talk.play(
        HELD
        + """
        > XCLAIM s g worker-2 0 2-0 IDLE 60000 JUSTID
        > XCLAIM s g worker-1 0 3-0 IDLE 90000 JUSTID
        > XPENDING s g IDLE 50000 - + 10
        [["2-0", "worker-2", :60000+, :1], ["3-0", "worker-1", :90000+, :1]]
        > XPENDING s g IDLE 50000 - + 10 worker-1
        [["3-0", "worker-1", :90000+, :1]]
        > XPENDING s g IDLE 50000 - + 1
        [["2-0", ...]]
        > XPENDING s g IDLE 3600000 - + 10
        []
        > XPENDING s g IDLE 0 - + 10
        [<any>, <any>, <any>, <any>]
        """
    )


def test_the_ends_of_the_list(talk: Session) -> None:
    """Row 149."""
    talk.play(
        HELD
        + """
        > XPENDING s g (1-0 (4-0 10
        [["2-0", ...], ["3-0", ...]]
        > XPENDING s g - + 0
        []
        > XPENDING s g - + -1
        []
        > XPENDING s g + - 10
        []
        > XPENDING s g 3 3 10
        [["3-0", ...]]
        """
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("s g -", "ERR syntax error"),
        ("s g - +", "ERR syntax error"),
        ("s g IDLE 1", "ERR syntax error"),
        ("s g IDLE 1 - +", "ERR syntax error"),
        ("s g IDLE 1 - + 10 c extra", "ERR syntax error"),
        ("s g - + x", "ERR value is not an integer or out of range"),
        ("s g IDLE x - + 10", "ERR value is not an integer or out of range"),
        ("s g x + 10", "ERR Invalid stream ID specified as stream command argument"),
        ("s nog", "NOGROUP No such key 's' or consumer group 'nog'"),
        ("s nog - + 10", "NOGROUP No such key 's' or consumer group 'nog'"),
        ("missing g", "NOGROUP No such key 'missing' or consumer group 'g'"),
        ("s", "ERR wrong number of arguments for 'xpending' command"),
    ],
)
def test_mistakes_are_named(talk: Session, arguments: str, error: str) -> None:
    """Row 149."""
    talk.play(HELD + f"> XPENDING {arguments}\n-{error}")


def test_looking_changes_nothing(talk: Session) -> None:
    """Row 150."""
    talk.play(
        HELD
        + """
        > XCLAIM s g worker-2 0 1-0 IDLE 60000 JUSTID
        > XPENDING s g - + 1
        [["1-0", "worker-2", :60000+, :1]]
        > XPENDING s g IDLE 1 - + 1 worker-2
        [["1-0", "worker-2", :60000+, :1]]
        > XPENDING s g
        [:4, "1-0", "4-0", [["worker-1", "2"], ["worker-2", "2"]]]
        > XPENDING s g - + 1
        [["1-0", "worker-2", :60000+, :1]]
        """
    )

"""XACK and XACKDEL (requirements, section 9)."""

import pytest

from support.session import Session

THREE = (
    "\n".join(f"> XADD s {i}-0 n {i}" for i in range(1, 4))
    + """
    > XGROUP CREATE s g 0
    > XREADGROUP GROUP g c COUNT 2 STREAMS s >
    """
)


def test_acknowledging_counts_what_was_pending(talk: Session) -> None:
    """Row 124."""
    talk.play(
        THREE
        + """
        > XACK s g 1-0
        :1
        > XACK s g 1-0
        :0
        > XACK s g 2-0 99-0 2-0
        :1
        > XACK s g 3-0
        :0
        > XPENDING s g
        [:0, (nil), (nil), (nil array)]
        """
    )


def test_an_unknown_key_or_group_acknowledges_nothing(talk: Session) -> None:
    """Row 125."""
    talk.play(
        THREE
        + """
        > XACK missing g 1-0
        :0
        > XACK s nog 1-0
        :0
        > XACK s g 1-0 bad
        -ERR Invalid stream ID specified as stream command argument
        > XPENDING s g
        [:2, "1-0", "2-0", [["c", "2"]]]
        > XACK s g
        -ERR wrong number of arguments for 'xack' command
        """
    )


def test_anyone_may_acknowledge(talk: Session) -> None:
    """Row 126."""
    talk.play(
        THREE
        + """
        other> XACK s g 1-0
        :1
        > XREADGROUP GROUP g c STREAMS s 0
        [["s", [["2-0", ["n", "2"]]]]]
        """
    )


def test_an_acknowledged_entry_stays_in_the_stream(talk: Session) -> None:
    """Row 127."""
    talk.play(
        THREE
        + """
        > XACK s g 1-0 2-0
        :2
        > XRANGE s - +
        [["1-0", ["n", "1"]], ["2-0", ["n", "2"]], ["3-0", ["n", "3"]]]
        """
    )


@pytest.mark.since("8.2")
def test_acknowledging_and_deleting_in_one_step(talk: Session) -> None:
    """Row 128."""
    talk.play(
        THREE
        + """
        > XACKDEL s g IDS 2 1-0 2-0
        [:1, :1]
        > XPENDING s g
        [:0, (nil), (nil), (nil array)]
        > XRANGE s - +
        [["3-0", ["n", "3"]]]
        > XACKDEL s g IDS 3 1-0 3-0 99-0
        [:-1, :-1, :-1]
        > XLEN s
        :1
        > XACKDEL s nog IDS 1 3-0
        [:-1]
        > XACKDEL missing g IDS 1 3-0
        [:-1]
        """
    )


@pytest.mark.since("8.2")
def test_what_another_group_needs_is_kept_when_asked(talk: Session) -> None:
    """Row 128."""
    talk.play(
        THREE
        + """
        > XGROUP CREATE s other 0
        > XREADGROUP GROUP other c COUNT 1 STREAMS s >
        > XACKDEL s g ACKED IDS 2 1-0 2-0
        [:2, :2]
        > XPENDING s g
        [:0, (nil), (nil), (nil array)]
        > XLEN s
        :3
        > XACKDEL s other ACKED IDS 1 1-0
        [:1]
        > XRANGE s - +
        [["2-0", ["n", "2"]], ["3-0", ["n", "3"]]]
        """
    )


@pytest.mark.since("8.2")
@pytest.mark.parametrize(("policy", "left"), [("", 1), ("KEEPREF", 1), ("DELREF", 0)])
def test_references_of_other_groups_are_kept_or_forgotten(talk: Session, policy: str, left: int) -> None:
    """Row 128."""
    talk.play(
        THREE
        + f"""
        > XGROUP CREATE s other 0
        > XREADGROUP GROUP other c COUNT 1 STREAMS s >
        > XACKDEL s g {policy} IDS 1 1-0
        [:1]
        > XPENDING s other
        [:{left}, ...]
        """
    )

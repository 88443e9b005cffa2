"""XRANGE and XREVRANGE (requirements, section 3)."""

import pytest

from support.session import Session
from support.wire import Wire

FOUR = "\n".join(f"> XADD s {i}-0 n {i}" for i in range(1, 5))


def test_a_range_includes_both_ends(talk: Session) -> None:
    """Row 34."""
    talk.play(
        FOUR
        + """
        > XRANGE s 2-0 3-0
        [["2-0", ["n", "2"]], ["3-0", ["n", "3"]]]
        """
    )


def test_minus_and_plus_are_the_ends_of_the_stream(talk: Session) -> None:
    """Row 35."""
    talk.play(
        FOUR
        + """
        > XRANGE s - +
        [["1-0", ["n", "1"]], ["2-0", ["n", "2"]], ["3-0", ["n", "3"]], ["4-0", ["n", "4"]]]
        > XRANGE s 3 +
        [["3-0", ["n", "3"]], ["4-0", ["n", "4"]]]
        > XRANGE s - 1
        [["1-0", ["n", "1"]]]
        """
    )


def test_a_bare_time_means_the_whole_millisecond(talk: Session) -> None:
    """Row 36."""
    talk.play("""
        > XADD s 4-9 f v
        > XADD s 5-0 f v
        > XADD s 5-1 f v
        > XADD s 6-0 f v
        > XRANGE s 5 5
        [["5-0", ["f", "v"]], ["5-1", ["f", "v"]]]
        > XREVRANGE s 5 5
        [["5-1", ["f", "v"]], ["5-0", ["f", "v"]]]
    """)


def test_a_bracket_excludes_an_end(talk: Session) -> None:
    """Rows 37, 302."""
    talk.play(
        FOUR
        + """
        > XRANGE s (2-0 + COUNT 2
        [["3-0", ["n", "3"]], ["4-0", ["n", "4"]]]
        > XRANGE s - (2-0
        [["1-0", ["n", "1"]]]
        > XRANGE s (2-0 (4-0
        [["3-0", ["n", "3"]]]
        > XRANGE s (2-0 (2-0
        []
        > XREVRANGE s (3-0 -
        [["2-0", ["n", "2"]], ["1-0", ["n", "1"]]]
        > XREVRANGE s + (3-0
        [["4-0", ["n", "4"]]]
        > XRANGE s (2 (4
        [["3-0", ["n", "3"]], ["4-0", ["n", "4"]]]
        """
    )


@pytest.mark.parametrize("bounds", ["(- +", "- (+", "(", "x +", "- 1-x", "- $", "> +", "1-1-1 +"])
def test_a_malformed_end_is_refused(talk: Session, bounds: str) -> None:
    """Row 38."""
    first, _, second = bounds.partition(" ")
    second = second or "+"
    talk.play(f"""
        > XRANGE s {first} {second}
        -ERR Invalid stream ID specified as stream command argument
        > XREVRANGE s {second} {first}
        -ERR Invalid stream ID specified as stream command argument
    """)


def test_an_excluded_end_needs_a_neighbour(talk: Session) -> None:
    """Row 38."""
    talk.play("""
        > XRANGE s (18446744073709551615-18446744073709551615 +
        -ERR invalid start ID for the interval
        > XRANGE s - (0-0
        -ERR invalid end ID for the interval
    """)


def test_count_limits_a_range(talk: Session) -> None:
    """Row 39."""
    talk.play(
        FOUR
        + """
        > XRANGE s - + COUNT 2
        [["1-0", ["n", "1"]], ["2-0", ["n", "2"]]]
        > XREVRANGE s + - COUNT 2
        [["4-0", ["n", "4"]], ["3-0", ["n", "3"]]]
        > XRANGE s - + COUNT 99
        [<any>, <any>, <any>, <any>]
        > XRANGE s - + COUNT x
        -ERR value is not an integer or out of range
        > XRANGE s - + FOO 1
        -ERR syntax error
        """
    )


def test_there_are_two_kinds_of_nothing(talk: Session) -> None:
    """Row 40."""
    talk.play(
        FOUR
        + """
        > XRANGE s - + COUNT 0
        (nil array)
        > XRANGE s - + COUNT -1
        (nil array)
        > XREVRANGE s + - COUNT 0
        (nil array)
        > XRANGE s + -
        []
        > XRANGE missing - +
        []
        > XRANGE missing - + COUNT 0
        []
        > XRANGE s 7 9
        []
        """
    )


def test_nothing_in_resp3(talk3: Session) -> None:
    """Row 40."""
    talk3.play("""
        > XADD s 1-0 f v
        > XRANGE s - + COUNT 0
        _
        > XRANGE s + -
        []
        > XRANGE s - +
        [["1-0", ["f", "v"]]]
    """)


def test_one_entry_can_be_read_by_its_id(talk: Session) -> None:
    """Row 42."""
    talk.play(
        FOUR
        + """
        > XRANGE s 2-0 2-0
        [["2-0", ["n", "2"]]]
        > XRANGE s 2-1 2-1
        []
        """
    )


def test_the_reverse_range_begins_with_the_newest(talk: Session) -> None:
    """Row 44."""
    talk.play(
        FOUR
        + """
        > XREVRANGE s + - COUNT 1
        [["4-0", ["n", "4"]]]
        > XREVRANGE s 3 2
        [["3-0", ["n", "3"]], ["2-0", ["n", "2"]]]
        > XREVRANGE s 2 3
        []
        > XREVRANGE missing + -
        []
        """
    )


def test_reading_removes_nothing(talk: Session) -> None:
    """Row 45."""
    talk.play(
        FOUR
        + """
        > XRANGE s - +
        > XREVRANGE s + -
        > XREAD STREAMS s 0
        > XLEN s
        :4
        > XRANGE s - + COUNT 1
        [["1-0", ["n", "1"]]]
        """
    )


def test_ranges_hold_over_many_nodes_and_deleted_entries(client: Wire) -> None:
    """Rows 34, 39, 44."""
    ids = [f"{ms}-{seq}" for ms in range(1, 301) for seq in range(3)]
    client.pipeline([("XADD", "s", entry, "id", entry) for entry in ids])
    gone = set(ids[100:200:3]) | set(ids[400:520])
    assert client("XDEL", "s", *sorted(gone)) == len(gone)
    left = [[entry.encode(), [b"id", entry.encode()]] for entry in ids if entry not in gone]

    assert client("XLEN s") == len(left)
    assert client("XRANGE s - +") == left
    assert client("XREVRANGE s + -") == left[::-1]
    for low, high in ((1, 1), (30, 70), (133, 174), (150, 160), (299, 400)):
        window = [entry for entry in left if low <= int(entry[0].split(b"-")[0]) <= high]  # type: ignore[union-attr]
        assert client("XRANGE", "s", low, high) == window
        assert client("XREVRANGE", "s", high, low, "COUNT", 5) == window[::-1][:5]

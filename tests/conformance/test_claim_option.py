"""XREADGROUP with CLAIM (requirements, section 8; row 297), which came with Redis 8.4."""

import pytest

from support.session import Session
from support.wire import Wire

pytestmark = pytest.mark.since("8.4")

# One reader that is gone holds 1-0 to 4-0, all fresh; 5-0 and 6-0 are new.
HELD = (
    "\n".join(f"> XADD s {i}-0 n {i}" for i in range(1, 7))
    + """
    > XGROUP CREATE s g 0
    > XREADGROUP GROUP g gone COUNT 4 STREAMS s >
    """
)


def test_idle_entries_come_first_then_new_ones(talk: Session) -> None:
    """Rows 104, 105, 107, 108."""
    talk.play(
        HELD
        + """
        > XCLAIM s g gone 0 1-0 IDLE 60000 JUSTID
        > XREADGROUP GROUP g c CLAIM 50000 STREAMS s >
        [["s", [["1-0", ["n", "1"], :60000+, :1], ["5-0", ["n", "5"], :0, :0], ["6-0", ["n", "6"], :0, :0]]]]
        """
    )


def test_the_longest_idle_comes_first(talk: Session) -> None:
    """Row 106."""
    talk.play(
        HELD
        + """
        > XCLAIM s g gone 0 4-0 IDLE 60000 JUSTID
        > XCLAIM s g gone 0 1-0 IDLE 50000 JUSTID
        > XCLAIM s g gone 0 3-0 IDLE 70000 JUSTID
        > XREADGROUP GROUP g c CLAIM 40000 STREAMS s >
        [["s", [["3-0", <any>, :70000+, :1], ["4-0", <any>, :60000+, :1], ["1-0", <any>, :50000+, :1],
                ["5-0", <any>, :0, :0], ["6-0", <any>, :0, :0]]]]
        """
    )


def test_entries_delivered_together_are_claimed_in_id_order(talk: Session) -> None:
    """Row 106."""
    talk.play(
        HELD
        + """
        > XREADGROUP GROUP g c COUNT 4 CLAIM 0 STREAMS s >
        [["s", [["1-0", ["n", "1"], :0+, :1], ["2-0", ["n", "2"], :0+, :1],
                ["3-0", ["n", "3"], :0+, :1], ["4-0", ["n", "4"], :0+, :1]]]]
        """
    )


def test_the_reply_in_resp3(talk3: Session) -> None:
    """Row 108."""
    talk3.play(
        HELD
        + """
        > XREADGROUP GROUP g c COUNT 5 CLAIM 0 STREAMS s >
        {"s": [["1-0", ["n", "1"], :0+, :1], ["2-0", ["n", "2"], :0+, :1], ["3-0", ["n", "3"], :0+, :1],
               ["4-0", ["n", "4"], :0+, :1], ["5-0", ["n", "5"], :0, :0]]}
        > XREADGROUP GROUP g c CLAIM 50000 NOACK STREAMS s >
        {"s": [["6-0", ["n", "6"], :0, :0]]}
        > XREADGROUP GROUP g c CLAIM 50000 STREAMS s >
        _
        """
    )


def test_the_count_told_is_the_one_before_this_delivery(talk: Session) -> None:
    """Row 109."""
    talk.play(
        HELD
        + """
        > XCLAIM s g gone 0 2-0 IDLE 60000 RETRYCOUNT 4 JUSTID
        > XREADGROUP GROUP g c COUNT 1 CLAIM 50000 STREAMS s >
        [["s", [["2-0", ["n", "2"], :60000+, :4]]]]
        > XPENDING s g 2-0 2-0 1
        [["2-0", "c", :<fresh>, :5]]
        > XINFO CONSUMERS s g
        [["name", "c", "pending", :1, ...], ["name", "gone", "pending", :3, ...]]
        """
    )
    assert int(talk.bound["fresh"]) < 60000


@pytest.mark.parametrize(("count", "claimed", "new"), [(100, 20, 80), (20, 20, 0), (5, 5, 0), (None, 20, 200)])
def test_count_is_shared_by_idle_and_new_entries(client: Wire, count: int | None, claimed: int, new: int) -> None:
    """Row 110."""
    client.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 221)])
    client("XGROUP CREATE s g 0")
    client("XREADGROUP GROUP g gone COUNT 20 STREAMS s >")
    limit = ("COUNT", count) if count else ()
    ((_, entries),) = client("XREADGROUP", "GROUP", "g", "c", *limit, "CLAIM", 0, "STREAMS", "s", ">")
    assert [entry[3] for entry in entries] == [1] * claimed + [0] * new
    assert [entry[0] for entry in entries] == [b"%d-0" % i for i in [*range(1, claimed + 1), *range(21, 21 + new)]]


def test_count_holds_for_each_stream_by_itself(talk: Session) -> None:
    """Row 110."""
    talk.play(
        HELD
        + """
        > XADD t 1-0 t 1
        > XADD t 2-0 t 2
        > XADD t 3-0 t 3
        > XGROUP CREATE t g 0
        > XREADGROUP GROUP g gone COUNT 1 STREAMS t >
        > XREADGROUP GROUP g c COUNT 2 CLAIM 0 STREAMS s t > >
        [["s", [["1-0", ["n", "1"], :0+, :1], ["2-0", ["n", "2"], :0+, :1]]],
         ["t", [["1-0", ["t", "1"], :0+, :1], ["2-0", ["t", "2"], :0, :0]]]]
        """
    )


def test_nothing_due_is_null(talk: Session) -> None:
    """Rows 92, 112."""
    talk.play(
        HELD
        + """
        > XREADGROUP GROUP g c STREAMS s >
        > XREADGROUP GROUP g c CLAIM 60000 STREAMS s >
        (nil array)
        > XREADGROUP GROUP g c BLOCK 20 CLAIM 60000 STREAMS s >
        (nil array)
        """
    )


def test_claimed_entries_stay_pending_in_spite_of_noack(talk: Session) -> None:
    """Row 114."""
    talk.play(
        HELD
        + """
        > XCLAIM s g gone 0 1-0 IDLE 60000 JUSTID
        > XREADGROUP GROUP g c CLAIM 50000 NOACK STREAMS s >
        [["s", [["1-0", ["n", "1"], :60000+, :1], ["5-0", ["n", "5"], :0, :0], ["6-0", ["n", "6"], :0, :0]]]]
        > XPENDING s g
        [:4, "1-0", "4-0", [["c", "1"], ["gone", "3"]]]
        """
    )


def test_zero_claims_everything_pending(talk: Session) -> None:
    """Row 115."""
    talk.play(
        HELD
        + """
        > XREADGROUP GROUP g c COUNT 4 CLAIM 0 STREAMS s >
        [["s", [["1-0", ...], ["2-0", ...], ["3-0", ...], ["4-0", ...]]]]
        > XPENDING s g
        [:4, "1-0", "4-0", [["c", "4"]]]
        """
    )


@pytest.mark.parametrize("value", ["test", "5.5", "+10", "-0", "10e", '""', "99999999999999999999"])
def test_the_idle_time_must_be_an_integer(talk: Session, value: str) -> None:
    """Row 116."""
    talk.play(
        HELD
        + f"""
        > XREADGROUP GROUP g c CLAIM {value} STREAMS s >
        -ERR min-idle-time is not an integer or out of range
        """
    )


def test_the_idle_time_must_not_be_negative(talk: Session) -> None:
    """Row 116."""
    talk.play(
        HELD
        + """
        > XREADGROUP GROUP g c CLAIM -10 STREAMS s >
        -ERR min-idle-time must be a positive integer
        > XPENDING s g
        [:4, "1-0", "4-0", [["gone", "4"]]]
        """
    )


@pytest.mark.parametrize(
    "words",
    [
        "GROUP g c CLAIM 0 COUNT 1",
        "CLAIM 0 GROUP g c COUNT 1",
        "COUNT 1 GROUP g c CLAIM 0",
        "GROUP g c claim 0 count 1",
        "GROUP g c CLAIM 90000 COUNT 1 CLAIM 0",
    ],
)
def test_the_option_may_stand_anywhere_before_streams_and_the_last_one_counts(talk: Session, words: str) -> None:
    """Row 117."""
    talk.play(
        HELD
        + f"""
        > XREADGROUP {words} STREAMS s >
        [["s", [["1-0", ["n", "1"], :0+, :1]]]]
        """
    )


def test_own_entries_can_be_claimed_too(talk: Session) -> None:
    """Row 118."""
    talk.play(
        HELD
        + """
        > XCLAIM s g gone 0 1-0 IDLE 60000 JUSTID
        > XREADGROUP GROUP g gone COUNT 1 CLAIM 50000 STREAMS s >
        [["s", [["1-0", ["n", "1"], :60000+, :1]]]]
        > XPENDING s g - + 1
        [["1-0", "gone", :0+, :2]]
        """
    )


def test_acknowledged_entries_are_not_claimable_and_forced_ones_are(talk: Session) -> None:
    """Row 119."""
    talk.play(
        HELD
        + """
        > XACK s g 1-0 2-0 3-0 4-0
        :4
        > XREADGROUP GROUP g c COUNT 1 CLAIM 0 STREAMS s >
        [["s", [["5-0", ["n", "5"], :0, :0]]]]
        > XACK s g 5-0
        > XCLAIM s g gone 0 2-0 FORCE JUSTID
        ["2-0"]
        > XREADGROUP GROUP g c COUNT 1 CLAIM 0 STREAMS s >
        [["s", [["2-0", ["n", "2"], :0+, :<any>]]]]
        """
    )


@pytest.mark.parametrize("removal", ["XTRIM s MAXLEN 0", "XDEL s 1-0 2-0 3-0 4-0 5-0 6-0"])
def test_removed_entries_are_never_claimed(talk: Session, removal: str) -> None:
    """Row 120."""
    talk.play(
        HELD
        + f"""
        > {removal}
        > XREADGROUP GROUP g c CLAIM 0 STREAMS s >
        (nil array)
        > XPENDING s g
        [:4, "1-0", "4-0", [["gone", "4"]]]
        """
    )


def test_a_removed_entry_does_not_use_up_the_count(talk: Session) -> None:
    """Row 120."""
    talk.play(
        HELD
        + """
        > XDEL s 1-0
        > XREADGROUP GROUP g c COUNT 2 CLAIM 0 STREAMS s >
        [["s", [["2-0", ["n", "2"], :0+, :1], ["3-0", ["n", "3"], :0+, :1]]]]
        """
    )


def test_it_works_in_a_transaction_and_never_waits_there(talk: Session) -> None:
    """Row 122."""
    talk.play(
        HELD
        + """
        > MULTI
        +OK
        > XREADGROUP GROUP g c COUNT 1 CLAIM 0 STREAMS s >
        +QUEUED
        > XREADGROUP GROUP g c BLOCK 0 CLAIM 90000 COUNT 2 STREAMS s >
        +QUEUED
        > XREADGROUP GROUP g c BLOCK 0 CLAIM 90000 STREAMS s >
        +QUEUED
        > XPENDING s g - + 1
        +QUEUED
        > EXEC
        [[["s", [["1-0", ["n", "1"], :0+, :1]]]],
         [["s", [["5-0", ["n", "5"], :0, :0], ["6-0", ["n", "6"], :0, :0]]]],
         (nil array),
         [["1-0", "c", :0+, :2]]]
        """
    )


def test_the_option_is_ignored_in_the_history(talk: Session) -> None:
    """Row 90."""
    talk.play(
        HELD
        + """
        > XREADGROUP GROUP g gone COUNT 1 CLAIM 0 STREAMS s 0
        [["s", [["1-0", ["n", "1"]]]]]
        > XREADGROUP GROUP g c CLAIM 0 BLOCK 0 STREAMS s 0
        [["s", []]]
        """
    )


def test_new_and_pending_entries_can_be_read_in_one_call(talk: Session) -> None:
    """Row 297."""
    talk.play(
        HELD
        + """
        > XADD t 1-0 t 1
        > XGROUP CREATE t g 0
        > XREADGROUP GROUP g c STREAMS t >
        > XREADGROUP GROUP g c BLOCK 0 COUNT 1 CLAIM 0 STREAMS s t > 0
        [["s", [["1-0", ["n", "1"], :0+, :1]]], ["t", [["1-0", ["t", "1"]]]]]
        > XREADGROUP GROUP g c BLOCK 0 COUNT 1 CLAIM 0 STREAMS t s > 99
        [["t", [["1-0", ["t", "1"], :0+, :2]]], ["s", []]]
        """
    )


def test_an_unknown_group_is_named(talk: Session) -> None:
    """Row 97."""
    talk.play(
        HELD
        + """
        > XREADGROUP GROUP nog c CLAIM 0 STREAMS s >
        -NOGROUP No such key 's' or consumer group 'nog' in XREADGROUP with GROUP option
        """
    )


# Waiting.


def test_a_waiting_reader_gets_an_entry_when_it_has_been_idle_long_enough(talk: Session) -> None:
    """Row 111."""
    talk.play(
        HELD
        + """
        > XREADGROUP GROUP g c STREAMS s >
        > XCLAIM s g gone 0 1-0 IDLE 59500 JUSTID
        waiting> XREADGROUP GROUP g c BLOCK 0 CLAIM 60000 STREAMS s >
        (sent)
        waiting<
        [["s", [["1-0", ["n", "1"], :60000+, :1]]]]
        > XPENDING s g - + 1
        [["1-0", "c", :0+, :2]]
        """
    )


def test_a_waiting_reader_gets_new_entries_too(talk: Session) -> None:
    """Row 111."""
    talk.play(
        HELD
        + """
        > XREADGROUP GROUP g c STREAMS s >
        waiting> XREADGROUP GROUP g c BLOCK 0 CLAIM 60000 STREAMS s >
        (blocks)
        > XADD s 7-0 n 7
        waiting<
        [["s", [["7-0", ["n", "7"], :0, :0]]]]
        """
    )


def test_an_entry_goes_to_one_of_two_waiting_readers_and_later_to_the_other(talk: Session) -> None:
    """Row 113."""
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        one> XREADGROUP GROUP g one BLOCK 0 CLAIM 300 STREAMS s >
        (blocks)
        two> XREADGROUP GROUP g two BLOCK 0 CLAIM 300 STREAMS s >
        (blocks)
        > XADD s 1-0 n 1
        one<
        [["s", [["1-0", ["n", "1"], :0, :0]]]]
        two<
        [["s", [["1-0", ["n", "1"], :300+, :1]]]]
        > XPENDING s g - + 10
        [["1-0", "two", :0+, :2]]
    """)


def test_a_waiting_reader_is_served_from_any_of_its_streams(talk: Session) -> None:
    """Rows 111, 56."""
    talk.play(
        HELD
        + """
        > XGROUP CREATE t g $ MKSTREAM
        > XREADGROUP GROUP g c STREAMS s >
        > XCLAIM s g gone 0 2-0 IDLE 59700 JUSTID
        waiting> XREADGROUP GROUP g c BLOCK 0 CLAIM 60000 STREAMS t s > >
        (sent)
        waiting<
        [["s", [["2-0", ["n", "2"], :60000+, :1]]]]
        """
    )

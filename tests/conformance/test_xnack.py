"""XNACK: giving pending entries back (Redis 8.8). No server of that version can be had yet, so the replies are written
by hand from its documentation."""

import pytest

from support.catalogue import describe_commands
from support.servers import Server, wait_until
from support.session import Session

pytestmark = pytest.mark.since("8.8")

FATAL_COUNT = 9223372036854775807

HELD = (
    "\n".join(f"> XADD s {i}-0 n {i}" for i in range(1, 5))
    + """
    > XGROUP CREATE s g 0
    > XREADGROUP GROUP g c COUNT 3 STREAMS s >
    """
)


@pytest.mark.parametrize(("mode", "count"), [("SILENT", 0), ("FAIL", 1), ("FATAL", FATAL_COUNT), ("silent", 0)])
def test_a_released_entry_has_no_owner_and_counts_by_its_mode(talk: Session, mode: str, count: int) -> None:
    talk.play(
        HELD
        + f"""
        > XNACK s g {mode} IDS 1 1-0
        :1
        > XPENDING s g - + 1
        [["1-0", "", :-1, :{count}]]
        > XPENDING s g
        [:3, "1-0", "3-0", ...]
        > XINFO CONSUMERS s g
        [["name", "c", "pending", :2, ...]]
        """
    )


def test_a_silent_release_never_counts_below_zero(talk: Session) -> None:
    talk.play(
        HELD
        + """
        > XNACK s g SILENT IDS 1 1-0
        :1
        > XNACK s g SILENT IDS 1 1-0
        :1
        > XPENDING s g - + 1
        [["1-0", "", :-1, :0]]
        """
    )


def test_the_count_can_be_given(talk: Session) -> None:
    talk.play(
        HELD
        + """
        > XNACK s g FATAL IDS 2 1-0 2-0 RETRYCOUNT 7
        :2
        > XPENDING s g - + 2
        [["1-0", "", :-1, :7], ["2-0", "", :-1, :7]]
        > XNACK s g FAIL RETRYCOUNT 9 IDS 1 1-0
        :1
        > XPENDING s g - + 1
        [["1-0", "", :-1, :9]]
        """
    )


def test_only_pending_entries_are_counted_and_a_repeated_id_twice(talk: Session) -> None:
    talk.play(
        HELD
        + """
        > XNACK s g FAIL IDS 4 1-0 99-0 4-0 1-0
        :2
        > XNACK s g FAIL IDS 1 99-0
        :0
        """
    )


def test_released_entries_leave_the_history_of_their_consumer(talk: Session) -> None:
    talk.play(
        HELD
        + """
        > XNACK s g FAIL IDS 1 2-0
        :1
        > XREADGROUP GROUP g c STREAMS s 0
        [["s", [["1-0", ["n", "1"]], ["3-0", ["n", "3"]]]]]
        """
    )


def test_released_entries_are_claimed_before_all_others_in_the_order_of_release(talk: Session) -> None:
    talk.play(
        HELD
        + """
        > XCLAIM s g c 0 1-0 IDLE 60000 JUSTID
        > XNACK s g FAIL IDS 1 3-0
        :1
        > XNACK s g FAIL IDS 1 2-0
        :1
        > XREADGROUP GROUP g d CLAIM 50000 STREAMS s >
        [["s", [["3-0", ["n", "3"], :<any>, :1], ["2-0", ["n", "2"], :<any>, :1], ["1-0", ["n", "1"], :60000+, :1],
                ["4-0", ["n", "4"], :0, :0]]]]
        > XPENDING s g - + 10
        [["1-0", "d", :0+, :2], ["2-0", "d", :0+, :2], ["3-0", "d", :0+, :2], ["4-0", "d", :0+, :1]]
        """
    )


def test_a_second_release_moves_an_entry_to_the_end(talk: Session) -> None:
    talk.play(
        HELD
        + """
        > XNACK s g FAIL IDS 2 1-0 2-0
        :2
        > XNACK s g FAIL IDS 1 1-0
        :1
        > XREADGROUP GROUP g d COUNT 2 CLAIM 50000 STREAMS s >
        [["s", [["2-0", ...], ["1-0", ...]]]]
        """
    )


@pytest.mark.parametrize("claim", ["XCLAIM s g d 3600000 1-0 JUSTID", "XAUTOCLAIM s g d 3600000 0 JUSTID"])
def test_a_released_entry_is_idle_enough_for_every_claim(talk: Session, claim: str) -> None:
    talk.play(
        HELD
        + f"""
        > XNACK s g FAIL IDS 1 1-0
        :1
        > {claim}
        > XPENDING s g - + 1
        [["1-0", "d", :0+, :1]]
        """
    )


@pytest.mark.parametrize("event", ["XGROUP DELCONSUMER s g c", "XDEL s 1-0", "XTRIM s MINID 2"])
def test_a_released_entry_outlives_its_consumer_and_its_message(talk: Session, event: str) -> None:
    talk.play(
        HELD
        + f"""
        > XNACK s g FAIL IDS 1 1-0
        :1
        > {event}
        > XPENDING s g 1-0 1-0 1
        [["1-0", "", :-1, :1]]
        """
    )


def test_a_released_entry_can_be_acknowledged(talk: Session) -> None:
    talk.play(
        HELD
        + """
        > XNACK s g FAIL IDS 1 1-0
        :1
        > XACK s g 1-0
        :1
        > XPENDING s g
        [:2, "2-0", "3-0", [["c", "2"]]]
        > XREADGROUP GROUP g d COUNT 1 CLAIM 50000 STREAMS s >
        [["s", [["4-0", ["n", "4"], :0, :0]]]]
        """
    )


def test_claiming_a_released_entry_whose_message_is_gone_removes_it(talk: Session) -> None:
    talk.play(
        HELD
        + """
        > XNACK s g FAIL IDS 1 1-0
        :1
        > XDEL s 1-0
        :1
        > XCLAIM s g d 0 1-0
        []
        > XPENDING s g
        [:2, "2-0", "3-0", [["c", "2"]]]
        """
    )


def test_force_releases_what_was_never_delivered(talk: Session) -> None:
    talk.play(
        HELD
        + """
        > XNACK s g FAIL IDS 2 4-0 99-0 FORCE
        :1
        > XPENDING s g 4-0 + 10
        [["4-0", "", :-1, :0]]
        """
    )


def test_a_release_wakes_a_reader_that_waits_to_claim(talk: Session) -> None:
    talk.play(
        HELD
        + """
        > XREADGROUP GROUP g c STREAMS s >
        waiting> XREADGROUP GROUP g d BLOCK 0 CLAIM 3600000 STREAMS s >
        (blocks)
        > XNACK s g FAIL IDS 1 2-0
        :1
        waiting<
        [["s", [["2-0", ["n", "2"], :<any>, :1]]]]
        """
    )
    wait_until(lambda: talk.server.blocked_clients() == 0, "nobody blocked")


def test_the_full_description_counts_released_entries(talk: Session) -> None:
    talk.play(
        HELD
        + """
        > XNACK s g FAIL IDS 2 1-0 3-0
        :2
        > XINFO STREAM s FULL
        [..., "groups", [["name", "g", ..., "nacked-count", :2, ...]]]
        """
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("s nog FAIL IDS 1 1-0", "NOGROUP No such key 's' or consumer group 'nog'"),
        ("missing g FAIL IDS 1 1-0", "NOGROUP No such key 'missing' or consumer group 'g'"),
        ("s g FAIL IDS 1 x", "ERR Invalid stream ID specified as stream command argument"),
        ("text g FAIL IDS 1 1-0", "WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("s g FAIL IDS 1", "ERR wrong number of arguments for 'xnack' command"),
    ],
)
def test_mistakes_are_refused(talk: Session, arguments: str, error: str) -> None:
    talk.play(HELD + f"> SET text x\n> XNACK {arguments}\n-{error}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("s g MAYBE IDS 1 1-0", "mode must be SILENT, FAIL, or FATAL"),
        ("s g FAIL IDS 1 1-0 FOO", "Unrecognized XNACK option"),
        ("s g FAIL IDS 0 1-0", "numids must be a positive integer"),
        ("s g FAIL IDS x 1-0", "numids must be a positive integer"),
        ("s g FAIL IDS 3 1-0 2-0", "number of IDs doesn't match numids"),
        ("s g FAIL FORCE FORCE FORCE", "expected IDS keyword"),
        ("s g FAIL IDS 1 1-0 RETRYCOUNT x", "value is not an integer or out of range"),
        ("s g FAIL IDS 1 1-0 RETRYCOUNT -1", "Invalid RETRYCOUNT"),
    ],
)
def test_mistakes_are_named(talk: Session, arguments: str, words: str) -> None:
    talk.play(HELD)
    reply = talk.wire()(f"XNACK {arguments}")
    assert words in reply.text
    talk.play('> XPENDING s g\n[:3, "1-0", "3-0", [["c", "3"]]]')


def test_the_command_is_described(server: Server) -> None:
    """Row 296, for this command."""
    with server.connect(protocol=3) as wire:
        description = describe_commands(wire, ("xnack",))["xnack"]
    assert description["arity"] == -7
    assert {"fast", "write"} <= set(description["flags"])
    assert description["keys"] == [1, 1, 1]
    assert {"@fast", "@stream", "@write"} <= set(description["categories"])
    assert description["group"] == "stream"
    assert [(item["name"], item["type"], item.get("token")) for item in description["arguments"]] == [
        ("key", "key", None),
        ("group", "string", None),
        ("mode", "oneof", None),
        ("ids", "block", "IDS"),
        ("count", "integer", "RETRYCOUNT"),
        ("force", "pure-token", "FORCE"),
    ]

"""Entry IDs and XADD (requirements, section 1)."""

from collections.abc import Callable

import pytest

from support.servers import Server
from support.session import Session
from support.wire import ErrorReply, Wire

WRONGTYPE = "-WRONGTYPE Operation against a key holding the wrong kind of value"


def ids_of(replies: list[bytes]) -> list[tuple[int, int]]:
    return [tuple(int(part) for part in reply.split(b"-")) for reply in replies]  # type: ignore[misc]


def test_an_entry_gets_an_id_and_needs_at_least_one_field(talk: Session) -> None:
    """Row 1."""
    talk.play("""
        > XADD s * sensor-id 1234 temperature 19.8
        "<ms>-<seq>"
        > XRANGE s - +
        [["<ms>-<seq>", ["sensor-id", "1234", "temperature", "19.8"]]]
        > XADD s *
        -ERR wrong number of arguments for 'xadd' command
        > XLEN s
        :1
    """)


def test_a_field_without_a_value_is_refused(talk: Session) -> None:
    """Row 2."""
    talk.play("""
        > XADD s * f
        -ERR wrong number of arguments for 'xadd' command
        > XADD s * f v g
        -ERR wrong number of arguments for 'xadd' command
        > EXISTS s
        :0
    """)


def test_fields_come_back_in_the_order_given_with_duplicates(talk: Session) -> None:
    """Row 3."""
    talk.play("""
        > XADD s 1-1 b 1 a 2 b 3
        "1-1"
        > XRANGE s - +
        [["1-1", ["b", "1", "a", "2", "b", "3"]]]
        > XREAD STREAMS s 0
        [["s", [["1-1", ["b", "1", "a", "2", "b", "3"]]]]]
    """)


def test_any_bytes_can_be_stored(client: Wire) -> None:
    """Row 4."""
    value = bytes(range(256))
    assert client("XADD", "s", "1-1", value, value + b"\r\n", b"", b"") == b"1-1"
    assert client("XRANGE s - +") == [[b"1-1", [value, value + b"\r\n", b"", b""]]]


def test_a_large_value_comes_back_unchanged(client: Wire) -> None:
    """Row 4."""
    value = bytes(range(256)) * 8192
    client("XADD", "s", "1-1", "f", value)
    assert client("XRANGE s - +") == [[b"1-1", [b"f", value]]]


def test_the_first_part_of_an_id_is_the_time_of_the_server(server: Server, client: Wire) -> None:
    """Row 5."""
    before = server.now_ms()
    ((ms, _),) = ids_of([client("XADD s * f v")])
    assert before - 1000 <= ms <= server.now_ms() + 1000


def test_ids_of_one_millisecond_are_counted_from_zero(client: Wire) -> None:
    """Row 6."""
    ids = ids_of(client.pipeline([("XADD", "s", "*", "f", "v")] * 1000))
    expected = [ids[0]]
    for ms, _ in ids[1:]:
        last_ms, last_seq = expected[-1]
        expected.append((ms, 0) if ms > last_ms else (last_ms, last_seq + 1))
    assert ids == expected
    assert ids[0][1] == 0


def test_the_sequence_goes_on_when_the_clock_is_behind_the_last_id(server: Server, talk: Session) -> None:
    """Row 7."""
    talk.play(
        """
        > XADD s <future>-5 f v
        "<future>-5"
        > XADD s * f v
        "<future>-6"
        > XADD s * f v
        "<future>-7"
        """,
        future=server.now_ms() + 60_000,
    )


@pytest.mark.parametrize("removal", ["XDEL s <future>-5", "XTRIM s MAXLEN 0"])
def test_an_id_is_not_given_again_after_the_last_entry_went(server: Server, talk: Session, removal: str) -> None:
    """Row 8."""
    talk.play(
        f"""
        > XADD s <future>-5 f v
        "<future>-5"
        > {removal}
        :1
        > XADD s * f v
        "<future>-6"
        """,
        future=server.now_ms() + 60_000,
    )


def test_an_explicit_id_must_be_greater_than_every_id_before(talk: Session) -> None:
    """Rows 9, 10."""
    talk.play("""
        > XADD s 0-1 field value
        "0-1"
        > XADD s 0-2 foo bar
        "0-2"
        > XADD s 0-1 foo bar
        -ERR The ID specified in XADD is equal or smaller than the target stream top item
        > XADD s 0-2 foo bar
        -ERR The ID specified in XADD is equal or smaller than the target stream top item
        > XDEL s 0-2
        :1
        > XADD s 0-2 foo bar
        -ERR The ID specified in XADD is equal or smaller than the target stream top item
        > XADD s 0-3 foo bar
        "0-3"
        > XRANGE s - +
        [["0-1", ["field", "value"]], ["0-3", ["foo", "bar"]]]
    """)


def test_the_lowest_id_is_zero_one(talk: Session) -> None:
    """Row 11."""
    talk.play("""
        > XADD s 0-0 f v
        -ERR The ID specified in XADD must be greater than 0-0
        > XADD s 0 f v
        -ERR The ID specified in XADD must be greater than 0-0
        > EXISTS s
        :0
        > XADD s 0-* f v
        "0-1"
    """)


def test_an_id_without_a_sequence_means_sequence_zero(talk: Session) -> None:
    """Row 12."""
    talk.play("""
        > XADD s 5 f v
        "5-0"
        > XADD s 6 f v
        "6-0"
    """)


def test_the_sequence_of_a_given_millisecond_can_be_left_to_the_server(talk: Session) -> None:
    """Row 13."""
    talk.play("""
        > XADD s 5-* f v
        "5-0"
        > XADD s 5-* f v
        "5-1"
        > XADD s 4-* f v
        -ERR The ID specified in XADD is equal or smaller than the target stream top item
        > XADD s 7-* f v
        "7-0"
    """)


@pytest.mark.parametrize(
    "bad", ["abc", "1-a", "a-1", "-", "+", "$", ">", "1-1-1", "-1-1", "18446744073709551616", "1-"]
)
def test_a_malformed_id_is_refused(talk: Session, bad: str) -> None:
    """Row 14."""
    talk.play(f"""
        > XADD s {bad} f v
        -ERR Invalid stream ID specified as stream command argument
        > EXISTS s
        :0
    """)


def test_the_largest_id_is_the_last_one(talk: Session) -> None:
    """Row 15."""
    talk.play("""
        > XADD s 18446744073709551615-18446744073709551615 f v
        "18446744073709551615-18446744073709551615"
        > XADD s * f v
        -ERR The stream has exhausted the last possible ID, unable to add more items
        > XADD s 18446744073709551615-* f v
        -ERR The stream has exhausted the last possible ID, unable to add more items
        > XADD s 18446744073709551615-18446744073709551615 f v
        -ERR The stream has exhausted the last possible ID, unable to add more items
        > XLEN s
        :1
    """)


def test_nomkstream_does_not_create_the_stream(talk: Session) -> None:
    """Row 16."""
    talk.play("""
        > XADD s NOMKSTREAM * f v
        (nil)
        > EXISTS s
        :0
        > XADD s 1-0 f v
        "1-0"
        > XADD s NOMKSTREAM 2-0 f v
        "2-0"
        > XLEN s
        :2
    """)


def test_nomkstream_answers_null_in_resp3(talk3: Session) -> None:
    """Row 16."""
    talk3.play("""
        > XADD s NOMKSTREAM * f v
        _
    """)


@pytest.mark.parametrize(
    "command",
    [
        "XADD k * f v",
        "XADD k NOMKSTREAM * f v",
        "XLEN k",
        "XRANGE k - +",
        "XREVRANGE k + -",
        "XREAD STREAMS k 0",
        "XREAD BLOCK 0 STREAMS k $",
        "XREADGROUP GROUP g c STREAMS k >",
        "XREADGROUP GROUP g c STREAMS k 0",
        "XDEL k 1-0",
        "XTRIM k MAXLEN 1",
        "XSETID k 1-0",
        "XACK k g 1-0",
        "XCLAIM k g c 0 1-0",
        "XAUTOCLAIM k g c 0 0",
        "XPENDING k g",
        "XPENDING k g - + 10",
        "XGROUP CREATE k g $",
        "XGROUP SETID k g $",
        "XGROUP DESTROY k g",
        "XGROUP CREATECONSUMER k g c",
        "XGROUP DELCONSUMER k g c",
        "XINFO STREAM k",
        "XINFO STREAM k FULL",
        "XINFO GROUPS k",
        "XINFO CONSUMERS k g",
    ],
)
def test_a_key_of_another_type_is_refused(talk: Session, command: str) -> None:
    """Row 17."""
    talk.play(f"""
        > SET k x
        > {command}
        {WRONGTYPE}
        > GET k
        "x"
    """)


@pytest.mark.since("8.6")
@pytest.mark.parametrize(
    "command",
    [
        "XDELEX k IDS 1 1-0",
        "XACKDEL k g IDS 1 1-0",
        "XCFGSET k IDMP-DURATION 10",
        "XADD k IDMP producer 1 * f v",
        "XREADGROUP GROUP g c CLAIM 0 STREAMS k >",
    ],
)
def test_a_key_of_another_type_is_refused_by_newer_commands(talk: Session, command: str) -> None:
    """Row 17."""
    talk.play(f"""
        > SET k x
        > {command}
        {WRONGTYPE}
    """)


def test_maxlen_trims_while_adding(talk: Session) -> None:
    """Row 18."""
    talk.play("""
        > XADD s MAXLEN 2 1-0 value 1
        > XADD s MAXLEN 2 2-0 value 2
        > XADD s MAXLEN 2 3-0 value 3
        "3-0"
        > XLEN s
        :2
        > XRANGE s - +
        [["2-0", ["value", "2"]], ["3-0", ["value", "3"]]]
        > XADD s MAXLEN = 0 4-0 value 4
        "4-0"
        > XLEN s
        :0
    """)


@pytest.mark.parametrize("form", ["MINID 9", "MINID = 9", "MINID 9-0", "MINID = 9-1"])
def test_minid_trims_while_adding(talk: Session, form: str) -> None:
    """Rows 19, 302."""
    talk.play(f"""
        > XADD s 8-1 f v
        > XADD s 9-1 f v
        > XADD s {form} 10-1 f v
        "10-1"
        > XRANGE s - +
        [["9-1", ["f", "v"]], ["10-1", ["f", "v"]]]
    """)


def test_approximate_trimming_keeps_a_little_more_and_never_less(
    server: Server, client: Wire, settings: Callable[[str, object], None]
) -> None:
    """Row 20."""
    settings("stream-node-max-entries", 100)
    client.pipeline([("XADD", "s", "MAXLEN", "~", 1000, f"{i}-1", "f", "v") for i in range(1, 5001)])
    assert 1000 <= client("XLEN s") < 1100
    assert client("XREVRANGE s + - COUNT 1") == [[b"5000-1", [b"f", b"v"]]]
    assert client("XADD s MINID ~ 4500 5001-1 f v") == b"5001-1"
    assert 501 < client("XLEN s") < 602
    assert client("XADD s MAXLEN = 400 5002-1 f v") == b"5002-1"
    assert client("XLEN s") == 400


@pytest.mark.parametrize("strategy", ["MAXLEN 2", "MAXLEN = 2", "MINID 2", "MINID = 2"])
def test_limit_needs_the_approximate_form(talk: Session, strategy: str) -> None:
    """Row 21."""
    talk.play(f"""
        > XADD s {strategy} LIMIT 1 * f v
        -ERR syntax error, LIMIT cannot be used without the special ~ option
        > XTRIM s {strategy} LIMIT 1
        -ERR syntax error, LIMIT cannot be used without the special ~ option
    """)


def test_trimming_options_are_checked(talk: Session) -> None:
    """Row 22."""
    talk.play("""
        > XADD s MAXLEN 1 MINID 1 * f v
        -ERR syntax error, MAXLEN and MINID options at the same time are not compatible
        > XADD s MINID 1 MAXLEN 1 * f v
        -ERR syntax error, MAXLEN and MINID options at the same time are not compatible
        > XADD s MAXLEN -1 * f v
        -ERR The MAXLEN argument must be >= 0.
        > XADD s MAXLEN many * f v
        -ERR value is not an integer or out of range
        > XADD s MAXLEN ~ 1 LIMIT -1 * f v
        -ERR The LIMIT argument must be >= 0.
        > XADD s MINID x * f v
        -ERR Invalid stream ID specified as stream command argument
        > EXISTS s
        :0
    """)


@pytest.mark.since("8.2")
def test_trimming_can_spare_what_a_group_still_needs(talk: Session) -> None:
    """Row 23."""
    talk.play("""
        > XADD s 1-0 f v
        > XGROUP CREATE s g 0
        > XREADGROUP GROUP g c STREAMS s >
        > XADD s MAXLEN 0 ACKED 2-0 f v
        "2-0"
        > XRANGE s - +
        [["1-0", ["f", "v"]], ["2-0", ["f", "v"]]]
        > XACK s g 1-0
        :1
        > XADD s MAXLEN 0 ACKED 3-0 f v
        "3-0"
        > XRANGE s - +
        [["2-0", ["f", "v"]], ["3-0", ["f", "v"]]]
    """)


@pytest.mark.since("8.2")
@pytest.mark.parametrize(("policy", "left"), [("", 1), ("KEEPREF", 1), ("DELREF", 0)])
def test_trimming_can_forget_pending_references(talk: Session, policy: str, left: int) -> None:
    """Row 23."""
    talk.play(f"""
        > XADD s 1-0 f v
        > XGROUP CREATE s g 0
        > XREADGROUP GROUP g c STREAMS s >
        > XADD s MAXLEN 1 {policy} 2-0 f v
        "2-0"
        > XRANGE s - +
        [["2-0", ["f", "v"]]]
        > XPENDING s g
        [:{left}, ...]
    """)


def test_a_refused_entry_changes_nothing(client: Wire) -> None:
    """Rows 10, 22."""
    client("XADD s 5-0 f v")
    for command in ("XADD s MAXLEN 0 4-0 f v", "XADD s MAXLEN 0 9-0 f", "XADD s MAXLEN 0 x f v"):
        assert isinstance(client(command), ErrorReply)
    assert client("XRANGE s - +") == [[b"5-0", [b"f", b"v"]]]

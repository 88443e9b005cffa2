"""Hashes."""

import pytest

from support.session import Session
from support.wire import Wire

WRONG_TYPE = "-WRONGTYPE Operation against a key holding the wrong kind of value"


def test_fields_of_a_hash(talk: Session) -> None:
    talk.play(
        """
        > HSET h a 1 b 2
        :2
        > HSET h a 3 c 4 c 5
        :1
        > HGET h a
        "3"
        > HGET h x
        (nil)
        > HMGET h c x b
        ["5", (nil), "2"]
        > HMSET h d 6
        +OK
        > HGETALL h
        ["a", "3", "b", "2", "c", "5", "d", "6"]
        > HKEYS h
        ["a", "b", "c", "d"]
        > HVALS h
        ["3", "2", "5", "6"]
        > HLEN h
        :4
        > HEXISTS h a
        :1
        > HEXISTS h x
        :0
        > HSTRLEN h a
        :1
        > HSTRLEN h x
        :0
        > HSETNX h a 9
        :0
        > HSETNX h e 9
        :1
        > TYPE h
        +hash
        > OBJECT ENCODING h
        "listpack"
        """
    )


def test_an_emptied_hash_is_gone(talk: Session) -> None:
    talk.play(
        """
        > HSET h a 1 b 2 c 3
        > HDEL h a x a
        :1
        > HDEL h b c
        :2
        > EXISTS h
        :0
        > HDEL h a
        :0
        > HGETALL h
        []
        > HKEYS h
        []
        > HVALS h
        []
        > HLEN h
        :0
        > HMGET h a b
        [(nil), (nil)]
        > HSTRLEN h a
        :0
        """
    )


def test_numbers_in_fields(talk: Session) -> None:
    talk.play(
        """
        > HINCRBY h n 5
        :5
        > HINCRBY h n -7
        :-2
        > HGET h n
        "-2"
        > HSET h word tea most 9223372036854775807 blank " 1" float 1.5
        > HINCRBY h word 1
        -ERR hash value is not an integer
        > HINCRBY h blank 1
        -ERR hash value is not an integer
        > HINCRBY h float 1
        -ERR hash value is not an integer
        > HINCRBY h most 1
        -ERR increment or decrement would overflow
        > HINCRBY h n 1.5
        -ERR value is not an integer or out of range
        > HINCRBY missing n many
        -ERR value is not an integer or out of range
        > EXISTS missing
        :0
        """
    )


def test_numbers_with_fractions_in_fields(talk: Session) -> None:
    talk.play(
        """
        > HINCRBYFLOAT h n 10.50
        "10.5"
        > HINCRBYFLOAT h n 0.1
        "10.6"
        > HSET h word tea most 9223372036854775807
        > HINCRBYFLOAT h most 1
        "9223372036854775808"
        > HINCRBYFLOAT h word 1
        -ERR hash value is not a float
        > HINCRBYFLOAT h word x
        -ERR value is not a valid float
        > HINCRBYFLOAT h n inf
        -ERR value is NaN or Infinity
        > HINCRBYFLOAT missing n inf
        -ERR value is NaN or Infinity
        > EXISTS missing
        :0
        """
    )


def test_fields_chosen_at_random(client: Wire) -> None:
    client("HSET h a 1 b 2 c 3")
    fields = {b"a", b"b", b"c"}
    assert client("HRANDFIELD h") in fields
    assert len(set(client("HRANDFIELD h 2"))) == 2
    assert set(client("HRANDFIELD h 5")) == fields
    assert len(client("HRANDFIELD h -5")) == 5
    assert set(client("HRANDFIELD h -200")) == fields
    flat = client("HRANDFIELD h 3 WITHVALUES")
    assert dict(zip(flat[::2], flat[1::2], strict=True)) == {b"a": b"1", b"b": b"2", b"c": b"3"}


def test_choosing_from_nothing_and_wrongly(talk: Session) -> None:
    talk.play(
        """
        > HRANDFIELD missing
        (nil)
        > HRANDFIELD missing 3
        []
        > HSET h a 1
        > HRANDFIELD h 0
        []
        > HRANDFIELD h x
        -ERR value is not an integer or out of range
        > HRANDFIELD h 1 VALUES
        -ERR syntax error
        > HRANDFIELD h 1 WITHVALUES more
        -ERR syntax error
        > HRANDFIELD h -9223372036854775808
        -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        > HRANDFIELD h 9223372036854775807 WITHVALUES
        -ERR value is out of range
        """
    )


def test_chosen_fields_come_as_pairs_in_resp3(talk3: Session) -> None:
    talk3.play(
        """
        > HSET h a 1
        > HRANDFIELD h 1 WITHVALUES
        [["a", "1"]]
        > HRANDFIELD h 1
        ["a"]
        > HRANDFIELD missing
        _
        """
    )


def test_all_fields_are_a_map_in_resp3(talk3: Session) -> None:
    talk3.play(
        """
        > HGETALL h
        {}
        > HSET h a 1 b 2
        > HGETALL h
        {"a": "1", "b": "2"}
        > HGET h x
        _
        > HMGET h a x
        ["1", _]
        > HKEYS h
        ["a", "b"]
        """
    )


def test_pairs_are_counted_before_the_type_is_looked_at(talk: Session) -> None:
    talk.play(
        """
        > SET k text
        > HSET k a 1 b
        -ERR wrong number of arguments for 'hset' command
        > HMSET k a 1 b
        -ERR wrong number of arguments for 'hmset' command
        > HSET k a
        -ERR wrong number of arguments for 'hset' command
        > HINCRBY k a x
        -ERR value is not an integer or out of range
        """
    )


@pytest.mark.parametrize(
    "command",
    [
        "HSET k a 1", "HMSET k a 1", "HSETNX k a 1", "HGET k a", "HMGET k a", "HGETALL k", "HDEL k a", "HLEN k",
        "HEXISTS k a", "HKEYS k", "HVALS k", "HINCRBY k a 1", "HSTRLEN k a", "HSCAN k 0",
        "HINCRBYFLOAT k a 1", "HRANDFIELD k", "HRANDFIELD k 1",
    ],
)  # fmt: skip
def test_other_types_are_refused(talk: Session, command: str) -> None:
    talk.play(
        f"""
        > XADD k 1-0 a b
        > {command}
        {WRONG_TYPE}
        """
    )


def test_copying_renaming_and_expiry(talk: Session) -> None:
    talk.play(
        """
        > HSET h z 1 a 2
        > PEXPIRE h 100000
        > COPY h copy
        :1
        > RENAME h other
        +OK
        > HGETALL other
        ["z", "1", "a", "2"]
        > HSET other z 3
        > HGET copy z
        "1"
        > PERSIST other
        :1
        > GET other
        -WRONGTYPE Operation against a key holding the wrong kind of value
        """
    )


# HSCAN


def test_a_small_hash_is_scanned_in_one_go(talk: Session) -> None:
    talk.play(
        """
        > HSET h a 1 b 2 c 3
        > HSCAN h 0 COUNT 1
        ["0", ["a", "1", "b", "2", "c", "3"]]
        > HSCAN h 77
        ["0", ["a", "1", "b", "2", "c", "3"]]
        > HSCAN h 0 MATCH [bc]
        ["0", ["b", "2", "c", "3"]]
        > HSCAN missing 0
        ["0", []]
        > HSCAN missing x
        -ERR invalid cursor
        > HSCAN h 0 COUNT 0
        -ERR syntax error
        > HSCAN h 0 COUNT x
        -ERR value is not an integer or out of range
        > HSCAN h 0 TYPE hash
        -ERR syntax error
        > HSCAN h 0 MATCH
        -ERR syntax error
        """
    )


@pytest.mark.since("7.4")
def test_a_scan_leaves_the_values_out_when_asked(talk: Session) -> None:
    talk.play(
        """
        > HSET h a 1 b 2
        > HSCAN h 0 NOVALUES
        ["0", ["a", "b"]]
        """
    )


def test_a_large_hash_is_scanned_in_pages(client: Wire) -> None:
    wanted = {b"field-%d" % number: b"%d" % number for number in range(1000)}
    for field, value in wanted.items():
        client("HSET", "h", field, value)
    found: dict[bytes, bytes] = {}
    cursor, pages = b"0", 0
    while cursor != b"0" or not pages:
        cursor, page = client("HSCAN", "h", cursor, "COUNT", 50)
        assert len(page) <= 300
        found.update(zip(page[::2], page[1::2], strict=True))
        pages += 1
    assert found == wanted
    assert pages > 5

"""Sets: moving, storing and drawing members. Their order differs between servers, so it is never shown."""

import pytest

from support.session import Session
from support.wire import Wire

WRONG_TYPE = "-WRONGTYPE Operation against a key holding the wrong kind of value"


def test_members_moved_from_one_set_to_another(talk: Session) -> None:
    talk.play(
        """
        > SADD a x y
        > SADD b y
        > SMOVE a b x
        :1
        > SMOVE a b y
        :1
        > SMOVE a b z
        :0
        > EXISTS a
        :0
        > SMOVE a b x
        :0
        > SMOVE b b x
        :1
        > SMOVE b b z
        :0
        > SMOVE b new x
        :1
        > SMEMBERS new
        ["x"]
        > SET text x
        > SMOVE missing text x
        :0
        > SMOVE b text y
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SMOVE text b y
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SMEMBERS b
        ["y"]
        """
    )


def test_several_members_are_asked_for(talk: Session) -> None:
    talk.play(
        """
        > SADD s a b
        > SMISMEMBER s a x b a
        [:1, :0, :1, :1]
        > SMISMEMBER missing a b
        [:0, :0]
        > SISMEMBER s a
        :1
        > SCARD s
        :2
        """
    )


def test_a_set_of_one_member_is_drawn_from(talk: Session) -> None:
    talk.play(
        """
        > SADD s a
        > SRANDMEMBER s
        "a"
        > SRANDMEMBER s 5
        ["a"]
        > SRANDMEMBER s -3
        ["a", "a", "a"]
        > SRANDMEMBER s 0
        []
        > SRANDMEMBER missing
        (nil)
        > SRANDMEMBER missing 2
        []
        > SRANDMEMBER s x
        -ERR value is not an integer or out of range
        > SRANDMEMBER s 1 2
        -ERR syntax error
        > SPOP s 0
        []
        > SPOP s -1
        -ERR value is out of range, must be positive
        > SPOP s x
        -ERR value is out of range, must be positive
        > SPOP s 1 2
        -ERR syntax error
        > SPOP s
        "a"
        > EXISTS s
        :0
        > SPOP s
        (nil)
        > SPOP s 2
        []
        > SADD s a
        > SPOP s 9
        ["a"]
        > EXISTS s
        :0
        """
    )


def test_sets_are_stored(talk: Session) -> None:
    talk.play(
        """
        > SADD a 1 2 3
        > SADD b 2 3 4
        > SUNIONSTORE c a b missing
        :4
        > SCARD c
        :4
        > SINTERSTORE c a b
        :2
        > SCARD c
        :2
        > SDIFFSTORE c a b
        :1
        > SMEMBERS c
        ["1"]
        > SDIFFSTORE c a a
        :0
        > EXISTS c
        :0
        > SINTERSTORE c a missing
        :0
        > SET text x
        > SUNIONSTORE text a
        :3
        > TYPE text
        +set
        > SINTERSTORE text missing
        :0
        > EXISTS text
        :0
        > SDIFFSTORE a a b
        :1
        > SMEMBERS a
        ["1"]
        """
    )


@pytest.mark.since("7.0")
def test_how_many_members_sets_have_in_common(talk: Session) -> None:
    talk.play(
        """
        > SADD a 1 2 3
        > SADD b 2 3 4
        > SINTERCARD 2 a b
        :2
        > SINTERCARD 2 a b LIMIT 1
        :1
        > SINTERCARD 2 a b LIMIT 0
        :2
        > SINTERCARD 2 a missing
        :0
        > SINTERCARD 0 a
        -ERR numkeys should be greater than 0
        > SINTERCARD x a
        -ERR numkeys should be greater than 0
        > SINTERCARD 3 a b
        -ERR Number of keys can't be greater than number of args
        > SINTERCARD 2 a b LIMIT -1
        -ERR LIMIT can't be negative
        > SINTERCARD 2 a b LIMIT
        -ERR syntax error
        > SINTERCARD 1 a b
        -ERR syntax error
        """
    )


def test_sets_are_sets_in_resp3(talk3: Session) -> None:
    talk3.play(
        """
        > SADD s 1
        :1
        > SMEMBERS s
        ~["1"]
        > SUNION s s
        ~["1"]
        > SINTER s s
        ~["1"]
        > SDIFF s missing
        ~["1"]
        > SDIFF s s
        ~[]
        > SRANDMEMBER s 1
        ["1"]
        > SPOP s 0
        ~[]
        > SPOP s 1
        ~["1"]
        > SPOP s 1
        ~[]
        > SMEMBERS s
        ~[]
        > SRANDMEMBER s
        _
        > SRANDMEMBER s 1
        []
        """
    )


def test_unions_intersections_and_differences(client: Wire) -> None:
    client("SADD a 1 2 3 x")
    client("SADD b 2 3 4")
    client("SADD c 3")
    assert sorted(client("SUNION a b c missing")) == [b"1", b"2", b"3", b"4", b"x"]
    assert sorted(client("SINTER a b")) == [b"2", b"3"]
    assert client("SINTER a b c") == [b"3"]
    assert client("SINTER a missing") == []
    assert sorted(client("SDIFF a b c")) == [b"1", b"x"]
    assert client("SDIFF missing a") == []
    assert sorted(client("SUNION a")) == [b"1", b"2", b"3", b"x"]


def test_every_member_is_drawn_once(client: Wire) -> None:
    wanted = sorted(b"%d" % number for number in range(200))
    client("SADD", "s", *wanted)
    assert sorted(client("SRANDMEMBER s 200")) == wanted
    assert len(set(client("SRANDMEMBER s 50"))) == 50
    assert set(client("SRANDMEMBER s -500")) <= set(wanted)
    assert len(client("SRANDMEMBER s -500")) == 500
    taken = [client("SPOP s") for _ in range(50)] + client("SPOP s 100") + client("SPOP s 100")
    assert sorted(taken) == wanted
    assert client("EXISTS s") == 0


@pytest.mark.parametrize(
    "command",
    [
        "SADD k a", "SREM k a", "SMEMBERS k", "SISMEMBER k a", "SMISMEMBER k a", "SCARD k", "SPOP k", "SPOP k 0",
        "SRANDMEMBER k", "SRANDMEMBER k 0", "SMOVE k d a", "SMOVE s k a", "SUNION s k", "SINTER missing k", "SDIFF s k",
        "SUNIONSTORE d k", "SINTERSTORE d missing k", "SDIFFSTORE d s k", "SINTERCARD 1 k", "SSCAN k 0",
    ],
)  # fmt: skip
def test_other_types_are_refused(talk: Session, command: str) -> None:
    talk.play(
        f"""
        > XADD k 1-0 a b
        > SADD s a
        > {command}
        {WRONG_TYPE}
        > EXISTS d
        :0
        """
    )

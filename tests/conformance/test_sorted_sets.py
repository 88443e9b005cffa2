"""Sorted sets: members and their scores, popping, waiting, and members at random."""

import pytest

from support.session import Session
from support.wire import Wire

WRONG_TYPE = "-WRONGTYPE Operation against a key holding the wrong kind of value"


def test_members_are_kept_in_the_order_of_their_scores(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 3 c 1 a 2 b 2 aa
        :4
        > ZADD z 5 a 2 b
        :0
        > ZRANGE z 0 -1 WITHSCORES
        ["aa", "2", "b", "2", "c", "3", "a", "5"]
        > ZCARD z
        :4
        > ZSCORE z a
        "5"
        > ZSCORE z x
        (nil)
        > ZMSCORE z a x b
        ["5", (nil), "2"]
        > ZRANK z aa
        :0
        > ZREVRANK z aa
        :3
        > ZRANK z x
        (nil)
        > ZRANK missing a
        (nil)
        > TYPE z
        +zset
        > OBJECT ENCODING z
        "listpack"
        """
    )


def test_an_emptied_sorted_set_is_gone(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 1 a 2 b
        > ZREM z a x a
        :1
        > ZREM z b
        :1
        > EXISTS z
        :0
        > ZREM z a
        :0
        > ZCARD z
        :0
        > ZSCORE z a
        (nil)
        > ZMSCORE z a b
        [(nil), (nil)]
        > ZADD z 1 a
        > ZREMRANGEBYRANK z 0 -1
        :1
        > EXISTS z
        :0
        > ZADD z 1 a
        > ZPOPMIN z
        ["a", "1"]
        > EXISTS z
        :0
        """
    )


def test_adding_may_be_limited_to_new_known_greater_or_smaller(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 5 a
        > ZADD z NX 6 a 7 b
        :1
        > ZADD z XX 8 a 9 c
        :0
        > ZADD z XX CH 10 a 9 c
        :1
        > ZADD z GT CH 9 a 8 b 1 c
        :2
        > ZADD z LT CH 9 a 9 b 0.5 c
        :2
        > ZADD z CH 9 a
        :0
        > ZRANGE z 0 -1 WITHSCORES
        ["c", "0.5", "b", "8", "a", "9"]
        > ZADD missing XX 1 a
        :0
        > EXISTS missing
        :0
        > ZADD z NX XX 1 a
        -ERR XX and NX options at the same time are not compatible
        > ZADD z GT LT 1 a
        -ERR GT, LT, and/or NX options at the same time are not compatible
        > ZADD z NX GT 1 a
        -ERR GT, LT, and/or NX options at the same time are not compatible
        > ZADD z INCR 1 a 2 b
        -ERR INCR option supports a single increment-element pair
        > ZADD z 1
        -ERR wrong number of arguments for 'zadd' command
        > ZADD z 1 a 2
        -ERR syntax error
        > ZADD z NX
        -ERR wrong number of arguments for 'zadd' command
        > ZADD z one a
        -ERR value is not a valid float
        > ZADD z 1 a nan b
        -ERR value is not a valid float
        > ZADD z CH
        -ERR wrong number of arguments for 'zadd' command
        > ZRANGE z 0 -1 WITHSCORES
        ["c", "0.5", "b", "8", "a", "9"]
        """
    )


def test_scores_are_added_to(talk: Session) -> None:
    talk.play(
        """
        > ZINCRBY z 5 a
        "5"
        > ZINCRBY z -7.5 a
        "-2.5"
        > ZADD z INCR 2.5 a
        "0"
        > ZADD z NX INCR 1 a
        (nil)
        > ZADD z XX INCR 1 b
        (nil)
        > ZADD z GT INCR -1 a
        (nil)
        > ZINCRBY z inf a
        "inf"
        > ZINCRBY z -inf a
        -ERR resulting score is not a number (NaN)
        > ZINCRBY z x a
        -ERR value is not a valid float
        > ZINCRBY z nan a
        -ERR value is not a valid float
        > ZSCORE z a
        "inf"
        """
    )


def test_scores_as_they_are_written(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 1e3 a -0 b 3.0 c inf d -inf e 1e20 f 123456789012 g .5 h 1e5 i
        > ZRANGE z 0 -1
        ["e", "b", "h", "c", "a", "i", "g", "f", "d"]
        > ZMSCORE z e b h c a i g f d
        ["-inf", "0", "0.5", "3", "1000", "100000", "123456789012", "1e+20", "inf"]
        > ZADD z 1e400 x
        -ERR value is not a valid float
        > ZADD z 1e-400 x
        -ERR value is not a valid float
        > ZADD z "" x
        -ERR value is not a valid float
        > ZADD z " 1" x
        -ERR value is not a valid float
        > ZADD z 1_0 x
        -ERR value is not a valid float
        > ZADD z +1.5 x
        :1
        """
    )


@pytest.mark.since("8.6")
def test_scores_as_redis_8_writes_them(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 0x10 a 1e-9 b 0.1 c 1e21 d 4611686018427387904 e 12345678901234567890 f -1.5e-7 g
        > ZMSCORE z a b c d e f g
        ["16", "1e-9", "0.1", "1e+21", "4611686018427387904", "12345678901234567000", "-1.5e-7"]
        """
    )


@pytest.mark.since("7.2")
def test_a_rank_with_its_score(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 1 a 2.5 b
        > ZRANK z b WITHSCORE
        [:1, "2.5"]
        > ZREVRANK z b WITHSCORE
        [:0, "2.5"]
        > ZRANK z x WITHSCORE
        (nil array)
        > ZRANK missing x WITHSCORE
        (nil array)
        > ZRANK z b SCORE
        -ERR syntax error
        > ZRANK z b WITHSCORE more
        -ERR wrong number of arguments for 'zrank' command
        """
    )


def test_the_ends_are_popped(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 1 a 2 b 3 c 4 d 5 e
        > ZPOPMIN z
        ["a", "1"]
        > ZPOPMAX z
        ["e", "5"]
        > ZPOPMIN z 2
        ["b", "2", "c", "3"]
        > ZPOPMAX z 9
        ["d", "4"]
        > EXISTS z
        :0
        > ZPOPMIN z
        []
        > ZPOPMIN z 2
        []
        > ZADD z 1 a
        > ZPOPMIN z 0
        []
        > ZPOPMIN z -1
        -ERR value is out of range, must be positive
        > ZPOPMIN z x
        -ERR value is out of range, must be positive
        > ZPOPMIN z 1 2
        -ERR syntax error
        """
    )


@pytest.mark.since("7.0")
def test_the_first_of_several_sorted_sets_is_popped(talk: Session) -> None:
    talk.play(
        """
        > ZADD y 1 a 2 b 3 c
        > ZMPOP 2 missing y MIN
        ["y", [["a", "1"]]]
        > ZMPOP 2 missing y MAX COUNT 5
        ["y", [["c", "3"], ["b", "2"]]]
        > ZMPOP 1 y MIN
        (nil array)
        > ZMPOP 0 y MIN
        -ERR numkeys should be greater than 0
        > ZMPOP x y MIN
        -ERR numkeys should be greater than 0
        > ZMPOP 2 y MIN
        -ERR syntax error
        > ZMPOP 1 y MIDDLE
        -ERR syntax error
        > ZMPOP 1 y MIN COUNT 0
        -ERR count should be greater than 0
        > ZMPOP 1 y MIN COUNT
        -ERR syntax error
        > ZMPOP 1 y MIN COUNT 1 COUNT 2
        -ERR syntax error
        > BZMPOP 0 0 y MIN
        -ERR numkeys should be greater than 0
        > BZMPOP x 1 y MIN
        -ERR timeout is not a float or out of range
        > BZMPOP -1 1 y MIN
        -ERR timeout is negative
        > BZPOPMIN y x
        -ERR timeout is not a float or out of range
        > BZPOPMIN y -1
        -ERR timeout is negative
        """
    )


def test_members_at_random(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 1 a
        > ZRANDMEMBER z
        "a"
        > ZRANDMEMBER z 5
        ["a"]
        > ZRANDMEMBER z 5 WITHSCORES
        ["a", "1"]
        > ZRANDMEMBER z -3
        ["a", "a", "a"]
        > ZRANDMEMBER z -2 WITHSCORES
        ["a", "1", "a", "1"]
        > ZRANDMEMBER z 0
        []
        > ZRANDMEMBER missing
        (nil)
        > ZRANDMEMBER missing 2
        []
        > ZRANDMEMBER z x
        -ERR value is not an integer or out of range
        > ZRANDMEMBER z 1 SCORES
        -ERR syntax error
        """
    )


def test_a_small_sorted_set_is_scanned_in_one_go(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 1.5 a 2 b 3 c
        > ZSCAN z 0 COUNT 1
        ["0", ["a", "1.5", "b", "2", "c", "3"]]
        > ZSCAN z 0 MATCH [ab]
        ["0", ["a", "1.5", "b", "2"]]
        > ZSCAN missing 0
        ["0", []]
        > ZSCAN z x
        -ERR invalid cursor
        > ZSCAN z 0 COUNT 0
        -ERR syntax error
        > ZSCAN z 0 WHAT
        -ERR syntax error
        """
    )


def test_copying_renaming_and_expiry(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 2 a 1 b
        > PEXPIRE z 100000
        :1
        > COPY z copy
        :1
        > RENAME z other
        +OK
        > ZRANGE other 0 -1 WITHSCORES
        ["b", "1", "a", "2"]
        > ZADD other 9 a
        :0
        > ZSCORE copy a
        "2"
        > PERSIST other
        :1
        > GET other
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SCAN 0 TYPE zset MATCH copy COUNT 100
        ["0", ["copy"]]
        """
    )


def test_replies_have_doubles_and_pairs_in_resp3(talk3: Session) -> None:
    talk3.play(
        """
        > ZADD z 1 a 2.5 b inf c
        :3
        > ZSCORE z b
        ,2.5
        > ZSCORE z x
        _
        > ZMSCORE z a x c
        [,1.0, _, ,inf]
        > ZINCRBY z 1 a
        ,2.0
        > ZADD z XX INCR 1 x
        _
        > ZRANGE z 0 1 WITHSCORES
        [["a", ,2.0], ["b", ,2.5]]
        > ZRANGEBYSCORE z 2 inf WITHSCORES
        [["a", ,2.0], ["b", ,2.5], ["c", ,inf]]
        > ZUNION 1 z WITHSCORES
        [["a", ,2.0], ["b", ,2.5], ["c", ,inf]]
        > ZSCAN z 0
        ["0", ["a", "2", "b", "2.5", "c", "inf"]]
        > ZPOPMIN z
        ["a", ,2.0]
        > ZPOPMIN z 1
        [["b", ,2.5]]
        > ZPOPMAX z 0
        []
        > ZMPOP 1 z MIN
        ["z", [["c", ,inf]]]
        > ZMPOP 1 z MIN
        _
        > ZADD z 1 a
        :1
        > BZPOPMIN z 0
        ["z", "a", ,1.0]
        > ZRANGE z 0 -1 WITHSCORES
        []
        """
    )


@pytest.mark.parametrize(
    "command",
    [
        "ZADD k 1 a", "ZADD k XX 1 a", "ZINCRBY k 1 a", "ZREM k a", "ZSCORE k a", "ZMSCORE k a", "ZCARD k", "ZRANK k a",
        "ZREVRANK k a", "ZRANGE k 0 -1", "ZREVRANGE k 0 -1", "ZRANGEBYSCORE k 0 1", "ZREVRANGEBYSCORE k 1 0",
        "ZRANGEBYLEX k - +", "ZREVRANGEBYLEX k + -", "ZRANGESTORE d k 0 -1", "ZCOUNT k 0 1", "ZLEXCOUNT k - +",
        "ZREMRANGEBYRANK k 0 -1", "ZREMRANGEBYSCORE k 0 1", "ZREMRANGEBYLEX k - +", "ZPOPMIN k", "ZPOPMAX k 0",
        "BZPOPMIN k 0", "BZPOPMAX missing k 0", "ZMPOP 1 k MIN", "BZMPOP 0 1 k MIN", "ZRANDMEMBER k",
        "ZRANDMEMBER k 0", "ZUNION 1 k", "ZINTER 1 k", "ZDIFF 1 k", "ZUNIONSTORE d 1 k", "ZINTERSTORE d 1 k",
        "ZDIFFSTORE d 1 k", "ZINTERCARD 1 k", "ZSCAN k 0",
    ],
)  # fmt: skip
def test_other_types_are_refused(talk: Session, command: str) -> None:
    talk.play(
        f"""
        > XADD k 1-0 a b
        > {command}
        {WRONG_TYPE}
        > EXISTS d
        :0
        """
    )


def test_a_large_sorted_set_is_scanned_in_pages(client: Wire) -> None:
    wanted = {b"member-%d" % number: b"%d" % number for number in range(1000)}
    for member, score in wanted.items():
        client("ZADD", "z", score, member)
    found: dict[bytes, bytes] = {}
    cursor, pages = b"0", 0
    while cursor != b"0" or not pages:
        cursor, page = client("ZSCAN", "z", cursor, "COUNT", 50)
        assert len(page) <= 300
        found.update(zip(page[::2], page[1::2], strict=True))
        pages += 1
    assert found == wanted
    assert pages > 5


# Waiting


def test_a_client_waits_for_a_member(talk: Session) -> None:
    talk.play(
        """
        waiting> BZPOPMIN y z 0
        (blocks)
        > ZADD z 2 b 1 a
        :2
        waiting<
        ["z", "a", "1"]
        > ZRANGE z 0 -1
        ["b"]
        waiting> BZPOPMAX x y 0
        (blocks)
        > ZADD y 5 e
        :1
        waiting<
        ["y", "e", "5"]
        > EXISTS y
        :0
        """
    )


def test_clients_are_served_in_the_order_they_came(talk: Session) -> None:
    talk.play(
        """
        ann> BZPOPMIN z 0
        (blocks)
        bob> BZPOPMIN z 0
        (blocks)
        > ZADD z 1 a 2 b 3 c
        :3
        ann<
        ["z", "a", "1"]
        bob<
        ["z", "b", "2"]
        > ZRANGE z 0 -1
        ["c"]
        """
    )


@pytest.mark.since("7.0")
def test_a_client_waits_for_several_members(talk: Session) -> None:
    talk.play(
        """
        waiting> BZMPOP 0 2 y z MAX COUNT 2
        (blocks)
        > ZADD z 1 a 2 b 3 c
        :3
        waiting<
        ["z", [["c", "3"], ["b", "2"]]]
        """
    )


def test_waiting_ends_with_null_and_not_at_all_in_a_transaction(talk: Session) -> None:
    talk.play(
        """
        > BZPOPMIN z 0.03
        (nil array)
        > MULTI
        > BZPOPMIN z 0
        > BZMPOP 0 1 z MIN
        > ZADD z 1 a
        > BZPOPMAX z 0
        > EXEC
        [(nil array), (nil array), :1, ["z", "a", "1"]]
        """
    )


def test_a_key_of_another_type_does_not_end_the_waiting(talk: Session) -> None:
    talk.play(
        """
        waiting> BZPOPMIN z 0
        (blocks)
        > LPUSH z a
        :1
        > DEL z
        :1
        > MULTI
        > ZADD z 1 a
        > DEL z
        > LPUSH z x
        > EXEC
        [:1, :1, :1]
        > DEL z
        > ZUNIONSTORE z 1 missing
        :0
        > ZADD y 7 b
        > RENAME y z
        +OK
        waiting<
        ["z", "b", "7"]
        """
    )


def test_only_a_popped_or_stored_key_disturbs_a_transaction(talk: Session) -> None:
    talk.play(
        """
        > ZADD a 1 x 2 y
        > SADD s 1
        > SADD t 1
        > WATCH missing a s t
        other> ZUNIONSTORE b 2 a s
        :3
        other> ZMPOP 2 missing b MIN
        ["b", [["1", "1"]]]
        other> SUNIONSTORE u s t
        :1
        > MULTI
        > PING
        > EXEC
        [+"PONG"]
        > WATCH a
        other> BZPOPMIN missing a 0
        ["a", "x", "1"]
        > MULTI
        > PING
        > EXEC
        (nil array)
        > WATCH t
        other> SMOVE s t 1
        :1
        > MULTI
        > PING
        > EXEC
        [+"PONG"]
        """
    )

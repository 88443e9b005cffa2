"""Unions, intersections and differences of sorted sets, and of sets among them."""

import pytest

from support.session import Session


def test_unions_intersections_and_differences(talk: Session) -> None:
    talk.play(
        """
        > ZADD a 1 x 2 y 3 z
        > ZADD b 10 y 20 z 30 w
        > ZUNION 2 a b WITHSCORES
        ["x", "1", "y", "12", "z", "23", "w", "30"]
        > ZINTER 2 a b WITHSCORES
        ["y", "12", "z", "23"]
        > ZDIFF 2 a b WITHSCORES
        ["x", "1"]
        > ZUNION 2 a b WEIGHTS 2 0.5 WITHSCORES
        ["x", "2", "y", "9", "w", "15", "z", "16"]
        > ZUNION 2 a b AGGREGATE MIN WITHSCORES
        ["x", "1", "y", "2", "z", "3", "w", "30"]
        > ZINTER 2 a b WEIGHTS 1 -1 AGGREGATE MAX WITHSCORES
        ["y", "2", "z", "3"]
        > ZUNION 2 a missing
        ["x", "y", "z"]
        > ZINTER 2 a missing
        []
        > ZDIFF 2 missing a
        []
        > ZUNIONSTORE c 2 a b
        :4
        > ZRANGE c 0 -1 WITHSCORES
        ["x", "1", "y", "12", "z", "23", "w", "30"]
        > ZINTERSTORE c 2 a b WEIGHTS 2 3
        :2
        > ZRANGE c 0 -1 WITHSCORES
        ["y", "34", "z", "66"]
        > ZDIFFSTORE c 2 b a
        :1
        > ZRANGE c 0 -1 WITHSCORES
        ["w", "30"]
        > ZINTERSTORE c 2 a missing
        :0
        > EXISTS c
        :0
        > ZUNIONSTORE a 2 a b
        :4
        > ZRANGE a 0 -1 WITHSCORES
        ["x", "1", "y", "12", "z", "23", "w", "30"]
        """
    )


def test_plain_sets_count_as_sorted_sets_whose_scores_are_1(talk: Session) -> None:
    talk.play(
        """
        > SADD s x y
        > ZADD z 5 y 6 z
        > ZUNION 2 s z WITHSCORES
        ["x", "1", "y", "6", "z", "6"]
        > ZINTER 2 s z WEIGHTS 3 1 WITHSCORES
        ["y", "8"]
        > ZDIFF 2 z s WITHSCORES
        ["z", "6"]
        > ZUNIONSTORE s 2 s z
        :3
        > TYPE s
        +zset
        """
    )


def test_infinite_scores_cancel_out(talk: Session) -> None:
    talk.play(
        """
        > ZADD a inf x
        > ZADD b -inf x
        > ZUNION 2 a b WITHSCORES
        ["x", "0"]
        > ZUNION 2 a b WEIGHTS 0 1 WITHSCORES
        ["x", "-inf"]
        > ZINTER 2 a b AGGREGATE MIN WITHSCORES
        ["x", "-inf"]
        """
    )


def test_faulty_unions(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 1 a
        > SET text x
        > ZUNION 0 z
        -ERR at least 1 input key is needed for 'zunion' command
        > ZUNIONSTORE d 0 z
        -ERR at least 1 input key is needed for 'zunionstore' command
        > ZINTER x z
        -ERR value is not an integer or out of range
        > ZUNION 2 z
        -ERR syntax error
        > ZUNION 1 z WEIGHTS
        -ERR syntax error
        > ZUNION 1 z WEIGHTS x
        -ERR weight value is not a float
        > ZUNION 1 z AGGREGATE AVG
        -ERR syntax error
        > ZUNION 1 z AGGREGATE
        -ERR syntax error
        > ZDIFF 1 z WEIGHTS 1
        -ERR syntax error
        > ZDIFFSTORE d 1 z WITHSCORES
        -ERR syntax error
        > ZUNIONSTORE d 1 z WITHSCORES
        -ERR syntax error
        > ZUNION 2 z text
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZUNION 1 text WHAT
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > EXISTS d
        :0
        """
    )


@pytest.mark.since("7.0")
def test_how_many_members_sorted_sets_have_in_common(talk: Session) -> None:
    talk.play(
        """
        > ZADD a 1 x 2 y 3 z
        > ZADD b 1 y 2 z 3 w
        > ZINTERCARD 2 a b
        :2
        > ZINTERCARD 2 a b LIMIT 1
        :1
        > ZINTERCARD 2 a b LIMIT 0
        :2
        > ZINTERCARD 2 a missing
        :0
        > ZINTERCARD 0 a
        -ERR at least 1 input key is needed for 'zintercard' command
        > ZINTERCARD 2 a b LIMIT -1
        -ERR LIMIT can't be negative
        > ZINTERCARD 2 a b LIMIT x
        -ERR LIMIT can't be negative
        > ZINTERCARD 2 a b WEIGHTS 1 1
        -ERR syntax error
        > ZINTERCARD 3 a b
        -ERR syntax error
        """
    )

"""Ranges of sorted sets: by place, by score and by member; read, counted, removed and stored."""

from support.session import Session


def test_ranges_by_place(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 1 a 2 b 3 c 4 d
        > ZRANGE z 1 2
        ["b", "c"]
        > ZRANGE z -2 -1
        ["c", "d"]
        > ZRANGE z 0 -1 REV
        ["d", "c", "b", "a"]
        > ZRANGE z 0 0 REV WITHSCORES
        ["d", "4"]
        > ZRANGE z 3 1
        []
        > ZRANGE z 4 9
        []
        > ZRANGE z -9 0
        ["a"]
        > ZREVRANGE z 0 1 WITHSCORES
        ["d", "4", "c", "3"]
        > ZREVRANGE z 0 -4
        ["d"]
        > ZRANGE z 0 x
        -ERR value is not an integer or out of range
        > ZRANGE z (1 2
        -ERR value is not an integer or out of range
        > ZRANGE z 0 -1 LIMIT 0 1
        -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        > ZRANGE z 0 -1 LIMIT 1 -1
        ["a", "b", "c", "d"]
        > ZRANGE z 0 -1 WHAT
        -ERR syntax error
        > ZREVRANGE z 0 -1 REV
        -ERR syntax error
        > ZRANGE missing 0 -1
        []
        """
    )


def test_ranges_by_score(talk: Session) -> None:
    talk.play(
        """
        > ZADD z -inf low 1 a 2 b 2 bb 3 c inf high
        > ZRANGEBYSCORE z 1 2
        ["a", "b", "bb"]
        > ZRANGEBYSCORE z (1 2
        ["b", "bb"]
        > ZRANGEBYSCORE z 1 (2
        ["a"]
        > ZRANGEBYSCORE z (2 (3
        []
        > ZRANGEBYSCORE z -inf +inf
        ["low", "a", "b", "bb", "c", "high"]
        > ZRANGEBYSCORE z (-inf (+inf WITHSCORES
        ["a", "1", "b", "2", "bb", "2", "c", "3"]
        > ZRANGEBYSCORE z -inf inf LIMIT 1 2
        ["a", "b"]
        > ZRANGEBYSCORE z -inf inf LIMIT 4 -1
        ["c", "high"]
        > ZRANGEBYSCORE z -inf inf LIMIT -1 2
        []
        > ZRANGEBYSCORE z -inf inf LIMIT 0 0
        []
        > ZRANGEBYSCORE z 3 1
        []
        > ZREVRANGEBYSCORE z 3 1 WITHSCORES LIMIT 1 2
        ["bb", "2", "b", "2"]
        > ZRANGE z 1 (3 BYSCORE
        ["a", "b", "bb"]
        > ZRANGE z (3 1 BYSCORE REV LIMIT 0 2
        ["bb", "b"]
        > ZCOUNT z 1 2
        :3
        > ZCOUNT z (1 +inf
        :4
        > ZCOUNT z 5 4
        :0
        > ZCOUNT missing 0 1
        :0
        > ZRANGEBYSCORE z one 2
        -ERR min or max is not a float
        > ZRANGEBYSCORE z 1 (two
        -ERR min or max is not a float
        > ZRANGEBYSCORE z nan 2
        -ERR min or max is not a float
        > ZRANGEBYSCORE z 1 2 LIMIT 0
        -ERR syntax error
        > ZRANGEBYSCORE z 1 2 LIMIT a b
        -ERR value is not an integer or out of range
        > ZRANGEBYSCORE z 1 2 BYSCORE
        -ERR syntax error
        > ZCOUNT z 1 [2
        -ERR min or max is not a float
        """
    )


def test_ranges_by_member(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 0 a 0 b 0 c 0 d 0 e
        > ZRANGEBYLEX z - +
        ["a", "b", "c", "d", "e"]
        > ZRANGEBYLEX z [b (d
        ["b", "c"]
        > ZRANGEBYLEX z (b [d
        ["c", "d"]
        > ZRANGEBYLEX z - [c LIMIT 1 5
        ["b", "c"]
        > ZREVRANGEBYLEX z + (c
        ["e", "d"]
        > ZRANGE z [b [d BYLEX
        ["b", "c", "d"]
        > ZRANGE z [d [b BYLEX REV LIMIT 1 1
        ["c"]
        > ZLEXCOUNT z - +
        :5
        > ZLEXCOUNT z (a [c
        :2
        > ZLEXCOUNT z [c [a
        :0
        > ZLEXCOUNT missing - +
        :0
        > ZRANGEBYLEX z b d
        -ERR min or max not valid string range item
        > ZRANGEBYLEX z -- +
        -ERR min or max not valid string range item
        > ZLEXCOUNT z [a c
        -ERR min or max not valid string range item
        > ZRANGE z - + BYLEX WITHSCORES
        -ERR syntax error, WITHSCORES not supported in combination with BYLEX
        > ZREMRANGEBYLEX z [b (d
        :2
        > ZRANGE z 0 -1
        ["a", "d", "e"]
        """
    )


def test_ranges_are_removed(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 1 a 2 b 3 c 4 d 5 e 6 f
        > ZREMRANGEBYRANK z 1 1
        :1
        > ZREMRANGEBYSCORE z (3 5
        :2
        > ZREMRANGEBYRANK z 5 9
        :0
        > ZREMRANGEBYSCORE z 9 8
        :0
        > ZRANGE z 0 -1
        ["a", "c", "f"]
        > ZREMRANGEBYRANK z a b
        -ERR value is not an integer or out of range
        > ZREMRANGEBYSCORE z a b
        -ERR min or max is not a float
        > ZREMRANGEBYLEX z a b
        -ERR min or max not valid string range item
        > ZREMRANGEBYRANK missing 0 1
        :0
        """
    )


def test_a_range_is_stored(talk: Session) -> None:
    talk.play(
        """
        > ZADD z 1 a 2 b 3 c 4 d
        > ZRANGESTORE y z 1 2
        :2
        > ZRANGE y 0 -1 WITHSCORES
        ["b", "2", "c", "3"]
        > ZRANGESTORE y z (1 4 BYSCORE LIMIT 1 1
        :1
        > ZRANGE y 0 -1 WITHSCORES
        ["c", "3"]
        > ZRANGESTORE y z 4 1 BYSCORE REV LIMIT 0 2
        :2
        > ZRANGE y 0 -1 WITHSCORES
        ["c", "3", "d", "4"]
        > ZRANGESTORE z z 0 1
        :2
        > ZRANGE z 0 -1
        ["a", "b"]
        > SET text x
        > ZRANGESTORE text z 0 0
        :1
        > TYPE text
        +zset
        > ZRANGESTORE text z 5 9
        :0
        > EXISTS text
        :0
        > ZRANGESTORE y missing 0 1
        :0
        > EXISTS y
        :0
        > ZRANGESTORE y z 0 1 WITHSCORES
        -ERR syntax error
        """
    )

"""Strings: parts of them, numbers in them, reading and changing in one step."""

import pytest

from support.session import Session

WRONG_TYPE = "-WRONGTYPE Operation against a key holding the wrong kind of value"


def test_a_part_of_a_string(talk: Session) -> None:
    talk.play(
        """
        > SET s "Hello World"
        > GETRANGE s 0 4
        "Hello"
        > GETRANGE s -5 -1
        "World"
        > GETRANGE s 6 100
        "World"
        > GETRANGE s 5 2
        ""
        > GETRANGE s -1 -5
        ""
        > GETRANGE s -100 0
        "H"
        > SUBSTR s 0 0
        "H"
        > GETRANGE missing 0 -1
        ""
        > GETRANGE s x 1
        -ERR value is not an integer or out of range
        > SETRANGE s 6 Redis
        :11
        > GET s
        "Hello Redis"
        > SETRANGE s 12 !
        :13
        > GET s
        "Hello Redis\\x00!"
        > SETRANGE new 2 x
        :3
        > GET new
        "\\x00\\x00x"
        > SETRANGE missing 5 ""
        :0
        > EXISTS missing
        :0
        > SETRANGE s 5 ""
        :13
        > SETRANGE s -1 x
        -ERR offset is out of range
        > SETRANGE s 536870912 x
        -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        """
    )


def test_numbers_with_fractions(talk: Session) -> None:
    talk.play(
        """
        > INCRBYFLOAT n 10.50
        "10.5"
        > INCRBYFLOAT n 0.1
        "10.6"
        > INCRBYFLOAT n -5
        "5.6"
        > SET n 5.0e3
        > INCRBYFLOAT n 2.0e2
        "5200"
        > SET n 0.1
        > INCRBYFLOAT n 0.2
        "0.3"
        > SET n 3
        > INCRBYFLOAT n 0.000000000000000001
        "3"
        > SET n 17179869184
        > INCRBYFLOAT n 1.5
        "17179869185.5"
        > SET n 12345678901234567890
        > INCRBYFLOAT n 1
        "12345678901234567891"
        > INCRBYFLOAT n 1e4000
        > STRLEN n
        :4000
        > SET n -1.5
        > INCRBYFLOAT n 1.5
        "0"
        > INCRBYFLOAT n many
        -ERR value is not a valid float
        > INCRBYFLOAT n " 1"
        -ERR value is not a valid float
        > INCRBYFLOAT n inf
        -ERR increment would produce NaN or Infinity
        > INCRBYFLOAT n nan
        -ERR value is not a valid float
        > INCRBYFLOAT n 1e5000
        -ERR value is not a valid float
        > SET empty ""
        > INCRBYFLOAT empty 1
        -ERR value is not a valid float
        > SET n 1 EX 1000
        > INCRBYFLOAT n 1
        "2"
        > TTL n
        :1000
        """
    )


def test_reading_and_storing_in_one_step(talk: Session) -> None:
    talk.play(
        """
        > GETSET s 1
        (nil)
        > EXPIRE s 100
        > GETSET s 2
        "1"
        > TTL s
        :-1
        > GETEX s EX 1000
        "2"
        > TTL s
        :1000
        > GETEX s
        "2"
        > TTL s
        :1000
        > GETEX s PERSIST
        "2"
        > TTL s
        :-1
        > GETEX s EXAT 99999999999
        > EXPIRETIME s
        :99999999999
        > GETEX s PXAT 1
        "2"
        > EXISTS s
        :0
        > GETEX missing EX 10
        (nil)
        > SET s 1
        > GETEX s EX 0
        -ERR invalid expire time in 'getex' command
        > GETEX s EX 1 PX 1
        -ERR syntax error
        > GETEX s PERSIST EX 1
        -ERR syntax error
        > GETEX s EX x
        -ERR value is not an integer or out of range
        > GETEX s KEEPTTL
        -ERR syntax error
        """
    )


def test_all_keys_are_stored_or_none(talk: Session) -> None:
    talk.play(
        """
        > MSETNX a 1 b 2
        :1
        > MSETNX b 3 c 4
        :0
        > MGET a b c
        ["1", "2", (nil)]
        > MSETNX a
        -ERR wrong number of arguments for 'msetnx' command
        > MSETNX a 1 b
        -ERR wrong number of arguments for 'msetnx' command
        > MSETNX d 1 d 2
        :1
        > GET d
        "2"
        """
    )


@pytest.mark.parametrize(
    "command", ["GETSET k 1", "GETEX k", "GETRANGE k 0 1", "SETRANGE k 0 a", "INCRBYFLOAT k 1", "SETRANGE k 0 ''"]
)
def test_other_types_are_refused(talk: Session, command: str) -> None:
    talk.play(
        f"""
        > HSET k f v
        > {command}
        {WRONG_TYPE}
        """
    )


def test_there_are_no_replicas_to_wait_for(talk: Session) -> None:
    talk.play(
        """
        > WAIT 0 0
        :0
        > WAIT 1 1
        :0
        > WAIT x 0
        -ERR value is not an integer or out of range
        > WAIT 0 x
        -ERR timeout is not an integer or out of range
        > WAIT 0 -1
        -ERR timeout is negative
        """
    )

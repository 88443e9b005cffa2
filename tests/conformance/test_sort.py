"""SORT of lists, sets and sorted sets, without the options that look into other keys."""

import pytest

from support.session import Session

SYNTAX = "-ERR syntax error"
NO_NUMBER = "-ERR One or more scores can't be converted into double"


def test_numbers_are_sorted_by_value(talk: Session) -> None:
    talk.play("""
        > RPUSH q 10 9 -1 2.5 1e2 0 inf
        > SORT q
        ["-1", "0", "2.5", "9", "10", "1e2", "inf"]
        > SORT q DESC
        ["inf", "1e2", "10", "9", "2.5", "0", "-1"]
        > SORT q DESC ASC
        ["-1", "0", "2.5", "9", "10", "1e2", "inf"]
        > SADD s 3 1 2
        > SORT s
        ["1", "2", "3"]
        > ZADD z 1 3 2 2 3 1
        > SORT z
        ["1", "2", "3"]
        > SORT missing
        []
    """)


@pytest.mark.since("8.6")
def test_what_else_counts_as_a_number(talk: Session) -> None:
    talk.play("""
        > RPUSH q +2 "" 1e400 -infinity
        > SORT q
        ["-infinity", "", "+2", "1e400"]
    """)


def test_equal_numbers_are_sorted_by_their_bytes(talk: Session) -> None:
    talk.play("""
        > RPUSH q 1.0 1 01 1.00
        > SORT q
        ["01", "1", "1.0", "1.00"]
        > SORT q desc
        ["1.00", "1.0", "1", "01"]
    """)


def test_words_are_sorted_byte_by_byte(talk: Session) -> None:
    talk.play("""
        > RPUSH q b B a "" ab 10 9
        > SORT q ALPHA
        ["", "10", "9", "B", "a", "ab", "b"]
        > SORT q ALPHA DESC LIMIT 1 2
        ["ab", "a"]
    """)


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        ("0 2", '["1", "2"]'),
        ("1 100", '["2", "3", "4"]'),
        ("1 -1", '["2", "3", "4"]'),
        ("-5 2", '["1", "2"]'),
        ("0 0", "[]"),
        ("4 1", "[]"),
        ("9223372036854775807 9223372036854775807", "[]"),
        ("0 -9223372036854775808", '["1", "2", "3", "4"]'),
    ],
)
def test_a_part_of_the_result(talk: Session, limit: str, found: str) -> None:
    talk.play(f"""
        > RPUSH q 4 3 2 1
        > SORT q LIMIT {limit}
        {found}
    """)


def test_the_result_can_be_stored(talk: Session) -> None:
    talk.play("""
        > RPUSH q 3 1 2
        > SET r text EX 100
        > SORT q STORE r
        :3
        > LRANGE r 0 -1
        ["1", "2", "3"]
        > TTL r
        :-1
        > SORT q DESC STORE q
        :3
        > LRANGE q 0 -1
        ["3", "2", "1"]
        > SORT q LIMIT 5 1 STORE r
        :0
        > EXISTS r
        :0
        > SORT missing STORE r
        :0
    """)


def test_nothing_is_sorted_by_a_word_without_a_star(talk: Session) -> None:
    talk.play("""
        > RPUSH q c a b
        > SORT q BY nosort
        ["c", "a", "b"]
        > SORT q BY nosort DESC LIMIT 0 2
        ["b", "a"]
        > ZADD z 1 b 2 c 3 a
        > SORT z BY nosort
        ["b", "c", "a"]
        > SORT z BY nosort DESC LIMIT 1 5
        ["c", "b"]
        > SADD s 10 9 b
        > SORT s BY nosort STORE r
        :3
        > LRANGE r 0 -1
        ["10", "9", "b"]
    """)


@pytest.mark.since("7.0")
def test_those_who_may_only_read_can_sort(talk: Session) -> None:
    talk.play(f"""
        > RPUSH q b a
        > SORT_RO q ALPHA DESC LIMIT 0 1
        ["b"]
        > SORT_RO q ALPHA STORE r
        {SYNTAX}
        > EXISTS r
        :0
    """)


@pytest.mark.parametrize("element", ["a", "1x", "nan", "1 ", "1_0", "--1"])
def test_what_is_no_number_is_refused(talk: Session, element: str) -> None:
    talk.play(f"""
        > RPUSH q 1 "{element}"
        > SORT q STORE r
        {NO_NUMBER}
        > EXISTS r
        :0
    """)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("LIMIT 1", SYNTAX),
        ("LIMIT 0 x", "-ERR value is not an integer or out of range"),
        ("STORE", SYNTAX),
        ("BY", SYNTAX),
        ("UP", SYNTAX),
        ("", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ],
)
def test_mistakes(talk: Session, words: str, error: str) -> None:
    talk.play(f"""
        > SET k text
        > SORT k {words}
        {error}
    """)

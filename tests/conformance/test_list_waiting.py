"""Waiting for elements of lists (rows 67, 68). A test waits until the server counts the client as blocked."""

import pytest

from support.servers import Server, wait_until
from support.session import Session

WRONG_TYPE = "-WRONGTYPE Operation against a key holding the wrong kind of value"

WAITING = {
    "BLPOP q 0": '["q", "a"]',
    "BRPOP q 0": '["q", "a"]',
    "BLMPOP 0 1 q LEFT": '["q", ["a"]]',
    "BLMOVE q r LEFT RIGHT 0": '"a"',
    "BRPOPLPUSH q r 0": '"a"',
}


@pytest.mark.since("7.0")
@pytest.mark.parametrize("command", WAITING)
def test_a_client_waits_for_an_element(talk: Session, command: str) -> None:
    """Row 67."""
    talk.play(f"""
        waiting> {command}
        (blocks)
        > RPUSH q a
        :1
        waiting<
        {WAITING[command]}
        > EXISTS q
        :0
        waiting> PING
        +PONG
    """)


@pytest.mark.since("7.0")
@pytest.mark.parametrize("command", WAITING)
def test_waiting_ends_with_null(talk: Session, command: str) -> None:
    """Row 67."""
    name, *words = command.split()
    timed = [name, "0.02", *words[1:]] if name == "BLMPOP" else [name, *words[:-1], "0.02"]
    talk.play(f"""
        > {" ".join(timed)}
        (nil array)
        > EXISTS q r
        :0
    """)


@pytest.mark.since("7.0")
def test_waiting_ends_with_null_in_resp3(talk3: Session) -> None:
    talk3.play("""
        > BLPOP q 0.01
        _
        > BLMOVE q r LEFT LEFT 0.01
        _
    """)


@pytest.mark.since("7.0")
@pytest.mark.parametrize("command", WAITING)
def test_another_client_can_end_the_waiting(server: Server, talk: Session, command: str) -> None:
    talk.play(f"""
        waiting> CLIENT ID
        :<client>
        waiting> {command}
        (blocks)
        > CLIENT UNBLOCK <client> TIMEOUT
        :1
        waiting<
        (nil array)
        waiting> {command}
        (blocks)
        > CLIENT UNBLOCK <client> ERROR
        :1
        waiting<
        -UNBLOCKED client unblocked via CLIENT UNBLOCK
        > CLIENT UNBLOCK <client>
        :0
        > RPUSH q kept
        > LRANGE q 0 -1
        ["kept"]
    """)
    assert server.info("clients")["blocked_clients"] == "0"


def test_who_waits_longest_is_served_first(server: Server, talk: Session) -> None:
    """Row 68: three waiting clients, three pushes, one each in the order they came."""
    names = ["one", "two", "three"]
    for name in names:
        talk.play(f"{name}> BLPOP q 0\n(blocks)")
    for number, name in enumerate(names):
        talk.play(f"""
            > RPUSH q {number}
            :1
            {name}<
            ["q", "{number}"]
        """)
        assert server.blocked_clients() == len(names) - number - 1


def test_one_push_serves_as_many_as_it_has_elements_for(server: Server, talk: Session) -> None:
    """Row 68."""
    for name in ("one", "two", "three"):
        talk.play(f"{name}> BLPOP q 0\n(blocks)")
    talk.play("""
        > RPUSH q a b
        :2
        one<
        ["q", "a"]
        two<
        ["q", "b"]
    """)
    assert server.blocked_clients() == 1


def test_ends_are_each_clients_own(talk: Session) -> None:
    talk.play("""
        left> BLPOP q 0
        (blocks)
        right> BRPOP q 0
        (blocks)
        > RPUSH q a b c
        :3
        left<
        ["q", "a"]
        right<
        ["q", "c"]
        > LRANGE q 0 -1
        ["b"]
    """)


@pytest.mark.since("7.2")
def test_the_first_list_in_the_clients_own_order_serves(talk: Session) -> None:
    talk.play("""
        > RPUSH b 1
        > RPUSH c 2
        > BLPOP a c b 0
        ["c", "2"]
        waiting> BLPOP a d 0
        (blocks)
        > MULTI
        > RPUSH d 3
        > RPUSH a 4
        > EXEC
        waiting<
        ["a", "4"]
        > LRANGE d 0 -1
        ["3"]
    """)


def test_a_key_may_be_named_twice(talk: Session) -> None:
    talk.play("""
        waiting> BLPOP a b b a 0
        (blocks)
        > RPUSH b 1
        waiting<
        ["b", "1"]
    """)


@pytest.mark.since("7.2")
def test_fairness_holds_for_each_list_on_its_own(talk: Session) -> None:
    """A client that looks again because of one list does not jump the queue of another."""
    talk.play("""
        mover> BRPOPLPUSH source target 0
        (blocks)
        first> BLPOP other 0
        (blocks)
        second> BLPOP target 0
        (blocks)
        third> BLMPOP 0 2 other target LEFT
        (blocks)
        > MULTI
        > RPUSH source 1
        > RPUSH other 2
        > EXEC
        mover<
        "1"
        first<
        ["other", "2"]
        second<
        ["target", "1"]
        > RPUSH target 3
        third<
        ["target", ["3"]]
    """)


def test_pushing_and_waiting_in_one_write_keeps_the_order(talk: Session) -> None:
    talk.play("""
        waiting> BLPOP q 0
        (blocks)
    """)
    hasty = talk.wire("hasty")
    hasty.send("RPUSH q 1")
    hasty.send("BLPOP q 0")
    talk.play("""
        waiting<
        ["q", "1"]
        hasty<
        :1
        > RPUSH q 2
        hasty<
        ["q", "2"]
    """)


# Chains


def test_moves_can_be_chained(talk: Session) -> None:
    talk.play("""
        one> BLMOVE a b RIGHT LEFT 0
        (blocks)
        two> BLMOVE b c LEFT RIGHT 0
        (blocks)
        three> BLPOP c 0
        (blocks)
        > RPUSH a x
        :1
        one<
        "x"
        two<
        "x"
        three<
        ["c", "x"]
        > EXISTS a b c
        :0
    """)


def test_moves_in_a_circle_end(server: Server, talk: Session) -> None:
    talk.play("""
        one> BRPOPLPUSH a b 0
        (blocks)
        two> BRPOPLPUSH b a 0
        (blocks)
        > RPUSH a x
        one<
        "x"
        two<
        "x"
        > LRANGE a 0 -1
        ["x"]
        self> BRPOPLPUSH c c 0
        (blocks)
        > RPUSH c y
        self<
        "y"
        > LRANGE c 0 -1
        ["y"]
    """)
    assert server.blocked_clients() == 0


def test_a_move_that_cannot_be_done_leaves_the_element_to_the_next(talk: Session) -> None:
    talk.play(f"""
        > SET text x
        first> BLMOVE q text LEFT LEFT 0
        (blocks)
        second> BLMOVE q target LEFT LEFT 0
        (blocks)
        > RPUSH q a b
        :2
        first<
        {WRONG_TYPE}
        second<
        "a"
        > LRANGE q 0 -1
        ["b"]
        > LRANGE target 0 -1
        ["a"]
    """)


# What wakes, and what does not


@pytest.mark.parametrize(
    ("before", "waking"),
    [
        ("RPUSH other a", "RENAME other q"),
        ("RPUSH other a", "RENAMENX other q"),
        ("RPUSH other a", "COPY other q"),
        ("RPUSH other a", "SORT other ALPHA STORE q"),
        ("RPUSH other a", "LMOVE other q LEFT LEFT"),
        ("RPUSH other a", "RPOPLPUSH other q"),
    ],
)
def test_a_list_that_comes_into_place_serves_who_waits(talk: Session, before: str, waking: str) -> None:
    """Row 68."""
    talk.play(f"""
        > {before}
        waiting> BLPOP q 0
        (blocks)
        > {waking}
        waiting<
        ["q", "a"]
        > EXISTS q
        :0
    """)


def test_a_restored_list_serves_who_waits(talk: Session) -> None:
    talk.play("""
        > RPUSH other a
        waiting> BLPOP q 0
        (blocks)
    """)
    wire = talk.wire()
    assert wire("RESTORE", "q", 0, wire("DUMP", "other")) == "OK"
    talk.play("""
        waiting<
        ["q", "a"]
    """)


@pytest.mark.parametrize("waking", ["MOVE q 0", "SWAPDB 0 5", "COPY q q DB 0"])
def test_a_list_that_comes_from_another_database_serves_who_waits(talk: Session, waking: str) -> None:
    talk.play(f"""
        > SELECT 5
        > RPUSH q a
        waiting> BLPOP q 0
        (blocks)
        > {waking}
        waiting<
        ["q", "a"]
    """)


def test_only_what_is_there_after_a_transaction_counts(server: Server, talk: Session) -> None:
    talk.play("""
        waiting> BLPOP q 0
        (blocks)
        > MULTI
        > RPUSH q a
        > DEL q
        > EXEC
        > MULTI
        > RPUSH q a
        > DEL q
        > SET q text
        > EXEC
    """)
    assert server.blocked_clients() == 1
    talk.play("""
        > DEL q
        > MULTI
        > LPUSH q a
        > LPUSH q b
        > EXEC
        [:1, :2]
        waiting<
        ["q", "b"]
    """)


def test_other_types_do_not_disturb_who_waits(server: Server, talk: Session) -> None:
    talk.play("""
        waiting> BLPOP q 0
        (blocks)
        > SET q text
        > DEL q
        > XADD q 1-0 f v
        > DEL q
        > SADD q member
        > DEL q
    """)
    assert server.blocked_clients() == 1
    talk.play("""
        > RPUSH q a
        waiting<
        ["q", "a"]
    """)


@pytest.mark.since("7.2")
def test_a_key_of_another_type_is_refused_when_a_later_one_wakes(talk: Session) -> None:
    """The command runs again as a whole, so the first key is looked at first."""
    talk.play(f"""
        waiting> BLPOP p q 0
        (blocks)
        > SET p text
        > RPUSH q a
        waiting<
        {WRONG_TYPE}
        > LRANGE q 0 -1
        ["a"]
    """)


def test_a_list_and_a_sorted_set_are_waited_for_side_by_side(server: Server, talk: Session) -> None:
    """Each waiting client is served by a key of its own type only."""
    talk.play("""
        scores> BZPOPMIN q 0
        (blocks)
        list> BLPOP q 0
        (blocks)
        > RPUSH q a
        list<
        ["q", "a"]
        list> BLPOP q 0
        (blocks)
        > ZADD q 1 m
        scores<
        ["q", "m", "1"]
    """)
    assert server.blocked_clients() == 1


def test_nobody_waits_inside_a_transaction(talk: Session) -> None:
    talk.play("""
        > RPUSH q a
        > MULTI
        > BLPOP q 0
        > BLPOP q 0
        > BRPOP q 0
        > BLMOVE q r LEFT LEFT 0
        > BRPOPLPUSH q r 0
        > EXEC
        [["q", "a"], (nil array), (nil array), (nil), (nil)]
    """)


def test_a_client_that_left_takes_nothing(server: Server, talk: Session) -> None:
    """Row 68: the element goes to the next one."""
    talk.play("""
        leaving> BLPOP q 0
        (blocks)
        staying> BLPOP q 0
        (blocks)
    """)
    talk.wire("leaving").close()
    server.wait_until_blocked(1)
    talk.play("""
        > RPUSH q a b
        staying<
        ["q", "a"]
        > LRANGE q 0 -1
        ["b"]
    """)


def test_a_killed_client_takes_nothing(server: Server, talk: Session) -> None:
    talk.play("""
        waiting> CLIENT ID
        :<client>
        waiting> BLMOVE q r LEFT LEFT 0
        (blocks)
        > CLIENT KILL ID <client>
        :1
    """)
    wait_until(lambda: server.blocked_clients() == 0, "nobody blocked")
    talk.play("""
        > RPUSH q a
        > LRANGE q 0 -1
        ["a"]
        > EXISTS r
        :0
    """)


@pytest.mark.since("7.2")
def test_waiting_clients_and_their_keys_are_counted(server: Server, talk: Session) -> None:
    talk.play("""
        one> BLPOP a b 0
        (blocks)
        two> BLPOP b c c 100
        (blocks)
    """)
    facts = server.info("clients")
    assert facts["blocked_clients"] == "2"
    assert facts["total_blocking_keys"] == "3"
    assert facts["total_blocking_keys_on_nokey"] == "0"
    assert facts["clients_in_timeout_table"] == "1"
    talk.play("""
        > RPUSH b 1 2
        one<
        ["b", "1"]
        two<
        ["b", "2"]
    """)
    assert server.info("clients")["total_blocking_keys"] == "0"


@pytest.mark.since("7.2")
@pytest.mark.parametrize(
    ("timeout", "error"),
    [
        ("x", "timeout is not a float or out of range"),
        ("", "timeout is not a float or out of range"),
        ("1 ", "timeout is not a float or out of range"),
        ("nan", "timeout is not a float or out of range"),
        ("-1", "timeout is negative"),
        ("-0.5", "timeout is negative"),
        ("1e300", "timeout is out of range"),
        ("-0x1", "timeout is negative"),
        ("9223372036854775807", "timeout is out of range"),
        ("0x7FFFFFFFFFFFFF", "timeout is out of range"),
    ],
)
@pytest.mark.parametrize(
    "command", ["BLPOP q {}", "BLMPOP {} 1 q LEFT", "BLMOVE q r LEFT LEFT {}", "BRPOPLPUSH q r {}"]
)
def test_a_wrong_timeout_takes_nothing(talk: Session, command: str, timeout: str, error: str) -> None:
    talk.play(f"""
        > RPUSH q a
        > {command.format(f'"{timeout}"')}
        -ERR {error}
        > LLEN q
        :1
    """)


def test_waiting_ends_in_time_although_writes_are_paused(talk: Session) -> None:
    talk.play("""
        waiting> BLPOP q 0.2
        (blocks)
        > CLIENT PAUSE 100000 WRITE
        +OK
        waiting<
        (nil array)
        > CLIENT UNPAUSE
        +OK
    """)


def test_the_ends_are_checked_before_the_timeout(talk: Session) -> None:
    talk.play(f"""
        > SET q text
        > BLMOVE q r UP LEFT x
        -ERR syntax error
        > BLMOVE q r LEFT LEFT x
        -ERR timeout is not a float or out of range
        > BLPOP q x
        -ERR timeout is not a float or out of range
        > BLPOP q 1
        {WRONG_TYPE}
    """)

"""Waiting readers (rows 53-58, 93, 101, 302). A test waits until the server counts the client as blocked."""

import pytest

from support.servers import Server, wait_until
from support.session import Session
from support.wire import ConnectionClosed


def test_a_reader_waits_for_an_entry(talk: Session) -> None:
    """Rows 53, 54."""
    talk.play("""
        > XADD s 1-0 f old
        waiting> XREAD BLOCK 0 STREAMS s $
        (blocks)
        > XADD s 2-0 f new
        waiting<
        [["s", [["2-0", ["f", "new"]]]]]
    """)


def test_waiting_ends_with_null(talk: Session) -> None:
    """Row 53."""
    talk.play("""
        > XADD s 1-0 f v
        > XREAD BLOCK 30 STREAMS s $
        (nil array)
        > XREAD BLOCK 30 STREAMS missing $
        (nil array)
        > EXISTS missing
        :0
    """)


def test_a_reader_can_wait_for_a_stream_that_does_not_exist_yet(talk: Session) -> None:
    """Row 54."""
    talk.play("""
        waiting> XREAD BLOCK 0 STREAMS s $
        (blocks)
        > XADD s 1-0 f v
        waiting<
        [["s", [["1-0", ["f", "v"]]]]]
    """)


def test_there_is_no_waiting_when_data_is_there(talk: Session) -> None:
    """Row 55."""
    talk.play("""
        > XADD s 1-0 f v
        > XREAD BLOCK 0 STREAMS s 0
        [["s", [["1-0", ["f", "v"]]]]]
        > XREAD BLOCK 0 STREAMS missing s $ 0-0
        [["s", [["1-0", ["f", "v"]]]]]
    """)


def test_a_reader_waits_for_entries_after_any_id(talk: Session) -> None:
    """Row 55."""
    talk.play("""
        > XADD s 5-0 f v
        waiting> XREAD BLOCK 0 STREAMS s 7-0
        (blocks)
        > XADD s 6-0 f v
        > XADD s 7-0 f v
        > XADD s 8-0 f v
        waiting<
        [["s", [["8-0", ["f", "v"]]]]]
    """)


def test_the_first_stream_with_data_answers(talk: Session) -> None:
    """Row 56."""
    talk.play("""
        waiting> XREAD BLOCK 0 STREAMS a b c $ $ $
        (blocks)
        > XADD b 1-0 f v
        waiting<
        [["b", [["1-0", ["f", "v"]]]]]
    """)


def test_every_waiting_reader_gets_the_entry(talk: Session) -> None:
    """Row 57."""
    for name in ("one", "two", "three"):
        talk.play(f"{name}> XREAD BLOCK 0 STREAMS s $\n(blocks)")
    talk.play("> XADD s 1-0 f v")
    for name in ("one", "two", "three"):
        talk.play(f'{name}<\n[["s", [["1-0", ["f", "v"]]]]]')


def test_waiting_consumers_are_served_in_the_order_they_came(server: Server, talk: Session) -> None:
    """Rows 58, 93: each entry goes to the one that has waited longest, and the others go on waiting."""
    talk.play("> XGROUP CREATE s g $ MKSTREAM")
    readers = [f"reader{i}" for i in range(10)]
    for name in readers:
        talk.play(f"{name}> XREADGROUP GROUP g {name} BLOCK 0 STREAMS s >\n(blocks)")
    for number, name in enumerate(readers, 1):
        talk.play(f"""
            > XADD s {number}-0 n {number}
            {name}<
            [["s", [["{number}-0", ["n", "{number}"]]]]]
        """)
        assert server.blocked_clients() == len(readers) - number


def test_one_entry_wakes_one_consumer(server: Server, talk: Session) -> None:
    """Row 93."""
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        one> XREADGROUP GROUP g one BLOCK 0 STREAMS s >
        (blocks)
        two> XREADGROUP GROUP g two BLOCK 0 STREAMS s >
        (blocks)
        > XADD s 1-0 f v
        one<
        [["s", [["1-0", ["f", "v"]]]]]
        > XPENDING s g
        [:1, "1-0", "1-0", [["one", "1"]]]
    """)
    assert server.blocked_clients() == 1
    talk.play("""
        > XADD s 2-0 f v
        two<
        [["s", [["2-0", ["f", "v"]]]]]
    """)


def test_groups_and_plain_readers_wait_side_by_side(talk: Session) -> None:
    """Rows 57, 61, 93."""
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        > XGROUP CREATE s h $
        plain> XREAD BLOCK 0 STREAMS s $
        (blocks)
        member> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
        (blocks)
        other> XREADGROUP GROUP h c BLOCK 0 STREAMS s >
        (blocks)
        > XADD s 1-0 f v
        plain<
        [["s", [["1-0", ["f", "v"]]]]]
        member<
        [["s", [["1-0", ["f", "v"]]]]]
        other<
        [["s", [["1-0", ["f", "v"]]]]]
    """)


def test_several_entries_of_one_transaction_wake_a_reader_once(talk: Session) -> None:
    """Rows 54, 57."""
    talk.play("""
        waiting> XREAD BLOCK 0 STREAMS s $
        (blocks)
        > MULTI
        > XADD s 1-0 f v
        > XADD s 2-0 f v
        > EXEC
        ["1-0", "2-0"]
        waiting<
        [["s", [["1-0", ["f", "v"]], ["2-0", ["f", "v"]]]]]
    """)


@pytest.mark.since("7.2")
def test_an_entry_that_is_gone_at_once_wakes_nobody(server: Server, talk: Session) -> None:
    """Row 54."""
    talk.play("""
        waiting> XREAD BLOCK 0 STREAMS s $
        (blocks)
        > XADD s MAXLEN 0 1-0 f v
        > MULTI
        > XADD s 2-0 f v
        > XDEL s 2-0
        > EXEC
    """)
    assert server.blocked_clients() == 1
    talk.play("""
        > XADD s 3-0 f v
        waiting<
        [["s", [["3-0", ["f", "v"]]]]]
    """)


def test_count_holds_for_a_reader_that_waited(talk: Session) -> None:
    """Rows 50, 93."""
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        waiting> XREADGROUP GROUP g c COUNT 1 BLOCK 0 STREAMS s >
        (blocks)
        > MULTI
        > XADD s 1-0 f v
        > XADD s 2-0 f v
        > EXEC
        waiting<
        [["s", [["1-0", ["f", "v"]]]]]
        > XREADGROUP GROUP g c STREAMS s >
        [["s", [["2-0", ["f", "v"]]]]]
    """)


def test_a_reader_does_not_wait_inside_a_transaction(talk: Session) -> None:
    """Row 53."""
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        > MULTI
        > XREAD BLOCK 0 STREAMS s $
        +QUEUED
        > XREADGROUP GROUP g c BLOCK 0 STREAMS s >
        +QUEUED
        > EXEC
        [(nil array), (nil array)]
    """)


def test_a_waiting_consumer_learns_that_its_group_is_gone(server: Server, talk: Session) -> None:
    """Row 101."""
    error = "-NOGROUP the consumer group this client was blocked on no longer exists"
    if server.dialect >= (7, 2):
        error = "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"
    talk.play(f"""
        > XGROUP CREATE s g $ MKSTREAM
        waiting> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
        (blocks)
        > XGROUP DESTROY s g
        :1
        waiting<
        {error}
    """)


@pytest.mark.parametrize("removal", ["DEL s", "UNLINK s", "FLUSHALL", "FLUSHDB", "RENAME s elsewhere", "MOVE s 5"])
def test_a_waiting_consumer_learns_that_its_stream_is_gone(server: Server, talk: Session, removal: str) -> None:
    """Rows 101, 302."""
    error = "-UNBLOCKED the stream key no longer exists"
    if server.dialect >= (7, 2):
        error = "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"
    talk.play(f"""
        > XGROUP CREATE s g $ MKSTREAM
        waiting> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
        (blocks)
        > {removal}
        waiting<
        {error}
    """)


@pytest.mark.since("7.2")
def test_a_waiting_consumer_learns_that_its_key_has_another_type(talk: Session) -> None:
    """Rows 17, 101."""
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        waiting> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
        (blocks)
        > SET s text
        waiting<
        -WRONGTYPE Operation against a key holding the wrong kind of value
    """)


@pytest.mark.parametrize("removal", ["DEL s", "FLUSHALL"])
def test_a_plain_reader_goes_on_waiting_when_its_stream_is_gone(server: Server, talk: Session, removal: str) -> None:
    """Rows 101, 302."""
    talk.play(f"""
        > XADD s 5-0 f v
        waiting> XREAD BLOCK 0 STREAMS s $
        (blocks)
        > {removal}
    """)
    assert server.blocked_clients() == 1
    talk.play("""
        > XADD s 6-0 f v
        waiting<
        [["s", [["6-0", ["f", "v"]]]]]
    """)


def test_flushing_leaves_no_groups_behind(talk: Session) -> None:
    """Row 302."""
    talk.play("""
        > XADD s 1-0 f v
        > XGROUP CREATE s g 0
        > XREADGROUP GROUP g c STREAMS s >
        > FLUSHALL
        +OK
        > XADD s 1-0 f v
        "1-0"
        > XINFO GROUPS s
        []
        > XPENDING s g
        -NOGROUP No such key 's' or consumer group 'g'
    """)


def test_a_stream_that_arrives_under_the_name_wakes_its_readers(talk: Session) -> None:
    """Row 54."""
    talk.play("""
        > XADD other 1-0 f v
        > XGROUP CREATE other g 0
        waiting> XREAD BLOCK 0 STREAMS s 0
        (blocks)
        > RENAME other s
        +OK
        waiting<
        [["s", [["1-0", ["f", "v"]]]]]
    """)


@pytest.mark.parametrize("command", ["XREAD BLOCK 0 STREAMS s $", "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"])
def test_another_client_can_end_the_waiting(talk: Session, command: str) -> None:
    """Row 53."""
    talk.play(f"""
        > XGROUP CREATE s g $ MKSTREAM
        waiting> CLIENT ID
        :<client>
        waiting> {command}
        (blocks)
        > CLIENT UNBLOCK <client>
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
        waiting> PING
        +PONG
    """)


def test_a_client_that_left_gets_no_entry(server: Server, talk: Session) -> None:
    """Row 93."""
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        leaving> XREADGROUP GROUP g leaving BLOCK 0 STREAMS s >
        (blocks)
        staying> XREADGROUP GROUP g staying BLOCK 0 STREAMS s >
        (blocks)
    """)
    talk.wire("leaving").close()
    server.wait_until_blocked(1)
    talk.play("""
        > XADD s 1-0 f v
        staying<
        [["s", [["1-0", ["f", "v"]]]]]
        > XPENDING s g
        [:1, "1-0", "1-0", [["staying", "1"]]]
    """)


def test_a_killed_client_stops_waiting(server: Server, talk: Session) -> None:
    """Row 93."""
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        waiting> CLIENT ID
        :<client>
        waiting> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
        (blocks)
        > CLIENT KILL ID <client>
        :1
    """)
    with pytest.raises((ConnectionClosed, ConnectionError)):
        talk.wire("waiting").read()
    wait_until(lambda: server.blocked_clients() == 0, "nobody blocked")


def test_commands_sent_while_waiting_are_answered_afterwards_in_order(talk: Session) -> None:
    """Row 53."""
    talk.play("""
        waiting> XREAD BLOCK 0 STREAMS s $
        (blocks)
    """)
    talk.wire("waiting").send("XLEN s")
    talk.wire("waiting").send("PING")
    talk.play("""
        > XADD s 1-0 f v
        waiting<
        [["s", [["1-0", ["f", "v"]]]]]
        waiting<
        :1
        waiting<
        +PONG
    """)


def test_a_resp3_reader_waits_too(talk3: Session) -> None:
    """Rows 52, 53."""
    talk3.play("""
        > XGROUP CREATE s g $ MKSTREAM
        waiting> XREAD BLOCK 0 STREAMS s $
        (blocks)
        member> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
        (blocks)
        > XADD s 1-0 f v
        waiting<
        {"s": [["1-0", ["f", "v"]]]}
        member<
        {"s": [["1-0", ["f", "v"]]]}
    """)

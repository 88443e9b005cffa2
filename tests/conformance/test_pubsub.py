"""Channels (rows 62-65): what listeners are told, in both protocols, and in what order."""

from collections.abc import Callable

import pytest

from support.servers import Server, wait_until
from support.session import Session
from support.wire import NULL, NULL_BULK, ConnectionClosed, ErrorReply, Push, Wire, encode


def test_one_confirmation_for_each_channel(talk: Session) -> None:
    """Row 62."""
    wire = talk.wire()
    assert wire("SUBSCRIBE a b a") == [b"subscribe", b"a", 1]
    assert [wire.read(), wire.read()] == [[b"subscribe", b"b", 2], [b"subscribe", b"a", 2]]
    assert wire("PSUBSCRIBE n*") == [b"psubscribe", b"n*", 3]
    assert wire("SSUBSCRIBE a") == [b"ssubscribe", b"a", 1]
    assert wire("UNSUBSCRIBE a missing") == [b"unsubscribe", b"a", 2]
    assert wire.read() == [b"unsubscribe", b"missing", 2]
    assert wire("UNSUBSCRIBE") == [b"unsubscribe", b"b", 1]
    assert wire("UNSUBSCRIBE") == [b"unsubscribe", NULL_BULK, 1]
    assert wire("PUNSUBSCRIBE") == [b"punsubscribe", b"n*", 0]
    assert wire("PUNSUBSCRIBE") == [b"punsubscribe", NULL_BULK, 0]
    assert wire("SUNSUBSCRIBE") == [b"sunsubscribe", b"a", 0]
    assert wire("SUNSUBSCRIBE") == [b"sunsubscribe", NULL_BULK, 0]


def test_patterns_match_channels(talk: Session) -> None:
    """Row 63."""
    talk.play("""
        ear> PSUBSCRIBE news.*
        ["psubscribe", "news.*", :1]
        > PUBLISH news.x hi
        :1
        ear<
        ["pmessage", "news.*", "news.x", "hi"]
        > PUBLISH news hi
        :0
    """)


def test_every_listener_gets_the_message(talk: Session) -> None:
    """Row 64: one who listens by name and by pattern gets it twice."""
    talk.play("""
        ann> SUBSCRIBE a
        ["subscribe", "a", :1]
        bob> SUBSCRIBE a
        ["subscribe", "a", :1]
        bob> PSUBSCRIBE a*
        ["psubscribe", "a*", :2]
        > PUBLISH a hi
        :3
        ann<
        ["message", "a", "hi"]
        bob<
        ["message", "a", "hi"]
        bob<
        ["pmessage", "a*", "a", "hi"]
        > PUBLISH b hi
        :0
    """)


def test_nothing_is_kept_for_who_comes_late(talk: Session) -> None:
    """Row 65: the first thing a late listener hears is what was published after it came."""
    talk.play("""
        > PUBLISH a early
        :0
        ear> SUBSCRIBE a
        ["subscribe", "a", :1]
        > PUBLISH a late
        :1
        ear<
        ["message", "a", "late"]
    """)


def test_shard_channels_are_a_space_of_their_own(talk: Session) -> None:
    talk.play("""
        ear> SSUBSCRIBE a
        ["ssubscribe", "a", :1]
        ear> PSUBSCRIBE *
        ["psubscribe", "*", :1]
        > SPUBLISH a hi
        :1
        ear<
        ["smessage", "a", "hi"]
        > PUBSUB SHARDCHANNELS
        ["a"]
        > PUBSUB SHARDCHANNELS b*
        []
        > PUBSUB SHARDNUMSUB a b
        ["a", :1, "b", :0]
        > PUBSUB CHANNELS
        []
        > SPUBLISH b hi
        :0
    """)


def test_who_listens_to_what_can_be_asked(talk: Session) -> None:
    talk.play("""
        ann> SUBSCRIBE news
        bob> SUBSCRIBE news
        bob> PSUBSCRIBE n*
        ann> PSUBSCRIBE n*
        > PUBSUB CHANNELS
        ["news"]
        > PUBSUB CHANNELS n?ws
        ["news"]
        > PUBSUB CHANNELS x*
        []
        > PUBSUB NUMSUB
        []
        > PUBSUB NUMSUB news other
        ["news", :2, "other", :0]
        > PUBSUB NUMPAT
        :1
        > PUBSUB CHANNELS a b
        -ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.
        > PUBSUB NUMPAT x
        -ERR wrong number of arguments for 'pubsub|numpat' command
        > PUBSUB WHO
        -ERR unknown subcommand 'WHO'. Try PUBSUB HELP.
        > PUBLISH a
        -ERR wrong number of arguments for 'publish' command
        > SUBSCRIBE
        -ERR wrong number of arguments for 'subscribe' command
    """)


@pytest.mark.parametrize("command", ["GET k", "PUBLISH a b", "MULTI", "HELLO 3", "CLIENT LIST", "XADD s * f v"])
def test_a_listener_in_resp2_may_only_listen_ping_and_leave(client: Wire, command: str) -> None:
    client("SUBSCRIBE a")
    name = "client|list" if command == "CLIENT LIST" else command.split()[0].lower()
    assert client(command) == ErrorReply(
        f"ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
        "context"
    )
    assert client("PING") == [b"pong", b""]
    assert client("PING hi") == [b"pong", b"hi"]
    assert client("RESET") == "RESET"
    assert client("PING") == "PONG"


def test_a_listener_in_resp3_may_say_anything(talk3: Session) -> None:
    ear = talk3.wire("ear")
    assert ear("SUBSCRIBE a") == Push([b"subscribe", b"a", 1])
    assert ear("SET k v") == "OK"
    assert ear("PING hi") == b"hi"
    assert ear("PING") == "PONG"
    talk3.wire()("PUBLISH a hi")
    assert ear.read() == Push([b"message", b"a", b"hi"])
    assert ear("UNSUBSCRIBE") == Push([b"unsubscribe", b"a", 0])
    assert ear("UNSUBSCRIBE") == Push([b"unsubscribe", NULL, 0])


@pytest.mark.since("7.2")
def test_a_message_to_oneself_comes_behind_the_reply(talk3: Session) -> None:
    wire = talk3.wire()
    wire("SUBSCRIBE a")
    assert wire("PUBLISH a hi") == 1
    assert wire.read() == Push([b"message", b"a", b"hi"])
    for command in ("MULTI", "PING one", "PUBLISH a hi", "PING two"):
        wire(command)
    assert wire("EXEC") == [b"one", 1, b"two"]
    assert wire.read() == Push([b"message", b"a", b"hi"])


@pytest.mark.since("7.2")
def test_a_transaction_may_listen(talk: Session) -> None:
    wire = talk.wire()
    for command in ("MULTI", "SUBSCRIBE a", "PUBLISH a hi", "UNSUBSCRIBE a"):
        assert wire(command) in ("OK", "QUEUED")
    assert wire("EXEC") == [[b"subscribe", b"a", 1], 1, [b"unsubscribe", b"a", 0]]
    assert wire.read() == [b"message", b"a", b"hi"]


def test_replies_turned_off_let_messages_through(talk3: Session) -> None:
    ear, wire = talk3.wire("ear"), talk3.wire()
    ear.send("CLIENT REPLY OFF")
    assert ear("SUBSCRIBE a") == Push([b"subscribe", b"a", 1])
    wire("PUBLISH a hi")
    assert ear.read() == Push([b"message", b"a", b"hi"])
    assert ear("UNSUBSCRIBE a") == Push([b"unsubscribe", b"a", 0])
    ear.send("PING")
    assert ear("CLIENT REPLY ON") == "OK"
    ear.send("CLIENT REPLY SKIP")
    assert ear("SUBSCRIBE a") == Push([b"subscribe", b"a", 1])
    assert ear("PING") == "PONG"


def test_messages_keep_any_bytes_and_their_order(talk: Session) -> None:
    ear, wire = talk.wire("ear"), talk.wire()
    ear("SUBSCRIBE", b"\r\n\x00")
    messages = [b"", b"\r\n", bytes(range(256)), b"x" * 100_000]
    wire.send_bytes(b"".join(encode([b"PUBLISH", b"\r\n\x00", message]) for message in messages))
    assert [wire.read() for _ in messages] == [1] * len(messages)
    assert [ear.read() for _ in messages] == [[b"message", b"\r\n\x00", message] for message in messages]


def test_a_client_that_hangs_up_listens_no_more(server: Server, talk: Session) -> None:
    talk.wire("ear")("SUBSCRIBE a")
    assert server.control("PUBLISH", "a", "hi") == 1
    talk.wire("ear").close()
    wait_until(lambda: server.control("PUBLISH", "a", "hi") == 0, "the listener to be forgotten")
    assert server.control("PUBSUB", "CHANNELS") == []


def test_clients_that_listen_can_be_found_and_closed(server: Server, talk: Session) -> None:
    ear = talk.wire("ear")
    ear("SUBSCRIBE a")
    ear("PSUBSCRIBE a*")
    lines = server.control("CLIENT", "LIST", "TYPE", "pubsub")
    assert isinstance(lines, bytes)
    assert b" flags=P " in lines
    assert b" sub=1 psub=1 ssub=0 " in lines
    assert server.info("stats")["pubsub_channels"] == "1"
    assert server.info("stats")["pubsub_patterns"] == "1"
    assert server.control("CLIENT", "KILL", "TYPE", "pubsub") == 1
    with pytest.raises(ConnectionClosed):
        ear.read()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("pubsub 1mb 64k 3", "normal 0 0 0 slave 268435456 67108864 60 pubsub 1048576 64000 3"),
        ("replica 1 2 3 NORMAL 4 5 6", "normal 4 5 6 slave 1 2 3 pubsub 33554432 8388608 60"),
        ("", "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"),
        ("normal 0 0 0", "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"),
    ],
)
def test_output_limits_are_set_by_class(
    client: Wire, settings: Callable[[str, object], None], value: str, shown: str
) -> None:
    name = "client-output-buffer-limit"
    settings(name, value)
    assert client("CONFIG GET " + name) == [name.encode(), shown.encode()]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("pubsub 1 2", "Wrong number of arguments in buffer limit configuration."),
        ("master 1 2 3", "Invalid client class specified in buffer limit configuration."),
        ("nobody 1 2 3", "Invalid client class specified in buffer limit configuration."),
        ("pubsub x 2 3", "Error in hard, soft or soft_seconds setting in buffer limit configuration."),
        ("pubsub 1 -2 3", "Error in hard, soft or soft_seconds setting in buffer limit configuration."),
        ("pubsub 1 2 -3", "Error in hard, soft or soft_seconds setting in buffer limit configuration."),
        ("pubsub 1 2 3s", "Error in hard, soft or soft_seconds setting in buffer limit configuration."),
        ("pubsub 1 2 3 normal x 0 0", "Error in hard, soft or soft_seconds setting in buffer limit configuration."),
    ],
)
def test_wrong_output_limits_change_nothing(client: Wire, value: str, reason: str) -> None:
    name = "client-output-buffer-limit"
    before = client("CONFIG GET " + name)
    assert client("CONFIG", "SET", name, value) == ErrorReply(
        f"ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
    )
    assert client("CONFIG GET " + name) == before

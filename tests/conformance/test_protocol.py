"""The wire itself, as far as stream clients see it: pipelines, split messages, inline commands, both protocols."""

import pytest

from support.servers import Server
from support.session import Session
from support.wire import ConnectionClosed, ErrorReply, Map, Wire, encode


def test_a_pipeline_is_answered_in_order(client: Wire) -> None:
    replies = client.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 501)] + [("XLEN", "s")])
    assert replies == [b"%d-0" % i for i in range(1, 501)] + [500]


def test_a_command_may_arrive_byte_by_byte(client: Wire) -> None:
    for byte in encode([b"XADD", b"s", b"1-0", b"field", b"two\r\nlines"]):
        client.send_bytes(bytes([byte]))
    assert client.read() == b"1-0"
    assert client("XRANGE s - +") == [[b"1-0", [b"field", b"two\r\nlines"]]]


def test_commands_can_be_typed(client: Wire) -> None:
    client.send_bytes(b'XADD s 1-0 item "green tea"\r\nxlen s\nXRANGE s - +\r\n\r\nPING\r\n')
    assert client.read() == b"1-0"
    assert client.read() == 1
    assert client.read() == [[b"1-0", [b"item", b"green tea"]]]
    assert client.read() == "PONG"


def test_command_words_may_have_any_case(talk: Session) -> None:
    talk.play("""
        > xAdD s maxlen 5 1-0 f v
        "1-0"
        > xgroup create s g 0 mkstream
        +OK
        > xReadGroup group g c count 1 noack streams s >
        [["s", [["1-0", ["f", "v"]]]]]
        > xinfo stream s full count 1
        ["length", :1, ...]
    """)


def test_the_protocol_can_be_changed_at_any_time(server: Server, client: Wire) -> None:
    client("XADD s 1-0 f v")
    assert client("XREAD STREAMS s 0") == [[b"s", [[b"1-0", [b"f", b"v"]]]]]
    greeting = client("HELLO 3")
    assert isinstance(greeting, Map)
    assert greeting[b"proto"] == 3
    assert {b"server", b"version", b"id", b"mode", b"role", b"modules"} <= set(greeting)
    assert client("XREAD STREAMS s 0") == Map({b"s": [[b"1-0", [b"f", b"v"]]]})
    greeting = client("HELLO 2")
    assert isinstance(greeting, list)
    assert greeting[greeting.index(b"proto") + 1] == 2
    assert client("XREAD STREAMS s 0") == [[b"s", [[b"1-0", [b"f", b"v"]]]]]


@pytest.mark.parametrize(
    "data",
    [b"*1\r\n:5\r\n", b"*x\r\n", b"*1\r\n$x\r\n", b"*1\r\n$-5\r\n", b"*99999999999\r\n", b"*1\r\n$99999999999\r\n"],
)
def test_a_broken_message_ends_the_connection_with_a_reason(server: Server, data: bytes) -> None:
    with server.connect() as wire:
        wire.send_bytes(data)
        reply = wire.read()
        assert isinstance(reply, ErrorReply)
        assert reply.text.startswith("ERR Protocol error")
        with pytest.raises((ConnectionClosed, ConnectionError)):
            wire.read()
    with server.connect() as wire:
        assert wire("PING") == "PONG"


def test_quit_says_goodbye(server: Server) -> None:
    with server.connect() as wire:
        assert wire("QUIT") == "OK"
        with pytest.raises((ConnectionClosed, ConnectionError)):
            wire.read()


def test_databases_are_separate(talk: Session) -> None:
    talk.play("""
        > XADD s 1-0 f v
        > SELECT 7
        +OK
        > XLEN s
        :0
        waiting> SELECT 7
        waiting> XREAD BLOCK 0 STREAMS s $
        (blocks)
        other> XADD s 5-0 f other
        "5-0"
        > XADD s 1-0 f v
        waiting<
        [["s", [["1-0", ["f", "v"]]]]]
    """)


def test_a_client_can_be_named_and_found(talk: Session) -> None:
    talk.play("""
        > CLIENT SETNAME worker-1
        +OK
        > CLIENT GETNAME
        "worker-1"
        > CLIENT SETNAME "two words"
        -ERR Client names cannot contain spaces, newlines or special characters.
        > CLIENT ID
        :<id>
        > RESET
        +RESET
        > CLIENT GETNAME
        (nil)
        > CLIENT ID
        :<id>
        > ECHO hello
        "hello"
    """)


def test_a_client_may_ask_for_silence(client: Wire) -> None:
    client.send("CLIENT REPLY OFF")
    client.send("XADD s 1-0 f v")
    client.send("CLIENT REPLY ON")
    assert client.read() == "OK"
    client.send("CLIENT REPLY SKIP")
    client.send("XADD s 2-0 f v")
    assert client("XLEN s") == 2


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_stream_can_be_dumped_and_restored(server: Server, protocol: int) -> None:
    with server.connect(protocol=protocol) as wire:
        wire.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 301)])
        wire("XGROUP CREATE s g 0")
        wire("XREADGROUP GROUP g c COUNT 150 STREAMS s >")
        wire("XDEL s 5-0 200-0")
        wire("XCLAIM s g d 0 7-0 IDLE 60000 RETRYCOUNT 4 JUSTID")
        payload = wire("DUMP s")
        assert wire("RESTORE", "t", 0, payload) == "OK"
        assert wire("RESTORE", "t", 0, payload) == ErrorReply("BUSYKEY Target key name already exists.")
        assert wire("XRANGE t - +") == wire("XRANGE s - +")
        assert wire("XINFO GROUPS t") == wire("XINFO GROUPS s")
        assert wire("XPENDING t g") == wire("XPENDING s g")
        assert [row[1:4:2] for row in wire("XPENDING t g - + 200")] == [
            row[1:4:2] for row in wire("XPENDING s g - + 200")
        ]
        assert wire("XADD t 300-0 f v") == ErrorReply(
            "ERR The ID specified in XADD is equal or smaller than the target stream top item"
        )
        broken = payload[:20] + bytes([payload[20] ^ 1]) + payload[21:]
        assert isinstance(wire("RESTORE", "u", 0, broken), ErrorReply)

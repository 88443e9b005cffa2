"""One plain connection to wherever a URL leads: replies decoded or as bytes, and errors in words."""

import socket
import threading
import traceback

import pytest

from headrace import AccessDenied, CommandError, ConfigError, ConnectionLost, HeadraceError, ProtocolError, WrongType
from headrace.client import raw_connection
from headrace.client.raw_connection import ReplyTooLarge, open_raw
from support.deployments import KEEPS_NOTHING, Process, is_from_wheel, real_kinds, three_primaries
from support.pages import encode_reply

pytestmark = pytest.mark.other_process

SECRET = "s3cret/öf-the-house"
QUOTED = "s3cret%2F%C3%B6f-the-house"


def kinds():
    """Valkey always, every Redis in the long run."""
    return [
        pytest.param(kind, marks=[] if is_from_wheel(kind) else [pytest.mark.long], id=kind.name)
        for kind in real_kinds()
    ]


@pytest.fixture
def raw(url, name):
    with open_raw(url, name) as connection:
        yield connection


# Everywhere


def test_replies_are_decoded(raw, name):
    first_id = raw.call("XADD", name, "1-1", "item", b"\xff")

    assert first_id == b"1-1"
    assert raw.call("XLEN", name) == 1
    assert raw.call("XRANGE", name, "-", "+") == [[b"1-1", [b"item", b"\xff"]]]
    assert raw.call("EXISTS", name, name) == 2


def test_many_commands_go_in_one_write_and_a_refusal_stands_in_its_place(raw, name):
    replies = raw.call_many([("SET", name, "x"), ("XLEN", name), ("GET", name)])

    assert replies[0] == b"OK" and replies[2] == b"x"
    assert isinstance(replies[1], WrongType)
    with pytest.raises(WrongType):
        raw.call("XLEN", name)
    with pytest.raises(CommandError):
        raw.call("NOSUCHCOMMAND")


def test_many_large_commands_with_large_replies_do_not_block_each_other(raw):
    words = [bytes([number]) * 1_000_000 for number in range(40)]

    assert raw.call_many([("ECHO", word) for word in words]) == words


def test_a_transaction_tells_what_was_refused_inside_it(raw, name):
    *_, results = raw.call_many([("MULTI",), ("XADD", name, "1-0", "n", 1), ("LPUSH", name, "x"), ("EXEC",)])

    assert results[0] == b"1-0"
    assert isinstance(results[1], WrongType)


def test_raw_replies_come_one_by_one_byte_for_byte(raw, name):
    raw.call("XADD", name, "1-0", "text", "a\r\nb")
    raw.send("XRANGE", name, "-", "+")
    raw.send_many([("XLEN", name), ("XRANGE", name, "9", "+")])

    assert bytes(raw.receive()) == b"*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$4\r\ntext\r\n$4\r\na\r\nb\r\n"
    assert bytes(raw.receive()) == b":1\r\n"
    assert bytes(raw.receive()) == b"*0\r\n"
    assert raw.call("XLEN", name) == 1


def test_raw_replies_of_many_megabytes_are_whole(raw, name):
    values = [bytes([number]) * (1 << 20) for number in range(12)]
    raw.call_many([("XADD", name, f"{number}-1", "blob", value) for number, value in enumerate(values)])

    raw.send_many([("XRANGE", name, "-", "+"), ("XLEN", name), ("XRANGE", name, "-", "+", "COUNT", 3)])
    replies = [bytes(raw.receive()) for _ in range(3)]

    entries = [(b"%d-1" % number, [(b"blob", value)]) for number, value in enumerate(values)]
    assert replies == [encode_reply(entries), b":12\r\n", encode_reply(entries[:3])]


def test_a_raw_reply_stays_as_it_is_when_the_next_one_arrives(raw, name):
    raw.call_many([("XADD", name, "1-0", "n", "first"), ("XADD", name, "2-0", "n", "other")])
    raw.send("XRANGE", name, "1", "1")
    kept = raw.receive()

    raw.send("XRANGE", name, "2", "2")
    raw.receive()

    assert b"first" in bytes(kept)


def test_the_connection_goes_on_after_a_refused_raw_command(raw, name):
    raw.call("SET", name, "x")
    raw.send_many([("XRANGE", name, "-", "+"), ("GET", name)])

    with pytest.raises(WrongType):
        raw.receive()
    assert bytes(raw.receive()) == b"$1\r\nx\r\n"


def test_a_reply_beyond_the_limit_is_refused(raw, name, monkeypatch):
    monkeypatch.setattr(raw_connection, "MAX_REPLY_BYTES", 1 << 20)
    raw.call("XADD", name, "*", "blob", b"x" * (3 << 20))

    raw.send("XRANGE", name, "-", "+")

    with pytest.raises(ReplyTooLarge, match="ask for less"):
        raw.receive()
    with pytest.raises(ConnectionLost):
        raw.call("PING")


def test_a_connection_that_was_cut_is_lost(raw, url, name):
    with open_raw(url, name) as other:
        other.call("CLIENT", "KILL", "ID", raw.call("CLIENT", "ID"))

    with pytest.raises(ConnectionLost, match="broke"):
        raw.call("PING")


def test_a_closed_connection_says_so(url, name):
    raw = open_raw(url, name)
    raw.close()
    raw.close()

    with pytest.raises(ConnectionLost):
        raw.call("PING")


# Users, places, errors


@pytest.fixture
def guarded(kind):
    """A server with a password, and a user who may only read streams: not even ECHO."""
    with Process(kind, *KEEPS_NOTHING) as server:
        server.command_reply("XADD", "orders", "1-0", "text", "a")
        server.command_reply("ACL", "SETUSER", "reader", "on", f">{SECRET}", "~*", "+xrange", "+xlen")
        server.command_reply("CONFIG", "SET", "requirepass", SECRET)
        yield server


@pytest.mark.parametrize("kind", kinds())
def test_a_user_who_may_only_read_streams_reads_them(guarded):
    with open_raw(f"redis://reader:{QUOTED}@127.0.0.1:{guarded.port}", "orders") as raw:
        raw.send_many([("XRANGE", "orders", "-", "+"), ("XLEN", "orders"), ("XADD", "orders", "*", "a", "b")])

        assert bytes(raw.receive()) == b"*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$4\r\ntext\r\n$1\r\na\r\n"
        assert bytes(raw.receive()) == b":1\r\n"
        with pytest.raises(AccessDenied):
            raw.receive()
        assert raw.call("XLEN", "orders") == 1


@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize("user", ["", f"ann:{QUOTED}x@"])
def test_a_password_that_is_missing_or_wrong_is_told_and_never_shown(guarded, user):
    with pytest.raises(AccessDenied) as caught:
        open_raw(f"redis://{user}127.0.0.1:{guarded.port}", "orders")

    said = "".join(traceback.format_exception(caught.value, chain=False))
    assert f"redis://127.0.0.1:{guarded.port}" in said
    assert "s3cret" not in said


@pytest.mark.parametrize("kind", kinds())
def test_the_database_of_the_url_is_used_and_its_password_is_shown_nowhere(guarded):
    with open_raw(f"redis://:{QUOTED}@127.0.0.1:{guarded.port}/3", "orders") as raw:
        assert raw.call("EXISTS", "orders") == 0
        assert repr(raw) == f"RawConnection('redis://127.0.0.1:{guarded.port}/3')"


def test_the_folder_of_a_valkey_is_opened_and_left(tmp_path):
    url = f"valkey:{tmp_path}/data"
    with open_raw(url, "orders") as raw, open_raw(url, "orders") as other:
        raw.call("XADD", "orders", "1-0", "n", 1)
        assert other.call("XLEN", "orders") == 1
        assert raw.shown == url

    with open_raw(url, "orders") as raw:
        assert raw.call("XLEN", "orders") == 1


def test_a_broker_inside_a_process_cannot_be_reached_from_others():
    with pytest.raises(ConfigError, match="headrace serve"):
        open_raw("embedded:", "orders")


def test_a_server_that_is_not_there_is_told():
    with pytest.raises(ConnectionLost, match=r"Cannot reach redis://127\.0\.0\.1:1 "):
        open_raw("redis://127.0.0.1:1", "orders")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_a_server_of_another_kind_is_told(answer):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises((ProtocolError, ConnectionLost)) as caught:
            open_raw(f"redis://127.0.0.1:{listener.getsockname()[1]}", "orders", timeout_s=5)
        thread.join()

    assert isinstance(caught.value, HeadraceError) and "\n" not in str(caught.value)


@pytest.mark.long
@pytest.mark.parametrize("kind", kinds())
def test_a_key_that_another_node_has_is_told_so_that_the_caller_connects_again(kind):
    with three_primaries(kind) as url, open_raw(url, "orders") as raw:
        raw.call("XADD", "orders", "1-0", "n", 1)
        elsewhere = next(name for name in map(str, range(100)) if is_elsewhere(raw, name))

        with pytest.raises(ConnectionLost, match=r"another node has 'orders' now \(MOVED\); nothing was done"):
            raw.call("XLEN", elsewhere)
        with open_raw(url, elsewhere) as other:
            assert other.call("XLEN", elsewhere) == 0


def is_elsewhere(raw, name):
    return isinstance(raw.call_many([("XLEN", name)])[0], ConnectionLost)

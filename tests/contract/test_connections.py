"""What a client may rely on, whoever serves its socket: asyncio or uvloop."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.clock import SystemClock
from headrace.commands.call import State
from headrace.server.broker import until_closed
from headrace.server.conversation import Conversations
from headrace.server.listener import WRITE_HIGH_BYTES, Listener
from headrace.server.sockets import open_port

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `support`, whatever the import mode

from support.servers import wait_until
from support.wire import Wire, encode

LARGE = b"x" * 60_000
TIMEOUT_S = 60  # Only to end a broken test.


def loops() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    found: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.SelectorEventLoop}
    try:
        import uvloop
    except ImportError:
        return found
    return {**found, "uvloop": uvloop.new_event_loop}


class Served:
    """A broker in a thread, in a loop of some kind."""

    def __init__(self, make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.make_loop = make_loop
        self.port = 0
        self.is_ready = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        assert self.is_ready.wait(TIMEOUT_S)

    def run(self) -> None:
        with asyncio.Runner(loop_factory=self.make_loop) as runner:
            runner.run(self.serve())

    async def serve(self) -> None:
        clock = SystemClock()
        self.loop = asyncio.get_running_loop()
        self.stopped = asyncio.Event()
        self.listener = Listener(Conversations(State(clock.now_ms())), clock.now_ms)
        entrance = await open_port(self.listener, "127.0.0.1", 0)
        self.port = entrance.sockets[0].getsockname()[1]
        self.is_ready.set()
        await self.stopped.wait()
        entrance.close()
        self.listener.close()
        await until_closed(self.listener)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.stopped.set)
        self.thread.join(TIMEOUT_S)
        assert not self.thread.is_alive()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S)


@pytest.fixture(params=loops())
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    made = Served(loops()[request.param])
    yield made
    made.stop()


@pytest.fixture
def wire(served: Served) -> Iterator[Wire]:
    with Wire(served.port) as made:
        yield made


def read_all(client: socket.socket) -> bytes:
    pieces = []
    while piece := client.recv(1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def read_exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = client.recv(size - len(data))
        assert piece, "the connection was closed"
        data += piece
    return data


def test_a_command_may_arrive_byte_by_byte(served: Served) -> None:
    with served.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in encode([b"ECHO", b"tea"]):
            client.sendall(bytes([byte]))
        assert read_exactly(client, 9) == b"$3\r\ntea\r\n"


def test_a_long_pipeline_is_answered_whole_and_in_order(served: Served) -> None:
    with served.connect() as client:
        count = 20_000
        sender = threading.Thread(
            target=client.sendall, args=(b"".join(encode([b"ECHO", b"%06d" % number]) for number in range(count)),)
        )
        sender.start()
        expected = b"".join(b"$6\r\n%06d\r\n" % number for number in range(count))
        assert read_exactly(client, len(expected)) == expected
        sender.join()


def test_who_has_no_more_to_say_still_gets_every_reply(served: Served) -> None:
    with served.connect() as client:
        client.sendall(encode([b"ECHO", LARGE]) * 100)
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == b"$%d\r\n%b\r\n" % (len(LARGE), LARGE) * 100


def test_who_does_not_read_is_not_read_from_and_misses_nothing_in_the_end(served: Served) -> None:
    request = encode([b"ECHO", LARGE])
    with served.connect() as client:
        client.setblocking(False)
        sent_bytes = 0
        while select.select([], [client], [], 1)[1]:  # Until nothing more is taken for a while.
            sent_bytes += client.send((request * 100)[sent_bytes % len(request) :])
            assert sent_bytes < 100 * WRITE_HIGH_BYTES, "everything is read, whatever waits for the client"
        client.settimeout(TIMEOUT_S)
        whole = sent_bytes // len(request)
        reply = b"$%d\r\n%b\r\n" % (len(LARGE), LARGE)
        assert read_exactly(client, whole * len(reply)) == reply * whole


def test_a_reader_that_waits_gets_what_another_client_adds(served: Served, wire: Wire) -> None:
    with served.connect() as client:
        client.sendall(encode([b"BLPOP", b"jobs", b"0"]))
        wait_until(lambda: "cmd=blpop" in wire("CLIENT LIST").decode(), "the reader")
        wire("RPUSH jobs tea")
        assert read_exactly(client, 23) == b"*2\r\n$4\r\njobs\r\n$3\r\ntea\r\n"


def test_a_waiting_client_that_has_gone_takes_nothing(served: Served, wire: Wire) -> None:
    with served.connect() as client:
        client.sendall(encode([b"BLPOP", b"jobs", b"0"]))
        wait_until(lambda: "cmd=blpop" in wire("CLIENT LIST").decode(), "the reader")
    wait_until(lambda: len(served.listener.connections) == 1, "its end")
    assert wire("RPUSH jobs tea") == 1
    assert wire("LLEN jobs") == 1


def test_a_client_that_breaks_off_with_replies_unsent_is_forgotten(served: Served, wire: Wire) -> None:
    wire("SETRANGE large 8000000 x")
    client = served.connect()
    client.sendall(encode([b"GET", b"large"]) * 2)
    assert client.recv(1) == b"$"
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # A reset instead of an end.
    client.close()
    wait_until(lambda: len(served.listener.connections) == 1, "its end")
    assert wire("PING") == "PONG"


def test_a_killed_client_is_closed_and_the_others_go_on(served: Served, wire: Wire) -> None:
    with served.connect() as client:
        client.sendall(encode([b"CLIENT", b"ID"]))
        number = client.recv(100).strip(b":\r\n").decode()
        assert wire(f"CLIENT KILL ID {number}") == 1
        assert read_all(client) == b""
    assert wire("PING") == "PONG"


def test_a_client_too_many_is_told_so(served: Served, wire: Wire) -> None:
    wire("CONFIG SET maxclients 1")
    with served.connect() as client:
        assert read_all(client) == b"-ERR max number of clients reached\r\n"
    assert wire("PING") == "PONG"


def test_whoever_quits_gets_the_reply_first(served: Served) -> None:
    with served.connect() as client:
        client.sendall(encode([b"PING"]) + encode([b"QUIT"]) + encode([b"PING"]))
        assert read_all(client) == b"+PONG\r\n+OK\r\n"

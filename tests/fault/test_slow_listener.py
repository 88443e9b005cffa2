"""A listener that never reads is closed at a finite limit; nobody else notices."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.testing import RunningBroker, running_broker

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `support`, whatever the import mode

from support.servers import wait_until
from support.wire import Wire, encode

MESSAGE = b"x" * 100_000
MESSAGES = 600  # 60 MB in all, many times what any limit here allows.


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


@pytest.fixture
def wire(broker: RunningBroker) -> Iterator[Wire]:
    with Wire(broker.port) as made:
        yield made


@pytest.fixture
def deaf(broker: RunningBroker) -> Iterator[socket.socket]:
    """A client that takes little, and reads nothing."""
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.connect((broker.host, broker.port))
        yield made


def resident_bytes(broker: RunningBroker) -> int:
    status = Path(f"/proc/{broker.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def subscribe(deaf: socket.socket, wire: Wire) -> None:
    deaf.sendall(encode([b"SUBSCRIBE", b"news"]))
    wait_until(lambda: wire("PUBSUB NUMSUB news") == [b"news", 1], "the listener")


def dropped(wire: Wire) -> int:
    lines = wire("INFO stats").decode().splitlines()
    return next(int(line.split(":")[1]) for line in lines if line.startswith("client_output_buffer_limit"))


def is_closed(deaf: socket.socket) -> bool:
    """Whether reading comes to an end. What was sent before the end is thrown away."""
    deaf.settimeout(60)
    try:
        while deaf.recv(1 << 20):
            pass
    except ConnectionResetError:
        return True
    return True


def hear(ear: Wire, heard: list[int]) -> None:
    for _ in range(MESSAGES):
        heard.append(len(ear.read()[2]))


def test_a_listener_that_never_reads_is_closed_and_the_others_get_everything(
    broker: RunningBroker, wire: Wire, deaf: socket.socket
) -> None:
    wire("CONFIG", "SET", "client-output-buffer-limit", "pubsub 4mb 0 0")
    subscribe(deaf, wire)
    heard: list[int] = []
    received: list[int] = []
    with Wire(broker.port) as ear:
        ear("SUBSCRIBE news")
        before = resident_bytes(broker)
        listening = threading.Thread(target=hear, args=(ear, heard))
        listening.start()
        for number in range(MESSAGES):
            received.append(wire("PUBLISH", "news", MESSAGE))
            # The other listener reads, and is never far behind: this is about the deaf one.
            wait_until(lambda number=number: len(heard) >= number - 10, "the listener that reads")
        listening.join(60)

    assert heard == [len(MESSAGE)] * MESSAGES
    assert received[0] == 2
    assert received[-1] == 1
    assert dropped(wire) == 1
    assert is_closed(deaf)
    assert resident_bytes(broker) - before < 40 * 1024 * 1024


def test_one_burst_cannot_grow_past_the_limit(wire: Wire, deaf: socket.socket) -> None:
    """All in one go, before anything can be written to the listener."""
    wire("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0")
    subscribe(deaf, wire)

    wire.send_bytes(encode([b"PUBLISH", b"news", MESSAGE[:1000]]) * 5000)
    received = [wire.read() for _ in range(5000)]

    assert received[0] == 1
    assert received[-1] == 0
    assert dropped(wire) == 1
    assert is_closed(deaf)


def test_much_may_wait_only_for_the_time_of_the_soft_limit(wire: Wire, deaf: socket.socket) -> None:
    """Nothing more is published meanwhile: the broker looks by itself."""
    wire("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 1mb 1")
    subscribe(deaf, wire)

    for _ in range(80):
        assert wire("PUBLISH", "news", MESSAGE) == 1
    wait_until(lambda: dropped(wire) == 1, "the listener to be closed")

    assert wire("PUBLISH news hi") == 0
    assert is_closed(deaf)


def test_a_limit_for_all_clients_closes_one_that_does_not_read_its_replies(wire: Wire, deaf: socket.socket) -> None:
    wire("SET", "k", MESSAGE * 80)
    wire("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0")

    deaf.sendall(encode([b"GET", b"k"]))
    wait_until(lambda: dropped(wire) == 1, "the client to be closed")

    assert is_closed(deaf)
    assert wire("PING") == "PONG"

"""Clients of a reliable queue that die while they wait: whatever was pushed is with somebody else, or still there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `support`, whatever the import mode

from headrace.testing.processes import child_process
from support.servers import Server, our_kind
from support.wire import Wire

CLIENTS = 100
WAITING_CLIENT = """
import socket, sys
wire = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
wire.sendall(b"*4\\r\\n$6\\r\\nRQ.POP\\r\\n$5\\r\\nBLOCK\\r\\n$1\\r\\n0\\r\\n$4\\r\\njobs\\r\\n")
wire.recv(1)
wire.recv(1)
"""


@pytest.fixture
def server() -> Iterator[Server]:
    with our_kind().start() as server:
        yield server


@contextmanager
def waiting_process(server: Server) -> Iterator[subprocess.Popen[bytes]]:
    """A client in a process of its own, once it waits for the queue."""
    before = server.blocked_clients()
    with child_process([sys.executable, "-c", WAITING_CLIENT, str(server.port)]) as process:
        server.wait_until_blocked(before + 1)
        yield process


def waiting_wires(server: Server, stack: ExitStack, count: int) -> list[Wire]:
    wires = [stack.enter_context(server.connect()) for _ in range(count)]
    for number, wire in enumerate(wires):
        wire.send("RQ.POP BLOCK 0 jobs")
        server.wait_until_blocked(number + 2)  # One after the other, behind the process.
    return wires


def test_a_client_killed_among_a_hundred_that_wait_swallows_nothing(server: Server) -> None:
    with ExitStack() as stack:
        victim = stack.enter_context(waiting_process(server))
        wires = waiting_wires(server, stack, CLIENTS - 1)
        victim.kill()
        server.wait_until_blocked(CLIENTS - 1)

        names = server.control("RQ.PUSH", "jobs", *[f"job {number}" for number in range(CLIENTS - 1)])
        assert isinstance(names, list)

        assert [wire.read() for wire in wires] == [
            [[b"jobs", name, b"job %d" % number]] for number, name in enumerate(names)
        ]


def test_an_element_given_to_a_client_that_dies_at_that_moment_is_recovered(server: Server) -> None:
    """Killed and pushed at once: the broker may still believe that the dead one waits."""
    with ExitStack() as stack:
        victim = stack.enter_context(waiting_process(server))
        wires = waiting_wires(server, stack, 9)
        pusher = stack.enter_context(server.connect())
        victim.kill()
        names = pusher("RQ.PUSH", "jobs", *[f"job {number}" for number in range(10)])

        taken = [wire.read()[0][1] for wire in wires]
        assert pusher("RQ.ACK", "jobs", *taken) == taken
        left = pusher("RQ.POP COUNT 10 jobs") or pusher("RQ.RECOVER jobs 10 0")

        assert sorted([*taken, left[0][-2]]) == sorted(names)
        assert len(left) == 1

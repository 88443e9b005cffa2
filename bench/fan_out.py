"""One publisher, many listeners: how fast messages reach all of them.

A turn is a pipeline of PUBLISHes. It is over when each has its reply and every listener has received every message;
then the next one is sent. An operation is one message for one listener. All messages have one length, so a listener
counts bytes and parses nothing.
"""

from __future__ import annotations

import select
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass

from bench.load import RECEIVE_BYTES, STALL_S, Load, LoadError, Workload, collector_at_rest
from bench.servers import HOST, Server, encode_command

CHANNEL = b"news"
MESSAGE = b"x" * 100
DEPTH = 16
PUSH_BYTES = len(encode_command("message", CHANNEL, MESSAGE))


@dataclass(frozen=True, slots=True)
class FanOut:
    listeners: int

    def prepare(self, server: Server) -> None:
        """Nothing is kept between rounds."""

    def run(self, server: Server, seconds: float) -> Load:
        with ExitStack() as stack:
            poller = stack.enter_context(select.epoll())
            listeners = [stack.enter_context(subscribe(server)) for _ in range(self.listeners)]
            publisher = stack.enter_context(connect(server))
            for connection in (*listeners, publisher):
                poller.register(connection.fileno(), select.EPOLLIN)
            receivers = {connection.fileno(): connection for connection in (*listeners, publisher)}
            request = encode_command("PUBLISH", CHANNEL, MESSAGE) * DEPTH
            replies = b":%d\r\n" % self.listeners * DEPTH
            expected = {connection.fileno(): DEPTH * PUSH_BYTES for connection in listeners}
            expected[publisher.fileno()] = len(replies)
            stack.enter_context(collector_at_rest())
            server_cpu_s, client_cpu_s = server.cpu_s(), time.process_time()
            begin = time.perf_counter()
            turns = 0
            while time.perf_counter() < begin + seconds:
                publisher.sendall(request)
                take_turn(poller, receivers, dict(expected))
                turns += 1
            elapsed_s = time.perf_counter() - begin
            operations = turns * DEPTH * self.listeners
            return Load(operations, elapsed_s, server.cpu_s() - server_cpu_s, time.process_time() - client_cpu_s)


def connect(server: Server) -> socket.socket:
    connection = socket.create_connection((HOST, server.port), timeout=STALL_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def subscribe(server: Server) -> socket.socket:
    connection = connect(server)
    connection.sendall(encode_command("SUBSCRIBE", CHANNEL))
    confirmation = connection.recv(RECEIVE_BYTES)
    if not confirmation.endswith(b":1\r\n"):
        raise LoadError(f"SUBSCRIBE was answered with: {confirmation!r}")
    return connection


def take_turn(poller: select.epoll, receivers: dict[int, socket.socket], left: dict[int, int]) -> None:
    """Receive until everybody has what belongs to this turn."""
    while left:
        events = poller.poll(STALL_S)
        if not events:
            raise LoadError(f"nothing for {STALL_S:.0f} s; {len(left)} connections wait")
        for descriptor, _ in events:
            data = receivers[descriptor].recv(RECEIVE_BYTES)
            missing = left.get(descriptor, 0) - len(data)
            if not data or missing < 0:
                raise LoadError(f"a connection was closed, or got more than was published: {data[-80:]!r}")
            if missing:
                left[descriptor] = missing
            else:
                del left[descriptor]


FAN_OUTS = {
    workload.name: workload
    for workload in (
        Workload("publish-1", "PUBLISH of 100 bytes to 1 listener, pipelines of 16", FanOut(1)),
        Workload("publish-10", "the same to 10 listeners", FanOut(10)),
        Workload("publish-100", "the same to 100 listeners", FanOut(100)),
    )
}

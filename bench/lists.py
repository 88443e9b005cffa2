"""Lists as queues: pushing, pushing and popping, and handing elements to clients that wait.

In the first two an element is pushed, or pushed and popped, in pipelines. In a hand-over every consumer waits with
BLPOP; a turn is one push for each of them, and is over when each has its element and the pushes have their replies.
An operation is one element.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench.fan_out import connect
from bench.load import RECEIVE_BYTES, Load, LoadError, Workload, collector_at_rest, drive
from bench.servers import Server, encode_command

KEY = b"q"
ELEMENT = b"x" * 32
PUSH = encode_command("LPUSH", KEY, ELEMENT)
POP = encode_command("RPOP", KEY)
WAIT = encode_command("BLPOP", KEY, "0")
HANDED = encode_command(KEY, ELEMENT)  # As the reply of BLPOP.


class Queuer:
    """Sends one pipeline again and again and counts the lines of its replies."""

    def __init__(self, pipeline: bytes, operations: int, lines: int) -> None:
        self.operations_per_turn = operations
        self._pipeline = pipeline
        self._lines = self._left = lines

    def start(self) -> bytes:
        return self._pipeline

    def hear(self, data: bytes) -> bytes | None:
        if b"\n-" in data or b"$-1" in data:  # Replies begin with digits or elements; no element has these.
            raise LoadError(f"a push or a pop was answered with: {data[:80]!r}")
        self._left -= data.count(b"\n")
        if self._left > 0:
            return None
        if self._left < 0:
            raise LoadError(f"more replies than requests, at the end {data[-60:]!r}")
        self._left = self._lines
        return self._pipeline


@dataclass(frozen=True, slots=True)
class Queueing:
    """LPUSH, or LPUSH and RPOP in turn, on one key. Without popping the list grows through a round."""

    connections: int
    depth: int
    pops: bool

    def prepare(self, server: Server) -> None:
        server.control.call("DEL", KEY)

    def run(self, server: Server, seconds: float) -> Load:
        before = server.control.call("LLEN", KEY)
        pair, lines = (PUSH + POP, 3) if self.pops else (PUSH, 1)
        talkers = [Queuer(pair * self.depth, self.depth, lines * self.depth) for _ in range(self.connections)]
        load = drive(server, talkers, seconds=seconds)
        grown = server.control.call("LLEN", KEY) - before
        if grown != (0 if self.pops else load.operations):
            raise LoadError(f"LLEN grew by {grown} after {load.operations} operations")
        return load


@dataclass(frozen=True, slots=True)
class HandOver:
    """Each element goes to a client that waits for it."""

    consumers: int

    def prepare(self, server: Server) -> None:
        server.control.call("DEL", KEY)

    def run(self, server: Server, seconds: float) -> Load:
        with ExitStack() as stack:
            consumers = [stack.enter_context(connect(server)) for _ in range(self.consumers)]
            producer = stack.enter_context(connect(server))
            for consumer in consumers:
                consumer.sendall(WAIT)
            stack.enter_context(collector_at_rest())
            if self.consumers == 1:  # Client and server never work at the same time: see `drive`.
                stack.enter_context(server.cores.together())
            server_cpu_s, client_cpu_s = server.cpu_s(), time.process_time()
            begin = time.perf_counter()
            turns = 0
            while time.perf_counter() < begin + seconds:
                take_turn(producer, consumers)
                turns += 1
            elapsed_s = time.perf_counter() - begin
            cpu_s = server.cpu_s() - server_cpu_s, time.process_time() - client_cpu_s
        if left := server.control.call("LLEN", KEY):
            raise LoadError(f"{left} elements were handed to nobody")
        return Load(turns * self.consumers, elapsed_s, *cpu_s)


def take_turn(producer: socket.socket, consumers: Sequence[socket.socket]) -> None:
    producer.sendall(PUSH * len(consumers))
    for consumer in consumers:
        handed = consumer.recv(RECEIVE_BYTES)
        while HANDED.startswith(handed) and handed != HANDED:
            handed += consumer.recv(RECEIVE_BYTES)
        if handed != HANDED:
            raise LoadError(f"BLPOP was answered with: {handed[:80]!r}")
        consumer.sendall(WAIT)
    lines = 0
    while lines < len(consumers):
        data = producer.recv(RECEIVE_BYTES)
        if not data or b"-" in data:
            raise LoadError(f"LPUSH was answered with: {data[:80]!r}")
        lines += data.count(b"\n")


LISTS = {
    workload.name: workload
    for workload in (
        Workload("lpush-c1-p100", "LPUSH of 32 bytes, 1 connection, pipelines of 100", Queueing(1, 100, pops=False)),
        Workload("lpush-c50-p1", "the same, 50 connections, one at a time", Queueing(50, 1, pops=False)),
        Workload(
            "lpush-rpop-c50-p16", "LPUSH and RPOP, 50 connections, 16 of each a pipeline", Queueing(50, 16, pops=True)
        ),
        Workload("blpop-1", "LPUSH to 1 client that waits with BLPOP", HandOver(1)),
        Workload("blpop-50", "LPUSH to 50 clients that wait with BLPOP, pipelines of 50", HandOver(50)),
    )
}

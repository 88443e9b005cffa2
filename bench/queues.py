"""The load of the broker benchmark on reliable queues: push, pop and acknowledge, each by itself.

Ours has the RQ commands; on the real server the same work is done by headrace's own server functions, so a ratio here
tells what a command of one's own is worth against a script. What a round needs beforehand (elements to pop, deliveries
to acknowledge) is made before its clock starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from bench.load import Load, LoadError, Workload, drive, first_error
from bench.servers import Server, encode_command

from headrace.client import functions

KEY = b"jobs"
BODY = b"%0100d"  # 100 bytes.
STOCK = 20_000  # Elements made for one slice of a round; one that works faster ends its slice earlier.
FILL = 1000  # Elements per call when that is not what is measured, the most that the functions take.


class QueueTalker:
    """Sends prepared pipelines. The replies are known by their number of lines."""

    def __init__(self, pipelines: Sequence[bytes], operations: int, lines: int) -> None:
        self.operations_per_turn = operations
        self._pipelines = cycle(pipelines)
        self._lines = self._left = lines

    def start(self) -> bytes:
        return next(self._pipelines)

    def hear(self, data: bytes) -> bytes | None:
        if b"\n-" in data or (self._left == self._lines and data[:1] == b"-"):
            raise LoadError(f"a queue answered with: {first_error(data)}")
        self._left -= data.count(b"\n")
        if self._left > 0:
            return None
        if self._left < 0:
            raise LoadError(f"more replies than requests, at the end {data[-60:]!r}")
        self._left = self._lines
        return next(self._pipelines)


def words_of(server: Server, command: str, *words: bytes | str | int) -> tuple[bytes | str | int, ...]:
    """A queue command on this server: the command itself, or the function that does the same."""
    if server.program.is_ours:
        options = words if command == "POP" else ()
        return (f"RQ.{command}", *options, KEY, *(() if command == "POP" else words))
    return ("FCALL", f"{functions.LIBRARY}_queue_{command.lower()}", 1, KEY, *words)


def call(server: Server, command: str, *words: bytes | str | int) -> Any:
    return server.control.call(*words_of(server, command, *words))


@dataclass(frozen=True, slots=True)
class Queue:
    """One of PUSH, POP and ACK: `batch` elements a command, `depth` commands a pipeline, one connection."""

    command: str
    batch: int
    depth: int

    def prepare(self, server: Server) -> None:
        server.control.call("DEL", KEY)
        if not server.program.is_ours:
            server.control.call("FUNCTION", "LOAD", "REPLACE", functions.library_source())

    def run(self, server: Server, seconds: float) -> Load:
        server.control.call("DEL", KEY)
        pipelines, lines, before = self.make(server)
        operations = self.batch * self.depth
        talker = QueueTalker(pipelines, operations, lines * self.depth)
        limit = float("inf") if self.command == "PUSH" else STOCK
        load = drive(server, [talker], seconds=seconds, operations=limit)
        after = call(server, "INFO")
        if self.expected(before, load.operations) != [after[1], after[3]]:
            raise LoadError(f"{before} was {after} after {load.operations} of {self.command}")
        return load

    def make(self, server: Server) -> tuple[list[bytes], int, list[int]]:
        """The pipelines, how many lines each command is answered with, and what is in the queue before."""
        bodies = [BODY % number for number in range(self.batch)]
        if self.command == "PUSH":
            return self.pipelines([encode_command(*words_of(server, "PUSH", *bodies))]), 1 + 2 * self.batch, [0, 0]
        for _ in range(STOCK // FILL):
            call(server, "PUSH", *[BODY % number for number in range(FILL)])
        if self.command == "POP":
            pop = encode_command(*words_of(server, "POP", "COUNT", self.batch))
            return self.pipelines([pop]), 1 + 7 * self.batch, [STOCK, 0]
        names = [row[1] for _ in range(STOCK // FILL) for row in call(server, "POP", "COUNT", FILL)]
        batches = [names[start : start + self.batch] for start in range(0, STOCK, self.batch)]
        acks = [encode_command(*words_of(server, "ACK", *batch)) for batch in batches]
        return self.pipelines(acks), 1 + 2 * self.batch, [0, STOCK]

    def pipelines(self, commands: list[bytes]) -> list[bytes]:
        if len(commands) == 1:
            return [commands[0] * self.depth]
        return [b"".join(commands[start : start + self.depth]) for start in range(0, len(commands), self.depth)]

    def expected(self, before: list[int], operations: int) -> list[int]:
        undelivered, delivered = before
        if self.command == "PUSH":
            return [operations, 0]
        return [undelivered - operations, operations] if self.command == "POP" else [0, delivered - operations]


QUEUES = {
    workload.name: workload
    for workload in (
        Workload("rq-push1-p50", "RQ.PUSH of one element, pipelines of 50", Queue("PUSH", 1, 50)),
        Workload("rq-pop1-p50", "RQ.POP of one element, pipelines of 50", Queue("POP", 1, 50)),
        Workload("rq-ack1-p50", "RQ.ACK of one element, pipelines of 50", Queue("ACK", 1, 50)),
        Workload("rq-push100", "RQ.PUSH of 100 elements", Queue("PUSH", 100, 1)),
        Workload("rq-pop100", "RQ.POP COUNT 100", Queue("POP", 100, 1)),
        Workload("rq-ack100", "RQ.ACK of 100 elements", Queue("ACK", 100, 1)),
    )
}

"""The load of the broker benchmark on what a worker does with finished messages: settle 100 of them in one step.

Beside it stands the same without a step: XACK and XDEL of 100, which check nothing. On the real server the step is
headrace's function. Entries are made and read before the clock starts; with several groups all but one are done.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.load import Load, LoadError, Workload, drive
from bench.queues import QueueTalker
from bench.servers import Server, encode_command

from headrace.client import functions
from headrace.client.worker_keys import group_keys

STREAM, GROUP, CONSUMER = "orders", "billing", "ann"
MODEL = "model"
STOCK = 20_000  # Entries made for one slice of a round; one that works faster ends its slice earlier.
BATCH = 100
FILL = 1000
NAMES = [b"1-%d" % number for number in range(STOCK)]


@dataclass(frozen=True, slots=True)
class Settling:
    """Batches of 100, on one connection."""

    is_step: bool
    groups: int

    def prepare(self, server: Server) -> None:
        """A stream that each round works on a copy of."""
        call = server.control.call
        if not server.program.is_ours:
            call("FUNCTION", "LOAD", "REPLACE", functions.library_source())
        call("DEL", MODEL)
        adds = [encode_command("XADD", MODEL, name, "data", b"x" * 100) for name in NAMES]
        pipelines = [b"".join(adds[start : start + BATCH]) for start in range(0, STOCK, BATCH)]
        drive(server, [QueueTalker(pipelines, BATCH, 2 * BATCH)], operations=STOCK)
        for number in range(self.groups):
            group = GROUP if number == 0 else f"other-{number}"
            call("XGROUP", "CREATE", MODEL, group, "0")
            for start in range(0, STOCK, FILL):
                call("XREADGROUP", "GROUP", group, CONSUMER, "COUNT", FILL, "STREAMS", MODEL, ">")
                if number:
                    call("XACK", MODEL, group, *NAMES[start : start + FILL])

    def run(self, server: Server, seconds: float) -> Load:
        server.control.call("COPY", MODEL, STREAM, "REPLACE")
        requests = [self.encode(server, NAMES[start : start + BATCH]) for start in range(0, STOCK, BATCH)]
        lines = 1 + BATCH if self.is_step else 2
        load = drive(server, [QueueTalker(requests, BATCH, lines)], seconds=seconds, operations=STOCK)
        left = server.control.call("XLEN", STREAM)
        if left != STOCK - load.operations:
            raise LoadError(f"{left} entries are left of {STOCK} after {load.operations} were settled")
        return load

    def encode(self, server: Server, names: list[bytes]) -> bytes:
        if not self.is_step:
            return encode_command("XACK", STREAM, GROUP, *names) + encode_command("XDEL", STREAM, *names)
        words: tuple[bytes | str | int, ...] = (GROUP, CONSUMER, "ACK", len(names), *names)
        if server.program.is_ours:
            return encode_command("HR.SETTLE", STREAM, *words)
        keys = group_keys(STREAM, GROUP)
        step: tuple[str | int, ...] = (
            "FCALL",
            f"{functions.LIBRARY}_worker_settle",
            4,
            STREAM,
            keys.due,
            keys.attempts,
            keys.dead,
        )
        return encode_command(*step, *words)


SETTLING = {
    workload.name: workload
    for workload in (
        Workload("xack-xdel100", "XACK and XDEL of 100", Settling(is_step=False, groups=1)),
        Workload("settle100", "HR.SETTLE of 100", Settling(is_step=True, groups=1)),
        Workload("settle100-g3", "HR.SETTLE of 100, 3 groups", Settling(is_step=True, groups=3)),
    )
}

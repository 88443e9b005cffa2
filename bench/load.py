"""The load generator of the broker benchmark, and its table of workloads.

Everything that can be prepared is prepared: requests are encoded before the clock starts, replies are recognised by
their length or their line count and never parsed. So one Python process can keep a C server busy.

A *talker* is one connection's side of the talk: it gives a first request, then a next one for each complete reply.
`drive` moves the bytes for many talkers on one epoll. A new workload is a row in `WORKLOADS`, and a new talker when
the talk itself is new. Starting servers and judging figures is left to `servers.py` and `broker.py`.
"""

from __future__ import annotations

import gc
import random
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from typing import Protocol

from bench.servers import HOST, Server, encode_command

STALL_S = 30.0  # A server that is silent for so long will not answer any more.
RECEIVE_BYTES = 65536  # Larger than the largest turn of replies, below the size where malloc turns to mmap.

Fields = tuple[bytes, ...]


class LoadError(Exception):
    """The server answered something else than the workload expects, or nothing."""


@dataclass(frozen=True, slots=True)
class Load:
    """What has been done. An operation is one entry added, or one entry read and acked."""

    operations: int
    elapsed_s: float
    server_cpu_s: float
    client_cpu_s: float

    def __add__(self, other: Load) -> Load:
        return Load(
            self.operations + other.operations,
            self.elapsed_s + other.elapsed_s,
            self.server_cpu_s + other.server_cpu_s,
            self.client_cpu_s + other.client_cpu_s,
        )


class Talker(Protocol):
    """One connection's side of the talk."""

    operations_per_turn: int

    def start(self) -> bytes:
        """Return the first request."""

    def hear(self, data: bytes) -> bytes | None:
        """Return the next request, or None while the reply is not complete."""


def drive(
    server: Server, talkers: Sequence[Talker], *, seconds: float = float("inf"), operations: float = float("inf")
) -> Load:
    """Let the talkers talk for a time or for a number of operations; every request sent is also answered.

    The collector rests meanwhile: a pause in the client would be counted against the server. With one talker, client
    and server never work at the same time; on two cores such a round would measure how fast a core wakes up, so both
    share one.
    """
    with ExitStack() as stack:
        poller = stack.enter_context(select.epoll())
        receivers: dict[int, Callable[[int], bytes]] = {}
        speakers: dict[int, Callable[[bytes], None]] = {}
        hearers: dict[int, Callable[[bytes], bytes | None]] = {}
        for talker in talkers:
            connection = stack.enter_context(socket.create_connection((HOST, server.port), timeout=STALL_S))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(None)  # Blocking without a poll before each call: epoll has said it is ready.
            poller.register(connection.fileno(), select.EPOLLIN)
            receivers[connection.fileno()] = connection.recv
            speakers[connection.fileno()] = connection.sendall
            hearers[connection.fileno()] = talker.hear
        requests = [talker.start() for talker in talkers]
        step = talkers[0].operations_per_turn
        stack.enter_context(collector_at_rest())
        if len(talkers) == 1:
            stack.enter_context(server.cores.together())
        clock, poll = time.perf_counter, poller.poll
        server_cpu_s, client_cpu_s = server.cpu_s(), time.process_time()
        begin = clock()
        deadline = begin + seconds
        for speak, request in zip(speakers.values(), requests, strict=True):
            speak(request)
        asked = talking = len(talkers)
        turns = operations / step
        while talking:
            events = poll(STALL_S)
            if not events:
                raise LoadError(f"no reply for {STALL_S:.0f} s; {talking} connections wait")
            if clock() >= deadline:
                turns = 0
            for descriptor, _ in events:
                data = receivers[descriptor](RECEIVE_BYTES)
                if not data:
                    raise LoadError("the server closed a connection")
                following = hearers[descriptor](data)
                if following is None:
                    continue
                if asked < turns:
                    asked += 1
                    speakers[descriptor](following)
                else:
                    talking -= 1
        elapsed_s = clock() - begin
        return Load(asked * step, elapsed_s, server.cpu_s() - server_cpu_s, time.process_time() - client_cpu_s)


@contextmanager
def collector_at_rest() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# --- entries -------------------------------------------------------------------------------------------------------

_DISTINCT_ENTRIES = 20_000  # So many differ before they repeat: far more than one node of any server holds.


@cache
def tiny_entries() -> list[Fields]:
    """One field, one byte of value."""
    return [(b"f", b"v")]


@cache
def three_field_entries() -> list[Fields]:
    """Three fields with 100 bytes of values, 70 of them random hex so that compression cannot cheat."""
    chance = random.Random(3)
    return [
        (b"id", b"%032x" % chance.getrandbits(128), b"body", b"%038x" % chance.getrandbits(152), b"kind", b"order." * 5)
        for _ in range(_DISTINCT_ENTRIES)
    ]


@cache
def encode_adds(key: bytes, entries: Callable[[], list[Fields]], depth: int) -> list[bytes]:
    """Return pipelines of `depth` XADDs each, that go once through the entries."""
    commands = [encode_command("XADD", key, "*", *fields) for fields in entries()]
    source = cycle(commands)
    return [b"".join(next(source) for _ in range(depth)) for _ in range(max(1, len(commands) // depth))]


# --- talkers -------------------------------------------------------------------------------------------------------


class Adder:
    """Sends pipelines of XADD. Each reply is an ID as a bulk string, which is two lines."""

    def __init__(self, pipelines: Sequence[bytes], depth: int) -> None:
        self.operations_per_turn = depth
        self._pipelines = cycle(pipelines)
        self._lines = self._left = 2 * depth

    def start(self) -> bytes:
        return next(self._pipelines)

    def hear(self, data: bytes) -> bytes | None:
        # The first byte is a reply's own only at the start of a turn; later it may be the middle of an ID.
        if b"\n-" in data or (self._left == self._lines and data[0] == 45):
            raise LoadError(f"XADD was answered with: {first_error(data)}")
        self._left -= data.count(b"\n")
        if self._left > 0:
            return None
        if self._left < 0:
            raise LoadError(f"more replies than requests, at the end {data[-60:]!r}")
        self._left = self._lines
        return next(self._pipelines)


class Shelf:
    """A filled stream with a group, read again and again from its start.

    IDs have one width and replies therefore one length; the XACK for a read is found by the first ID of its reply.
    The group is set back before the entries run out. Talkers overtake each other, so a margin of reads is left over.
    """

    KEY = b"shelf"
    GROUP = b"g"
    ENTRIES = 100_000
    FIRST_MS = 1_000_000_000_000
    ID_BYTES = 15

    def __init__(self, count: int, margin_reads: int) -> None:
        self.acks = _encode_acks(count)
        self.rewind_command = encode_command("XGROUP", "SETID", self.KEY, self.GROUP, "0", "ENTRIESREAD", "0")
        self._reads = self._reads_left = self.ENTRIES // count - margin_reads

    @classmethod
    def ids(cls) -> list[bytes]:
        return [b"%d-0" % (cls.FIRST_MS + index) for index in range(cls.ENTRIES)]

    def take_reads(self, number: int) -> bool:
        """Count reads that are about to be sent; true when the group must be set back before them."""
        self._reads_left -= number
        if self._reads_left >= 0:
            return False
        self._reads_left = self._reads - number
        return True

    @classmethod
    def fill(cls, server: Server) -> None:
        """Put the entries in, unless they are there."""
        call = server.control.call
        if call("XLEN", cls.KEY) != cls.ENTRIES:
            call("DEL", cls.KEY)
            commands = [encode_command("XADD", cls.KEY, entry_id, "f", "v") for entry_id in cls.ids()]
            pipelines = [b"".join(commands[start : start + 100]) for start in range(0, cls.ENTRIES, 100)]
            drive(server, [Adder(pipelines, 100)], operations=cls.ENTRIES)

    @classmethod
    def make_group(cls, server: Server) -> None:
        """Make the group anew, at the start of the stream."""
        server.control.call("XGROUP", "DESTROY", cls.KEY, cls.GROUP)
        server.control.call("XGROUP", "CREATE", cls.KEY, cls.GROUP, "0", "ENTRIESREAD", "0")


@cache
def _encode_acks(count: int) -> dict[bytes, bytes]:
    ids = Shelf.ids()
    return {
        ids[start]: encode_command("XACK", Shelf.KEY, Shelf.GROUP, *ids[start : start + count])
        for start in range(0, len(ids), count)
    }


class GroupReader:
    """Reads `depth` times `count` entries, then acks these and reads the next ones in the same write.

    A turn's request: depth XACKs, a set-back of the group when the shelf is read out, depth XREADGROUPs.
    """

    def __init__(self, shelf: Shelf, consumer: bytes, count: int, depth: int) -> None:
        self.operations_per_turn = count * depth
        read = encode_command("XREADGROUP", "GROUP", Shelf.GROUP, consumer, "COUNT", count, "STREAMS", Shelf.KEY, ">")
        head = b"*1\r\n*2\r\n$%d\r\n%b\r\n*%d\r\n" % (len(Shelf.KEY), Shelf.KEY, count)
        before_id = b"*2\r\n$%d\r\n" % Shelf.ID_BYTES
        after_id = b"\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
        self._shelf = shelf
        self._reads = read * depth
        self._depth = depth
        self._id_at = len(head) + len(before_id)
        self._read_bytes = len(head) + count * (len(before_id) + Shelf.ID_BYTES + len(after_id))
        self._acked = b":%d\r\n" % count * depth
        self._prefix = b""
        self._expected = self._read_bytes * depth
        self._heard = b""

    def start(self) -> bytes:
        self._shelf.take_reads(self._depth)
        return self._reads

    def hear(self, data: bytes) -> bytes | None:
        if self._heard:
            data = self._heard + data
        if not data.startswith(self._prefix[: len(data)]) or b"\n-" in data or len(data) > self._expected:
            raise LoadError(f"XREADGROUP or XACK was answered with: {first_error(data)}")
        if len(data) < self._expected:
            self._heard = data
            return None
        self._heard = b""
        return self._next_request(data)

    def _next_request(self, data: bytes) -> bytes:
        acks, id_bytes = self._shelf.acks, Shelf.ID_BYTES
        first = len(self._prefix) + self._id_at
        try:
            parts = [acks[data[at : at + id_bytes]] for at in range(first, len(data), self._read_bytes)]
        except KeyError as error:
            raise LoadError(f"XREADGROUP gave {error} where the first ID of a read belongs") from None
        self._prefix = self._acked
        if self._shelf.take_reads(self._depth):
            parts.append(self._shelf.rewind_command)
            self._prefix += b"+OK\r\n"
        self._expected = len(self._prefix) + self._read_bytes * self._depth
        parts.append(self._reads)
        return b"".join(parts)


def first_error(data: bytes) -> str:
    lines = [line for line in data.split(b"\r\n") if line.startswith(b"-")]
    return lines[0].decode(errors="replace") if lines else repr(data[:80])


# --- workloads -----------------------------------------------------------------------------------------------------

_ADD_KEY = b"s"


@dataclass(frozen=True, slots=True)
class Adds:
    """XADD on one key, which starts empty and grows through a round."""

    connections: int
    depth: int
    entries: Callable[[], list[Fields]] = tiny_entries

    def prepare(self, server: Server) -> None:
        server.control.call("DEL", _ADD_KEY)

    def run(self, server: Server, seconds: float) -> Load:
        pipelines = encode_adds(_ADD_KEY, self.entries, self.depth)
        return _add(server, [Adder(pipelines, self.depth) for _ in range(self.connections)], seconds=seconds)


@dataclass(frozen=True, slots=True)
class ReadsAndAcks:
    """XREADGROUP COUNT n, then one XACK for these n; `depth` of them in one pipeline."""

    connections: int
    count: int
    depth: int

    def prepare(self, server: Server) -> None:
        Shelf.fill(server)

    def run(self, server: Server, seconds: float) -> Load:
        Shelf.make_group(server)
        shelf = Shelf(self.count, margin_reads=self.connections * self.depth)
        talkers = [GroupReader(shelf, b"c%d" % number, self.count, self.depth) for number in range(self.connections)]
        load = drive(server, talkers, seconds=seconds)
        # Each connection stops with its last reads not acked.
        expected = self.connections * self.count * self.depth
        if (pending := server.control.call("XPENDING", Shelf.KEY, Shelf.GROUP)[0]) != expected:
            raise LoadError(f"{pending} entries are pending, {expected} were read and not acked")
        return load


class Work(Protocol):
    def prepare(self, server: Server) -> None:
        """Make the server ready, before the first round."""

    def run(self, server: Server, seconds: float) -> Load:
        """One slice of a round."""


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    summary: str
    load: Work


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("xadd-c1-p100", "XADD one field, 1 connection, pipelines of 100", Adds(1, 100)),
        Workload("xadd-c50-p16", "XADD one field, 50 connections, pipelines of 16", Adds(50, 16)),
        Workload("xadd-c50-p1", "XADD one field, 50 connections, one at a time", Adds(50, 1)),
        Workload(
            "xadd3-c1-p100", "XADD three fields, 1 connection, pipelines of 100", Adds(1, 100, three_field_entries)
        ),
        Workload("read100-ack100", "XREADGROUP COUNT 100, one XACK of the 100; 4 connections", ReadsAndAcks(4, 100, 1)),
        Workload(
            "read1-ack1-p16", "XREADGROUP COUNT 1, XACK of 1, 16 a pipeline; 4 connections", ReadsAndAcks(4, 1, 16)
        ),
    )
}

SHAPES: dict[str, Callable[[], list[Fields]]] = {"one-field": tiny_entries, "three-field": three_field_entries}


def add_entries(server: Server, shape: str, entries: int) -> int:
    """Add at least this many entries of a shape to one stream and return how many they were."""
    return _add(server, [Adder(encode_adds(_ADD_KEY, SHAPES[shape], 100), 100)], operations=entries).operations


def _add(
    server: Server, talkers: Sequence[Adder], *, seconds: float = float("inf"), operations: float = float("inf")
) -> Load:
    before = server.control.call("XLEN", _ADD_KEY)
    load = drive(server, talkers, seconds=seconds, operations=operations)
    if (added := server.control.call("XLEN", _ADD_KEY) - before) != load.operations:
        raise LoadError(f"XLEN grew by {added} after {load.operations} XADDs")
    return load

"""A broker's memory follows the elements of a queue that are not acknowledged (row 209)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `support`, whatever the import mode

from support.servers import Server, our_kind

MIB = 2**20
BATCH = 1000


@pytest.fixture
def server() -> Iterator[Server]:
    with our_kind().start() as server:
        yield server


def used_bytes(server: Server) -> int:
    """By the engine's own account."""
    return int(server.info("memory")["used_memory"])


def resident_bytes(server: Server) -> int:
    [kilobytes] = re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{server.pid}/status").read_text())
    return int(kilobytes) * 1024


def work_off(server: Server, elements: int) -> tuple[int, int]:
    """Push, pop and acknowledge so many; used and resident bytes with all of them delivered."""
    with server.connect() as wire:
        names = []
        for start in range(0, elements, BATCH):
            names += wire("RQ.PUSH", "q", *[b"%0100d" % number for number in range(start, start + BATCH)])
        for _ in range(0, elements, BATCH):
            assert len(wire(f"RQ.POP COUNT {BATCH} q")) == BATCH
        peak = used_bytes(server), resident_bytes(server)
        for start in range(0, elements, BATCH):
            assert len(wire("RQ.ACK", "q", *names[start : start + BATCH])) == BATCH
        assert wire("RQ.INFO q") == [b"undelivered", 0, b"delivered", 0]
        return peak


def test_memory_is_back_where_it_began(server: Server) -> None:
    start = used_bytes(server)
    peak, _ = work_off(server, 20_000)

    assert peak > start + 20_000 * 100
    assert used_bytes(server) < start + MIB


@pytest.mark.long
def test_memory_is_back_where_it_began_after_a_million(server: Server) -> None:
    """The process keeps some of its pages, but needs no more of them when it all comes again."""
    start, resident = used_bytes(server), resident_bytes(server)
    peak, resident_peak = work_off(server, 1_000_000)

    assert peak > start + 1_000_000 * 100
    assert used_bytes(server) < start + MIB
    assert resident_bytes(server) < resident + 0.6 * (resident_peak - resident)
    assert work_off(server, 1_000_000)[1] < 1.2 * resident_peak

"""Leases: a thread that extends what this worker has held for a third of its lease.

It has a client of its own and needs no event loop, so that a handler that blocks the loop keeps its messages too. What
is no longer ours is left alone: its settlement will be refused.
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from headrace.client.client import Client
from headrace.errors import HeadraceError
from headrace.worker import events

SHORTEST_TICK_S: Final = 0.01
LONGEST_TICK_S: Final = 1.0


class Holder(Protocol):
    """Something whose messages are leased. Called in the thread of the leases."""

    lease_ms: int

    def extend(self, client: Client) -> None:
        """Extend what has been held for a third of the lease."""


class LeaseKeeper:
    def __init__(self, url: str, holders: Sequence[Holder], *, may_host: bool) -> None:
        self.url = url
        self.may_host = may_host
        self.holders = holders
        self.ending = threading.Event()
        self.ready = threading.Event()  # It has spoken with the broker once: connecting may take longer than a lease.
        lease_s = min([holder.lease_ms for holder in holders], default=30_000) / 1000
        self.tick_s = min(max(lease_s / 6, SHORTEST_TICK_S), LONGEST_TICK_S)
        self.timeout_s = min(max(lease_s / 3, 0.5), 10.0)
        self.thread = threading.Thread(target=self.run, name="headrace leases", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.ending.set()
        self.thread.join(self.timeout_s + 1)

    def run(self) -> None:
        with Client(self.url, timeout=self.timeout_s, may_host=self.may_host) as client:
            with suppress(HeadraceError):
                client.capabilities()
            self.ready.set()
            while not self.ending.wait(self.tick_s):
                for holder in self.holders:
                    try:
                        holder.extend(client)
                    except HeadraceError:
                        continue  # The next tick tries again; the worker tells about an outage.
                    except Exception as error:  # Without this thread every lease of the worker would end.
                        events.error("leases_not_extended", error=repr(error))

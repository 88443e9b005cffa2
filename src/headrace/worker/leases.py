"""Leases: a thread that extends what this worker has held for a third of its lease.

It has a client of its own and needs no event loop, so that a handler that blocks the loop keeps its messages too. What
is no longer ours is left alone: its settlement will be refused.
"""

import threading
import time
from contextlib import suppress
from typing import Final

from headrace.app.delivery import Delivery
from headrace.client import flows, worker_steps
from headrace.client.client import Client
from headrace.errors import HeadraceError
from headrace.worker.source import Source

SHORTEST_TICK_S: Final = 0.01
LONGEST_TICK_S: Final = 1.0


class LeaseKeeper:
    def __init__(self, url: str, sources: list[Source], *, may_host: bool) -> None:
        self.url = url
        self.may_host = may_host
        self.sources = sources
        self.ending = threading.Event()
        self.ready = threading.Event()  # It has spoken with the broker once: connecting may take longer than a lease.
        lease_s = min([source.lease_ms for source in sources], default=30_000) / 1000
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
            facts = client._facts
            with suppress(HeadraceError):
                client.capabilities()
            self.ready.set()
            while not self.ending.wait(self.tick_s):
                for source in self.sources:
                    with suppress(HeadraceError):  # The next tick tries again; the worker tells about an outage.
                        self.extend(client, facts, source)

    def extend(self, client: Client, facts: flows.Facts, source: Source) -> None:
        now_s = time.monotonic()
        oldest_s = now_s - source.lease_ms / 3000
        held: list[Delivery] = list(source.held.values())  # One step for the interpreter: no lock is needed.
        aging = [delivery for delivery in held if 0 < delivery.leased_s <= oldest_s]
        for place in range(0, len(aging), worker_steps.MOST):
            part = aging[place : place + worker_steps.MOST]
            flow = worker_steps.extend(facts, source.stream, source.group, source.consumer, [one.id for one in part])
            for delivery, is_ours in zip(part, client.run(flow), strict=True):
                delivery.leased_s = now_s if is_ours else 0.0  # Settled this moment, or lost: then settling is refused.

"""A group that is kept in order per key, with consumers by name, for tests that drive its steps one by one.

group = OrderedGroup(client, "tickets")
[grant] = group.take("ann")
assert group.done(grant)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from headrace.client import lane_steps, lane_views
from headrace.client.lane_keys import Order, Settings
from headrace.client.lane_steps import Back, Clause, Done, Fail, Grant, Session, Taken

from .naive_master import GROUP, done_key

WAIT_S = 60.0  # A limit for what never comes.
LONG_MS = 600_000  # A lease that does not end in a test.
SHORT_MS = 30  # One that ends while a test waits for it.


class OrderedGroup:
    def __init__(self, client: Any, stream: str, **settings: Any) -> None:
        self.client = client
        self.order = Order(stream, GROUP, Settings(("ticket_id",), **settings))
        self.sessions: dict[str, Session] = {}
        self.step("config")

    def step(self, name: str, *arguments: Any, **options: Any) -> Any:
        place = lane_steps if hasattr(lane_steps, name) else lane_views
        facts = getattr(self.client, "target", self.client)._facts
        return self.client.run(getattr(place, name)(facts, self.order, *arguments, **options))

    def join(self, consumer: str) -> Session:
        self.sessions[consumer] = self.step("register", consumer)
        return self.sessions[consumer]

    def take(self, consumer: str, *, keys: int = 1, run: int = 1, lease_ms: int = LONG_MS) -> list[Grant]:
        if consumer not in self.sessions:
            self.join(consumer)
        while True:
            taken: Taken = self.step("take", consumer, self.sessions[consumer].number, lease_ms, keys, run)
            if taken.grants or taken.wait_ms != 0:  # 0: the server has more to do, such as to build the lanes.
                return taken.grants

    def take_when_free(self, consumer: str, **options: Any) -> list[Grant]:
        """Wait for what another one's lease holds back."""
        grants: list[Grant] = []

        def is_there() -> bool:
            grants.extend(self.take(consumer, **options))
            return bool(grants)

        wait_for(is_there, "a key to be free")
        return grants

    def extend(self, consumer: str, *grants: Grant, lease_ms: int = LONG_MS) -> list[bool]:
        held = [(grant.key, grant.fence) for grant in grants]
        flags: list[bool] = self.step("extend", consumer, self.sessions[consumer].number, lease_ms, held)
        return flags

    def settle(self, *clauses: Clause) -> list[bool]:
        flags: list[bool] = self.step("settle", clauses)
        return flags

    def done(self, grant: Grant, ids: Sequence[str] | None = None, *, by: str = "") -> bool:
        """Its messages are done, or some of them; the effect is one line for each, as a naive consumer writes it."""
        chosen = [entry for entry in grant.entries if ids is None or entry.id in ids]
        effects = [("RPUSH", done_key(self.order.stream, grant.key), f"{entry.fields['n']} {by}") for entry in chosen]
        return self.settle(Done(grant.key, grant.fence, [entry.id for entry in chosen], effects=effects))[0]

    def fail(self, grant: Grant, *, delay_ms: int = 0, error: str = "ValueError: no") -> bool:
        return self.settle(Fail(grant.key, grant.fence, grant.entries[0].id, delay_ms, error))[0]

    def back(self, grant: Grant) -> bool:
        return self.settle(Back(grant.key, grant.fence))[0]

    def ticket(self, key: str) -> Any:
        found = self.step("info_key", key)
        return None if found is None else found.ticket

    def tickets(self) -> int:
        count: int = self.client.command("HLEN", self.order.tickets)
        return count

    def drain(self, *consumers: str, run: int = 1) -> None:
        """The consumers take turns until nothing is left."""
        while True:
            taken = [(name, grant) for name in consumers for grant in self.take(name, run=run)]
            for name, grant in taken:
                assert self.done(grant, by=name)
            if not taken:
                return


def numbers(grants: Sequence[Grant]) -> list[str]:
    return [entry.fields["n"] for grant in grants for entry in grant.entries]


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"waited {WAIT_S:g} s in vain for {what}"
        time.sleep(0.005)

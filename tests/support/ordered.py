"""One group of one stream that is kept in order, as tests talk to it: steps by name, on any client.

lanes = Lanes(client, "tickets", layout="list")
lanes.add("a")                                       # XADD with the key a
lanes.take("ann", keys=2, run=5)                     # registers ann first, if need be
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from headrace.client import lane_steps, lane_views
from headrace.client.lane_keys import Order, Settings
from headrace.client.lane_steps import Done, Grant, Session, Taken

from .servers import wait_until

GROUP = "agents"
LONG_MS = 3_600_000
SHORT_MS = 30


class Lanes:
    def __init__(
        self, client: Any, stream: str, *, layout: str = "list", configure: bool = True, **options: Any
    ) -> None:
        self.client = client
        self.settings = Settings(**{"keyfields": ("k", "key"), "layout": layout, **options})
        self.order = Order(stream, GROUP, self.settings)
        self.sessions: dict[str, Session] = {}
        if configure:
            self("XGROUP", "CREATE", stream, GROUP, "0", "MKSTREAM")
            self.configure()

    @property
    def stream(self) -> str:
        return self.order.stream

    def __call__(self, *words: Any) -> Any:
        return self.client.command(*words)

    def run(self, step: str, *arguments: Any, **options: Any) -> Any:
        facts = getattr(self.client, "target", self.client)._facts
        function = getattr(lane_steps, step, None) or getattr(lane_views, step)
        return self.client.run(function(facts, self.order, *arguments, **options))

    def configure(self, **options: Any) -> None:
        """Set up, and let the rebuild that begins with it end."""
        self.settings = replace(self.settings, **options)
        self.order = replace(self.order, settings=self.settings)
        self.run("config")
        self.end_rebuild()

    def end_rebuild(self) -> None:
        session = self.run("register", "setup")
        while self.run("info").is_rebuilding:
            assert self.run("take", "setup", session.number, LONG_MS, 1, 1) == Taken([], 0)
        self.run("leave", "setup", session.number)

    def add(self, key: str, **fields: Any) -> str:
        words = [word for pair in fields.items() for word in pair]
        return str(self("XADD", self.stream, "*", "k", key, *words).decode())

    def register(self, consumer: str, *arguments: Any) -> Session:
        self.sessions[consumer] = self.run("register", consumer, *arguments)
        return self.sessions[consumer]

    def session(self, consumer: str) -> int:
        session = self.sessions.get(consumer)
        return (session or self.register(consumer)).number

    def take(self, consumer: str, keys: int = 10, run: int = 1, lease_ms: int = LONG_MS) -> Taken:
        taken: Taken = self.run("take", consumer, self.session(consumer), lease_ms, keys, run)
        return taken

    def grants(self, consumer: str, keys: int = 10, run: int = 1, lease_ms: int = LONG_MS) -> list[Grant]:
        return self.take(consumer, keys, run, lease_ms).grants

    def wait_for_grants(self, consumer: str, **options: Any) -> list[Grant]:
        """When a lease or a pause has ended."""
        found: list[Grant] = []

        def take() -> bool:
            found.extend(self.grants(consumer, **options))
            return bool(found)

        wait_until(take, "a key")
        return found

    def settle(self, *clauses: Any, **options: Any) -> list[bool]:
        flags: list[bool] = self.run("settle", clauses, **options)
        return flags

    def finish(self, *grants: Grant) -> list[bool]:
        return self.settle(*(Done(grant.key, grant.fence, ids_of(grant)) for grant in grants))

    def pending(self) -> list[tuple[str, str, int]]:
        """ID, consumer and deliveries."""
        rows = self("XPENDING", self.stream, GROUP, "-", "+", 5000)
        return [(row[0].decode(), row[1].decode(), row[3]) for row in rows]

    def ticket(self, key: str) -> Any:
        found = self.run("info_key", key)
        return found and found.ticket

    def lane(self, key: str) -> list[str]:
        found = self.run("info_key", key)
        return found.ids if found else []

    def letters(self) -> list[dict[str, str]]:
        return [entry.fields for entry in self.client.stream(self.order.dead).range()]

    def left(self) -> list[bytes]:
        """Keys beside the stream, but for the settings."""
        pattern = f"hr:{{{self.stream}}}:*"
        if "+cluster:" in self.client.url:  # KEYS by itself goes to any node.
            keys = self("EVAL", "return redis.call('KEYS', ARGV[1])", 1, self.stream, pattern)
        else:
            keys = self("KEYS", pattern)
        return sorted(key for key in keys if not key.endswith(b":order"))


MakeLanes = Callable[..., Lanes]


def ids_of(grant: Grant) -> list[str]:
    return [entry.id for entry in grant.entries]


def shape(grants: list[Grant]) -> dict[str, list[str]]:
    """Key -> IDs, in the order of the reply."""
    return {grant.key: ids_of(grant) for grant in grants}

"""A stream with its group, on which the naive pattern and lanes play the same scenario."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .naive_master import GROUP, NaiveConsumer, NaiveMaster, done_key
from .ordered_group import OrderedGroup


class Scene:
    """The stream, and what can be seen of it by anybody."""

    def __init__(self, client: Any, stream: str) -> None:
        self.client = client
        self.stream = stream
        client.command("XGROUP", "CREATE", stream, GROUP, "0", "MKSTREAM")

    def add(self, ticket: str, *numbers: int) -> list[str]:
        add = ("XADD", self.stream, "*", "ticket_id", ticket, "n")
        return [self.client.command(*add, number).decode() for number in numbers]

    def master(self, choose: Callable[[list[str]], str] = min) -> NaiveMaster:
        return NaiveMaster(self.client, self.stream, choose)

    def lanes(self, **settings: Any) -> OrderedGroup:
        return OrderedGroup(self.client, self.stream, **settings)

    def owners(self) -> dict[str, str]:
        """Who has which entry, by XPENDING."""
        rows = self.client.command("XPENDING", self.stream, GROUP, "-", "+", 1000)
        return {row[0].decode(): row[1].decode() for row in rows}

    def deliveries(self, entry_id: str) -> int:
        [row] = self.client.command("XPENDING", self.stream, GROUP, entry_id, entry_id, 1)
        count: int = row[3]
        return count

    def set_idle(self, entry_id: str, idle_ms: int = 60_000) -> None:
        """As if so much time had passed since its delivery."""
        argv = ("XCLAIM", self.stream, GROUP, self.owners()[entry_id], 0, entry_id, "IDLE", idle_ms, "JUSTID")
        self.client.command(*argv)

    def done(self, ticket: str) -> list[str]:
        """What was done for a ticket, and by whom, in order: "1 ann", "2 bob"."""
        return [line.decode() for line in self.client.command("LRANGE", done_key(self.stream, ticket), 0, -1)]


def join(master: NaiveMaster, *names: str) -> list[NaiveConsumer]:
    return [NaiveConsumer(master, name) for name in names]

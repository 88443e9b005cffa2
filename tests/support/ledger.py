"""A ledger of published messages: where each of them is, by what the server and the handlers say.

    published = undelivered + delayed + pending + handled + dead + erased

A message may be in two places: handled, and still pending because its worker was killed before it could say so. It may
never be in none. Numbers stand for messages; every payload has one, as `id`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from headrace import Client, Entry, NotFound
from headrace.client.worker_keys import group_keys, stream_keys

NUMBER = re.compile(rb'"id":(\d+)')


@dataclass
class Ledger:
    """Of one stream and group."""

    stream: str
    group: str
    log: Path  # Where handlers write what they have done: group and number.
    published: set[int] = field(default_factory=set)
    unsure: set[int] = field(default_factory=set)  # The answer to their publishing was lost.
    erased: set[int] = field(default_factory=set)  # Deleted by somebody, from the stream or from the dead letters.

    def places(self, client: Client) -> dict[str, set[int]]:
        """Numbers by where they are. Only while nobody works."""
        keys = group_keys(self.stream, self.group)
        found = {
            "delayed": in_hash(client, stream_keys(self.stream).bodies),
            "dead": numbers_of(client.stream(keys.dead).range()),
            "handled": self.handled(),
            "erased": self.erased,
        }
        for name in (self.stream, keys.again):
            for place, numbers in in_stream(client, name, self.group).items():
                found.setdefault(place, set()).update(numbers)
        return found

    def handled(self) -> set[int]:
        if not self.log.exists():
            return set()
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return {int(number) for group, number in lines if group == self.group}

    def check(self, client: Client) -> dict[str, set[int]]:
        """Every one is somewhere, and nothing is there that nobody published."""
        places = self.places(client)
        everywhere = set().union(*places.values())
        assert self.published <= everywhere, f"lost in {self.group}: {sorted(self.published - everywhere)}"
        unknown = everywhere - self.published - self.unsure
        assert not unknown, f"published by nobody, in {self.group}: {sorted(unknown)}"
        return places


def in_stream(client: Client, stream: str, group: str) -> dict[str, set[int]]:
    handle = client.stream(stream)
    try:
        [info] = [one for one in handle.groups() if one.name == group]
        pending = {row.id for row in handle.group(group).pending(limit=100_000)}
    except (NotFound, ValueError):
        return {"undelivered": numbers_of(handle.range())}
    last = as_pair(info.last_delivered_id)
    entries = list(handle.range())
    return {
        "undelivered": numbers_of([entry for entry in entries if as_pair(entry.id) > last]),
        "pending": numbers_of([entry for entry in entries if entry.id in pending]),
    }


def as_pair(entry_id: str) -> tuple[int, int]:
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence)


def numbers_of(entries: list[Entry]) -> set[int]:
    return {number for entry in entries for name, value in entry.pairs if name == b"data" for number in in_text(value)}


def in_hash(client: Client, key: str) -> set[int]:
    reply = client.command("HVALS", key)
    return {number for value in reply for number in in_text(value)}


def in_text(value: bytes) -> list[int]:
    return [int(number) for number in NUMBER.findall(value)]

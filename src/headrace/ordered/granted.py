"""What this coordinator took for consumers: a memory that spares questions, never one that decides.

A fence belongs to one grant of one key to one consumer in one session, for ever. So what is remembered about it stays
true; whether the consumer still holds the key is for the broker to say, with the step that uses the fence.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headrace.client.lane_steps import Grant
from headrace.client.lane_views import Registered
from headrace.client.results import Entry

MOST_REMEMBERED: Final = 2000  # Of one consumer. It holds half of that at the most; the rest were lost.


@dataclass(frozen=True, slots=True)
class Remembered:
    """A message that was given to a consumer."""

    key: str
    fence: int
    session: int
    id: str
    entry: Entry | None  # None: the consumer has been told. Who asks again wants to know what is in the stream by now.


class Granted:
    def __init__(self) -> None:
        self.by_consumer: dict[str, dict[str, Remembered]] = {}  # By name, then by key.

    def note(self, one: Registered, grants: Sequence[Grant]) -> None:
        known = self.by_consumer.setdefault(one.name, {})
        for grant in grants:
            [entry] = grant.entries
            known.pop(grant.key, None)  # So that the oldest stay first.
            known[grant.key] = Remembered(grant.key, grant.fence, one.session, entry.id, entry)
        while len(known) > MOST_REMEMBERED:
            del known[next(iter(known))]

    def note_told(self, consumer: str, keys: Iterable[str]) -> None:
        known = self.by_consumer.get(consumer, {})
        for key in keys:
            if key in known:
                known[key] = replace(known[key], entry=None)

    def find(self, consumer: str, key: str) -> Remembered | None:
        return self.by_consumer.get(consumer, {}).get(key)

    def all_of(self, consumer: str) -> list[Remembered]:
        return list(self.by_consumer.get(consumer, {}).values())

    def forget(self, consumer: str, key: str, fence: int) -> None:
        known = self.by_consumer.get(consumer, {})
        if key in known and known[key].fence == fence:
            del known[key]

    def forget_others(self, consumers: Collection[str]) -> None:
        for name in self.by_consumer.keys() - consumers:
            del self.by_consumer[name]

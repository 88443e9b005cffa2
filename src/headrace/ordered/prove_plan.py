"""What a proof does, and the names of all keys it touches: they carry a random word, so no other key is ever meant.

    headrace-proof:{f3a91c}                 the stream that is worked on
    headrace-proof:{f3a91c}:done:17         list: the accepted work of key 17, in the order it was accepted
    headrace-proof:{f3a91c}:again           list: attempts at a message that are not its first, when they began
    headrace-proof:{f3a91c}:late            hash: late commits, those refused and those still in time
    hr:{f3a91c}:headrace-proof:{f3a91c}:…   what order per key needs beside the stream (client/lane_keys.py)

A line of accepted work is `number process fence attempt begin end`: begin and end of the handler by the machine's
monotonic clock in nanoseconds, which all its processes share. One of another attempt is `key fence begin`.
"""

import json
import os
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from random import Random
from typing import Final

from headrace.client.flows import beside
from headrace.client.lane_keys import Order, Settings
from headrace.client.worker_keys import group_keys, stream_keys
from headrace.errors import ConfigError

PLAN: Final = "HEADRACE_PROOF"  # The environment variable that tells consumers the plan.
GROUP: Final = "proof"
KEY_FIELD: Final = "ticket"

LONG_WORK: Final = 0.003  # The share of messages that take longer than a lease,
LONG_WORK_LEASES: Final = 1.5  # and how much longer.

MOST_KEYS: Final = 100_000
MOST_MESSAGES: Final = 10_000_000
MOST_CONSUMERS: Final = 64
SHORTEST_LEASE_MS: Final = 500  # Below that, a busy machine would be judged and not the server.
LONGEST_LEASE_MS: Final = 60_000
SHORTEST_KILL_EVERY_MS: Final = 100
LONGEST_DURATION_MS: Final = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Plan:
    keys: int = 300
    messages: int = 20_000
    consumers: int = 8
    kill_every_ms: int = 2000
    duration_ms: int = 30_000  # Messages come over this time.
    lease_ms: int = 2000
    places: int = 8  # Keys that a consumer works on at once.
    work_ms: int = 5  # What a message takes, on average.
    seed: int = 0
    stream: str = ""

    def __post_init__(self) -> None:
        for name, least, most in (
            ("keys", 1, MOST_KEYS),
            ("messages", 1, MOST_MESSAGES),
            ("consumers", 2, MOST_CONSUMERS),
            ("kill_every_ms", SHORTEST_KILL_EVERY_MS, LONGEST_DURATION_MS),
            ("duration_ms", 1, LONGEST_DURATION_MS),
            ("lease_ms", SHORTEST_LEASE_MS, LONGEST_LEASE_MS),
            ("places", 1, 1000),
            ("work_ms", 0, LONGEST_LEASE_MS),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ConfigError(f"{name} is {value:,}; it must be from {least:,} to {most:,}.")
        if not self.stream:
            object.__setattr__(self, "stream", f"headrace-proof:{{{secrets.token_hex(6)}}}")

    # What is published

    def numbered(self) -> Iterator[tuple[str, int]]:
        """Every message: its key, chosen at random, and its number within the key. The same for the same seed."""
        chance = Random(self.seed)  # noqa: S311 - to be repeated, not to be secret.
        counts: Counter[int] = Counter()
        for _ in range(self.messages):
            key = chance.randrange(self.keys)
            yield str(key), counts[key]
            counts[key] += 1

    def counts(self) -> Counter[str]:
        """How many messages each key has."""
        return Counter(key for key, _ in self.numbered())

    def work_s(self, key: str, number: int) -> float:
        """What a message takes, in every attempt: some longer than a lease, so that a pause hits it half-way."""
        chance = Random(f"{self.seed} {key} {number}")  # noqa: S311 - to be repeated, not to be secret.
        if chance.random() < LONG_WORK:
            return LONG_WORK_LEASES * self.lease_ms / 1000
        return 2 * chance.random() * self.work_ms / 1000

    # Names

    @property
    def order(self) -> Order:
        """As the consumers set it up."""
        return Order(self.stream, GROUP, Settings((KEY_FIELD, "key"), lease_ms=self.lease_ms))

    @property
    def late_key(self) -> str:
        return f"{self.stream}:late"

    @property
    def again_key(self) -> str:
        return f"{self.stream}:again"

    def done_key(self, key: str) -> str:
        return f"{self.stream}:done:{key}"

    def all_keys(self) -> Iterator[str]:
        """Every key on the server that a proof can have made, so that nothing must be searched to clean up."""
        own, group = stream_keys(self.stream), group_keys(self.stream, GROUP)
        yield from dict.fromkeys((*self.order.keys, own.delayed, own.bodies, own.outbox, self.late_key, self.again_key))
        yield from (group.due, group.attempts, group.again, beside(self.stream, "ids"))
        lane = beside(self.stream, f"{GROUP}:lane")
        for number in range(self.keys):
            yield self.done_key(str(number))
            yield f"{lane}:{number}"

    # To the consumers

    def environment(self) -> dict[str, str]:
        return {**os.environ, PLAN: json.dumps(asdict(self))}


def plan_of_environment() -> Plan | None:
    text = os.environ.get(PLAN)
    return None if text is None else Plan(**json.loads(text))

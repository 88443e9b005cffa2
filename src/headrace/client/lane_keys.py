"""The keys beside a stream that order per key uses, on every server. They lie in the stream's slot.

    hr:{orders}:billing:lane:KEY       list: undone entries of one key, in stream order
    hr:{orders}:billing:lanes          sorted set: the same of all keys, in the layout `set`
    hr:{orders}:billing:tickets        hash: key -> its state, and who holds it
    hr:{orders}:billing:ready          list: keys that have work and no holder
    hr:{orders}:billing:until          sorted set: key -> when its lease or its pause ends, in ms
    hr:{orders}:billing:consumers      hash: name -> session, last heartbeat in ms, capacity and health URL
    hr:{orders}:billing:order          hash: the settings, the last fence, and how far a rebuild is
    hr:{orders}:billing:dead           stream: dead letters, those of plain workers too

`tickets` and `consumers` may have names of the user's choice. commands/lane_keys.py has the same names for our broker.
"""

from dataclasses import dataclass
from typing import Final

from headrace.client.flows import beside
from headrace.client.results import encode_text
from headrace.client.worker_keys import group_keys
from headrace.errors import ConfigError

LANES: Final = "lanes"  # Who has the entries in a lane that nobody holds.
READER: Final = "master"  # Who has entries that were read and are in no lane yet.
MOST_KEY_FIELDS: Final = 64
POISON: Final = ("park", "skip")
KEYLESS: Final = ("own", "dead")
LAYOUTS: Final = ("list", "set")
LONGEST_SIZE: Final = 10  # Digits of the length of a name.


@dataclass(frozen=True, slots=True)
class Settings:
    """How a group is kept in order. All consumers of the group share them."""

    keyfields: tuple[str, ...]  # Names of fields, or of members of the JSON object in `data`; the first found counts.
    poison: str = "park"  # Or "skip": what becomes of a message that failed max_attempts times.
    max_attempts: int = 0  # 0: the server sets no limit.
    keyless: str = "own"  # Each message without a key is a key of its own; or "dead": it goes to the dead letters.
    lease_ms: int = 30_000
    reader: str = READER
    tickets: str | None = None  # Names of the two maps; None: beside the stream.
    consumers: str | None = None
    layout: str = "list"  # Or "set", for servers that refuse keys which were not declared. Ours needs none.

    def __post_init__(self) -> None:
        if not 1 <= len(self.keyfields) <= MOST_KEY_FIELDS or not all(self.keyfields):
            raise ConfigError(
                f"keyfields is {self.keyfields!r}; give 1 to {MOST_KEY_FIELDS} names, none of them empty."
            )
        for name, value, possible in (
            ("poison", self.poison, POISON),
            ("keyless", self.keyless, KEYLESS),
            ("layout", self.layout, LAYOUTS),
        ):
            if value not in possible:
                raise ConfigError(f"{name} is {value!r}; it must be one of {', '.join(possible)}.")
        if self.max_attempts < 0 or self.lease_ms < 1:
            raise ConfigError("max_attempts must be 0 (no limit) or more, and lease_ms at least 1.")


@dataclass(frozen=True, slots=True)
class Order:
    """One group of one stream that is kept in order."""

    stream: str
    group: str
    settings: Settings

    @property
    def tickets(self) -> str:
        return self.settings.tickets or beside(self.stream, f"{self.group}:tickets")

    @property
    def consumers(self) -> str:
        return self.settings.consumers or beside(self.stream, f"{self.group}:consumers")

    @property
    def dead(self) -> str:
        return group_keys(self.stream, self.group).dead

    @property
    def keys(self) -> tuple[str, ...]:
        """All that a step may touch, but for the lanes of keys: their names begin like the last one."""
        ready, until, lanes = (beside(self.stream, f"{self.group}:{name}") for name in ("ready", "until", LANES))
        order = order_key(self.stream, self.group)
        return (self.stream, self.tickets, ready, until, self.consumers, order, self.dead, lanes)


def order_key(stream: str, group: str) -> str:
    return beside(stream, f"{group}:order")


def encode_names(names: tuple[str, ...]) -> bytes:
    """As the settings hold them: 9:ticket_id3:key."""
    return b"".join(b"%d:%s" % (len(name), name) for name in map(encode_text, names))


def decode_names(text: bytes) -> tuple[bytes, ...]:
    """Up to what is none: the hash is an ordinary one."""
    names = []
    while text:
        size, _, rest = text.partition(b":")
        if not size.isdigit() or len(size) > LONGEST_SIZE:
            break
        names.append(rest[: int(size)])
        text = rest[int(size) :]
    return tuple(names)

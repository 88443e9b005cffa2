"""The keys beside a stream that workers keep, on every server. They lie in the stream's slot.

    hr:{orders}:delayed                sorted set: messages that come later, by their time in ms
    hr:{orders}:delayed:body           hash: what they hold
    hr:{orders}:outbox                 stream: messages for streams of other slots
    hr:{orders}:billing:due            sorted set: pending entries that are tried again, by their time in ms
    hr:{orders}:billing:attempts       hash: how often an entry was tried, and its last error
    hr:{orders}:billing:dead           stream: dead letters
    hr:{orders}:billing:again          stream: dead letters to be tried again, which only this group reads

The stream `again` has `due` and `attempts` of its own (hr:{orders}:billing:again:due) and shares the dead letters.
commands/hr_keys.py has the same names for our broker.
"""

from dataclasses import dataclass
from typing import Final

from headrace.client.flows import beside

AGAIN: Final = "again"


@dataclass(frozen=True, slots=True)
class StreamKeys:
    delayed: str
    bodies: str
    outbox: str


@dataclass(frozen=True, slots=True)
class GroupKeys:
    due: str
    attempts: str
    dead: str
    again: str  # Of the stream `again` itself: its own name.


def stream_keys(stream: str) -> StreamKeys:
    return StreamKeys(beside(stream, "delayed"), beside(stream, "delayed:body"), beside(stream, "outbox"))


def is_again(stream: str, group: str) -> bool:
    """Whether this is where the group reads dead letters again."""
    return stream.startswith("hr:{") and stream.endswith(f":{group}:{AGAIN}")


def group_keys(stream: str, group: str) -> GroupKeys:
    if is_again(stream, group):
        return GroupKeys(f"{stream}:due", f"{stream}:attempts", stream[: -len(AGAIN)] + "dead", stream)
    own = [beside(stream, f"{group}:{name}") for name in ("due", "attempts", "dead", AGAIN)]
    return GroupKeys(*own)

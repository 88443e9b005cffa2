"""The keys beside a stream that workers keep. client/worker_keys.py lists them, and has the same names for clients."""

from typing import Final

AGAIN: Final = b"again"


class GroupKeys:
    """What a group keeps beside its stream."""

    __slots__ = ("due", "attempts", "dead", "again")

    def __init__(self, stream: bytes, group: bytes) -> None:
        base = beside(stream, group + b":")
        if is_again(stream, group):
            self.due = stream + b":due"
            self.attempts = stream + b":attempts"
            self.dead = stream[: -len(AGAIN)] + b"dead"
            self.again = stream
        else:
            self.due = base + b"due"
            self.attempts = base + b"attempts"
            self.dead = base + b"dead"
            self.again = base + AGAIN


def is_again(stream: bytes, group: bytes) -> bool:
    """Whether this is where the group reads dead letters again."""
    return stream.startswith(b"hr:{") and stream.endswith(b":" + group + b":" + AGAIN)


def delayed_key(stream: bytes) -> bytes:
    return beside(stream, b"delayed")


def bodies_key(stream: bytes) -> bytes:
    return beside(stream, b"delayed:body")


def beside(stream: bytes, name: bytes) -> bytes:
    """A key in the stream's slot: hr:{orders}:delayed."""
    tag = tag_of(stream)
    own = b"" if tag == stream else stream + b":"
    return b"hr:{" + tag + b"}:" + own + name


def tag_of(stream: bytes) -> bytes:
    """The part of a key that decides its slot: its hash tag, or all of it."""
    start = stream.find(b"{")
    end = stream.find(b"}", start + 1)
    return stream[start + 1 : end] if start >= 0 and end > start + 1 else stream

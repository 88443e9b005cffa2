"""Large values become parts a piece at a time, as they were when they were copied."""

from collections import deque
from typing import Any

import pytest

from headrace.engine.large_part import LargePart, is_large
from headrace.engine.shelf import NodeLimits
from headrace.engine.snapshot import load_part
from headrace.engine.sorted_set import SortedSet
from headrace.engine.stream import Stream

COUNT = 1000


def values() -> dict[str, Any]:
    names = [b"element-%d" % number for number in range(COUNT)]
    return {
        "list": deque(names),
        "hash": {name: name[::-1] for name in names},
        "hash of empty texts": dict.fromkeys(names, b""),
        "set": set(names),
        "zset": SortedSet({name: place * -0.1 for place, name in enumerate(names)}),
    }


def pieces_of(part: LargePart, elements: int = 100, size_bytes: int = 1_000_000) -> list[bytes]:
    pieces = []
    while part.has_more():
        pieces.append(part.encode_some(elements, size_bytes))
    return pieces


def contents_of(value: Any) -> Any:
    return value.pairs(0, len(value)) if isinstance(value, SortedSet) else value


def change(value: Any) -> None:
    if isinstance(value, deque):
        value.popleft()
        value.append(b"new")
    elif isinstance(value, dict):
        value[b"element-5"] = b"changed"
        value.pop(b"element-7", None)
    elif isinstance(value, set):
        value.discard(b"element-5")
        value.add(b"new")
    else:
        value.put(b"element-5", 12.0)
        value.put(b"new", 13.0)


@pytest.mark.parametrize("kind", values())
def test_the_pieces_together_are_the_value_at_the_moment_of_the_copy(kind: str) -> None:
    value = values()[kind]
    part = LargePart(3, b"key", value, 12345, 17)
    pieces = []
    while part.has_more():
        change(value)
        pieces.append(part.encode_some(100, 1_000_000))

    loaded = load_part(b"".join(pieces), NodeLimits())

    assert len(pieces) == 10
    assert (loaded.database, loaded.key, loaded.expires_ms, loaded.sequence) == (3, b"key", 12345, 17)
    assert contents_of(loaded.value) == contents_of(values()[kind])


@pytest.mark.parametrize("kind", values())
def test_a_piece_has_no_more_bytes_than_wanted(kind: str) -> None:
    part = LargePart(0, b"key", values()[kind], 0, 17)

    pieces = pieces_of(part, elements=COUNT, size_bytes=500)

    assert len(pieces) > 10
    assert max(len(piece) for piece in pieces) < 1500  # Their lengths are written too.
    assert contents_of(load_part(b"".join(pieces), NodeLimits()).value) == contents_of(values()[kind])


def test_an_element_that_is_larger_than_a_piece_is_a_piece() -> None:
    value = deque([b"x" * 1000] * 5)

    pieces = pieces_of(LargePart(0, b"key", value, 0, 17), elements=3, size_bytes=10)

    assert len(pieces) == 5
    assert load_part(b"".join(pieces), NodeLimits()).value == value


def test_streams_and_texts_have_their_own_way() -> None:
    large = values()

    assert all(is_large(value, COUNT - 1) for value in large.values())
    assert not any(is_large(value, COUNT) for value in large.values())
    assert not is_large(b"x" * 10_000, 10)
    assert not is_large(Stream(NodeLimits()), 0)

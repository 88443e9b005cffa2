"""Replies to XRANGE as a server writes them, for tests that need no server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.pipeline.pages import Page

Pairs = Sequence[tuple[bytes, bytes]]


def encode_reply(entries: Sequence[tuple[bytes, Pairs]]) -> bytes:
    parts = [b"*%d\r\n" % len(entries)]
    for entry_id, pairs in entries:
        parts += [b"*2\r\n", bulk(entry_id), b"*%d\r\n" % (2 * len(pairs))]
        parts += [bulk(word) for pair in pairs for word in pair]
    return b"".join(parts)


def bulk(word: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(word), word)


def page_of(*entries: Pairs | dict[str, str]) -> Page:
    """A page with the IDs 1-0, 2-0, …; pairs as bytes, or as a dict of texts."""
    from headrace.pipeline.pages import parse_page  # Not everybody who needs replies has pyarrow.

    numbered = []
    for number, pairs in enumerate(entries, 1):
        if isinstance(pairs, dict):
            pairs = [(name.encode(), value.encode()) for name, value in pairs.items()]
        numbered.append((b"%d-0" % number, pairs))
    return parse_page(encode_reply(numbered))

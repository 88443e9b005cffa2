"""Commands as bytes, by hiredis: several times faster than redis-py packs them."""

from collections.abc import Sequence
from typing import Any

import hiredis

from headrace.client.results import encode_text

Word = str | bytes | int


def pack(argv: Sequence[Word]) -> bytes:
    words: Any = tuple(argv)
    try:
        packed: bytes = hiredis.pack_command(words)
    except UnicodeEncodeError:  # Text that stands for bytes which are no UTF-8: we know how to write it.
        words = tuple([encode_text(word) if isinstance(word, str) else word for word in words])
        packed = hiredis.pack_command(words)
    return packed

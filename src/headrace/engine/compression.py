"""Compression of what is kept in memory: lz4 where it is installed, else zlib. Nothing of it goes to disk."""

import zlib
from typing import Any

from headrace.engine.shelf import ZLIB_LEVEL

try:
    import lz4.block as _lz4

    _compress: Any = _lz4.compress
    _decompress: Any = _lz4.decompress
except ImportError:
    _compress = None
    _decompress = None


def compress(plain: bytes) -> bytes:
    packed: bytes = _compress(plain) if _compress is not None else zlib.compress(plain, ZLIB_LEVEL)
    return packed


def decompress(packed: bytes) -> bytes:
    plain: bytes = _decompress(packed) if _decompress is not None else zlib.decompress(packed)
    return plain

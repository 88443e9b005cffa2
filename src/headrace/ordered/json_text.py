"""JSON for people and programs. Keys and names are bytes on the broker; what is not UTF-8 is shown with escapes."""

from collections.abc import Mapping
from typing import Any

import msgspec


def encode_json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # Half characters: how bytes that are no UTF-8 look in text.
        return msgspec.json.encode(plain(value))


def plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if isinstance(value, Mapping):
        return {plain(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value

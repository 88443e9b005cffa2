"""The key of a message as a field of its entry, beside the payload: so no server needs to read JSON to find it.

    @app.handler("tickets", key="ticket_id")         app.publish("tickets", {"ticket_id": 7, "text": "…"})

    XADD tickets * data {"ticket_id":7,"text":"…"} ticket_id 7

What other programs add without that field is found in the JSON all the same.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from headrace.client.results import encode_text

LAYOUT_FIELDS: Final = frozenset({"data", "key", "id", "type", "traceparent", "tracestate"})
LAYOUT_PREFIXES: Final = ("h:", "hr:")
MOST_NUMBER: Final = 2**53  # Every language reads numbers below it exactly.


def is_field(name: str) -> bool:
    """Whether a field of this name would not be taken for another."""
    return name not in LAYOUT_FIELDS and not name.startswith(LAYOUT_PREFIXES)


def order_fields(payload: Any, names: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """Those of the names that the payload has a key under."""
    if isinstance(payload, (str, bytes, bytearray, memoryview)):
        return []
    pairs = []
    for name in names:
        value = payload.get(name) if isinstance(payload, Mapping) else getattr(payload, name, None)
        text = text_of(value)
        if text:
            pairs.append((encode_text(name), encode_text(text)))
    return pairs


def text_of(value: Any) -> str | None:
    """As a server reads it from JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value)) if abs(value) < MOST_NUMBER else None
    return str(value) if isinstance(value, str) else None

"""The key of an entry, as LANE.TAKE finds it: a field, or a member of the JSON object in the field `data`."""

import json
from collections.abc import Sequence
from typing import Final

from headrace.client.results import Entry, decode_text, encode_text

OWN_FIELDS: Final = frozenset({"data", "id", "type", "traceparent", "tracestate"})  # Of the layout: no keys.
LARGEST_WHOLE: Final = 2**53


def find_key(entry: Entry, key_fields: Sequence[str]) -> str:
    """The key; an entry without one has a lane of its own."""
    fields = {decode_text(name): decode_text(value) for name, value in reversed(entry.pairs)}  # The first one counts.
    has_data = "data" in fields
    members = read_members(fields["data"]) if has_data else {}
    for name in key_fields:
        if not (has_data and name in OWN_FIELDS) and fields.get(name):
            return fields[name]
        if key := key_text(members.get(name)):
            return key
    return f"id:{entry.id}"


def read_members(data: str) -> dict[str, object]:
    """With the reader that the broker has: both must take the same for JSON."""
    try:
        members = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def key_text(value: object) -> str:
    """Text as it is, a whole number in decimal, true or false; everything else is no key."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and abs(value) < LARGEST_WHOLE and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return str(value) if abs(value) < LARGEST_WHOLE else ""
    return value if isinstance(value, str) and is_writable(value) else ""


def is_writable(text: str) -> bool:
    """Half a character has no place among the bytes of a key."""
    try:
        encode_text(text)
    except UnicodeEncodeError:
        return False
    return True

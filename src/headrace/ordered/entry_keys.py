"""The key of an entry, as LANE.TAKE finds it: a field, or a member of the JSON object in the field `data`."""

from collections.abc import Sequence
from typing import Final

import msgspec

from headrace.client.results import Entry, decode_text

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
    try:
        members = msgspec.json.decode(data.encode("utf-8", "surrogateescape"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return members if isinstance(members, dict) else {}


def key_text(value: object) -> str:
    """Text as it is, a whole number in decimal, true or false; everything else is no key."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) < LARGEST_WHOLE:
        return str(value)
    return value if isinstance(value, str) else ""

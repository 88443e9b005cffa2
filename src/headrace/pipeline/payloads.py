"""Columns from what the field `data` holds: JSON objects, or CloudEvents. Pure.

A CloudEvent comes in two forms, which may be mixed in one stream:

    structured   data {"specversion":"1.0","id":"17","source":"shop","type":"order.paid","data":{"total":9.9}}
    binary       ce_specversion 1.0 ce_id 17 ce_source shop ce_type order.paid data {"total":9.9}

In the binary form attributes are fields `ce_NAME`, or headers `h:ce_NAME` (also `h:ce-NAME`, as in HTTP). The columns
ce_id, ce_source, ce_type, ce_time, ce_subject, … are attributes, extensions too; other columns are members of the
event's data, if that is a JSON object.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.client import layout
from headrace.pipeline.pages import Page
from headrace.pipeline.typed_values import decode_json, from_objects, from_texts

ATTRIBUTE: Final = "ce_"  # Begins the name of a column that is an attribute,
ATTRIBUTE_FIELDS: Final = (b"ce_", b"h:ce_", b"h:ce-")  # and that of a field which holds one.
SIGNS: Final = ("specversion", "id", "source", "type")  # Every event has these: a field of one shows the binary form.


@dataclass(frozen=True, slots=True)
class Columns:
    """What was read: arrays, and what did not fit. Masks are bool arrays, one place per entry; None: no place."""

    arrays: Sequence[Any]
    misfits: Sequence[Any]  # A mask per array.
    bad: Any  # The mask of entries that have no such record at all.
    from_data: Any  # The mask of entries whose columns come from `data` alone.


def read_json(page: Page, wanted: Sequence[Any]) -> Columns:
    documents = [parse_object(text) for text in page.last_values(layout.DATA).to_pylist()]
    pairs = [read_member(documents, field) for field in wanted]
    return make_columns(pairs, find_errors(documents), np.ones(page.count, bool))


def parse_object(text: bytes | None) -> Any:
    """A dict; None where there is no text; an exception where it is no JSON object."""
    if text is None:
        return None
    try:
        value = decode_json(text)
    except ValueError as error:
        return error
    return value if type(value) is dict else ValueError("no object")


def read_member(documents: Sequence[Any], field: Any) -> tuple[Any, Any]:
    name = field.name
    return from_objects([one.get(name) if type(one) is dict else None for one in documents], field.type)


def find_errors(documents: Sequence[Any]) -> Any:
    return make_mask([isinstance(document, Exception) for document in documents])


def make_columns(pairs: Sequence[tuple[Any, Any]], bad: Any, from_data: Any) -> Columns:
    return Columns([array for array, _ in pairs], [misfits for _, misfits in pairs], bad, from_data)


# CloudEvents


def read_events(page: Page, wanted: Sequence[Any]) -> Columns:
    documents = [parse_object(text) for text in page.last_values(layout.DATA).to_pylist()]
    signs = [pc.is_valid(find_attribute(page, name)).to_numpy(zero_copy_only=False) for name in SIGNS]
    is_binary = np.logical_or.reduce(signs)
    events = [None if binary else as_event(one) for one, binary in zip(documents, is_binary, strict=True)]
    payloads = [
        one if binary else find_payload(event)
        for one, event, binary in zip(documents, events, is_binary, strict=True)
    ]  # fmt: skip
    bad = find_errors(events)
    if not all(field.name.startswith(ATTRIBUTE) for field in wanted):
        bad = join_masks([bad, find_errors(payloads)])  # Data of any kind will do where none of it is asked for.
    pairs = [
        read_attribute(page, events, field) if field.name.startswith(ATTRIBUTE) else read_member(payloads, field)
        for field in wanted
    ]
    return make_columns(pairs, bad, ~is_binary)


def as_event(document: Any) -> Any:
    if type(document) is dict and "specversion" not in document:
        return ValueError("no CloudEvent")
    return document


def find_payload(event: Any) -> Any:
    """The data of an event, where it is an object; data that is text or a number has no members."""
    if type(event) is not dict:
        return None
    if type(event.get("data_base64")) is str:
        try:
            return parse_object(base64.b64decode(event["data_base64"], validate=True))
        except ValueError as error:
            return error
    payload = event.get("data")
    return payload if type(payload) is dict else None


def find_attribute(page: Page, name: str) -> Any:
    """A binary array: what stands in a field or header of its own; null where nothing does."""
    return pc.coalesce(*(page.last_values(prefix + encode_name(name)) for prefix in ATTRIBUTE_FIELDS))


def read_attribute(page: Page, events: Sequence[Any], field: Any) -> tuple[Any, Any]:
    """All attributes have a text form, also those that are numbers or booleans in JSON."""
    name = field.name.removeprefix(ATTRIBUTE)
    members = [event.get(name) if type(event) is dict else None for event in events]
    texts = pa.array([None if member is None else encode_member(member) for member in members], pa.binary())
    return from_texts(pc.coalesce(find_attribute(page, name), texts), field.type)


def encode_member(member: Any) -> bytes:
    return encode_name(member) if type(member) is str else msgspec.json.encode(member)


def encode_name(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


# Masks


def make_mask(places: Sequence[bool]) -> Any:
    return np.array(places, bool) if any(places) else None


def join_masks(masks: Sequence[Any]) -> Any:
    """The places of all of them."""
    some = [mask for mask in masks if mask is not None]
    return np.logical_or.reduce(some) if some else None

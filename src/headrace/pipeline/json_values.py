"""Values of Arrow columns -> JSON. Pure.

numbers, texts, booleans      as they are; NaN and infinity, which JSON lacks, are null
decimal                       a number with all its digits
timestamp                     "2026-11-15T12:30:00.250000Z", in UTC; without a zone as it is, without the Z
date, time, interval          "2026-11-15", "12:30:00", "P1DT3600S"
binary                        base64 text
struct and map                an object; keys of a map that are not text are written as text
array                         an array
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pyarrow as pa

from headrace.errors import ConfigError

Converter = Callable[[Any], Any]

ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


def encode_json(value: Any) -> bytes:
    return ENCODER.encode(value)


def encode_text_value(value: Any) -> bytes:
    """As in JSON, but texts without their quotes: 9.90, true, 2026-11-15, [1,2]."""
    return value.encode() if isinstance(value, str) else ENCODER.encode(value).strip(b'"')


def json_converter(kind: pa.DataType, name: str) -> Converter | None:
    """What makes a value, which is not null, fit for JSON; None where it is already."""
    types = pa.types
    if types.is_timestamp(kind):
        return in_utc if kind.tz is not None else None
    if types.is_list(kind) or types.is_large_list(kind):
        convert = json_converter(kind.value_type, name)
        return None if convert is None else (lambda items: [apply(convert, item) for item in items])
    if types.is_map(kind):
        return map_converter(kind, name)
    if types.is_struct(kind):
        return struct_converter(kind, name)
    plain = (
        types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_string, types.is_large_string,
        types.is_binary, types.is_large_binary, types.is_date, types.is_time, types.is_duration, types.is_null,
    )  # fmt: skip
    if any(check(kind) for check in plain):
        return None
    raise ConfigError(f"the column {name!r} is of type {kind}, which has no JSON form. Cast it to string.")


def map_converter(kind: pa.DataType, name: str) -> Converter:
    """Arrow gives a map as a list of pairs."""
    of_key, of_item = json_converter(kind.key_type, name), json_converter(kind.item_type, name)
    return lambda pairs: {text_key(apply(of_key, key)): apply(of_item, item) for key, item in pairs}


def struct_converter(kind: pa.DataType, name: str) -> Converter | None:
    if any((field.metadata or {}).get(b"variant") for field in kind):
        raise ConfigError(f"the column {name!r} is a variant. Write to_json({name}) or cast it to string.")
    converters = {field.name: json_converter(field.type, f"{name}.{field.name}") for field in kind}
    if not any(converters.values()):
        return None
    return lambda value: {field: apply(converters[field], item) for field, item in value.items()}


def apply(convert: Converter | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def in_utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


def text_key(key: Any) -> str:
    return key if isinstance(key, str) else encode_text_value(key).decode()

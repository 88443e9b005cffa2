"""The entry layout headrace writes, and how a payload becomes bytes and back.

One entry = the field `data` with the payload, then, each only where it is given:

    key          the ordering key                       id        the publish id, twice is once
    type         content type, when not JSON            h:NAME    a header
    traceparent, tracestate                             the trace it belongs to

    XADD orders * data {"id":17,"total":9.9} key customer-42 id order-17

Producers in other languages write the same. An entry without `data` is read as its fields.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from headrace.errors import ConfigError, HeadraceError

DATA: Final = b"data"
KEY: Final = b"key"
ID: Final = b"id"
TYPE: Final = b"type"
HEADER: Final = b"h:"

JSON: Final = b"application/json"
TEXT: Final = b"text/plain"
BYTES: Final = b"application/octet-stream"

ENCODER: Final = msgspec.json.Encoder()


def encode_entry(
    payload: Any, *, key: str | None = None, id: str | None = None, headers: Mapping[str, str] | None = None
) -> list[tuple[bytes, bytes]]:
    """The fields of a published message."""
    data, content_type = encode_payload(payload)
    pairs = [(DATA, data)]
    if key is not None:
        pairs.append((KEY, key.encode("utf-8", "surrogateescape")))
    if id is not None:
        pairs.append((ID, id.encode("utf-8", "surrogateescape")))
    if content_type != JSON:
        pairs.append((TYPE, content_type))
    for name, value in (headers or {}).items():
        pairs.append((HEADER + name.encode(), value.encode("utf-8", "surrogateescape")))
    return pairs


def encode_payload(payload: Any) -> tuple[bytes, bytes]:
    """A payload and its content type. bytes and text stay as they are; everything else becomes JSON."""
    if type(payload) is dict:  # Nearly all are.
        return encode_json(payload), JSON
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return bytes(payload), BYTES
    if isinstance(payload, str):
        return payload.encode("utf-8", "surrogateescape"), TEXT
    to_json = getattr(payload, "model_dump_json", None)  # A pydantic model, without importing pydantic.
    if callable(to_json):
        return str(to_json()).encode(), JSON
    return encode_json(payload), JSON


def encode_json(payload: Any) -> bytes:
    try:
        return ENCODER.encode(payload)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"cannot publish {a_type(payload)}: {error}. Give a dict, dataclass, Struct, pydantic model, str or bytes."
        ) from error


def a_type(value: Any) -> str:
    """With its article: a list, an object."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def decode_payload(data: bytes, content_type: bytes | None, entry_id: str) -> Any:
    if content_type is None or content_type == JSON:
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise HeadraceError(f"the data of entry {entry_id} is not JSON: {error}") from error
    if content_type.startswith(b"text/"):
        return data.decode("utf-8", "surrogateescape")
    return data

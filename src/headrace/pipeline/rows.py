"""A Page -> an Arrow batch in the standard columns, or in any of them, with the columns a user declared. Pure.

    stream           string
    id               string, 1690275391705-0
    id_ms, id_seq    decimal(20,0): its halves
    timestamp        timestamp, UTC: id_ms as a time; null where it is a counter
    key              string: the last pair named `key`, or null; bytes that are no UTF-8 are replaced
    data             binary: the last pair named `data`, or null
    fields           map of name and value: of equal names the last one; bytes that are no UTF-8 are replaced
    pairs            array of name and value: all, in order, as stored

Only what the schema names is computed. Batches have exactly the Arrow types that Spark expects for the schema.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from headrace.client import layout
from headrace.client.results import LAST_TIME_MS
from headrace.errors import ConfigError
from headrace.pipeline.entry_ids import FIRST_TIME_MS
from headrace.pipeline.pages import Page, as_arrow, as_numpy, to_indices

if TYPE_CHECKING:
    from headrace.pipeline.declared import DeclaredColumns

STANDARD_DDL: Final = (
    "stream string, id string, id_ms decimal(20,0), id_seq decimal(20,0), timestamp timestamp, key string, "
    "data binary, fields map<string,string>, pairs array<struct<name:binary,value:binary>>"
)
PAIR: Final = pa.struct([pa.field("name", pa.binary()), pa.field("value", pa.binary())])
STANDARD_SCHEMA: Final = pa.schema(
    [
        ("stream", pa.string()),
        ("id", pa.string()),
        ("id_ms", pa.decimal128(20, 0)),
        ("id_seq", pa.decimal128(20, 0)),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("key", pa.string()),
        ("data", pa.binary()),
        ("fields", pa.map_(pa.string(), pa.string())),
        ("pairs", pa.list_(pa.field("element", PAIR))),
    ]
)


def to_arrow(schema: Any) -> Any:
    """The Arrow schema that Spark expects of batches for its StructType."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def is_standard(field: Any) -> bool:
    """Whether a field of an Arrow schema is a standard column: by name and type. Others are declared columns."""
    place = STANDARD_SCHEMA.get_field_index(field.name)
    return place >= 0 and bool(STANDARD_SCHEMA.field(place).type == field.type)


def make_batch(page: Page, stream: str, schema: Any, decoder: "DeclaredColumns | None" = None) -> Any:
    """The page as a RecordBatch of this Arrow schema. Columns that are no standard ones are the decoder's."""
    declared_names = [field.name for field in schema if not is_standard(field)]
    declared: dict[str, Any] = {}
    if declared_names:
        if decoder is None:
            raise ConfigError(f"there is no column {declared_names[0]!r}; the columns are {STANDARD_DDL}.")
        declared = decoder.make(page, stream)
    columns = [
        MAKERS[field.name](page, stream) if is_standard(field) else declared[field.name] for field in schema
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def make_stream(page: Page, stream: str) -> Any:
    try:
        name = stream.encode("utf-8")
    except UnicodeEncodeError:
        raw = stream.encode("utf-8", "surrogateescape")
        raise ConfigError(
            f"the name of the stream {raw!r} is not UTF-8, so it fits into no column. Rename it."
        ) from None
    offsets: Any = np.arange(page.count + 1, dtype=np.int32) * len(name)
    return pa.Array.from_buffers(
        pa.string(), page.count, [None, pa.py_buffer(offsets), pa.py_buffer(name * page.count)]
    )


def make_id(page: Page, _stream: str) -> Any:
    return page.ids.view(pa.string())


def make_id_ms(page: Page, _stream: str) -> Any:
    return to_decimal(page.ms)


def make_id_seq(page: Page, _stream: str) -> Any:
    return to_decimal(page.seq)


def to_decimal(numbers: Any) -> Any:
    """decimal(20,0) is a number of 128 bits, the low half first."""
    halves: Any = np.zeros((len(numbers), 2), np.uint64)
    halves[:, 0] = numbers
    return pa.Array.from_buffers(pa.decimal128(20, 0), len(numbers), [None, pa.py_buffer(halves)])


def make_timestamp(page: Page, _stream: str) -> Any:
    times = as_arrow(page.ms.astype(np.int64) * 1000, pa.timestamp("us", "UTC"))
    is_time = (page.ms >= FIRST_TIME_MS) & (page.ms <= LAST_TIME_MS)
    if is_time.all():
        return times
    return times.take(to_indices(np.where(is_time, np.arange(page.count), -1).astype(np.int32)))


def make_key(page: Page, _stream: str) -> Any:
    return to_text(page.last_values(layout.KEY))


def make_data(page: Page, _stream: str) -> Any:
    return page.last_values(layout.DATA)


def to_text(values: Any) -> Any:
    """Bytes that are no UTF-8 are replaced."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if value is None else value.decode("utf-8", "replace") for value in values.to_pylist()]
        return pa.array(texts, pa.string())


def make_fields(page: Page, _stream: str) -> Any:
    """Names are compared as the text they become: two of different bytes may be one."""
    offsets, names, values = page.pair_offsets, to_text(page.names), to_text(page.values)
    kept = find_kept(page, names)
    if kept is not None:
        places = as_arrow(np.flatnonzero(kept), pa.int64())
        names, values = names.take(places), values.take(places)
        offsets = np.append(0, np.cumsum(kept))[offsets].astype(np.int32)
    return pa.MapArray.from_arrays(
        as_arrow(offsets, pa.int32()), names, values, type=STANDARD_SCHEMA.field("fields").type
    )


def find_kept(page: Page, names: Any) -> Any:
    """Which pairs are the last of their name in their entry; None: all are."""
    shared = page.shared_names
    if shared is not None and len({name.decode("utf-8", "replace") for name in shared}) == len(shared):
        return None
    encoded = names.dictionary_encode()
    entries: Any = np.repeat(np.arange(page.count), np.diff(page.pair_offsets))
    spots = entries * len(encoded.dictionary) + as_numpy(encoded.indices, np.int32)
    _, places = np.unique(spots[::-1], return_index=True)  # The first from behind.
    kept: Any = np.zeros(len(spots), bool)
    kept[len(spots) - 1 - places] = True
    return None if kept.all() else kept


def make_pairs(page: Page, _stream: str) -> Any:
    pairs = pa.StructArray.from_arrays([page.names, page.values], fields=list(PAIR))
    return pa.ListArray.from_arrays(
        as_arrow(page.pair_offsets, pa.int32()), pairs, type=STANDARD_SCHEMA.field("pairs").type
    )


MAKERS: Final[dict[str, Callable[[Page, str], Any]]] = {
    "stream": make_stream, "id": make_id, "id_ms": make_id_ms, "id_seq": make_id_seq, "timestamp": make_timestamp,
    "key": make_key, "data": make_data, "fields": make_fields, "pairs": make_pairs,
}  # fmt: skip

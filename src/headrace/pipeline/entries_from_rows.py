"""Rows of a DataFrame -> the fields of entries. Pure: Arrow in, bytes out.

The columns decide how an entry looks; `as` overrules them. The first that fits:

    pairs    array<struct<name,value>>   exactly these fields, in this order
    fields   map<string,string>          these fields; one whose value is null is left out
    data     string or binary            headrace's layout: data, and from the columns key, type and headers
                                         (a map) the fields key, type and h:NAME
    others   as=json, the default        every column in one JSON object in the field data; the column key becomes
                                         the field key
             as=fields                   every column is a field of its own, as text; null is left out

Beside pairs, fields or data the other columns of the source may stand, so that rows can be passed on as they were
read. Any other column would be lost, and is refused. So is a row that gives no entry: no field, or data that is null.

An entry is a flat list of words here: name, value, name, value.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from headrace.client import layout
from headrace.errors import ConfigError, Refused
from headrace.pipeline.json_values import encode_json, encode_text_value, json_converter

Words = list[bytes]

# Columns of the source and of archives, left out where an entry is made from pairs, fields or data.
PASSED_OVER: Final = frozenset(
    {"stream", "id", "id_ms", "id_seq", "timestamp", "day", "key", "data", "fields", "pairs"}
)
LAYOUT_COLUMNS: Final = frozenset({"key", "type", "headers"})
FORMS: Final = ("json", "fields")


@dataclass(frozen=True, slots=True)
class Shape:
    """How rows become entries: `kind` is pairs, map, layout, json or columns."""

    kind: str
    columns: tuple[str, ...]


def choose_shape(schema: pa.Schema, form: str | None) -> Shape:
    """Look at the columns before any row is read. Raises ConfigError for columns that give no entries."""
    names = tuple(schema.names)
    check_names(names)
    if form not in (None, *FORMS):
        raise ConfigError(f"as is {form!r}; write json (one JSON object per row) or fields (one field per column).")
    if form is None and "pairs" in names:
        check_pairs(schema.field("pairs").type)
        return Shape("pairs", only(names, PASSED_OVER, "pairs"))
    if form is None and "fields" in names:
        check_text_map(schema.field("fields").type, "fields")
        return Shape("map", only(names, PASSED_OVER, "fields"))
    if form is None and "data" in names:
        check_layout(schema)
        return Shape("layout", only(names, PASSED_OVER | LAYOUT_COLUMNS, "data"))
    for field in schema:
        json_converter(field.type, field.name)
    if form == "fields":
        return Shape("columns", names)
    if "key" in names:
        check_key(schema.field("key").type)
    return Shape("json", names)


def make_entries(batch: pa.RecordBatch, shape: Shape) -> Iterator[Words]:
    """The entries of a batch, in its order."""
    makers: dict[str, Callable[[pa.RecordBatch], Iterator[Words]]] = {
        "pairs": from_pairs, "map": from_map, "layout": from_layout, "json": from_columns, "columns": from_each_column,
    }  # fmt: skip
    try:
        yield from makers[shape.kind](batch)
    except (ValueError, OverflowError, pa.ArrowInvalid) as error:
        raise Refused(
            f"a row cannot become an entry: {error}. Cast the column to string, or leave such rows out."
        ) from error


# What the columns must be


def check_names(names: tuple[str, ...]) -> None:
    if not names:
        raise ConfigError("the rows have no columns; an entry needs at least one field.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"two columns are named {twice[0]!r}; rename one of them.")


def only(names: tuple[str, ...], known: frozenset[str], chosen: str) -> tuple[str, ...]:
    unknown = sorted(set(names) - known)
    if unknown:
        raise ConfigError(
            f"the entries are made from the column {chosen!r}, so the column {unknown[0]!r} would be lost; drop it, or "
            "write all columns with the option as=json or as=fields."
        )
    return names


def is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def check_pairs(kind: pa.DataType) -> None:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if is_list and pa.types.is_struct(kind.value_type):
        fields = {field.name: field.type for field in kind.value_type}
        if set(fields) == {"name", "value"} and all(map(is_text, fields.values())):
            return
    raise ConfigError(f"the column 'pairs' must be array<struct<name:binary,value:binary>>, not {kind}.")


def check_text_map(kind: pa.DataType, name: str) -> None:
    if not (pa.types.is_map(kind) and is_text(kind.key_type) and is_text(kind.item_type)):
        raise ConfigError(f"the column {name!r} must be map<string,string>, not {kind}. Cast its keys and values.")


def check_layout(schema: pa.Schema) -> None:
    for name in ("data", "type"):
        if name in schema.names and not is_text(schema.field(name).type):
            raise ConfigError(
                f"the column {name!r} must be string or binary, not {schema.field(name).type}. Use to_json() or cast "
                "it, or write all columns with the option as=json."
            )
    if "headers" in schema.names:
        check_text_map(schema.field("headers").type, "headers")
    if "key" in schema.names:
        check_key(schema.field("key").type)


def check_key(kind: pa.DataType) -> None:
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise ConfigError(f"the column 'key' must be string, binary or a whole number, not {kind}. Cast it to string.")


# Rows to words


def texts(column: pa.Array) -> list[bytes | None]:
    """A column of text or whole numbers as bytes, taken over without decoding."""
    if pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    found: list[bytes | None] = column.cast(pa.binary()).to_pylist()
    return found


def from_pairs(batch: pa.RecordBatch) -> Iterator[Words]:
    column = batch.column("pairs")
    names, values = (texts(child) for child in column.values.flatten())
    order = [field.name for field in column.type.value_type]
    if order == ["value", "name"]:
        names, values = values, names
    offsets = column.offsets.to_pylist()
    for begin, end, is_there in zip(offsets, offsets[1:], column.is_valid().to_pylist(), strict=False):
        words: list[Any] = [word for pair in zip(names[begin:end], values[begin:end], strict=True) for word in pair]
        if not is_there or not words:
            raise no_field("pairs")
        if None in words:
            raise Refused("a row has a name or a value in 'pairs' that is null; leave such pairs out.")
        yield words


def from_map(batch: pa.RecordBatch) -> Iterator[Words]:
    for words in map_words(batch.column("fields"), b""):
        if not words:
            raise no_field("fields")
        yield words


def map_words(column: pa.Array, prefix: bytes) -> Iterator[Words]:
    """Name and value of each item whose value is not null; none for a map that is null."""
    names, values = texts(column.keys), texts(column.items)
    offsets = column.offsets.to_pylist()
    for begin, end, is_there in zip(offsets, offsets[1:], column.is_valid().to_pylist(), strict=False):
        words: Words = []
        for name, value in zip(names[begin:end], values[begin:end], strict=True) if is_there else ():
            if name is not None and value is not None:
                words += (prefix + name, value)
        yield words


def from_layout(batch: pa.RecordBatch) -> Iterator[Words]:
    none = [None] * batch.num_rows
    present = batch.schema.names
    key, kind = (texts(batch.column(name)) if name in present else none for name in ("key", "type"))
    headers = map_words(batch.column("headers"), layout.HEADER) if "headers" in present else iter([[]] * batch.num_rows)
    for data, key_value, kind_value, header_words in zip(texts(batch.column("data")), key, kind, headers, strict=True):
        if data is None:
            raise Refused("a row has no data (null), so there is no entry to write; leave such rows out.")
        words = [layout.DATA, data]
        if key_value is not None:
            words += (layout.KEY, key_value)
        if kind_value is not None:
            words += (layout.TYPE, kind_value)
        yield words + header_words


def from_columns(batch: pa.RecordBatch) -> Iterator[Words]:
    names = [name for name in batch.schema.names if name != "key"]
    keys = texts(batch.column("key")) if "key" in batch.schema.names else [None] * batch.num_rows
    columns = [json_column(batch, name) for name in names]
    rows = zip(*columns, strict=True) if columns else ((),) * batch.num_rows
    for key, row in zip(keys, rows, strict=True):
        words = [layout.DATA, encode_json(dict(zip(names, row, strict=True)))]
        yield words if key is None else [*words, layout.KEY, key]


def from_each_column(batch: pa.RecordBatch) -> Iterator[Words]:
    names = [name.encode() for name in batch.schema.names]
    columns = [field_column(batch, name) for name in batch.schema.names]
    for row in zip(*columns, strict=True):
        words = [word for name, value in zip(names, row, strict=True) if value is not None for word in (name, value)]
        if not words:
            raise Refused("a row is null in every column, so its entry has no field; leave such rows out.")
        yield words


def json_column(batch: pa.RecordBatch, name: str) -> list[Any]:
    column = batch.column(name)
    values = column.to_pylist()
    convert = json_converter(column.type, name)
    return values if convert is None else [None if value is None else convert(value) for value in values]


def field_column(batch: pa.RecordBatch, name: str) -> list[bytes | None]:
    column = batch.column(name)
    if is_text(column.type):
        return texts(column)
    return [None if value is None else encode_text_value(value) for value in json_column(batch, name)]


def no_field(column: str) -> Refused:
    return Refused(f"a row has nothing in {column!r}, so its entry has no field; leave such rows out.")

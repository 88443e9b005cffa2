"""Columns that a user declared, of entries: from their fields, from JSON in `data`, or from CloudEvents. Pure.

    columnsFrom=fields        a column is the last pair of its name, as text (the default)
    columnsFrom=json          `data` holds a JSON object; a column is its member of that name
    columnsFrom=cloudevents   a column is an attribute of the event, or a member of its data; see `payloads.py`

What is missing is null. What does not fit its type is null too, and the record goes as text into the column named by
columnNameOfCorruptRecord (`_corrupt_record`) if the schema has it; with mode=FAILFAST it is a BadRecord instead. What
fits which type stands in `typed_values.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from headrace.client import layout
from headrace.errors import BadRecord, ConfigError
from headrace.pipeline.pages import Page
from headrace.pipeline.payloads import Columns, encode_name, join_masks, read_events, read_json
from headrace.pipeline.rows import STANDARD_SCHEMA, is_standard
from headrace.pipeline.typed_values import check_type, from_texts

KINDS: Final = ("fields", "json", "cloudevents")
MODES: Final = ("PERMISSIVE", "FAILFAST")
ALWAYS_THERE: Final = ("stream", "id", "id_ms", "id_seq", "fields", "pairs")  # Standard columns that are never null.
CORRUPT_COLUMN: Final = "_corrupt_record"
NOTHING_SUCH: Final = {
    "json": "has no JSON object in its field 'data'",
    "cloudevents": "has no CloudEvent with data that is a JSON object",
}
SHOWN_CHARACTERS: Final = 60  # Of a record in a message.


def make_decoder(
    schema: Any, columns_from: str | None = None, mode: str | None = None, corrupt_column: str | None = None
) -> "DeclaredColumns | None":
    """For an Arrow schema and the options as given. None where the schema has standard columns only."""
    kind = (columns_from or "fields").lower()
    if kind not in KINDS:
        raise ConfigError(f"columnsFrom is {columns_from!r}; write fields, json or cloudevents.")
    chosen = (mode or "PERMISSIVE").upper()
    if chosen not in MODES:
        raise ConfigError(f"mode is {mode!r}; write PERMISSIVE or FAILFAST.")
    declared = [field for field in schema if not is_standard(field)]
    corrupt = corrupt_column or CORRUPT_COLUMN
    for field in schema:
        check_field(field, corrupt)
    if not declared:
        return None
    return DeclaredColumns(pa.schema(declared), kind, chosen == "FAILFAST", corrupt)


def check_field(field: Any, corrupt_column: str) -> None:
    if is_standard(field):
        is_always_there = field.name in ALWAYS_THERE
    else:
        is_always_there = False
        check_type(field.type, field.name)
        if field.name in STANDARD_SCHEMA.names and with_nulls(field.type) == STANDARD_SCHEMA.field(field.name).type:
            raise ConfigError(f"column {field.name!r} is declared with parts that are not null. Declare them nullable.")
    if not field.nullable and not is_always_there:
        raise ConfigError(
            f"column {field.name!r} is declared as not null, but an entry may lack it. Declare it nullable."
        )
    if field.name == corrupt_column and not pa.types.is_string(field.type):
        raise ConfigError(f"column {field.name!r} takes the text of bad records. Declare it as string.")


def with_nulls(kind: Any) -> Any:
    """The same type, with null allowed everywhere in it."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, with_nulls(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, with_nulls(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(with_nulls(kind.key_type), with_nulls(kind.item_type))
    return kind


@dataclass(frozen=True, slots=True)
class DeclaredColumns:
    """Makes the declared columns of pages."""

    schema: Any  # Arrow; without the standard columns.
    columns_from: str
    fails: bool
    corrupt_column: str

    def make(self, page: Page, stream: str) -> dict[str, Any]:
        """One array per column, by name."""
        wanted = [field for field in self.schema if field.name != self.corrupt_column]
        if self.columns_from == "fields":
            columns = read_fields(page, wanted)
        elif self.columns_from == "json":
            columns = read_json(page, wanted)
        else:
            columns = read_events(page, wanted)
        if self.fails:
            reject_misfits(page, stream, wanted, columns, NOTHING_SUCH.get(self.columns_from, ""))
        arrays = {field.name: array for field, array in zip(wanted, columns.arrays, strict=True)}
        if self.schema.get_field_index(self.corrupt_column) >= 0:
            arrays[self.corrupt_column] = make_corrupt(page, columns)
        return arrays


def read_fields(page: Page, wanted: Sequence[Any]) -> Columns:
    pairs = [from_texts(page.last_values(encode_name(field.name)), field.type) for field in wanted]
    return Columns([array for array, _ in pairs], [misfits for _, misfits in pairs], None, None)


# Misfits


def reject_misfits(page: Page, stream: str, wanted: Sequence[Any], columns: Columns, nothing_such: str) -> None:
    """Raise a BadRecord for the first one."""
    misfits: list[tuple[Any, Any]] = [(None, columns.bad), *zip(wanted, columns.misfits, strict=True)]
    found = [(int(np.flatnonzero(mask)[0]), field) for field, mask in misfits if mask is not None]
    if not found:
        return
    place, field = min(found, key=lambda one: one[0])
    what = nothing_such if field is None else f"does not fit column {field.name!r} of type {spark_name(field.type)}"
    value = None
    if field is not None and columns.from_data is None:
        value = page.last_values(encode_name(field.name))[place].as_py()
    text = record_text(page, place, columns) if value is None else value.decode("utf-8", "replace")
    raise BadRecord(
        f"entry {page.ids[place].as_py().decode()} of stream {stream!r} {what}: {shorten(text or '')}; set the option "
        "mode to PERMISSIVE to read null instead."
    )


def spark_name(kind: Any) -> str:
    """What Spark calls a type of Arrow: int, and not int32."""
    from pyspark.sql.pandas.types import from_arrow_type

    return str(from_arrow_type(kind).simpleString())


def shorten(text: str) -> str:
    return repr(text) if len(text) <= SHOWN_CHARACTERS else repr(text[:SHOWN_CHARACTERS] + "…")


def make_corrupt(page: Page, columns: Columns) -> Any:
    """The text of the records that did not fit, null for the others."""
    is_bad = join_masks([columns.bad, *columns.misfits])
    texts: list[str | None] = [None] * page.count
    for place in [] if is_bad is None else np.flatnonzero(is_bad).tolist():
        texts[place] = record_text(page, place, columns)
    return pa.array(texts, pa.string())


def record_text(page: Page, place: int, columns: Columns) -> str | None:
    """What the columns were read from: `data`, or all fields as a JSON object."""
    if columns.from_data is not None and columns.from_data[place]:
        value = page.last_values(layout.DATA)[place].as_py()
        return None if value is None else str(value.decode("utf-8", "replace"))
    begin, end = page.pair_offsets[place : place + 2].tolist()
    names, values = page.names[begin:end].to_pylist(), page.values[begin:end].to_pylist()
    texts = [word.decode("utf-8", "replace") for word in names + values]
    return msgspec.json.encode(dict(zip(texts[: len(names)], texts[len(names) :], strict=True))).decode()

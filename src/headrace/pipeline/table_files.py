"""Rows of any columns -> Parquet files of a table, one per partition and task. Pure but for the files.

Columns have the types that Delta, Parquet and Spark share. A partition column is text, a whole number, a date or a
truth value; an empty text is null there, as in Spark.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import ConfigError
from headrace.pipeline.tables.files import FileWriter, new_file_name
from headrace.pipeline.tables.table import NewFile, Table, check_partition, partition_folder

MAX_OPEN_FILES: Final = 40  # Per task, each with a row group in memory; beyond, the one opened first is finished.
BAD_LETTERS: Final = " ,;{}()\n\t="  # Delta takes none of these in the name of a column.

Values = tuple[str | None, ...]  # Of the partition columns, as text.


class RowWriter:
    """Writes batches of rows to files that are not part of the table yet."""

    def __init__(self, table: Table, schema: Any, partition_by: tuple[str, ...]) -> None:
        self.table = table
        self.schema = schema
        self.partition_by = partition_by
        self.file_schema = pa.schema([field for field in schema if field.name not in partition_by])
        self.done: list[NewFile] = []
        self._open: dict[Values, tuple[str, dict[str, str | None], FileWriter]] = {}

    def write(self, batches: Iterable[Any]) -> list[NewFile]:
        try:
            for batch in batches:
                if batch.num_rows:
                    self._write_batch(fit(batch, self.schema))
            for key in list(self._open):
                self._close(key)
        except BaseException:
            for _, _, writer in self._open.values():
                writer.discard()
            raise
        return self.done

    def _write_batch(self, rows: Any) -> None:
        for key, part in split(rows, self.partition_by):
            if key not in self._open:
                self._open_file(key)
            self._open[key][2].write(part.select(self.file_schema.names))

    def _open_file(self, key: Values) -> None:
        if len(self._open) >= MAX_OPEN_FILES:
            self._close(next(iter(self._open)))
        partition = {name: value or None for name, value in zip(self.partition_by, key, strict=True)}
        check_partition({name: value for name, value in partition.items() if value is not None})
        folder = partition_folder(partition)
        path = f"{folder}/{new_file_name('rows')}" if folder else new_file_name("rows")
        self._open[key] = (path, partition, FileWriter(self.table.staging(path), self.file_schema))

    def _close(self, key: Values) -> None:
        path, partition, writer = self._open.pop(key)
        size_bytes = writer.close()
        self.done.append(NewFile(path, writer.rows, size_bytes, partition))


def fit(batch: Any, schema: Any) -> Any:
    """The batch with exactly the table's types, in its order."""
    columns = [batch.column(batch.schema.get_field_index(field.name)).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def split(rows: Any, partition_by: tuple[str, ...]) -> Iterator[tuple[Values, Any]]:
    """The rows of each partition, in their order, under its values."""
    if not partition_by:
        yield (), rows
        return
    columns = [rows.column(name).cast(pa.string()).dictionary_encode("encode") for name in partition_by]
    # Joined are the places of the values, not the values: these may hold any letter.
    keys = pc.binary_join_element_wise(*(one.indices.cast(pa.string()) for one in columns), ",").dictionary_encode()
    for place, key in enumerate(keys.dictionary.to_pylist()):
        values = tuple(one.dictionary[int(index)].as_py() for one, index in zip(columns, key.split(","), strict=True))
        yield values, rows if len(keys.dictionary) == 1 else rows.filter(pc.equal(keys.indices, place))


def without_constraints(schema: Any) -> Any:
    """The same columns, all of which may be null: what one batch lacks another may have."""
    return pa.schema([pa.field(field.name, relaxed(field.type)) for field in schema])


def relaxed(kind: Any) -> Any:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, relaxed(part.type)) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(relaxed(kind.key_type), relaxed(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", relaxed(kind.value_type)))
    return kind


def check_types(schema: Any, partition_by: tuple[str, ...]) -> None:
    for field in schema:
        if bad := [letter for letter in field.name if letter in BAD_LETTERS]:
            raise ConfigError(f"column {field.name!r} has {bad[0]!r} in its name, which tables do not take. Rename it.")
        if not is_storable(field.type):
            raise ConfigError(f"column {field.name} is {field.type}, which tables do not have. Cast it.")
    for name in partition_by:
        place = schema.get_field_index(name)
        if place < 0:
            raise ConfigError(f"partitionBy names {name!r}, and there is no such column.")
        if not is_partition_type(schema.field(place).type):
            kind = schema.field(place).type
            raise ConfigError(
                f"partitionBy names {name}, which is {kind}; use text, a whole number, a date or a boolean."
            )
    if len(schema) == len(set(partition_by)):
        raise ConfigError("every column is in partitionBy; leave at least one out.")


def is_storable(kind: Any) -> bool:
    types = pa.types
    if types.is_struct(kind):
        return bool(kind.num_fields) and all(is_storable(part.type) for part in kind)
    if types.is_map(kind):
        return is_storable(kind.key_type) and is_storable(kind.item_type)
    if types.is_list(kind):
        return is_storable(kind.value_type)
    tests = (
        types.is_boolean, types.is_signed_integer, types.is_floating, types.is_decimal, types.is_string,
        types.is_binary, types.is_date32, types.is_timestamp,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def is_partition_type(kind: Any) -> bool:
    tests = (pa.types.is_string, pa.types.is_signed_integer, pa.types.is_date32, pa.types.is_boolean)
    return any(test(kind) for test in tests)

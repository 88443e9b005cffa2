"""The rows of a DataFrame as plain values, one by one, and as one file: NDJSON, CSV or Parquet by its ending.

Rows arrive partition by partition, so a result may be larger than the driver's memory. Values are what JSON can hold,
and bytes: times as text in UTC, decimals as numbers. Parquet keeps Spark's types.
"""

import csv
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from headrace.errors import ConfigError, HeadraceError

ROWS_PER_CHUNK: Final = 10_000  # Of Parquet, held in memory.

Row = dict[str, Any]


def unique_names(names: list[str]) -> list[str]:
    """`select a.id, b.id` has two columns `id`; the second becomes `id_2`."""
    taken: set[str] = set(names)
    seen: set[str] = set()
    found = []
    for name in names:
        number, unique = 1, name
        while unique in seen or (number > 1 and unique in taken):
            number += 1
            unique = f"{name}_{number}"
        seen.add(unique)
        found.append(unique)
    return found


def read_rows(frame: Any, limit: int | None = None) -> Iterator[Row]:
    """The rows as plain values."""
    names = unique_names(frame.columns)
    kinds = [field.dataType for field in frame.schema.fields]
    for row in limited(frame, limit).toLocalIterator(prefetchPartitions=True):
        yield {name: plain(value, kind) for name, value, kind in zip(names, row, kinds, strict=True)}


def limited(frame: Any, limit: int | None) -> Any:
    return frame if limit is None else frame.limit(limit)


def plain(value: Any, kind: Any) -> Any:
    """What JSON can hold, and bytes, at any depth."""
    match kind.typeName():
        case _ if value is None:
            return None
        case "timestamp":  # Spark gives local time without a zone.
            return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case "timestamp_ntz" | "date" | "time":
            return value.isoformat()
        case "binary":
            return bytes(value)
        case "decimal":
            return int(value) if kind.scale == 0 else float(value)
        case "array":
            return [plain(item, kind.elementType) for item in value]
        case "map":
            return {str(plain(name, kind.keyType)): plain(item, kind.valueType) for name, item in value.items()}
        case "struct":
            fields = zip(kind.fields, value, strict=True)
            return {field.name: plain(item, field.dataType) for field, item in fields}
        case "long" | "integer" | "short" | "byte" | "double" | "float" | "boolean" | "string":
            return value
        case _:  # Intervals, variants and whatever Spark will have next.
            return str(value)


# Files


def write_file(frame: Any, path: str | Path, limit: int | None = None) -> int:
    """Write the rows to a file that appears when it is complete; how many there were."""
    target = Path(path)
    write = find_writer(target)
    with appearing(target) as partial:
        return write(frame, partial, limit)


def find_writer(path: str | Path) -> Callable[[Any, Path, int | None], int]:
    """By the ending of the name. Raises ConfigError for one that is none of ours, or where no file can be made."""
    path = Path(path)
    writers = {".ndjson": write_ndjson, ".json": write_ndjson, ".csv": write_csv, ".parquet": write_parquet}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise ConfigError(f"{path.name!r} does not say what to write: end it with .ndjson, .csv or .parquet.")
    if not path.parent.is_dir():
        raise ConfigError(f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}.")
    if not os.access(path.parent, os.W_OK) or path.is_dir():
        raise ConfigError(f"cannot write {str(path)!r}: it is a folder, or lies in one that you may not write to.")
    return writer


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """A name to write to; the file gets its own name at the end, and vanishes after a failure."""
    partial = target.with_name(target.name + ".partial")
    try:
        yield partial
        partial.replace(target)
    except OSError as error:
        raise HeadraceError(f"cannot write {str(target)!r}: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)


def write_ndjson(frame: Any, path: Path, limit: int | None) -> int:
    count = 0
    with path.open("wb") as file:
        for row in read_rows(frame, limit):
            file.write(msgspec.json.encode(with_text(row)) + b"\n")
            count += 1
    return count


def write_csv(frame: Any, path: Path, limit: int | None) -> int:
    """Lists, maps and structs are written as JSON; a missing value is an empty cell."""
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(unique_names(frame.columns))
        for row in read_rows(frame, limit):
            writer.writerow([csv_cell(value) for value in row.values()])
            count += 1
    return count


def csv_cell(value: Any) -> Any:
    value = with_text(value)
    return msgspec.json.encode(value).decode() if isinstance(value, (dict, list)) else value


def with_text(value: Any) -> Any:
    """Bytes as text; those that are not UTF-8 with backslash escapes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {name: with_text(item) for name, item in value.items()}
    if isinstance(value, list):
        return [with_text(item) for item in value]
    return value


def write_parquet(frame: Any, path: Path, limit: int | None) -> int:
    import pyarrow
    from pyarrow import parquet

    from headrace.pipeline.rows import to_arrow

    named = frame.toDF(*unique_names(frame.columns))
    schema = to_arrow(named.schema)
    rows = limited(named, limit).toLocalIterator(prefetchPartitions=True)
    count = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while chunk := list(islice(rows, ROWS_PER_CHUNK)):
            writer.write_table(
                pyarrow.Table.from_pylist([arrow_value(row, named.schema) for row in chunk], schema=schema)
            )
            count += len(chunk)
    return count


def arrow_value(value: Any, kind: Any) -> Any:
    """As pyarrow wants it: structs as dict, maps as pairs, times with their zone."""
    match kind.typeName():
        case _ if value is None:
            return None
        case "timestamp":
            return value.astimezone(UTC)
        case "array":
            return [arrow_value(item, kind.elementType) for item in value]
        case "map":
            pairs = value.items()
            return [(arrow_value(name, kind.keyType), arrow_value(item, kind.valueType)) for name, item in pairs]
        case "struct":
            fields = zip(kind.fields, value, strict=True)
            return {field.name: arrow_value(item, field.dataType) for field, item in fields}
        case _:
            return value

"""How entries lie in an archive: which columns are stored, how they are encoded, and the view that readers get.

Every byte is stored once. `pairs` holds the whole entry, byte for byte; `data` and `fields` would repeat it and make an
archive twice as large, so the view derives them (docs/decisions/005-archive-layout.md has the figures):

    stored     stream, day (partitions), id, id_ms, id_seq, timestamp, key, pairs
    view       the standard columns of the source, and day

Files are sorted by ID, and each holds entries of one stream and one day in UTC; day is null where IDs are no times.
"""

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import TableError
from headrace.pipeline.entry_ids import id_of
from headrace.pipeline.rows import STANDARD_DDL, STANDARD_SCHEMA
from headrace.pipeline.tables.table import StoredFile, Table, create_table

STORED_COLUMNS: Final = ("id", "id_ms", "id_seq", "timestamp", "key", "pairs")
FILE_SCHEMA: Final = pa.schema([STANDARD_SCHEMA.field(name) for name in STORED_COLUMNS])
ARCHIVE_SCHEMA: Final = pa.schema(
    [STANDARD_SCHEMA.field("stream"), *FILE_SCHEMA, pa.field("day", pa.date32())],
)
ARCHIVE_DDL: Final = (
    "stream string, id string, id_ms decimal(20,0), id_seq decimal(20,0), timestamp timestamp, key string, "
    "pairs array<struct<name:binary,value:binary>>, day date"
)
PARTITION_BY: Final = ("stream", "day")
# IDs and times grow by little from row to row; names repeat; values do not.
ENCODINGS: Final = {
    "id": "DELTA_BYTE_ARRAY",
    "timestamp": "DELTA_BINARY_PACKED",
    "id_seq": "DICTIONARY",
    "pairs.list.element.name": "DICTIONARY",
}
VERSION_PROPERTY: Final = "headrace.archive"
VERSION: Final = "1"

DATA_SQL: Final = "try_element_at(filter(pairs, pair -> pair.name = X'64617461'), -1).value"
TEXT_PAIRS_SQL: Final = (
    "transform(pairs, pair -> named_struct('name', make_valid_utf8(cast(pair.name as string)), "
    "'value', make_valid_utf8(cast(pair.value as string))))"
)
# Of equal names the last one: a pair stays if none behind it has its name.
FIELDS_SQL: Final = (
    f"map_from_entries(filter({TEXT_PAIRS_SQL}, (pair, place) -> NOT exists("
    f"slice({TEXT_PAIRS_SQL}, place + 2, greatest(size(pairs), 1)), later -> later.name = pair.name)))"
)
VIEW_COLUMNS: Final = (*(part.split()[0] for part in STANDARD_DDL.replace("(20,0)", "").split(", ")), "day")


def create_archive(path: Any, format: str | None = None) -> Table:
    """The archive in a folder, made if there is none. Raises TableError where the folder holds something else."""
    table = create_table(
        path, ARCHIVE_SCHEMA, format=format, partition_by=PARTITION_BY, properties={VERSION_PROPERTY: VERSION}
    )
    check_version(table)
    return table


def check_version(table: Table) -> None:
    version = table.properties.get(VERSION_PROPERTY)
    if version is None:
        raise TableError(f"the table at {table.path} is no archive of headrace's. Give another folder.")
    if version != VERSION:
        raise TableError(
            f"the archive at {table.path} has layout {version}, and this headrace knows {VERSION}. Update headrace."
        )


def find_first_id(table: Table, stream: str) -> int | None:
    """The lowest ID of a stream in the table; None where it has no entry of it."""
    ids = []
    files = [one for one in table.files() if one.partition.get("stream") == stream and one.rows]
    least_ms = min((int(one.least.get("id_ms", 0)) for one in files), default=0)
    for one in files:
        if int(one.least.get("id_ms", 0)) == least_ms:  # Files are sorted by ID: the first row tells.
            with pq.ParquetFile(one.path) as file:
                ids += [id_of(next(file.iter_batches(1, columns=["id"])).column("id")[0].as_py())]
    return min(ids, default=None)


def read_archive(spark: Any, table: Table, files: Iterable[StoredFile] | None = None) -> Any:
    """A DataFrame of the view over all files of the table, or over those given."""
    paths = [one.path for one in (table.files() if files is None else files)]
    if not paths:
        stored = spark.createDataFrame([], ARCHIVE_DDL)
    else:
        reader = spark.read.schema(ARCHIVE_DDL).option("basePath", str(table.path))
        stored = reader.parquet(*(escape_glob(path) for path in paths))
    return with_view(stored)


def with_view(stored: Any) -> Any:
    """The stored columns as the standard columns and day."""
    derived = {"data": DATA_SQL, "fields": FIELDS_SQL}
    return stored.selectExpr(*(f"{derived[name]} AS {name}" if name in derived else name for name in VIEW_COLUMNS))


def escape_glob(path: str) -> str:
    """Spark takes paths as patterns."""
    return "".join("\\" + letter if letter in "{}[]*?\\" else letter for letter in path)

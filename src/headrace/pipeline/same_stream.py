"""Whether a stream is the one that an archive has, where nothing in the broker says so any more.

The hold of an archive goes with its stream. So where it is missing, either somebody removed the group, or the stream
was deleted and made anew, or this is another broker. Only in the first case are its entries up to where the table goes
those of the table; in the others they were never archived, and nobody may take them for archived.
"""

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.client.client import Client
from headrace.errors import DataLoss
from headrace.pipeline.archive_layout import find_first_id
from headrace.pipeline.archives import make_hold, move_hold
from headrace.pipeline.entry_ids import id_of, text_of
from headrace.pipeline.ranges import Slice
from headrace.pipeline.reader import LossCheck, read_slice
from headrace.pipeline.rows import STANDARD_SCHEMA, make_batch
from headrace.pipeline.tables.table import Table

COMPARED: Final = pa.schema([STANDARD_SCHEMA.field(name) for name in ("id", "pairs")])
ENTRIES: Final = 100  # Another stream differs at once, as all its entries are others.


def keep_hold(client: Client, url: str, table: Table, name: str, stream: str, through: int) -> None:
    """Move the hold of an archive to the last entry that the table has. One that was removed is made again.

    Raises DataLoss where it is missing because this is another stream.
    """
    if not move_hold(client, name, stream, through):
        check_same(url, table, stream, through)
        make_hold(client, name, stream, text_of(through))


def check_same(url: str, table: Table, stream: str, through: int) -> None:
    """Raises DataLoss if the table lacks entries of the stream that lie between its own."""
    first = find_first_id(table, stream)
    if first is None:
        return
    live = first_rows(url, Slice(stream, text_of(max(0, first - 1)), text_of(through)))
    stored = find_rows(table, stream, set(live))
    for entry_id, pairs in live.items():
        if stored.get(entry_id) != pairs:
            raise DataLoss(
                f"stream {stream!r} is not the one that is archived up to {text_of(through)} at {table.path}: that has "
                f"no entry {entry_id} like the one here. It was deleted and made anew, or this is another broker. "
                "Archive it to another folder."
            )


def first_rows(url: str, piece: Slice) -> dict[str, Any]:
    for page in read_slice(url, piece, ENTRIES, LossCheck(fails=False)):
        return rows_of(make_batch(page, piece.stream, COMPARED, None))
    return {}


def find_rows(table: Table, stream: str, ids: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    wanted = pa.array(sorted(ids), pa.string())
    least, greatest = (edge(id_of(one) >> 64 for one in ids) for edge in (min, max)) if ids else (0, 0)
    for one in table.files():
        if one.partition.get("stream") != stream or int(one.least.get("id_ms", 0)) > greatest:
            continue
        if int(one.greatest.get("id_ms", least)) < least:
            continue
        with pq.ParquetFile(one.path) as file:
            for batch in file.iter_batches(columns=COMPARED.names):
                found |= rows_of(batch.filter(pc.is_in(batch.column("id"), wanted)))
    return found


def rows_of(batch: Any) -> dict[str, Any]:
    return {row["id"]: row["pairs"] for row in batch.to_pylist()}

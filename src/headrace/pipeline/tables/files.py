"""Arrow batches -> one Parquet file, written row group by row group and safe on disk when it is closed.

A file gets its name at the end, so one that has a name is whole: a task that dies leaves `.partial` files, and vacuum
removes those. The encodings are chosen by measurement, see docs/decisions/005-archive-layout.md.
"""

import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

ROW_GROUP_BYTES: Final = 32 << 20  # In memory: what a task holds per open file, and what a reader takes at a time.
ROW_GROUP_ROWS: Final = 500_000
COMPRESSION_LEVEL: Final = 1  # Of zstd: levels 3 to 9 take up to five times as long and give no smaller files.
PARTIAL: Final = ".partial"


class FileWriter:
    """One Parquet file in the making."""

    def __init__(self, target: Path, schema: Any, encodings: Mapping[str, str] | None = None) -> None:
        self.target = target
        self.rows = 0
        self._partial = target.with_name(target.name + PARTIAL)
        make_folder(target.parent)
        self._file = self._partial.open("wb")
        self._writer = pq.ParquetWriter(self._file, schema, **parquet_settings(schema, encodings or {}))
        self._waiting: list[Any] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0

    def write(self, batch: Any) -> None:
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= ROW_GROUP_BYTES or self._waiting_rows >= ROW_GROUP_ROWS:
            self._flush()

    def close(self) -> int:
        """Give the file its name; its size in bytes. It is on disk then, not only in the system's memory."""
        self._flush()
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        size_bytes = self._file.tell()
        self._file.close()
        self._partial.rename(self.target)
        sync_folder(self.target.parent)
        return size_bytes

    def discard(self) -> None:
        """Give up: nothing stays behind, also where closing fails as the disk is full."""
        self._partial.unlink(missing_ok=True)
        for one in (self._writer, self._file):
            with suppress(OSError):
                one.close()

    def _flush(self) -> None:
        if self._waiting:
            rows = self._waiting_rows
            self._writer.write_table(pa.Table.from_batches(self._waiting), row_group_size=max(rows, 1))
            self.rows += rows
            self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0


def parquet_settings(schema: Any, encodings: Mapping[str, str]) -> dict[str, Any]:
    """Dictionaries by default, and for some columns the encoding given. A column has one or the other."""
    if not encodings:
        return {"compression": "zstd", "compression_level": COMPRESSION_LEVEL}
    leaves = leaf_columns(schema)
    dictionary = [name for name in leaves if encodings.get(name) == "DICTIONARY"]
    others = {name: encodings[name] for name in leaves if encodings.get(name, "DICTIONARY") != "DICTIONARY"}
    return {
        "compression": "zstd",
        "compression_level": COMPRESSION_LEVEL,
        "use_dictionary": dictionary or False,
        "column_encoding": others,
    }


def leaf_columns(schema: Any) -> list[str]:
    """The columns as Parquet names them: `pairs.list.element.name`."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    found = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    return [found.column(index).path for index in range(len(found))]


def new_file_name(first: str) -> str:
    """A name nobody else has; `first` tells a person what is in it."""
    return f"{first}-{uuid.uuid4().hex[:12]}.parquet"


def make_folder(folder: Path) -> None:
    """With its parents, all safe on disk: a file is lost with the name of its folder."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in missing:
        sync_folder(one.parent)


def sync_folder(folder: Path) -> None:
    """Make names in a folder safe on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

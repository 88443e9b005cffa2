"""Tables in folders: the interface that Delta and plain Parquet share, and how one is opened or made.

A table is a list of Parquet files that only a commit changes. A commit is atomic, and it is exactly once: it says which
span of each stream it brings, or which batch of which query, and what the table has already is not added again.

    table = open_table("./archive")
    table.through()                          # {"orders": 1690275391705 << 64}: how far the table goes
    table.commit(files, spans={"orders": Span(after, through)})
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote, unquote

from headrace.errors import ConfigError, Refused, TableError
from headrace.pipeline.entry_ids import text_of

FORMATS: Final = ("delta", "parquet")
OWN_FOLDER: Final = (
    "_headrace"  # Beside the rows: staged files, checkpoints of queries. Readers pass over names with _.
)
NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"  # The folder of rows whose partition column is null, as in Hive.
MAX_NAME_BYTES: Final = 255  # Of a folder, on the usual file systems.
URL: Final = re.compile(r"[a-z][a-z0-9+.-]+://")


@dataclass(frozen=True, slots=True)
class Span:
    """What a commit brings of one stream: the IDs behind `after`, up to and with `through`, as numbers."""

    after: int
    through: int


@dataclass(frozen=True, slots=True)
class NewFile:
    """A Parquet file that a task has written, and that counts only once it is committed."""

    path: str  # Inside the table's folder.
    rows: int
    size_bytes: int
    partition: Mapping[str, str | None] = field(default_factory=dict)  # As text, as folder names have it.
    least: Mapping[str, Any] = field(default_factory=dict)  # Column -> its least value, as JSON has it.
    greatest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that is part of the table."""

    path: str  # Absolute.
    rows: int
    size_bytes: int
    partition: Mapping[str, str | None]
    least: Mapping[str, Any]
    greatest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Figures:
    rows: int
    size_bytes: int
    files: int


class Table(Protocol):
    """A table as it was when opened; `refresh` looks again. Nothing here prints or waits."""

    path: Path
    format: str
    schema: Any  # pyarrow
    partition_by: tuple[str, ...]
    properties: Mapping[str, str]

    def refresh(self) -> None: ...
    def through(self, streams: Iterable[str] = ()) -> dict[str, int]:
        """How far each stream is in the table, as ID numbers; those named too if no row of them is in it."""

    def has_batch(self, query: str, batch: int) -> bool: ...
    def files(self) -> list[StoredFile]: ...
    def figures(self) -> Figures: ...
    def staging(self, path: str) -> Path:
        """Where a task writes the file that will be at `path` inside the table once it is committed."""

    def commit(
        self,
        files: Iterable[NewFile],
        *,
        spans: Mapping[str, Span] | None = None,
        query: str | None = None,
        batch: int | None = None,
        overwrite: bool = False,
    ) -> bool:
        """Add the files. False: the table had all of it before. Raises Refused when it had a part of it."""

    def replace(self, old: Iterable[StoredFile], new: Iterable[NewFile]) -> None:
        """Put files with the same rows in the place of others."""

    def vacuum(self, retention_hours: int, *, dry_run: bool) -> list[str]:
        """Files that are part of no version younger than that; removed unless it is a dry run."""


def open_table(path: str | Path, format: str | None = None) -> Table:
    """The table in a folder. Raises TableError when there is none or it cannot be read."""
    folder = table_folder(path)
    found = find_format(folder)
    if found is None:
        reason = "there is no such folder" if not folder.exists() else "the folder holds no table of headrace's"
        raise TableError(f"no table at {folder}: {reason}.")
    if format is not None and format != found:
        raise TableError(f"the table at {folder} is of format {found}, not {format}. Leave the format out.")
    return load(folder, found)


def create_table(
    path: str | Path,
    schema: Any,
    *,
    format: str | None = None,
    partition_by: Iterable[str] = (),
    properties: Mapping[str, str] | None = None,
) -> Table:
    """A new table, of format delta unless told, or the one that is there if it has the same columns."""
    if format not in (None, *FORMATS):
        raise ConfigError(f"format is {format!r}; write delta or parquet.")
    folder = table_folder(path)
    if find_format(folder) is None:
        reject_other_content(folder)
        module(format or "delta").create(folder, schema, tuple(partition_by), dict(properties or {}))
    table = open_table(folder, format)
    check_columns(table, schema, tuple(partition_by))
    return table


def find_table(path: str | Path) -> Table | None:
    """As open_table, but None where there is nothing yet."""
    folder = table_folder(path)
    return None if find_format(folder) is None else open_table(folder)


def table_folder(path: str | Path) -> Path:
    text = str(path)
    if text.startswith("file://"):
        text = unquote(text.removeprefix("file://"))
    elif URL.match(text):
        scheme = text.partition("://")[0]  # The rest may hold a password.
        raise ConfigError(f"{scheme}://… is a URL; tables lie in folders. Give the path of one, or mount it.")
    return Path(text).expanduser().absolute()


def find_format(folder: Path) -> str | None:
    if (folder / "_delta_log").is_dir():
        return "delta"
    return "parquet" if (folder / OWN_FOLDER / "table.json").is_file() else None


def load(folder: Path, format: str) -> Table:
    table: Table = module(format).open_folder(folder)
    return table


def module(format: str) -> Any:
    return import_module(f"headrace.pipeline.tables.{format}")


def reject_other_content(folder: Path) -> None:
    """A table is made in a new folder or an empty one: what lies there is somebody's."""
    try:
        others = [item.name for item in folder.iterdir() if item.name != OWN_FOLDER] if folder.exists() else []
    except OSError as error:
        raise TableError(f"no table can be made at {folder}: {error.strerror}.") from error
    if others:
        raise TableError(
            f"no table can be made at {folder}: it holds other files, like {others[0]}. Give a new folder."
        )


def check_columns(table: Table, schema: Any, partition_by: tuple[str, ...]) -> None:
    have = {field.name: field.type for field in table.schema}
    for wanted in schema:
        if wanted.name not in have:
            raise TableError(f"the table at {table.path} has no column {wanted.name}. Give another folder.")
        if not same_type(have[wanted.name], wanted.type):
            raise TableError(
                f"column {wanted.name} of the table at {table.path} is {have[wanted.name]}, not {wanted.type}. "
                "Give another folder, or convert the column."
            )
    if missing := sorted(set(have) - {wanted.name for wanted in schema}):
        raise TableError(f"the table at {table.path} has a column {missing[0]} that the rows lack. Add it to them.")
    if table.partition_by != partition_by:
        have_text, want_text = ", ".join(table.partition_by) or "nothing", ", ".join(partition_by) or "nothing"
        raise TableError(f"the table at {table.path} is partitioned by {have_text}, not {want_text}.")


def same_type(one: Any, other: Any) -> bool:
    """Whether two Arrow types say the same. Names of inner list fields and nullability say nothing."""
    return bare(one) == bare(other)


def bare(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return "struct<" + ",".join(f"{part.name}:{bare(part.type)}" for part in kind) + ">"
    if pa.types.is_map(kind):
        return f"map<{bare(kind.key_type)},{bare(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{bare(kind.value_type)}>"
    return str(kind).removeprefix("large_")


def check_files(table: Table) -> None:
    """Whether all files are there in full length. Before anything is removed elsewhere because the table has it."""
    for stored in table.files():
        if wrong := find_damage(Path(stored.path), stored.size_bytes):
            raise TableError(f"the table at {table.path} is damaged: {wrong}.")


def check_new(table: Table, files: Iterable[NewFile]) -> None:
    """The same for files that a commit is about to add: somebody may have cleaned the folder since."""
    for new in files:
        if wrong := find_damage(table.staging(new.path), new.size_bytes):
            raise TableError(f"nothing was added to the table at {table.path}: {wrong}. Start again.")


def find_damage(path: Path, expected_bytes: int) -> str | None:
    try:
        size_bytes = path.stat().st_size
    except OSError as error:
        return f"{path}: {error.strerror}"
    return None if size_bytes == expected_bytes else f"{path} has {size_bytes} bytes instead of {expected_bytes}"


def is_new(through: Mapping[str, int], spans: Mapping[str, Span], where: Path) -> bool:
    """Whether the table has none of these spans (True) or ends with them (False). Raises Refused for all else.

    What comes twice is the last commit, after a crash. A span that ends before the table does is another stream of the
    same name, or another archive: it must not be taken for what the table has.
    """
    known = {stream: through[stream] for stream in spans if stream in through}
    if spans and all(known.get(stream) == span.through for stream, span in spans.items()):
        return False
    for stream, span in spans.items():
        there = known.get(stream)
        if there is None or there == span.after:
            continue
        if there > span.after:
            raise Refused(
                f"the table at {where} has {stream!r} up to {text_of(there)}, and this batch begins behind "
                f"{text_of(span.after)}: another archive writes to the same table, or the stream was deleted and made "
                "anew. Nothing was added; start it again."
            )
        raise Refused(
            f"the table at {where} has {stream!r} only up to {text_of(there)}, and this batch begins behind "
            f"{text_of(span.after)}: a part would be missing. Nothing was added; start the archive again."
        )
    return True


def partition_folder(partition: Mapping[str, str | None]) -> str:
    """`stream=orders/day=2026-11-15`, as Hive and Spark have it."""
    parts = (f"{name}={NO_VALUE if value is None else encode_value(value)}" for name, value in partition.items())
    return "/".join(parts)


def encode_value(value: str) -> str:
    """Whatever of ASCII a file system could misread is percent-encoded. Spark decodes byte by byte: the rest stays."""
    return "".join(letter if letter > "\x7f" else quote(letter, safe="") for letter in value) or NO_VALUE


def check_partition(partition: Mapping[str, str]) -> None:
    """Raises ConfigError for a value that is too long for the name of a folder, or no text, or reads as null."""
    for name, value in partition.items():
        if value in ("", NO_VALUE):
            raise ConfigError(f"{value!r} cannot be a {name}: readers of tables take it for null.")
        try:
            size_bytes = len(f"{name}={encode_value(value)}".encode())
        except UnicodeEncodeError:
            raise ConfigError(
                f"{value.encode('utf-8', 'surrogateescape')!r} is not UTF-8 and cannot be a {name}."
            ) from None
        if size_bytes > MAX_NAME_BYTES:
            raise ConfigError(f"{name} {value[:40]!r}… is too long for the name of a folder: {size_bytes} bytes.")

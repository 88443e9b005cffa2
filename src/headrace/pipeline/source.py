"""`format("headrace")`: what Spark calls to read streams and to write to streams, tables and archives.

These classes are thin. Options are read in `options.py`, positions are kept in `offsets.py`, spans are cut in
`ranges.py`, entries are fetched in `reader.py` and become rows in `rows.py`; the sinks have files of their own.
"""

import os
from importlib import import_module
from typing import Any

from pyspark.sql.datasource import DataSource

from headrace.errors import ConfigError
from headrace.pipeline.options import parse_sink_options

SINKS = {
    "stream": "headrace.pipeline.stream_sink",
    "table": "headrace.pipeline.table_sink",
    "archive": "headrace.pipeline.archive_sink",
}


class HeadraceDataSource(DataSource):
    """The format `headrace`. Spark makes one for each read or write, in a process of its own beside the driver."""

    @classmethod
    def name(cls) -> str:
        return "headrace"

    def writer(self, schema: Any, overwrite: bool) -> Any:
        return self.make_writer(schema, is_overwriting=overwrite, is_stream=False)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        return self.make_writer(schema, is_overwriting=overwrite, is_stream=True)

    def make_writer(self, schema: Any, *, is_overwriting: bool, is_stream: bool) -> Any:
        options = parse_sink_options(self.options, os.environ.get("HEADRACE_URL"))
        is_complete_mode = is_stream and is_overwriting  # To a stream, each batch then adds the whole result again.
        if is_overwriting and not (is_complete_mode and options.kind == "stream"):
            raise ConfigError(f"the {options.kind} sink only adds: write with the mode append.")
        return import_module(SINKS[options.kind]).make_writer(options, schema, is_stream=is_stream)

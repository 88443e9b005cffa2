"""A file that cannot be written leaves nothing behind: on a full disk every byte counts."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from headrace.pipeline.tables.files import FileWriter

SCHEMA = pa.schema([("word", pa.binary())])


@pytest.fixture
def small_disk() -> Iterator[None]:
    """No file of this process grows beyond 64 kB: writing more fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_disk")
def test_a_file_for_which_there_is_no_room_is_gone_when_it_is_given_up(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path / "day" / "1-0.parquet", SCHEMA)
    noise = Random(7)  # Nothing makes it smaller.
    writer.write(pa.record_batch([pa.array([noise.randbytes(1000) for _ in range(1000)])], SCHEMA))

    with pytest.raises(OSError, match="File too large"):
        writer.close()
    writer.discard()

    assert not any(one.is_file() for one in tmp_path.rglob("*"))

"""Whether the checkpoint of an archive still fits its table.

The table alone knows what is archived. The checkpoint adds what tells lost entries (see `offsets.py`), so it is kept
from run to run, but only while it agrees: its last batch, or the one before it, ends where the table ends. Otherwise,
and where it cannot be read, the archive begins a new one behind what the table has. Nothing is lost or doubled.

A folder that the user chose is the archive's own from the first run on: it says so in a file of its own. A folder with
anything else in it, like the checkpoint of another query, is neither followed nor removed.

Spark's layout: `offsets/N` is written before batch N runs: a line with the version, one of settings, one of positions.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headrace.errors import ConfigError, TableError
from headrace.pipeline.offsets import parse_offsets

VERSION: Final = "v1"
MARK: Final = "headrace-archive"  # The file that says whose checkpoint it is.


def fits(checkpoint: Path, positions: Mapping[str, int]) -> bool:
    """Whether a query may go on from it. `positions`: how far the table goes, for each stream that is archived."""
    batches = sorted(int(path.name) for path in (checkpoint / "offsets").glob("*") if path.name.isdecimal())
    if not batches:
        return False
    try:
        planned = read_positions(checkpoint, batches[-1])
        if agree(planned, positions):
            return True
        return len(batches) > 1 and agree(read_positions(checkpoint, batches[-2]), positions)
    except (OSError, ValueError, ConfigError):
        return False


def read_positions(checkpoint: Path, batch: int) -> dict[str, int]:
    version, _, offsets = (checkpoint / "offsets" / str(batch)).read_text().split("\n")[:3]
    if version != VERSION:
        raise ValueError(f"Spark's offset log has version {version}")
    return {stream: mark.id for stream, mark in parse_offsets(json.loads(offsets)).items()}


def agree(planned: Mapping[str, int], positions: Mapping[str, int]) -> bool:
    """A stream that is not in the plan yet would be read from its beginning."""
    return planned.keys() <= positions.keys() and all(
        planned.get(stream, 0) == positions[stream] for stream in positions
    )


def check_own(checkpoint: Path, owner: str) -> None:
    """Raises ConfigError unless the folder is empty, or missing, or the checkpoint of this owner."""
    try:
        if not checkpoint.exists() or not any(checkpoint.iterdir()):
            return
        if (checkpoint / MARK).is_file() and (checkpoint / MARK).read_text() == owner:
            return
    except (OSError, ValueError) as error:
        raise ConfigError(f"the checkpoint {checkpoint} cannot be used: {error}.") from error
    raise ConfigError(
        f"the folder {checkpoint} is not the checkpoint of this archive and holds other files. Give a new folder, or "
        "leave the checkpoint out."
    )


def claim(checkpoint: Path, owner: str) -> None:
    try:
        checkpoint.mkdir(parents=True, exist_ok=True)
        (checkpoint / MARK).write_text(owner)
    except OSError as error:
        raise TableError(f"the checkpoint {checkpoint} cannot be written: {error.strerror}.") from error


def discard(checkpoint: Path) -> None:
    try:
        shutil.rmtree(checkpoint)
    except FileNotFoundError:
        return
    except OSError as error:
        raise TableError(f"the checkpoint {checkpoint} cannot be removed: {error.strerror}.") from error

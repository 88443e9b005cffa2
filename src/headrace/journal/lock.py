"""One process at a time: the lock of a folder.

The system lets go of it when the process ends, however it ends, so nothing is left to be cleaned up by hand. The file
holds the number of the process, for the sentence that a second one gets.
"""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

from headrace.errors import ConfigError
from headrace.journal.disk import cannot_use

NAME: Final = "lock"


def folder_id(path: Path) -> str:
    """Tells a folder in use from every other, also on other machines: the lock's place on the disk and its time."""
    found = (path / NAME).stat()
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}"


def lock_folder(path: Path, advice: str = "Stop it, or choose another with --dir.") -> int:
    """Take the lock; the descriptor holds it until it is closed. ConfigError when another process has it."""
    descriptor = try_lock(path)
    if descriptor is None:
        raise ConfigError(f"The folder {path} is in use by process {find_holder(path)}. {advice}")
    return descriptor


def try_lock(path: Path) -> int | None:
    """The same; None when another process has it."""
    try:
        descriptor = os.open(path / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise cannot_use(path, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        os.close(descriptor)
        raise ConfigError(
            f"The folder {path} cannot be locked ({error.strerror or error}). It has to be on a local disk."
        ) from error
    with contextlib.suppress(OSError):  # On a full disk the number is missing; the lock holds without it.
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b"%d\n" % os.getpid())
    return descriptor


def find_holder(path: Path) -> str:
    """The number of the process that took the lock last, for a message."""
    try:
        return (path / NAME).read_text("ascii", "replace").strip() or "(unknown)"
    except OSError:
        return "(unknown)"

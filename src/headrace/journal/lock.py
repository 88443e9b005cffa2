"""One process at a time: the lock of a folder.

The system lets go of it when the process ends, however it ends, so nothing is left to be cleaned up by hand. The file
holds the number of the process, for the sentence that a second one gets.
"""

import fcntl
import os
from pathlib import Path
from typing import Final

from headrace.errors import ConfigError

NAME: Final = "lock"


def lock_folder(path: Path) -> int:
    """Take the lock; the descriptor holds it until it is closed. ConfigError when another process has it."""
    try:
        descriptor = os.open(path / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"Cannot use the folder {path}: {error.strerror or error}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise ConfigError(
            f"The folder {path} is in use by process {holder or '(unknown)'}. Stop it, or choose another with --dir."
        ) from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, b"%d\n" % os.getpid())
    return descriptor

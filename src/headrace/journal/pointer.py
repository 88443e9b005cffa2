"""Where the process listens that hosts a folder: the file `host` in it.

    {"pid": 4711, "socket": "/run/user/1000/headrace/5f3a9c….sock", "machine": "…", "started_ms": 1790000000000}

The host writes it when it listens, whole or not at all, and removes it when it ends. One that was killed leaves it
behind: nobody answers at its socket then, and whoever gets the folder's lock writes a new one. So the file is a hint,
and the lock is what counts.

The socket is not in the folder, whose path may be longer than a socket's may be, but in a directory that only this user
can enter: $XDG_RUNTIME_DIR/headrace, or headrace-UID beside other temporary files.
"""

import contextlib
import itertools
import json
import os
import platform
import secrets
import socket
import stat
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from headrace.errors import ConfigError
from headrace.journal.disk import advice_on

NAME: Final = "host"
NEW_NAME: Final = "host.new"
MOST_BYTES: Final = 4096  # A longer file is none of ours.
SOCKET_PATH_BYTES: Final = 103  # The system's limit is 107 on Linux, 103 on macOS.
SOCKET_NAME_BYTES: Final = 8
OLD_S: Final = 600  # A younger socket may be one whose host does not listen yet.
SWEPT: Final = 100  # Socket files looked at when a new one is made.


@dataclass(frozen=True, slots=True)
class Pointer:
    """Who hosts the folder, and where."""

    pid: int
    socket: str
    machine: str
    started_ms: int

    @property
    def is_here(self) -> bool:
        """Whether it was written on this machine: a folder on a network drive may be seen from several."""
        return self.machine == platform.node()


def new_pointer(socket_path: str) -> Pointer:
    """This process listens there."""
    return Pointer(os.getpid(), socket_path, platform.node(), time.time_ns() // 1_000_000)


def read_pointer(folder: Path) -> Pointer | None:
    """None when there is none, or none that can be understood."""
    try:
        with (folder / NAME).open("rb") as file:
            found = json.loads(file.read(MOST_BYTES))
        pointer = Pointer(found["pid"], found["socket"], found["machine"], found["started_ms"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    kinds = (pointer.pid, int), (pointer.socket, str), (pointer.machine, str), (pointer.started_ms, int)
    return pointer if all(isinstance(value, kind) for value, kind in kinds) else None


def write_pointer(folder: Path, pointer: Pointer) -> None:
    """To be called with the lock held."""
    draft = folder / NEW_NAME
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - an open descriptor.
            json.dump(asdict(pointer), file)
        draft.replace(folder / NAME)
    except OSError as error:
        raise ConfigError(
            f"Cannot write to the folder {folder}: {error.strerror or error}. {advice_on(error)}".rstrip()
        ) from error


def remove_pointer(folder: Path) -> None:
    """To be called with the lock held."""
    with contextlib.suppress(OSError):
        (folder / NAME).unlink()


def answers(pointer: Pointer) -> bool:
    """Whether somebody listens at the socket. A process that is stopped does: only its calls get no answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(pointer.socket)
        except (OSError, ValueError):  # ValueError: a path with a zero byte.
            return False
    return True


def make_socket_path() -> str:
    """A new name, in a directory of this user alone."""
    name = secrets.token_hex(SOCKET_NAME_BYTES) + ".sock"
    # Not by `tempfile`, which tries to write: a full disk must not keep a broker from starting.
    temporary = [os.environ.get("TMPDIR") or "/tmp", "/tmp"]  # noqa: S108 - checked below.
    places = [Path(place) / f"headrace-{os.getuid()}" for place in temporary]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        places.insert(0, Path(runtime) / "headrace")
    for place in places:
        path = str(place / name)
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES and os.access(place.parent, os.W_OK):
            make_own_directory(place)
            sweep(place)
            return path
    raise ConfigError("there is no place for a socket file. Set XDG_RUNTIME_DIR to a short path.")


def sweep(directory: Path) -> None:
    """Remove sockets of hosts that were killed."""
    before_s = time.time() - OLD_S
    for entry in itertools.islice(directory.glob("*.sock"), SWEPT):
        with contextlib.suppress(OSError):
            if entry.lstat().st_mtime < before_s and is_dead(str(entry)):
                entry.unlink()


def is_dead(path: str) -> bool:
    """Whether there is a socket file that nobody listens at."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def remove_socket(path: str) -> None:
    with contextlib.suppress(OSError):
        Path(path).unlink()


def make_own_directory(path: Path) -> None:
    """Made when it is missing; refused when somebody else could look into it, or it leads elsewhere."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        facts = path.lstat()
    except OSError as error:
        raise ConfigError(f"Cannot use {path} for a socket file: {error.strerror or error}.") from error
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise ConfigError(f"{path} is not a directory of this user alone. Remove it, or set XDG_RUNTIME_DIR.")

